/** Takes objects away: dependents before what they depend on, and never what somebody protects or still needs. */

import type { ResourceType } from '@coracle/apimachinery/meta/gvk';
import type { KubeObject } from '@coracle/apimachinery/meta/object';
import { isDeleting } from '@coracle/apimachinery/meta/object-state';
import type { Clock } from '@coracle/runtime/clock/clock';
import type { ObjectRef, ResourceStatus, SyncError } from '../kinds/kinds.ts';
import { definesOf } from '../plan/declare.ts';
import { parseDependsOn } from '../plan/depends-on.ts';
import { keyOfRef, refId, refOf, refText } from '../plan/object-ref.ts';
import { compareRefs, dependencies, type GraphNode } from '../plan/order.ts';
import { isDetached, ownershipOf, releasePatch } from '../plan/ownership.ts';
import { parseSubstitutions } from '../plan/substitutions.ts';
import { APPLY_TIME_MUTATION, DEPENDS_ON } from '../status/metadata-keys.ts';
import { apiSyncError, errorResource, syncError } from '../status/sync-error.ts';
import type { SyncIdentity } from '../status/sync-identity.ts';
import type { ServedKinds } from './kind-catalog.ts';
import { type Effect, type Obstacle, runGraph, type TaskResult } from './run-graph.ts';
import type { Target } from './target.ts';

