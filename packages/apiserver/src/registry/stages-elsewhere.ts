/**
 * The stages of large writes, done by another thread. This one never walks a large object in one go: what goes there and
 * what comes back is JSON, written and parsed here in pieces, with others served in between.
 */

import { encodeJsonInPieces } from '@coracle/apimachinery/meta/json-pieces';
import type { UnstructuredObject } from '@coracle/apimachinery/meta/object';
import { ApiError } from '@coracle/apimachinery/meta/status';
import { parseJsonInPieces } from '@coracle/apimachinery/schema/parse-json';
import type { ResourceInfo } from '@coracle/apimachinery/types/resource';
import type { Clock } from '@coracle/runtime/clock/clock';
import { nextTurn } from '@coracle/runtime/clock/next-turn';
import type { AdmissionOperation } from '../admission/plugin.ts';
import type { Decision, ObjectStore, StoredObject } from '../cache/object-store.ts';
import { freezeInPieces } from '../cache/written-object.ts';
import { writtenDecision } from './large-write.ts';
import type { ResourceSource } from './resource-catalog.ts';
import type { RunStage, StageDefinition, StageJob, StageResult } from './stage-job.ts';
import type { StageResource } from './stage-resource.ts';
import type { Completed, StagesElsewhere, WriteCall, WriteClient } from './write-contract.ts';

const DEFINITIONS = 'apiextensions.k8s.io/customresourcedefinitions';
const CORE = 'v1';
const INVALID = 422;

type StageAnswer = StageResult & { readonly parsed: UnstructuredObject };
type Beginning<J extends StageJob> = J extends { readonly isWhole: boolean } ? Omit<J, 'isWhole'> : never;
type BeginJob = Beginning<StageJob>;

export function createStagesElsewhere(
  run: RunStage,
  {
    store,
    resources,
    clock,
  }: { readonly store: ObjectStore; readonly resources: Pick<ResourceSource, 'all' | 'lookup'>; readonly clock: Clock },
): StagesElsewhere {
  const context = (info: ResourceInfo) => ({
    resource: named(info),
    definition: definitionOf(store, info),
    served: [...new Set(resources.all().map(({ group, version }) => (group === '' ? CORE : `${group}/${version}`)))],
    now: clock.now(),
  });
  const writeContext = (call: WriteCall) => {
    const { info, subresource, namespace, name, manager, dryRun } = call;
    return { ...context(info), subresource, namespace, name, manager, dryRun };
  };
  const ask = async (
    job: StageJob,
    { client, warn }: { readonly client?: WriteClient | undefined; readonly warn: (text: string) => void },
  ): Promise<StageAnswer> => {
    const result = await run(job, client);
    for (const text of result.warnings) warn(text);
    return { ...result, parsed: await parseInPieces(result.object) };
  };
  /** The beginning of a write, and its end where nothing stands between them. A refusal waits for what admission says. */
  const begin = async (
    job: BeginJob,
    { call, operation }: { readonly call: WriteCall; readonly operation: AdmissionOperation },
  ): Promise<StageAnswer> => {
    const isWhole = call.admission.mayChange?.(operation) === false;
    try {
      return await ask({ ...job, isWhole }, call);
    } catch (error) {
      if (!isWhole || !(error instanceof ApiError) || error.code !== INVALID) throw error;
      return ask({ ...job, isWhole: false }, call);
    }
  };
  return {
    create(call, sent) {
      let begun: StageAnswer;
      const silent = { ...(call.client && { client: call.client }), warn: () => {} };
      return {
        async begin() {
          const job = { ...writeContext(call), stage: 'begin-create', sent } as const;
          begun = await begin(job, { call, operation: 'CREATE' });
          return { object: begun.parsed, isVersioned: begun.isVersioned === true };
        },
        async complete(object, { attempt, isRewritten }) {
          // A webhook may have come meanwhile.
          if (begun.decision !== undefined && !isRewritten) return completed(begun);
          const job = { ...writeContext(call), stage: 'complete-create', isRewritten } as const;
          const bytes = await encodeJsonInPieces(object, nextTurn);
          return completed(await ask({ ...job, object: bytes }, attempt === 1 ? call : silent));
        },
      };
    },
    update(call, current, sent) {
      const stored = { bytes: current.bytes, revision: current.revision };
      const { pinned, patch = false, tracked = false } = call;
      let begun: StageAnswer;
      return {
        async begin(old) {
          const wanted = sent ?? (await encodeJsonInPieces(await call.next(old), nextTurn));
          const job = { ...writeContext(call), stage: 'begin-update', current: stored, wanted } as const;
          begun = await begin({ ...job, pinned, patch, tracked }, { call, operation: 'UPDATE' });
          return { object: begun.parsed, errors: begun.errors ?? [], pinned: begun.pinned === true };
        },
        async complete(object, { errors, owners, isRewritten, isSameGeneration }) {
          if (begun.decision !== undefined && !isRewritten) return completed(begun, current);
          const job = { ...writeContext(call), stage: 'complete-update', current: stored, patch, tracked } as const;
          const admitted = {
            errors,
            // Asked for by nobody else, and often as long as the object.
            owners: isRewritten && object.metadata.managedFields === undefined ? owners : undefined,
            isRewritten,
            isSameGeneration,
          };
          const bytes = await encodeJsonInPieces(object, nextTurn);
          return completed(await ask({ ...job, ...admitted, object: bytes }, call), current);
        },
      };
    },
    async view(resource, object) {
      const info = resources.lookup(resource.group, resource.version, resource.resource);
      // Gone meanwhile, and its objects with it.
      if (info === undefined) throw new TypeError(`no resource ${resource.resource} is served any more`);
      return (await ask({ ...context(info), stage: 'view', object }, { warn: () => {} })).parsed;
    },
    async decode({ info, sent, dropStatus, older, ...about }) {
      const job = { ...context(info), stage: 'decode', sent, dropStatus, older: older && named(older) } as const;
      return (await ask(job, about)).parsed;
    },
  };
}

const named = ({ group, version, resource, kind }: ResourceInfo): StageResource => ({ group, version, resource, kind });

function definitionOf(store: ObjectStore, info: ResourceInfo): StageDefinition | undefined {
  if (!info.strategy.custom) return undefined;
  const name = `${info.resource}.${info.group}`;
  const stored = store.peek({ prefix: DEFINITIONS, namespace: '', name });
  return stored && { name, revision: stored.revision, bytes: stored.bytes, currentFrom: info.view?.currentFrom };
}

async function parseInPieces(bytes: Uint8Array): Promise<UnstructuredObject> {
  return (await parseJsonInPieces(bytes, nextTurn, { wideIntegers: true })).value as UnstructuredObject;
}

function completed(result: StageAnswer, current?: StoredObject): Completed {
  const { parsed } = result;
  return { object: parsed, isLarge: true, decide: () => decisionOf(result, current) };
}

/** The decision with what is stored written and frozen: the store decides in one go. */
async function decisionOf(
  { decision = 'put', form, parsed }: StageAnswer,
  current: StoredObject | undefined,
): Promise<Decision> {
  if (decision === 'keep') return { type: 'keep' };
  if (decision === 'delete') return writtenDecision({ type: 'delete', object: current!.object as UnstructuredObject });
  const { before, after, whole } = form!;
  const object = whole === undefined ? parsed : await parseInPieces(whole);
  for (const part of [...Object.values(object.metadata), ...Object.values(object)]) {
    if (part !== object.metadata) await freezeInPieces(part, nextTurn);
  }
  return { type: 'put', object, written: { object, before, after } };
}
