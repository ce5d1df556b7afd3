/** PUT of an object or of a subresource that has the object's own shape (status, finalize). */
import type { ApiResponse } from '../../../base/http/seam.ts';
import { updateObject } from '../../registry/update.ts';
import { decodeObjectBody } from '../body.ts';
import type { Exchange } from '../exchange.ts';
import { parseWriteOptions } from '../query.ts';
import { representationOf } from '../responses.ts';
import { authorizeCreate, writeCall, writeResponse } from '../write-request.ts';

export async function updateVerb(exchange: Exchange): Promise<ApiResponse> {
  const representation = representationOf(exchange);
  const options = parseWriteOptions(exchange.query, 'UpdateOptions');
  const object = await decodeObjectBody(exchange, {
    info: exchange.resource,
    fieldValidation: options.fieldValidation,
    dropStatus: false,
  });
  const result = await updateObject(exchange.server.registry, {
    ...writeCall(exchange, options),
    object,
    authorizeCreate: () => authorizeCreate(exchange),
  });
  return writeResponse(exchange, { result, representation });
}
