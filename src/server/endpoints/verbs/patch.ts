/** PATCH: the current object, the patch, and the same way back as a PUT; computed again when somebody was faster. */

import { typingErrorsSteps, untypedConfig } from '../../../api/apply/typing-errors.ts';
import type { ResourceInfo } from '../../../api/kinds/resource.ts';
import { cloneSteps } from '../../../api/meta/deep-clone.ts';
import { apiVersionOf } from '../../../api/meta/gvk.ts';
import type { UnstructuredObject } from '../../../api/meta/object.ts';
import { ApiError, badRequest, conflict, invalid } from '../../../api/meta/status.ts';
import { finish, inPieces, Pace, type Pause, type Steps } from '../../../api/meta/steps.ts';
import { restoreProblem } from '../../../api/patch/restore-problem.ts';
import type { ApiResponse } from '../../../base/http/seam.ts';
import { createObject, dropsStatus } from '../../registry/create.ts';
import { guaranteedUpdate, type UpdateCall } from '../../registry/guaranteed-update.ts';
import { matchName, matchNamespace } from '../../registry/object-metadata.ts';
import type { FieldChange, FieldManagement } from '../../registry/write-call.ts';
import { admitDocument, admitSteps, mediaTypeOf } from '../body.ts';
import type { Exchange } from '../exchange.ts';
import {
  applyPatch,
  applyPatchSteps,
  checkPatchOptions,
  type PatchDocument,
  patchFaults,
  readPatch,
  shownPatch,
} from '../patch-document.ts';
import { parseWriteOptions, type WriteOptions } from '../query.ts';
import { representationOf } from '../responses.ts';
import { authorizeCreate, writeCall, writeResponse } from '../write-request.ts';

export async function patchVerb(exchange: Exchange): Promise<ApiResponse> {
  const { server } = exchange;
  const representation = representationOf(exchange);
  const patch = await readAbout(exchange);
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
              ? patchedInPieces(exchange, { info: exchange.resource, current, patch, options }, pause)
              : patchedObject(exchange, { info: exchange.resource, current, patch, options }),
        };
  const result = await guaranteedUpdate(server.registry, update);
  return writeResponse(exchange, { result, representation });
}

/** The patch. One that cannot be read is told of only where there is an object that it could be about. */
async function readAbout(exchange: Exchange): Promise<PatchDocument> {
  try {
    return await readPatch(exchange, exchange.resource);
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 400 || isApply(exchange)) throw error;
    const call = writeCall(exchange, parseWriteOptions(exchange.query, 'PatchOptions'));
    const next = (): never => {
      throw error;
    };
    await guaranteedUpdate(exchange.server.registry, { ...call, pinned: false, patch: true, next });
    throw error;
  }
}

const isApply = ({ request }: Exchange): boolean => mediaTypeOf(request.headers).startsWith('application/apply-patch');

interface Patching {
  /** What the patched object is to be: the resource, or the kind of its subresource. */
  readonly info: ResourceInfo;
  readonly current: Readonly<UnstructuredObject>;
  readonly patch: PatchDocument;
  readonly options: WriteOptions;
}

/** The object after a patch, read as what was sent is read. Throws ApiError 400 and 422. */
export function patchedObject(exchange: Exchange, patching: Patching): UnstructuredObject {
  const { info, current, patch } = patching;
  const value = applyPatch(info, { document: current, patch });
  return matched(exchange, admitDocument(exchange, patchedDocument(patching, value)));
}

async function patchedInPieces(exchange: Exchange, patching: Patching, pause: Pause): Promise<UnstructuredObject> {
  const { info, current, patch } = patching;
  const value = await inPieces(applyPatchSteps(info, { document: current, patch }), pause);
  await pause();
  return matched(exchange, await inPieces(admitSteps(exchange, patchedDocument(patching, value)), pause));
}

const patchedDocument = ({ info, current, patch, options }: Patching, value: unknown) => ({
  parsed: { value, duplicates: patch.duplicates, yaml: patch.yaml },
  info,
  fieldValidation: options.fieldValidation,
  dropStatus: false,
  ofPatch: patch.type === 'strategic' ? ('object' as const) : ('document' as const),
  faults: () => patchFaults(patch),
  refuse(problem: string) {
    // The result itself was pruned on its way here.
    const shown = shownPatch(patch, () => applyPatch(info, { document: current, patch }));
    return refusedPatch(info, { patch, value, problem, shown });
  },
});

function matched(exchange: Exchange, object: UnstructuredObject): UnstructuredObject {
  matchNamespace(object.metadata, exchange.namespace);
  matchName(object.metadata, exchange.info.name);
  return object;
}

