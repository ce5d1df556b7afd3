/**
 * Puts drift back: watches what a sync has applied, and writes an object anew when it is no longer what the last applied
 * commit declares. Fields that nobody declared belong to whoever sets them.
 *
 * It rests while an attempt runs, so that the two never write in turns.
 */

import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import { apiVersionOf, type ResourceType } from '@coracle/apimachinery/meta/gvk';
import type { DeepReadonly, KubeObject } from '@coracle/apimachinery/meta/object';
import { createInformer, type Informer } from '@coracle/client/informer/informer';
import { createWorkQueue } from '@coracle/client/queue/work-queue';
import type { Clock } from '@coracle/runtime/clock/clock';
import type { Logger } from '@coracle/runtime/log/log';
import { createLinkedController, type LinkedController } from '@coracle/runtime/signal/linked-controller';
import { applyOne, applyWhole, conflictError, rivalOf } from '../apply/apply-objects.ts';
import type { Target } from '../apply/target.ts';
import { declaredFieldsOf } from '../guard/declared-fields.ts';
import type { SyncError } from '../kinds/kinds.ts';
import { comparable } from '../plan/changed-fields.ts';
import type { Declared } from '../plan/declared.ts';
import { type ManagedBy, managedObject, managementMetadata, saidFields } from '../plan/managed-object.ts';
import { keyOfRef, refId, refOf, refText } from '../plan/object-ref.ts';
import { isDetached, ownershipOf, releasePatch } from '../plan/ownership.ts';
import { applySetId } from '../status/apply-set.ts';
import { MUTATION, PART_OF } from '../status/metadata-keys.ts';
import { apiSyncError, errorResource, syncError } from '../status/sync-error.ts';
import type { SyncIdentity } from '../status/sync-identity.ts';
import type { SyncRecorder } from '../status/sync-metrics.ts';
import { COOLING_MS, createFightDetector } from './fight.ts';

type Live = DeepReadonly<KubeObject>;

/** What is to be kept as it is. */
export interface Kept {
  readonly by: ManagedBy;
  readonly enabled: readonly Declared[];
  readonly disabled: readonly Declared[];
  /** Ids of undeclared objects that stay all the same: they could not be pruned, or what is declared of them is not valid. */
  readonly spared: ReadonlySet<string>;
  /** Nothing undeclared is deleted: it may be declared by a file that could not be read. */
  readonly sparesAll: boolean;
  /** By id: the resource version that the apply was answered, which is no drift. */
  readonly applied: ReadonlyMap<string, string | undefined>;
}

/** An object that need not be written. */
export interface Unchanged {
  /** As it was declared, with the commit that it was written for. */
  readonly one: Declared;
  readonly live: Live;
}

export interface Remediator {
  /** Rests; resolves when the write under way has ended. */
  pause(): Promise<void>;
  /** Goes on with what is declared now. */
  resume(kept: Kept): void;
  /** Conflicts and fights, as they are now. */
  errors(): readonly SyncError[];
  /**
   * An object of what is kept that is declared as before, was applied, and has not drifted since as far as the watch
   * tells; what the watch brings later is looked at after `resume`. Undefined for any other.
   */
  unchanged(next: Declared): Unchanged | undefined;
  /** The newest state known of an object that is watched. */
  live(one: Declared): Live | undefined;
  /** Resolves when all of it has ended. */
  stop(): Promise<void>;
}

export interface RemediatorOptions {
  readonly sync: SyncIdentity;
  readonly target: Target;
  readonly exists: (sync: SyncIdentity) => boolean;
  readonly clock: Clock;
  readonly log: Logger;
  /** Hears that errors or the health of objects may have changed. */
  readonly onChange: () => void;
  /** Hears of an object that somebody else deleted, before it is made anew. */
  readonly onDeleted: (one: Declared) => void;
  readonly metrics: Pick<SyncRecorder, 'remediated' | 'fought'>;
  readonly signal: AbortSignal;
}

interface Watch {
  readonly informer: Informer<KubeObject>;
  readonly stop: LinkedController;
  readonly ended: Promise<void>;
}

