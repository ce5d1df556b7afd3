/** POST to a collection. */
import type { ApiResponse } from '@coracle/runtime/http/seam';
import { createObject, dropsStatus } from '../../registry/create.ts';
import { decodeBody, sentBody } from '../body.ts';
import type { Exchange } from '../exchange.ts';
import { parseWriteOptions } from '../query.ts';
import { representationOf } from '../responses.ts';
import { writeCall, writeResponse } from '../write-request.ts';

export async function createVerb(exchange: Exchange): Promise<ApiResponse> {
  const { resource: info } = exchange;
  const representation = representationOf(exchange);
  const options = parseWriteOptions(exchange.query, 'CreateOptions');
  const { fieldValidation } = options;
  const object = exchange.isLarge
    ? sentBody(exchange, 'create', options)
    : decodeBody(exchange, { info, fieldValidation, dropStatus: dropsStatus(info) });
  const result = await createObject(exchange.server.registry, { ...writeCall(exchange, options), object });
  return writeResponse(exchange, { result, representation });
}
