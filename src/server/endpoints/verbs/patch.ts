/** PATCH: the current object, the patch, and the same way back as a PUT; computed again when somebody was faster. */

import type { ResourceInfo } from '../../../api/kinds/resource.ts';
import { cloneJson } from '../../../api/meta/deep-clone.ts';
import { apiVersionOf } from '../../../api/meta/gvk.ts';
import type { UnstructuredObject } from '../../../api/meta/object.ts';
import { ApiError, badRequest, invalid } from '../../../api/meta/status.ts';
import type { ApiResponse } from '../../../base/http/seam.ts';
import { createObject } from '../../registry/create.ts';
import { guaranteedUpdate, type UpdateCall } from '../../registry/guaranteed-update.ts';
import { matchName, matchNamespace } from '../../registry/object-metadata.ts';
import type { FieldChange, FieldManagement } from '../../registry/write-call.ts';
import { admitDocument } from '../body.ts';
import type { Exchange } from '../exchange.ts';
import { applyPatch, checkPatchOptions, type PatchDocument, readPatch } from '../patch-document.ts';
import { parseWriteOptions, type WriteOptions } from '../query.ts';
import { representationOf } from '../responses.ts';
import { authorizeCreate, writeCall, writeResponse } from '../write-request.ts';

export async function patchVerb(exchange: Exchange): Promise<ApiResponse> {
  const { resource: info, server } = exchange;
  const representation = representationOf(exchange);
  const patch = readPatch(exchange, info);
  const options = parseWriteOptions(exchange.query, 'PatchOptions');
  checkPatchOptions(patch, options);
  const call = writeCall(exchange, options);
  const update: UpdateCall =
    patch.type === 'apply'
      ? applyCall(exchange, { call, patch, options })
      : {
          ...call,
          pinned: false,
          patch: true,
          next: (current) => patchedObject(exchange, { current, patch, options }),
        };
  const result = await guaranteedUpdate(server.registry, update);
  return writeResponse(exchange, { result, representation });
}

function patchedObject(
  exchange: Exchange,
  {
    current,
    patch,
    options,
  }: { readonly current: Readonly<UnstructuredObject>; readonly patch: PatchDocument; readonly options: WriteOptions },
): UnstructuredObject {
  const { resource: info, info: request } = exchange;
  const value = applyPatch(info, { document: current, patch });
  const object = admitDocument(exchange, {
    parsed: { value, duplicates: patch.duplicates },
    info,
    fieldValidation: options.fieldValidation,
    dropStatus: false,
    refuse: (problem) => refusedPatch(patch, problem),
  });
  matchName(object.metadata, request.name, exchange.namespace);
  matchNamespace(object.metadata, exchange.namespace);
  return object;
}

const refusedPatch = (patch: PatchDocument, detail: string): ApiError =>
  invalid({ group: '', kind: '' }, '', [{ type: 'FieldValueInvalid', field: 'patch', value: patch.text, detail }]);

/** Server-side apply: merges what the manager wants into the live object, creating it when it is missing. */
function applyCall(
  exchange: Exchange,
  {
    call,
    patch,
    options,
  }: { readonly call: ReturnType<typeof writeCall>; readonly patch: PatchDocument; readonly options: WriteOptions },
): UpdateCall {
  const { registry } = exchange.server;
  const fields = registry.fields as FieldManagement;
  const { info, subresource, manager } = call;
  const force = options.force === true;
  const config = (): UnstructuredObject => appliedConfig(exchange, { info, patch, options });
  const change = (live: Readonly<UnstructuredObject> | undefined): FieldChange => ({
    info,
    subresource,
    manager,
    live,
    now: registry.clock.now(),
  });
  return {
    ...call,
    pinned: false,
    patch: true,
    tracked: true,
    next: (live) => fields.apply(change(live), { config: config(), force }),
    ...(subresource === '' && {
      create: () => {
        authorizeCreate(exchange);
        const wanted = config();
        if (wanted.metadata.uid) {
          throw new ApiError({
            code: 409,
            reason: 'Conflict',
            message: `uid mismatch: the provided object specified uid ${wanted.metadata.uid}, and no existing object was found`,
          });
        }
        const object = fields.apply(change(undefined), { config: wanted, force });
        return createObject(registry, { ...call, object, tracked: true });
      },
    }),
  };
}

function appliedConfig(
  exchange: Exchange,
  {
    info,
    patch,
    options,
  }: { readonly info: ResourceInfo; readonly patch: PatchDocument; readonly options: WriteOptions },
): UnstructuredObject {
  const value = cloneJson(patch.value) as UnstructuredObject;
  const expected = apiVersionOf(info);
  if (value.apiVersion !== expected) {
    throw badRequest(
      `Incorrect version specified in apply patch. Specified patch version: ${value.apiVersion ?? ''}, expected: ${expected}`,
    );
  }
  if (!value.kind) throw badRequest("error decoding YAML: Object 'Kind' is missing in the patch");
  const object = admitDocument(exchange, {
    parsed: { value, duplicates: patch.duplicates },
    info,
    fieldValidation: options.fieldValidation,
    dropStatus: false,
    withoutDefaults: true,
    refuse: (problem) => badRequest(`error strict decoding YAML: ${problem}`),
  });
  if (object.metadata.managedFields !== undefined) {
    throw badRequest('metadata.managedFields must be nil');
  }
  object.metadata.name ||= exchange.info.name;
  matchName(object.metadata, exchange.info.name, exchange.namespace);
  matchNamespace(object.metadata, exchange.namespace);
  return object;
}