/** Makes it; it rests until `resume`. */
export function createRemediator(options: RemediatorOptions): Remediator {
  const { sync, target, clock, log, signal } = options;
  const watches = new Map<string, Watch>();
  const fight = createFightDetector(clock);
  const conflicts = new Map<string, SyncError>();
  const failures = new Map<string, SyncError>();
  let kept: Kept | undefined;
  let declared = new Map<string, Declared>();
  let disabled = new Map<string, Declared>();
  const types = new Map<string, ResourceType<KubeObject>>();
  /** Ids of what is to be looked at, and of what could not be put back: no more than objects are watched. */
  const doubtful = new Set<string>();
  let isResting = true;
  let running: Promise<void> | undefined;

  const pass = async (id: string): Promise<void> => {
    // What came while it rested is looked at as a whole by `resume`.
    if (isResting || !kept) return queue.forget(id);
    const now = kept;
    doubtful.delete(id);
    const work = remediate(id, now);
    const from = clock.monotonic();
    let ok = false;
    running = work.then(
      () => {},
      () => {},
    );
    try {
      await work;
      ok = true;
      failures.delete(id);
      queue.forget(id);
    } catch (error) {
      if (signal.aborted) return;
      doubtful.add(id);
      const one = declared.get(id);
      if (one)
        failures.set(
          id,
          apiSyncError(error, `failed to put back ${refText(one.ref)}`, [errorResource(one.ref, one.type)]),
        );
      log.warn('drift could not be put back', {
        object: id,
        error: error instanceof Error ? error.message : String(error),
      });
      queue.addRateLimited(id);
    } finally {
      running = undefined;
      options.metrics.remediated({ ms: clock.monotonic() - from, ok });
      options.onChange();
    }
  };
  const queue = createWorkQueue({ clock, concurrency: 1, run: pass });
  queue.start();
  const lookAt = (id: string): void => {
    doubtful.add(id);
    queue.add(id);
  };

  const remediate = async (id: string, { by, spared, sparesAll }: Kept): Promise<void> => {
    const one = declared.get(id) ?? disabled.get(id);
    const type = one?.type ?? types.get(id);
    if (!type) return;
    const ref = one?.ref ?? refOfId(id);
    const live = await target.get(type, keyOfRef(ref), signal);
    conflicts.delete(id);
    if (declared.has(id)) return putBack(declared.get(id)!, live, by);
    // Whose it is on the way out is nobody's any more.
    if (!live || live.metadata.deletionTimestamp !== undefined || ownershipOf(live, ref, sync).by !== 'us') return;
    const patch = releasePatch(live, sync);
    if (disabled.has(id)) {
      if (patch) await target.merge(type, keyOfRef(ref), patch, signal);
      return;
    }
    if (sparesAll || spared.has(id) || (live.metadata.ownerReferences ?? []).length > 0) return;
    if (isDetached(live, ref)) {
      if (patch) await target.merge(type, keyOfRef(ref), patch, signal);
    } else {
      log.info('deleted an object that carries our metadata and is not declared', { object: id });
      await target.delete(type, live, signal, 'Background');
    }
  };

  const putBack = async (one: Declared, live: KubeObject | undefined, by: ManagedBy): Promise<void> => {
    const id = refId(one.ref);
    // Made anew once it is gone.
    if (live?.metadata.deletionTimestamp !== undefined) return;
    const rival = live && rivalOf(live, one, { by, exists: options.exists });
    if (rival !== undefined) {
      conflicts.set(id, conflictError(one, sync, rival));
      return;
    }
    if (live && !(await isDrifted(one, live, by))) return fight.calm(id);
    log.info('drift is put back', { object: id, was: live ? 'changed' : 'deleted' });
    if (!live) options.onDeleted(one);
    if (live) await applyOne(one, live, { by, target, signal });
    else await applyWhole(one, live, { by, target, signal }, { force: false });
    if (!fight.wrote(id)) return;
    options.metrics.fought();
    log.warn('something else keeps changing an object that is declared', { object: id });
    queue.addAfter(id, COOLING_MS);
  };

  const isDrifted = async (one: Declared, live: KubeObject, by: ManagedBy): Promise<boolean> => {
    if (one.object.metadata.annotations?.[MUTATION] === 'ignore') {
      const { labels, annotations } = managementMetadata(one, by);
      const lacks = (have: Readonly<Record<string, string>> = {}, want: Readonly<Record<string, string>>) =>
        Object.entries(want).some(([key, value]) => have[key] !== value);
      return lacks(live.metadata.labels, labels) || lacks(live.metadata.annotations, annotations);
    }
    const wanted = await target.apply(one.type, managedObject(one, by, live), signal, { dryRun: true });
    if (by.isGuarded && declaredFieldsOf(wanted, one.object) !== saidFields(live, by)) return true;
    return !deepEqual(comparable(live), comparable(wanted));
  };

  const watch = (type: ResourceType<KubeObject>): void => {
    const name = `${apiVersionOf(type)}/${type.resource}`;
    if (watches.has(name)) return;
    const stop = createLinkedController(signal);
    const informer = createInformer<KubeObject>(target.client, type, {
      clock,
      log,
      omitsManagedFields: true,
      labelSelector: `${PART_OF}=${applySetId(sync)}`,
      ...(sync.kind === 'RepoSync' && { namespace: sync.namespace }),
    });
    informer.onChange(({ object, previous, type: change }) => {
      const id = refId(refOf(object as KubeObject));
      types.set(id, type);
      if (change !== 'deleted' && kept?.applied.get(id) === object.metadata.resourceVersion) return;
      if (change === 'modified' && deepEqual(comparable(previous), comparable(object))) return options.onChange();
      lookAt(id);
    });
    watches.set(name, { informer, stop, ended: informer.start(stop.signal) });
  };

  return {
    async pause() {
      isResting = true;
      await running;
    },
    resume(next) {
      kept = next;
      declared = new Map(next.enabled.map((one) => [refId(one.ref), one]));
      disabled = new Map(next.disabled.map((one) => [refId(one.ref), one]));
      // The attempt has looked at every object, and says itself what stands in the way.
      conflicts.clear();
      failures.clear();
      // The watch may have brought what the attempt wrote before it was known here; what else came is found below.
      doubtful.clear();
      isResting = false;
      const wanted = new Map(
        [...next.enabled, ...next.disabled].map(({ type }) => [`${apiVersionOf(type)}/${type.resource}`, type]),
      );
      for (const [name, { stop }] of watches) {
        if (wanted.has(name)) continue;
        stop.abort(new Error('the kind is no longer declared'));
        watches.delete(name);
      }
      for (const type of wanted.values()) watch(type);
      // What happened while it rested.
      for (const [id, one] of declared) {
        const { informer } = watches.get(`${apiVersionOf(one.type)}/${one.type.resource}`)!;
        if (!informer.isSynced) continue;
        const seen = informer.get(keyOfRef(one.ref));
        if (seen?.metadata.resourceVersion !== next.applied.get(id)) lookAt(id);
      }
      for (const { informer } of watches.values())
        for (const object of informer.list()) {
          const id = refId(refOf(object as KubeObject));
          if (!declared.has(id)) lookAt(id);
        }
    },
    unchanged(next) {
      const id = refId(next.ref);
      const one = declared.get(id);
      if (!one || !kept?.applied.has(id) || doubtful.has(id) || conflicts.has(id)) return undefined;
      const { since: _commit, ...before } = one;
      if (!deepEqual(before, next)) return undefined;
      const informer = watches.get(`${apiVersionOf(one.type)}/${one.type.resource}`)?.informer;
      if (!informer?.isSynced || informer.lastError !== undefined) return undefined;
      const live = informer.get(keyOfRef(one.ref));
      return live && live.metadata.deletionTimestamp === undefined ? { one, live } : undefined;
    },
    errors: () => [
      ...conflicts.values(),
      ...[...fight.fights].flatMap((id) => {
        const one = declared.get(id);
        if (!one) return [];
        return [
          syncError(2005, `something else keeps changing ${refText(one.ref)}: it is put back again and again`, [
            errorResource(one.ref, { version: one.type.version, path: one.path }),
          ]),
        ];
      }),
      ...failures.values(),
    ],
    live: (one) => watches.get(`${apiVersionOf(one.type)}/${one.type.resource}`)?.informer.get(keyOfRef(one.ref)),
    async stop() {
      isResting = true;
      await queue.stop();
      await running;
      for (const { stop } of watches.values()) stop.abort(new Error('the sync has ended'));
      await Promise.all([...watches.values()].map(({ ended }) => ended));
      for (const { stop } of watches.values()) stop.release();
    },
  };
}

function refOfId(id: string) {
  const [group = '', kind = '', namespace = '', ...name] = id.split('/');
  return { group, kind, namespace, name: name.join('/') };
}
