/** GET, PUT and PATCH of `/scale`. */

import type { UnstructuredObject } from '@coracle/apimachinery/meta/object';
import type { ResourceInfo } from '@coracle/apimachinery/types/resource';
import type { ApiResponse } from '@coracle/runtime/http/seam';
import { bodyKind, SCALE } from '../../kinds/builtin/body-kinds.ts';
import { guaranteedUpdate } from '../../registry/guaranteed-update.ts';
import { matchName, matchNamespace } from '../../registry/object-metadata.ts';
import { NO_REPLICAS, scaleOf, scalePathsOf, withScale } from '../../registry/scale.ts';
import { prepareViews, viewObject } from '../../registry/versioned-view.ts';
import type { FieldManagement } from '../../registry/write-contract.ts';
import { decodeObjectBody } from '../body.ts';
import type { Exchange } from '../exchange.ts';
import { checkPatchOptions, type PatchDocument, readPatch } from '../patch-document.ts';
import { appliedConfig, nameIn, patchedObject } from '../patched-object.ts';
import { parseWriteOptions, type WriteOptions } from '../query.ts';
import { scaleRepresentation, scaleResponse } from '../scale-response.ts';
import { writeCall } from '../write-request.ts';
import { storedObject } from './get.ts';

export function getScaleVerb(exchange: Exchange): ApiResponse | Promise<ApiResponse> {
  const { resource: info } = exchange;
  scaleRepresentation(exchange);
  const stored = storedObject(exchange);
  const paths = scalePathsOf(exchange.subresource!);
  const answer = (): ApiResponse => scaleResponse(exchange, scaleOf(info, viewObject(info, stored), paths));
  const views = prepareViews(info, [stored], { again: true });
  return views ? views.then(answer) : answer();
}

export async function updateScaleVerb(exchange: Exchange): Promise<ApiResponse> {
  const options = parseWriteOptions(exchange.query, 'UpdateOptions');
  const { fieldValidation } = options;
  const scale = await decodeObjectBody(exchange, { info: scaleKind(), fieldValidation, dropStatus: false });
  matchNamespace(scale.metadata, exchange.namespace);
  matchName(scale.metadata, exchange.info.name);
  return writeScale(exchange, { options, wanted: () => scale });
}

export async function patchScaleVerb(exchange: Exchange): Promise<ApiResponse> {
  const { resource: info } = exchange;
  const paths = scalePathsOf(exchange.subresource!);
  const patch = readPatch(exchange, info);
  if (patch.type === 'apply') return applyScale(exchange, patch);
  const options = parseWriteOptions(exchange.query, 'PatchOptions');
  checkPatchOptions(patch, options);
  return writeScale(exchange, {
    options,
    wanted(current) {
      const shown = scaleOf(info, current, paths, info.strategy.custom ? NO_REPLICAS : undefined);
      return patchedObject(exchange, { info: scaleKind(), current: shown, patch, options });
    },
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
      const scale = appliedConfig(exchange, { info: scaleKind(), patch, options });
      const named = nameIn(patch);
      if (named.name) matchName(named, exchange.info.name);
      const bare = { apiVersion: live.apiVersion, kind: live.kind, metadata: { name, namespace } };
      const config = withScale(call, bare as UnstructuredObject, { scale, paths });
      const change = { info, subresource, manager, live, now: registry.clock.now() };
      return fields.apply(change, { config, force: options.force === true });
    },
  });
  return scaleResponse(exchange, scaleOf(info, result.object, paths));
}

const scaleKind = (): ResourceInfo => bodyKind(SCALE)!;

async function writeScale(
  exchange: Exchange,
  {
    options,
    wanted,
  }: { readonly options: WriteOptions; readonly wanted: (current: Readonly<UnstructuredObject>) => UnstructuredObject },
): Promise<ApiResponse> {
  const { resource: info, server } = exchange;
  const paths = scalePathsOf(exchange.subresource!);
  const call = writeCall(exchange, options);
  const result = await guaranteedUpdate(server.registry, {
    ...call,
    pinned: false,
    patch: true,
    next: (current) => withScale(call, current, { scale: wanted(current), paths }),
  });
  return scaleResponse(exchange, scaleOf(info, result.object, paths));
}
