/** PUT of an object or of a subresource that has the object's own shape (status, finalize). */
import type { ApiResponse } from '@coracle/runtime/http/seam';
import { updateLarge, updateObject } from '../../registry/update.ts';
import type { SentBody } from '../../registry/write-contract.ts';
import { decodeBody, sentBody } from '../body.ts';
import type { Exchange } from '../exchange.ts';
import { parseWriteOptions } from '../query.ts';
import { representationOf } from '../responses.ts';
import { authorizeCreate, writeCall, writeResponse } from '../write-request.ts';

export async function updateVerb(exchange: Exchange): Promise<ApiResponse> {
  const representation = representationOf(exchange);
  const options = parseWriteOptions(exchange.query, 'UpdateOptions');
  const { registry } = exchange.server;
  const call = { ...writeCall(exchange, options), authorizeCreate: () => authorizeCreate(exchange) };
  const sent = (): SentBody => sentBody(exchange, 'update', options);
  const { fieldValidation } = options;
  const result = exchange.isLarge
    ? await updateLarge(registry, { ...call, sent: sent() })
    : await updateObject(registry, {
        ...call,
        sent,
        object: decodeBody(exchange, { info: exchange.resource, fieldValidation, dropStatus: false }),
      });
  return writeResponse(exchange, { result, representation });
}
