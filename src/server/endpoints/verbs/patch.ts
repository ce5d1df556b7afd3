/** PATCH: the current object, the patch, and the same way back as a PUT; computed again when somebody was faster. */

import { mistypedFields } from '../../../api/apply/mistyped-fields.ts';
import { undeclaredFields, untypedConfig } from '../../../api/apply/untyped-fields.ts';
import type { ResourceInfo } from '../../../api/kinds/resource.ts';
import { cloneJson } from '../../../api/meta/deep-clone.ts';
import { apiVersionOf } from '../../../api/meta/gvk.ts';
import type { UnstructuredObject } from '../../../api/meta/object.ts';
import { ApiError, badRequest, invalid } from '../../../api/meta/status.ts';
import { finish, inPieces, type Pause, type Steps } from '../../../api/meta/steps.ts';
import { pruneUnknown } from '../../../api/schema/prune.ts';
import type { ApiResponse } from '../../../base/http/seam.ts';
import { createObject } from '../../registry/create.ts';
import { guaranteedUpdate, type UpdateCall } from '../../registry/guaranteed-update.ts';
import { matchName, matchNamespace } from '../../registry/object-metadata.ts';
import type { FieldChange, FieldManagement } from '../../registry/write-call.ts';
import { admitDocument, admitSteps } from '../body.ts';
import type { Exchange } from '../exchange.ts';
import { applyPatch, applyPatchSteps, checkPatchOptions, type PatchDocument, readPatch } from '../patch-document.ts';
import { parseWriteOptions, type WriteOptions } from '../query.ts';
import { representationOf } from '../responses.ts';
import { authorizeCreate, writeCall, writeResponse } from '../write-request.ts';

export async function patchVerb(exchange: Exchange): Promise<ApiResponse> {
  const { resource: info, server } = exchange;
  const representation = representationOf(exchange);
  const reading = readPatch(exchange, info);
  const patch = reading instanceof Promise ? await reading : reading;
  const options = parseWriteOptions(exchange.query, 'PatchOptions');
  checkPatchOptions(patch, options);
  const call = writeCall(exchange, options);
  if (call.pause) await call.pause();
  const update: UpdateCall =
    patch.type === 'apply'
      ? applyCall(exchange, { call, patch, options })
      : {
          ...call,
          pinned: false,
          patch: true,
          next: (current, pause) =>
            pause
              ? patchedInPieces(exchange, { current, patch, options }, pause)
              : patchedObject(exchange, { current, patch, options }),
        };
  const result = await guaranteedUpdate(server.registry, update);
  return writeResponse(exchange, { result, representation });
}

interface Patching {
  readonly current: Readonly<UnstructuredObject>;
  readonly patch: PatchDocument;
  readonly options: WriteOptions;
}

function patchedObject(exchange: Exchange, patching: Patching): UnstructuredObject {
  const { current, patch } = patching;
  const value = applyPatch(exchange.resource, { document: current, patch });
  return matched(exchange, admitDocument(exchange, patchedDocument(exchange, patching, value)));
}

async function patchedInPieces(exchange: Exchange, patching: Patching, pause: Pause): Promise<UnstructuredObject> {
  const { current, patch } = patching;
  const value = await inPieces(applyPatchSteps(exchange.resource, { document: current, patch }), pause);
  await pause();
  return matched(exchange, await inPieces(admitSteps(exchange, patchedDocument(exchange, patching, value)), pause));
}

const patchedDocument = (exchange: Exchange, { patch, options }: Patching, value: unknown) => ({
  parsed: { value, duplicates: patch.duplicates, yaml: patch.yaml },
  info: exchange.resource,
  fieldValidation: options.fieldValidation,
  dropStatus: false,
  refuse: (problem: string) => refusedPatch(patch, problem),
});

function matched(exchange: Exchange, object: UnstructuredObject): UnstructuredObject {
  matchName(object.metadata, exchange.info.name, exchange.namespace);
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
  const config = (): Steps<UnstructuredObject> => appliedConfig(exchange, { info, patch, options });
  const change = (live: Readonly<UnstructuredObject> | undefined, pause: Pause | undefined): FieldChange => ({
    info,
    subresource,
    manager,
    live,
    now: registry.clock.now(),
    pause,
  });
  return {
    ...call,
    pinned: false,
    patch: true,
    tracked: true,
    next(live, pause) {
      if (!pause) return fields.apply(change(live, pause), { config: finish(config()), force });
      return inPieces(config(), pause).then((wanted) => fields.apply(change(live, pause), { config: wanted, force }));
    },
    ...(subresource === '' && {
      create: async () => {
        authorizeCreate(exchange);
        const { pause } = call;
        const wanted = pause ? await inPieces(config(), pause) : finish(config());
        if (wanted.metadata.uid) {
          throw new ApiError({
            code: 409,
            reason: 'Conflict',
            message: `uid mismatch: the provided object specified uid ${wanted.metadata.uid}, and no existing object was found`,
          });
        }
        const object = await fields.apply(change(undefined, pause), { config: wanted, force });
        return createObject(registry, { ...call, object, tracked: true });
      },
    }),
  };
}

function* appliedConfig(
  exchange: Exchange,
  {
    info,
    patch,
    options,
  }: { readonly info: ResourceInfo; readonly patch: PatchDocument; readonly options: WriteOptions },
): Steps<UnstructuredObject> {
  const value = cloneJson(patch.value) as UnstructuredObject;
  yield;
  const { managedFields, name } = (value.metadata ?? {}) as UnstructuredObject['metadata'];
  const expected = apiVersionOf(info);
  if (value.apiVersion !== expected) {
    throw badRequest(
      `Incorrect version specified in apply patch. Specified patch version: ${value.apiVersion ?? ''}, expected: ${expected}`,
    );
  }
  if (!value.kind) throw badRequest("error decoding YAML: Object 'Kind' is missing in the patch");
  if (managedFields !== undefined) throw badRequest('metadata.managedFields must be nil');
  const { custom } = info.strategy;
  const whose = `${exchange.namespace}/${name ?? exchange.info.name}; ${expected}, Kind=${value.kind}`;
  const isPruned = pruneUnknown(info.schema, value, { custom }).length > 0;
  yield;
  // Built-in kinds are decoded below: only where that fails, somebody looks for the words.
  const mistyped = custom || isPruned ? mistypedFields(info.schema, patch.value) : [];
  if (isPruned || mistyped.length > 0) {
    yield;
    const undeclared = isPruned ? undeclaredFields(info.schema, patch.value, value) : [];
    throw untypedConfig(whose, [...undeclared, ...mistyped]);
  }
  yield;
  const object = yield* admitSteps(exchange, {
    parsed: { value, duplicates: patch.duplicates, yaml: patch.yaml },
    info,
    fieldValidation: options.fieldValidation,
    dropStatus: false,
    withoutDefaults: true,
    applied: true,
    refuse(problem) {
      const found = mistypedFields(info.schema, patch.value);
      return found.length > 0 ? untypedConfig(whose, found) : badRequest(problem);
    },
  });
  object.metadata.name ||= exchange.info.name;
  return matched(exchange, object);
}