/** A result that is no object of its kind, without the sentence that a body of that kind would get. */
function refusedPatch(
  info: ResourceInfo,
  refused: {
    readonly patch: PatchDocument;
    readonly value: unknown;
    readonly problem: string;
    readonly shown: string;
  },
): ApiError {
  const { patch, value, problem, shown } = refused;
  const sentence = `${info.kind} in version "${info.version}" cannot be handled as a ${info.kind}: `;
  const bare = problem.startsWith(sentence) ? problem.slice(sentence.length) : problem;
  const restored = patch.type === 'strategic' ? restoreProblem(info.schema, value) : undefined;
  return invalid({ group: '', kind: '' }, '', [
    { type: 'FieldValueInvalid', field: 'patch', value: shown, detail: restored ?? bare },
  ]);
}

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
      const checked = <T>(applied: T): T => {
        const named = nameIn(patch);
        if (named.name) matchName(named, exchange.info.name);
        return applied;
      };
      const merged = (wanted: UnstructuredObject) => {
        const applying = fields.apply(change(live, pause), { config: wanted, force });
        return applying instanceof Promise ? applying.then(checked) : checked(applying);
      };
      return pause ? inPieces(config(), pause).then(merged) : merged(finish(config()));
    },
    ...(subresource === '' && {
      create: async () => {
        await authorizeCreate(exchange);
        const { pause } = call;
        const wanted = pause ? await inPieces(config(), pause) : finish(config());
        if (wanted.metadata.uid) {
          throw conflict(
            info,
            call.name,
            `uid mismatch: the provided object specified uid ${wanted.metadata.uid}, and no existing object was found`,
          );
        }
        const object = await fields.apply(change(undefined, pause), { config: wanted, force });
        requireName(exchange, patch);
        if (dropsStatus(info)) delete object['status'];
        return createObject(registry, { ...call, object, tracked: true });
      },
    }),
  };
}

/** The name that a configuration gives its object; empty when it gives none. */
export const nameIn = ({ value }: PatchDocument): Pick<UnstructuredObject['metadata'], 'name'> => {
  const name = (value as Partial<UnstructuredObject>).metadata?.name;
  return name === undefined ? {} : { name };
};

/** What is created has the name that the configuration gives it: the path alone names nothing (rest.BeforeCreate). */
function requireName({ info }: Exchange, patch: PatchDocument): void {
  const named = nameIn(patch);
  if (!named.name) {
    throw badRequest(`the name of the object (${info.name} based on URL) was undeterminable: name must be provided`);
  }
  matchName(named, info.name);
}

/** A type as Go prints a GroupVersionKind that was read from an object. */
function gvkText({ apiVersion, kind }: Readonly<Record<string, unknown>>): string {
  const version = typeof apiVersion === 'string' && apiVersion.split('/').length <= 2 ? apiVersion : '';
  return `${version.includes('/') ? '' : '/'}${version}, Kind=${typeof kind === 'string' ? kind : ''}`;
}

/** What is applied, checked as upstream checks it before it is merged. Throws ApiError 400 and 500. */
export function* appliedConfig(
  exchange: Exchange,
  {
    info,
    patch,
    options,
  }: { readonly info: ResourceInfo; readonly patch: PatchDocument; readonly options: WriteOptions },
): Steps<UnstructuredObject> {
  const value = (yield* cloneSteps(patch.value, new Pace())) as UnstructuredObject;
  yield;
  const { managedFields, name = '', namespace = '' } = (value.metadata ?? {}) as UnstructuredObject['metadata'];
  const expected = apiVersionOf(info);
  // The outermost of upstream's field managers (internal/versioncheck.go) looks at the whole type.
  if (value.apiVersion !== expected || value.kind !== info.kind) {
    throw badRequest(`invalid object type: ${gvkText(value)}`);
  }
  if (managedFields !== undefined) throw badRequest('metadata.managedFields must be nil');
  const whose = `${namespace}/${name}; ${gvkText(value)}`;
  const untyped = yield* typingErrorsSteps(info.schema, value);
  if (untyped.length > 0) throw untypedConfig(whose, untyped);
  yield;
  const object = yield* admitSteps(exchange, {
    parsed: { value, duplicates: patch.duplicates, yaml: patch.yaml },
    info,
    fieldValidation: options.fieldValidation,
    dropStatus: false,
    withoutDefaults: true,
    keepNulls: true,
    applied: true,
    refuse: badRequest,
  });
  // Another name is told of after conflicts.
  object.metadata.name = exchange.info.name;
  return matched(exchange, object);
}
