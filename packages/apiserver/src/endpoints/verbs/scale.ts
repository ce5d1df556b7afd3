/** GET, PUT and PATCH of `/scale`: the Scale itself, or the columns upstream has for one (`kubectl get --subresource=scale`). */

import type { UnstructuredObject } from '@coracle/apimachinery/meta/object';
import { isJsonObject } from '@coracle/apimachinery/meta/own-property';
import { age } from '@coracle/apimachinery/types/age';
import type { PrinterColumn, ResourceInfo } from '@coracle/apimachinery/types/resource';
import type { ApiResponse } from '@coracle/runtime/http/seam';
import { bodyKind, SCALE } from '../../kinds/builtin/body-kinds.ts';
import { guaranteedUpdate } from '../../registry/guaranteed-update.ts';
import { matchName, matchNamespace } from '../../registry/object-metadata.ts';
import { NO_REPLICAS, scaleOf, scalePathsOf, withScale } from '../../registry/scale.ts';
import { encodeObject, prepareViews, viewObject } from '../../registry/versioned-view.ts';
import type { FieldManagement } from '../../registry/write-contract.ts';
import { decodeObjectBody } from '../body.ts';
import type { Exchange } from '../exchange.ts';
import type { Representation } from '../negotiation.ts';
import { checkPatchOptions, type PatchDocument, readPatch } from '../patch-document.ts';
import { appliedConfig, nameIn, patchedObject } from '../patched-object.ts';
import { parseWriteOptions, type WriteOptions } from '../query.ts';
import { encodedResponse, representationOf, shownObject } from '../responses.ts';
import { CREATED_DESCRIPTION, NAME_DESCRIPTION } from '../table.ts';
import { writeCall } from '../write-request.ts';
import { storedObject } from './get.ts';

type Columns = Pick<ResourceInfo, 'columns'>;

const count = (part: 'spec' | 'status') => (scale: Readonly<Record<string, unknown>>) => {
  const replicas = isJsonObject(scale[part]) ? scale[part]['replicas'] : undefined;
  return typeof replicas === 'number' ? replicas : 0;
};

const column = (column: Omit<PrinterColumn, 'priority'>): PrinterColumn => ({ ...column, priority: 0 });

const DESIRED = 'replicas is the desired number of instances for the scaled object.';
const AVAILABLE = 'replicas is the actual number of observed instances of the scaled object.';

/** Of a built-in kind (pkg/printers/internalversion, printScale): the counts are numbers, and 0 is shown. */
const BUILTIN: Columns = {
  columns: [
    column({ name: 'Name', type: 'string', description: NAME_DESCRIPTION }),
    column({ name: 'Desired', type: 'integer', description: DESIRED, cell: count('spec') }),
    column({ name: 'Available', type: 'integer', description: AVAILABLE, cell: count('status') }),
    column({ name: 'Age', type: 'string', description: CREATED_DESCRIPTION, cell: age }),
  ],
};

/** Of a custom resource (apiextensions-apiserver, getScaleColumnsForVersion): JSONPaths into the Scale. */
const CUSTOM: Columns = {
  columns: [
    column({ name: 'Desired', type: 'integer', description: 'Number of desired replicas', path: '.spec.replicas' }),
    column({ name: 'Available', type: 'integer', description: 'Number of actual replicas', path: '.status.replicas' }),
    column({ name: 'Age', type: 'date', description: CREATED_DESCRIPTION, path: '.metadata.creationTimestamp' }),
  ],
};

/** Throws ApiError 406. Upstream's handler of custom resources offers a Scale in protobuf and does not give it. */
const scaleRepresentation = (exchange: Exchange): Representation =>
  representationOf(exchange, exchange.resource.strategy.custom ? {} : { protobuf: 'all' });

/** The Scale of an object in the representation asked for. Throws ApiError 400 and 406. */
function scaleResponse(exchange: Exchange, object: Readonly<UnstructuredObject>): ApiResponse {
  const { resource, subresource } = exchange;
  const scale = scaleOf(resource, object, scalePathsOf(subresource!));
  const representation = scaleRepresentation(exchange);
  const shown = shownObject(exchange, scale, representation, resource.strategy.custom ? CUSTOM : BUILTIN);
  return encodedResponse({ status: 200, bytes: encodeObject(shown), representation });
}

export function getScaleVerb(exchange: Exchange): ApiResponse | Promise<ApiResponse> {
  const { resource: info } = exchange;
  scaleRepresentation(exchange);
  const stored = storedObject(exchange);
  const answer = (): ApiResponse => scaleResponse(exchange, viewObject(info, stored));
  const views = prepareViews(info, [stored], { again: true });
  return views ? views.then(answer) : answer();
}

export async function updateScaleVerb(exchange: Exchange): Promise<ApiResponse> {
  const options = parseWriteOptions(exchange.query, 'UpdateOptions');
  const { fieldValidation } = options;
  const scale = await decodeObjectBody(exchange, { info: scaleKind(), fieldValidation, dropStatus: false });
  matchNamespace(scale.metadata, exchange.namespace);
  matchName(scale.metadata, exchange.info.name);
  return writeScale(exchange, options, () => scale);
}

export async function patchScaleVerb(exchange: Exchange): Promise<ApiResponse> {
  const { resource: info } = exchange;
  const paths = scalePathsOf(exchange.subresource!);
  const patch = readPatch(exchange, info);
  if (patch.type === 'apply') return applyScale(exchange, patch);
  const options = parseWriteOptions(exchange.query, 'PatchOptions');
  checkPatchOptions(patch, options);
  return writeScale(exchange, options, (current) => {
    const shown = scaleOf(info, current, paths, info.strategy.custom ? NO_REPLICAS : undefined);
    return patchedObject(exchange, { info: scaleKind(), current: shown, patch, options });
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
  return scaleResponse(exchange, result.object);
}

const scaleKind = (): ResourceInfo => bodyKind(SCALE)!;

async function writeScale(
  exchange: Exchange,
  options: WriteOptions,
  wanted: (current: Readonly<UnstructuredObject>) => UnstructuredObject,
): Promise<ApiResponse> {
  const paths = scalePathsOf(exchange.subresource!);
  const call = writeCall(exchange, options);
  const result = await guaranteedUpdate(exchange.server.registry, {
    ...call,
    pinned: false,
    patch: true,
    next: (current) => withScale(call, current, { scale: wanted(current), paths }),
  });
  return scaleResponse(exchange, result.object);
}
