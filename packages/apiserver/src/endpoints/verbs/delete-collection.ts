/** DELETE of a collection: answers with the list of what was asked to go. */
import type { ApiResponse } from '@coracle/runtime/http/seam';
import { deleteCollection } from '../../registry/delete-collection.ts';
import { warnAboutDelete } from '../../registry/write-warnings.ts';
import { parseDeleteOptions } from '../delete-options.ts';
import type { Exchange } from '../exchange.ts';
import { representationOf } from '../responses.ts';
import { writeCall } from '../write-request.ts';
import { listCall, listResponse } from './list.ts';

export async function deleteCollectionVerb(exchange: Exchange): Promise<ApiResponse> {
  const representation = representationOf(exchange);
  const { options, dryRun } = parseDeleteOptions(exchange);
  warnAboutDelete(exchange.resource, options, exchange.warn);
  const call = listCall(exchange);
  const listed = await deleteCollection(exchange.server.registry, {
    ...writeCall(exchange, { dryRun, fieldManager: '' }),
    info: call.info,
    namespace: call.namespace,
    options: call.options,
    selection: call.selection,
    signal: exchange.request.signal,
    delete: options,
  });
  return listResponse(exchange, { listed, representation });
}