export interface DeleteOptions {
  readonly refs: readonly ObjectRef[];
  /** Live or declared objects that stay: what they depend on is not deleted. */
  readonly staying: readonly GraphNode[];
  readonly sync: SyncIdentity;
  readonly commit: string;
  readonly target: Target;
  readonly kinds: () => Promise<ServedKinds>;
  readonly propagation: 'Background' | 'Foreground';
  readonly reconcileMs: number;
  /** How long at the end the last ones are waited for, milliseconds. */
  readonly finalWaitMs: number;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

export interface DeleteOutcome {
  readonly errors: readonly SyncError[];
  /** Those that are gone, or no longer ours. */
  readonly gone: ReadonlySet<string>;
  /** Those whose deletion was accepted and that are still there. */
  readonly going: readonly ObjectRef[];
  readonly statuses: readonly ResourceStatus[];
}

interface Victim extends GraphNode {
  readonly type: ResourceType<KubeObject>;
  readonly live: KubeObject;
}

/** Deletes them. Rejects with the signal's reason alone. */
export async function deleteObjects(options: DeleteOptions): Promise<DeleteOutcome> {
  const { target, clock, signal } = options;
  const errors: SyncError[] = [];
  const gone = new Set<string>();
  const statuses = new Map<string, ResourceStatus>();
  const note = (ref: ObjectRef, more: Pick<ResourceStatus, 'actuation' | 'reconcile' | 'status'>): void => {
    statuses.set(refId(ref), { ...ref, sourceHash: options.commit.slice(0, 7), strategy: 'Delete', ...more });
  };
  const { victims, unread } = await findVictims(options, { errors, gone, note });
  const accepted = new Map<string, Victim>();

  const act = async (victim: Victim): Promise<TaskResult> => {
    try {
      if (!isDeleting(victim.live)) await target.delete(victim.type, victim.live, signal, options.propagation);
      accepted.set(refId(victim.ref), victim);
      return 'done';
    } catch (error) {
      signal.throwIfAborted();
      errors.push(
        apiSyncError(error, `failed to delete ${refText(victim.ref)}`, [errorResource(victim.ref, victim.type)]),
      );
      note(victim.ref, { status: 'Unknown', actuation: 'Failed', reconcile: 'Skipped' });
      return 'failed';
    }
  };
  const effect = async ({ ref, type, live }: Victim): Promise<Effect> => {
    try {
      const now = await target.get(type, keyOfRef(ref), signal);
      if (now && now.metadata.uid === live.metadata.uid) return 'waiting';
      gone.add(refId(ref));
      return 'ready';
    } catch {
      signal.throwIfAborted();
      return 'waiting';
    }
  };
  const { needs, kept } = dependents(victims, [...options.staying, ...unread]);
  const byId = new Map(victims.map((victim) => [refId(victim.ref), victim]));
  await runGraph({
    tasks: [...victims]
      .sort((a, b) => compareRefs(b.ref, a.ref))
      .map((victim) => ({
        id: refId(victim.ref),
        needs: needs.get(refId(victim.ref)) ?? new Set(),
        act: () => act(victim),
        effect: () => effect(victim),
      })),
    external: new Map([...kept].map((id) => [id, async (): Promise<Effect> => 'failed'])),
    cycles: 'act',
    effectMs: options.reconcileMs,
    clock,
    signal,
    onObstacle: ({ id }, need, obstacle) => {
      const { ref, type } = byId.get(id)!;
      const why = kept.has(need) ? stayingText(ref, need) : OBSTACLES[obstacle];
      errors.push(syncError(2009, `skipped delete of ${refText(ref)}: ${why}: ${need}`, [errorResource(ref, type)]));
      note(ref, { status: 'Unknown', actuation: 'Skipped', reconcile: 'Skipped' });
    },
  });
  let left = [...accepted.values()].filter(({ ref }) => !gone.has(refId(ref)));
  const end = clock.monotonic() + options.finalWaitMs;
  for (let pauseMs = 20; left.length > 0; pauseMs = Math.min(pauseMs * 2, 1000)) {
    for (const victim of left) await effect(victim);
    left = left.filter(({ ref }) => !gone.has(refId(ref)));
    if (left.length === 0 || clock.monotonic() >= end) break;
    await clock.sleep(Math.min(pauseMs, Math.max(end - clock.monotonic(), 1)), signal);
  }
  for (const { ref } of left) note(ref, { status: 'Terminating', actuation: 'Succeeded', reconcile: 'Pending' });
  return { errors, gone, going: left.map(({ ref }) => ref), statuses: [...statuses.values()] };
}

const OBSTACLES: Readonly<Record<Obstacle, string>> = {
  failed: 'dependent delete actuation failed',
  skipped: 'dependent delete actuation skipped',
  'not-ready': 'dependent delete reconcile failed',
  timeout: 'dependent delete reconcile timeout',
  cycle: 'cyclic dependency',
};
const stayingText = ({ kind, group }: ObjectRef, need: string): string =>
  kind === 'Namespace' && group === '' && !need.startsWith('/Namespace/')
    ? 'namespace still in use'
    : 'dependent scheduled for apply';

interface Found {
  readonly errors: SyncError[];
  readonly gone: Set<string>;
  readonly note: (ref: ObjectRef, more: Pick<ResourceStatus, 'actuation' | 'reconcile' | 'status'>) => void;
}

/** Those that are there, ours, and not to be let go: what is detached is let go here. */
async function findVictims(
  options: DeleteOptions,
  { errors, gone, note }: Found,
): Promise<{ victims: Victim[]; unread: GraphNode[] }> {
  const { target, sync, signal } = options;
  const kinds = await options.kinds();
  const victims: Victim[] = [];
  // They may be there: what they lie in stays.
  const unread: GraphNode[] = [];
  for (const ref of options.refs) {
    const type = kinds.byRef(ref);
    if (type === undefined) {
      // With its definition its objects went as well.
      gone.add(refId(ref));
      continue;
    }
    try {
      if (type === 'unknown') throw new Error(`the server does not say whether it serves ${ref.kind} of ${ref.group}`);
      const live = await target.get(type, keyOfRef(ref), signal);
      const isOthers = live && ownershipOf(live, ref, sync).by === 'other';
      if (!live || isOthers) gone.add(refId(ref));
      else if (isDetached(live, ref)) {
        const patch = releasePatch(live, sync);
        if (patch) await target.merge(type, keyOfRef(ref), patch, signal);
        gone.add(refId(ref));
      } else victims.push({ ref, type, live, dependsOn: dependsOnOf(live), ...definesOf(live) });
    } catch (error) {
      signal.throwIfAborted();
      unread.push({ ref, dependsOn: [] });
      errors.push(apiSyncError(error, `failed to prune ${refText(ref)}`, [errorResource(ref)]));
      note(ref, { status: 'Unknown', actuation: 'Failed', reconcile: 'Skipped' });
    }
  }
  return { victims, unread };
}

/** What a live object says that it depends on. */
export /** By its annotations. What was edited by hand and cannot be read names nothing that could be waited for. */
function dependsOnOf(live: KubeObject): ObjectRef[] {
  const { annotations = {} } = live.metadata;
  const refs = (text: string | undefined, read: (text: string) => ObjectRef[]): ObjectRef[] => {
    try {
      return text ? read(text) : [];
    } catch {
      return [];
    }
  };
  return [
    ...refs(annotations[DEPENDS_ON], parseDependsOn),
    ...refs(annotations[APPLY_TIME_MUTATION], (text) =>
      parseSubstitutions(text, refOf(live), () => undefined).flatMap(({ source }) => [
        source,
        // Whether its kind is in a namespace is not known here.
        { ...source, namespace: '' },
      ]),
    ),
  ];
}

/** What has to be gone before each victim: its dependents; and those of them that are not going at all. */
export function dependents(
  victims: readonly GraphNode[],
  staying: readonly GraphNode[],
): { needs: Map<string, Set<string>>; kept: Set<string> } {
  const doomed = new Set(victims.map(({ ref }) => refId(ref)));
  const needs = new Map<string, Set<string>>([...doomed].map((id) => [id, new Set()]));
  const kept = new Set<string>();
  for (const [id, wants] of dependencies([...victims, ...staying]))
    for (const want of wants) {
      if (!doomed.has(want)) continue;
      needs.get(want)!.add(id);
      if (!doomed.has(id)) kept.add(id);
    }
  return { needs, kept };
}
