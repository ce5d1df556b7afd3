/** Applies what is declared: each object once what it depends on is there and ready. */

import type { KubeObject, ReadonlyObject } from '@coracle/apimachinery/meta/object';
import { ApiError } from '@coracle/apimachinery/meta/status';
import { isConflict } from '@coracle/client/api-failure';
import type { Clock } from '@coracle/runtime/clock/clock';
import { declaredFieldsOf } from '../guard/declared-fields.ts';
import type { ObjectRef, ResourceStatus, SyncError } from '../kinds/kinds.ts';
import type { Declared } from '../plan/declared.ts';
import { liveDeclaredFields, type ManagedBy, managedObject, managementMetadata } from '../plan/managed-object.ts';
import { keyOfRef, refId, refText } from '../plan/object-ref.ts';
import { compareRefs, dependencies } from '../plan/order.ts';
import { ownershipOf } from '../plan/ownership.ts';
import { SubstitutionError } from '../plan/substitutions.ts';
import { hasKeptParts } from '../server-fields/kept-parts.ts';
import { DEPENDENTS, MUTATION } from '../status/metadata-keys.ts';
import { apiSyncError, errorResource, syncError } from '../status/sync-error.ts';
import { managerName, type SyncIdentity, syncOfManager } from '../status/sync-identity.ts';
import { fillIn } from './fill-in.ts';
import { healthOf } from './health.ts';
import type { ServedKinds } from './kind-catalog.ts';
import { type Effect, type GraphTask, type Obstacle, runGraph, type TaskResult } from './run-graph.ts';
import type { Target } from './target.ts';

