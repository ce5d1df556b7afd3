import type { ApiResponse } from '@coracle/runtime/http/seam';
import { deleteObject } from '../../registry/delete.ts';
import { deleteCollection } from '../../registry/delete-collection.ts';
import { encodeObject } from '../../registry/versioned-view.ts';
import { parseDeleteOptions } from '../delete-options.ts';
import type { Exchange } from '../exchange.ts';
import { encodedResponse, objectResponse, representationOf, successStatus } from '../responses.ts';
import { writeCall } from '../write-request.ts';
import { listCall, listResponse } from './list.ts';

/** DELETE of one object: a Status when it is gone, the object when it has to wait. */
export async function deleteVerb(exchange: Exchange): Promise<ApiResponse> {
  const { resource: info } = exchange;
  const representation = representationOf(exchange);
  const { options, dryRun } = parseDeleteOptions(exchange);
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

/** DELETE of a collection: answers with the list of what was asked to go. */
export async function deleteCollectionVerb(exchange: Exchange): Promise<ApiResponse> {
  const representation = representationOf(exchange);
  const { options, dryRun } = parseDeleteOptions(exchange);
  const { options: listOptions, selection } = listCall(exchange);
  const listed = await deleteCollection(exchange.server.registry, {
    ...writeCall(exchange, { dryRun, fieldManager: '' }),
    options: listOptions,
    selection,
    signal: exchange.request.signal,
    delete: options,
  });
  return listResponse(exchange, { listed, representation });
}
