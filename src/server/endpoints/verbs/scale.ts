/** GET, PUT and PATCH of `/scale`. */

import type { UnstructuredObject } from '../../../api/meta/object.ts';
import { isJsonObject } from '../../../api/meta/own-property.ts';
import { badRequest } from '../../../api/meta/status.ts';
import type { ApiResponse } from '../../../base/http/seam.ts';
import { guaranteedUpdate } from '../../registry/guaranteed-update.ts';
import { matchName, matchNamespace } from '../../registry/object-metadata.ts';
import { scaleOf, scalePathsOf, withScale } from '../../registry/scale.ts';
import { viewObject } from '../../registry/versioned-view.ts';
import { parseBody } from '../body.ts';
import type { Exchange } from '../exchange.ts';
import { applyPatch, readPatch } from '../patch-document.ts';
import { parseWriteOptions } from '../query.ts';
import { documentResponse } from '../responses.ts';
import { writeCall } from '../write-request.ts';
import { storedObject } from './get.ts';

export function getScaleVerb(exchange: Exchange): ApiResponse {
  const { resource: info } = exchange;
  const object = viewObject(info, storedObject(exchange));
  return documentResponse(exchange, {
    status: 200,
    object: scaleOf(info, object, scalePathsOf(exchange.subresource!)),
  });
}

export async function updateScaleVerb(exchange: Exchange): Promise<ApiResponse> {
  const scale = checkedScale(exchange, parseBody(exchange, undefined).value);
  return writeScale(exchange, { kind: 'UpdateOptions', wanted: () => scale });
}

export async function patchScaleVerb(exchange: Exchange): Promise<ApiResponse> {
  const { resource: info } = exchange;
  const paths = scalePathsOf(exchange.subresource!);
  const patch = readPatch(exchange, info);
  if (patch.type === 'apply') throw badRequest('apply is not supported on the scale subresource: use a merge patch');
  return writeScale(exchange, {
    kind: 'PatchOptions',
    wanted: (current) =>
      // A Scale has no lists, so strategic merge and merge are the same.
      checkedScale(
        exchange,
        applyPatch({ schema: {} }, { document: scaleOf(info, current, paths), patch: asMerge(patch) }),
      ),
  });
}

const asMerge = (patch: ReturnType<typeof readPatch>): ReturnType<typeof readPatch> =>
  patch.type === 'strategic' ? { ...patch, type: 'merge' } : patch;

async function writeScale(
  exchange: Exchange,
  {
    kind,
    wanted,
  }: { readonly kind: string; readonly wanted: (current: Readonly<UnstructuredObject>) => UnstructuredObject },
): Promise<ApiResponse> {
  const { resource: info, server } = exchange;
  const options = parseWriteOptions(exchange.query, kind);
  const paths = scalePathsOf(exchange.subresource!);
  const result = await guaranteedUpdate(server.registry, {
    ...writeCall(exchange, options),
    pinned: false,
    patch: true,
    next: (current) => withScale(current, { scale: wanted(current), paths }),
  });
  return documentResponse(exchange, { status: 200, object: scaleOf(info, result.object, paths) });
}

function checkedScale(exchange: Exchange, value: unknown): UnstructuredObject {
  if (!isJsonObject(value)) throw badRequest('a Scale must be a JSON object');
  const scale = value as UnstructuredObject;
  if ((scale.kind ?? 'Scale') !== 'Scale' || !(scale.apiVersion ?? 'autoscaling/').startsWith('autoscaling/')) {
    throw badRequest(`${scale.kind} in version "${scale.apiVersion}" cannot be handled as a Scale`);
  }
  if (!isJsonObject(scale.metadata)) scale.metadata = {};
  matchName(scale.metadata, exchange.info.name, exchange.namespace);
  matchNamespace(scale.metadata, exchange.namespace);
  return scale;
}