export interface ApplyOptions {
  readonly declared: readonly Declared[];
  /** Objects that are about to be pruned: what depends on one is not applied. */
  readonly doomed: ReadonlySet<string>;
  readonly by: ManagedBy;
  /** By id: objects that are as they are declared, as the watch has them. They cost no call. */
  readonly unchanged: ReadonlyMap<string, ReadonlyObject>;
  readonly target: Target;
  readonly kinds: () => Promise<ServedKinds>;
  /** True for a sync that is there. */
  readonly exists: (sync: SyncIdentity) => boolean;
  readonly reconcileMs: number;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

export interface ApplyOutcome {
  readonly errors: readonly SyncError[];
  /** By id: the resource version that the server answered to the apply. */
  readonly applied: ReadonlyMap<string, string | undefined>;
  /** By id: objects that were filled in, as they were applied. */
  readonly written: ReadonlyMap<string, Declared>;
  /** Ids of what another manager has: no longer ours. */
  readonly lost: ReadonlySet<string>;
  /** Ids of those of which it is not known whether they are there. */
  readonly unsure: ReadonlySet<string>;
  readonly statuses: readonly ResourceStatus[];
}

/** Of a write to an object that others write too. */
const ATTEMPTS = 5;

/** Applies them all. Rejects with the signal's reason alone. */
export async function applyObjects(options: ApplyOptions): Promise<ApplyOutcome> {
  const { by, target, signal } = options;
  const errors: SyncError[] = [];
  const applied = new Map<string, string | undefined>();
  const written = new Map<string, Declared>();
  const lost = new Set<string>();
  const unsure = new Set<string>();
  const statuses = new Map<string, ResourceStatus>();
  const ordered = [...options.declared].sort((a, b) => compareRefs(a.ref, b.ref));
  const byId = new Map(ordered.map((one) => [refId(one.ref), one]));
  const resourceOf = ({ ref, type, path }: Declared) => [errorResource(ref, { version: type.version, path })];
  const note = (one: Declared, more: Pick<ResourceStatus, 'actuation' | 'reconcile' | 'status'>): void => {
    const sourceHash = (one.since ?? by.commit).slice(0, 7);
    statuses.set(refId(one.ref), { ...one.ref, sourceHash, strategy: 'Apply', ...more });
  };
  const isThere = (one: Declared, stored: ReadonlyObject): TaskResult => {
    applied.set(refId(one.ref), stored.metadata.resourceVersion);
    const health = healthOf(stored);
    note(one, { status: health, actuation: 'Succeeded', reconcile: reconcileOf(health) });
    return 'done';
  };

  const act = async (one: Declared): Promise<TaskResult> => {
    const id = refId(one.ref);
    const known = options.unchanged.get(id);
    if (known) return isThere(one, known);
    try {
      const live = await target.get(one.type, keyOfRef(one.ref), signal);
      const rival = live && conflictingManager(live, one, options);
      if (rival !== undefined) {
        lost.add(id);
        errors.push(conflictError(one, by.sync, rival));
        note(one, { status: 'Unknown', actuation: 'Skipped', reconcile: 'Skipped' });
        return 'skipped';
      }
      const filled = await fillIn(one, live, options);
      if (filled !== one) written.set(id, filled);
      return isThere(one, await applyOne(filled, live, options));
    } catch (error) {
      signal.throwIfAborted();
      // An answer says that nothing was written; without one nobody knows.
      const isSaid = error instanceof SubstitutionError || (error instanceof ApiError && error.code < 500);
      if (!isSaid) unsure.add(id);
      errors.push(apiSyncError(error, `failed to apply ${refText(one.ref)}`, resourceOf(one)));
      note(one, { status: 'Unknown', actuation: 'Failed', reconcile: 'Skipped' });
      return 'failed';
    }
  };
  const needs = dependencies(ordered);
  const outside = new Map<string, () => Promise<Effect>>();
  for (const { dependsOn } of ordered)
    for (const ref of dependsOn) if (!byId.has(refId(ref))) outside.set(refId(ref), () => effectOutside(ref, options));
  const tasks = ordered.map(
    (one): GraphTask => ({
      id: refId(one.ref),
      needs: needs.get(refId(one.ref)) ?? new Set(),
      act: () => act(one),
      effect: () => effectOf(one, options),
    }),
  );
  await runGraph({
    tasks,
    external: outside,
    cycles: 'skip',
    effectMs: options.reconcileMs,
    clock: options.clock,
    signal,
    onObstacle: ({ id }, need, obstacle) => {
      const one = byId.get(id)!;
      const why = options.doomed.has(need) ? 'dependency scheduled for delete' : OBSTACLES[obstacle];
      errors.push(syncError(2009, `skipped apply of ${refText(one.ref)}: ${why}: ${need}`, resourceOf(one)));
      note(one, { status: 'Unknown', actuation: 'Skipped', reconcile: 'Skipped' });
    },
  });
  return { errors, applied, written, lost, unsure, statuses: [...statuses.values()] };
}

const OBSTACLES: Readonly<Record<Obstacle, string>> = {
  failed: 'dependency apply actuation failed',
  skipped: 'dependency apply actuation skipped',
  'not-ready': 'dependency apply reconcile failed',
  timeout: 'dependency apply reconcile timeout',
  cycle: 'cyclic dependency',
};

const reconcileOf = (health: ResourceStatus['status']): NonNullable<ResourceStatus['reconcile']> =>
  health === 'Current' ? 'Succeeded' : health === 'InProgress' || health === 'Unknown' ? 'Pending' : 'Failed';

/** The other manager that keeps this sync from an object; undefined when it may have it. */
export function conflictingManager(
  live: KubeObject,
  { ref }: Pick<Declared, 'ref'>,
  { by, exists }: { readonly by: Pick<ManagedBy, 'sync'>; readonly exists: (sync: SyncIdentity) => boolean },
): string | undefined {
  const ownership = ownershipOf(live, ref, by.sync);
  if (ownership.by !== 'other') return undefined;
  const rival = syncOfManager(ownership.manager);
  // A RootSync goes before every RepoSync, and what is left of a sync that is gone is free for the taking by one.
  if (by.sync.kind === 'RootSync' && (rival.kind === 'RepoSync' || !exists(rival))) return undefined;
  return ownership.manager;
}

/** KNV1060. */
export const conflictError = ({ ref, type, path }: Declared, sync: SyncIdentity, rival: string): SyncError =>
  syncError(
    1060,
    `management conflict: ${refText(ref)} is declared by "${managerName(sync)}" and managed by "${rival}": declare it in one source only`,
    [errorResource(ref, { version: type.version, path })],
  );

/** Writes one object: as it is declared, or where it wants no changes, its metadata alone. */
export async function applyOne(
  one: Declared,
  live: KubeObject | undefined,
  { by, target, signal }: Pick<ApplyOptions, 'by' | 'target' | 'signal'>,
): Promise<KubeObject> {
  if (live && one.object.metadata.annotations?.[MUTATION] === 'ignore') {
    const { labels, annotations } = managementMetadata(one, by);
    const isOver = one.dependents === undefined && live.metadata.annotations?.[DEPENDENTS] !== undefined;
    const all = { ...annotations, ...(isOver && { [DEPENDENTS]: null }) };
    return target.merge(
      one.type,
      keyOfRef(one.ref),
      { metadata: { labels, annotations: all, uid: live.metadata.uid } },
      signal,
    );
  }
  // It was merged in, so that an apply without it leaves it there.
  if (live?.metadata.annotations?.[MUTATION] !== undefined && one.object.metadata.annotations?.[MUTATION] === undefined)
    live = await target.merge(
      one.type,
      keyOfRef(one.ref),
      { metadata: { annotations: { [MUTATION]: null }, uid: live.metadata.uid } },
      signal,
    );
  return applyWhole(one, live, { by, target, signal });
}

/**
 * Server-side apply of one object. Which fields it declares says the server's answer: where the object does not say the same,
 * it is applied once more.
 */
export async function applyWhole(
  one: Declared,
  live: KubeObject | undefined,
  { by, target, signal }: Pick<ApplyOptions, 'by' | 'target' | 'signal'>,
  { force = true }: { readonly force?: boolean } = {},
): Promise<KubeObject> {
  for (let attempt = 1; ; attempt++) {
    const write = (state: KubeObject | undefined, fields: string | undefined): Promise<KubeObject> => {
      const object = managedObject(one, by, state, fields);
      // What is carried over from the live object holds for that state of it.
      const resourceVersion = hasKeptParts(object) ? state?.metadata.resourceVersion : undefined;
      const at =
        resourceVersion === undefined ? object : { ...object, metadata: { ...object.metadata, resourceVersion } };
      return target.apply(one.type, at, signal, { force });
    };
    try {
      const said = liveDeclaredFields(live, by);
      const stored = await write(live, said);
      const fields = by.isGuarded ? declaredFieldsOf(stored, one.object) : undefined;
      return fields === said ? stored : await write(stored, fields);
    } catch (error) {
      if (!hasKeptParts(one.object) || !live || !isConflict(error) || attempt >= ATTEMPTS) throw error;
      live = await target.get(one.type, keyOfRef(one.ref), signal);
    }
  }
}

async function effectOf({ ref, type }: Declared, { target, unchanged, signal }: ApplyOptions): Promise<Effect> {
  if (healthOf(unchanged.get(refId(ref))) === 'Current') return 'ready';
  try {
    const health = healthOf(await target.get(type, keyOfRef(ref), signal));
    return health === 'Current' ? 'ready' : health === 'Failed' ? 'failed' : 'waiting';
  } catch (error) {
    signal.throwIfAborted();
    return error instanceof ApiError && error.code === 403 ? 'failed' : 'waiting';
  }
}

/** Of an object that this source does not declare: waited for as for its own. */
async function effectOutside(ref: ObjectRef, options: ApplyOptions): Promise<Effect> {
  if (options.doomed.has(refId(ref))) return 'failed';
  const type = (await options.kinds()).byRef(ref);
  if (type === undefined || type === 'unknown') return 'waiting';
  return effectOf({ ref, type } as Declared, options);
}
