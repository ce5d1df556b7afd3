/** DELETE of one object: a Status when it is gone, the object when it has to wait. */
import type { ApiResponse } from '@coracle/runtime/http/seam';
import { deleteObject } from '../../registry/delete.ts';
import { encodeObject } from '../../registry/versioned-view.ts';
import { warnAboutDelete } from '../../registry/write-warnings.ts';
import { parseDeleteOptions } from '../delete-options.ts';
import type { Exchange } from '../exchange.ts';
import { encodedResponse, objectResponse, representationOf, successStatus } from '../responses.ts';
import { writeCall } from '../write-request.ts';

export async function deleteVerb(exchange: Exchange): Promise<ApiResponse> {
  const { resource: info } = exchange;
  const representation = representationOf(exchange);
  const { options, dryRun } = parseDeleteOptions(exchange);
  warnAboutDelete(info, options, exchange.warn);
  const { removed, stored, object } = await deleteObject(exchange.server.registry, {
    ...writeCall(exchange, { dryRun, fieldManager: '' }),
    options,
  });
  // Only the deprecated orphanDependents=false announces "accepted".
  const status = !removed && options.orphanDependents === false ? 202 : 200;
  if (!removed || info.strategy.deleteReturnsObject) {
    return objectResponse(exchange, { status, representation, stored, object });
  }
  const answer = successStatus(200, { info, name: exchange.info.name, uid: object.metadata.uid });
  return encodedResponse({ status, bytes: encodeObject(answer), representation });
}
