/** GET, PUT and PATCH of `/scale`. */

import { cloneJson } from '../../../api/meta/deep-clone.ts';
import type { UnstructuredObject } from '../../../api/meta/object.ts';
import { isJsonObject } from '../../../api/meta/own-property.ts';
import { badRequest } from '../../../api/meta/status.ts';
import type { ApiResponse } from '../../../base/http/seam.ts';
import { guaranteedUpdate } from '../../registry/guaranteed-update.ts';
import { matchName, matchNamespace } from '../../registry/object-metadata.ts';
import { NO_REPLICAS, scaleOf, scalePathsOf, withScale } from '../../registry/scale.ts';
import { prepareViews, viewObject } from '../../registry/versioned-view.ts';
import type { FieldManagement } from '../../registry/write-call.ts';
import { parseBody } from '../body.ts';
import type { Exchange } from '../exchange.ts';
import { applyPatch, checkPatchOptions, type PatchDocument, readPatch } from '../patch-document.ts';
import { parseWriteOptions } from '../query.ts';
import { scaleResponse } from '../scale-response.ts';
import { writeCall } from '../write-request.ts';
import { storedObject } from './get.ts';

export function getScaleVerb(exchange: Exchange): ApiResponse | Promise<ApiResponse> {
  const { resource: info } = exchange;
  const stored = storedObject(exchange);
  const paths = scalePathsOf(exchange.subresource!);
  const answer = (): ApiResponse => scaleResponse(exchange, scaleOf(info, viewObject(info, stored), paths));
  const views = prepareViews(info, [stored], { again: true });
  return views ? views.then(answer) : answer();
}

export async function updateScaleVerb(exchange: Exchange): Promise<ApiResponse> {
  const scale = checkedScale(exchange, parseBody(exchange, undefined).value);
  return writeScale(exchange, { kind: 'UpdateOptions', wanted: () => scale });
}

export async function patchScaleVerb(exchange: Exchange): Promise<ApiResponse> {
  const { resource: info } = exchange;
  const paths = scalePathsOf(exchange.subresource!);
  const patch = await readPatch(exchange, info);
  if (patch.type === 'apply') return applyScale(exchange, patch);
  return writeScale(exchange, {
    kind: 'PatchOptions',
    wanted: (current) =>
      // A Scale has no lists, so strategic merge and merge are the same.
      checkedScale(
        exchange,
        applyPatch(
          { schema: {} },
          {
            document: scaleOf(info, current, paths, info.strategy.custom ? NO_REPLICAS : undefined),
            patch: asMerge(patch),
          },
        ),
      ),
  });
}

/** Server-side apply of a Scale: the manager comes to own the replica count of the object behind it. */
async function applyScale(exchange: Exchange, patch: PatchDocument): Promise<ApiResponse> {
  const { resource: info, server } = exchange;
  const { registry } = server;
  const options = parseWriteOptions(exchange.query, 'PatchOptions');
  checkPatchOptions(patch, options);
  const fields = registry.fields as FieldManagement;
  const paths = scalePathsOf(exchange.subresource!);
  const call = writeCall(exchange, options);
  const { subresource, manager } = call;
  const result = await guaranteedUpdate(registry, {
    ...call,
    pinned: false,
    patch: true,
    tracked: true,
    next: (live) => {
      const { name, namespace } = live.metadata;
      const given = cloneJson(patch.value) as UnstructuredObject;
      const scale = checkedScale(exchange, { ...given, metadata: { name, ...given.metadata } });
      const bare = { apiVersion: live.apiVersion, kind: live.kind, metadata: { name, namespace } };
      const config = withScale(info, bare as UnstructuredObject, { scale, paths });
      const change = { info, subresource, manager, live, now: registry.clock.now() };
      return fields.apply(change, { config, force: options.force === true });
    },
  });
  return scaleResponse(exchange, scaleOf(info, result.object, paths));
}

const asMerge = (patch: PatchDocument): PatchDocument =>
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
    next: (current) => withScale(info, current, { scale: wanted(current), paths }),
  });
  return scaleResponse(exchange, scaleOf(info, result.object, paths));
}

function checkedScale(exchange: Exchange, value: unknown): UnstructuredObject {
  if (!isJsonObject(value)) throw badRequest('a Scale must be a JSON object');
  const scale = value as UnstructuredObject;
  if ((scale.kind ?? 'Scale') !== 'Scale' || !(scale.apiVersion ?? 'autoscaling/').startsWith('autoscaling/')) {
    throw badRequest(`${scale.kind} in version "${scale.apiVersion}" cannot be handled as a Scale`);
  }
  if (!isJsonObject(scale.metadata)) scale.metadata = {};
  matchNamespace(scale.metadata, exchange.namespace);
  matchName(scale.metadata, exchange.info.name);
  return scale;
}
