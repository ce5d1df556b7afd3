/**
 * Puts drift back: watches what a sync has applied, and writes an object anew when it is no longer what the last applied
 * commit declares. Fields that nobody declared belong to whoever sets them.
 *
 * It rests while an attempt runs, so that the two never write in turns.
 */

import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import type { ResourceType } from '@coracle/apimachinery/meta/gvk';
import type { KubeObject, ReadonlyObject } from '@coracle/apimachinery/meta/object';
import { isDeleting } from '@coracle/apimachinery/meta/object-state';
import type { Change } from '@coracle/client/informer/store';
import { createWorkQueue } from '@coracle/client/queue/work-queue';
import type { Clock } from '@coracle/runtime/clock/clock';
import type { Logger } from '@coracle/runtime/log/log';
import { applyOne, applyWhole, conflictError, conflictingManager } from '../apply/apply-objects.ts';
import type { Target } from '../apply/target.ts';
import type { SyncError } from '../kinds/kinds.ts';
import { comparable } from '../plan/changed-fields.ts';
import type { Declared } from '../plan/declared.ts';
import type { ManagedBy } from '../plan/managed-object.ts';
import { keyOfRef, refId, refOf, refText } from '../plan/object-ref.ts';
import { isDetached, ownershipOf, releasePatch } from '../plan/ownership.ts';
import { apiSyncError, errorResource, syncError } from '../status/sync-error.ts';
import type { SyncIdentity } from '../status/sync-identity.ts';
import type { SyncRecorder } from '../status/sync-metrics.ts';
import { isDrifted } from './drift.ts';
import { COOLING_MS, createFightDetector, type FightDetector } from './fight.ts';
import { WatchedKinds } from './watched-kinds.ts';

type Live = ReadonlyObject;

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

/** Makes it; it rests until `resume`. */
export function createRemediator(options: RemediatorOptions): Remediator {
  return new WatchingRemediator(options);
}

class WatchingRemediator implements Remediator {
  readonly #options: RemediatorOptions;
  readonly #watched: WatchedKinds;
  readonly #queue: ReturnType<typeof createWorkQueue>;
  readonly #fight: FightDetector;
  readonly #conflicts = new Map<string, SyncError>();
  readonly #failures = new Map<string, SyncError>();
  #kept: Kept | undefined;
  #declared = new Map<string, Declared>();
  #disabled = new Map<string, Declared>();
  readonly #types = new Map<string, ResourceType<KubeObject>>();
  /** Ids of what is to be looked at, and of what could not be put back: no more than objects are watched. */
  readonly #doubtful = new Set<string>();
  #isResting = true;
  #running: Promise<void> | undefined;

  constructor(options: RemediatorOptions) {
    const { sync, target, clock, log, signal } = options;
    this.#options = options;
    this.#fight = createFightDetector(clock);
    this.#watched = new WatchedKinds({
      sync,
      client: target.client,
      clock,
      log,
      signal,
      onChange: (type, change) => this.#seen(type, change),
    });
    this.#queue = createWorkQueue({ clock, concurrency: 1, run: (id) => this.#pass(id) });
    this.#queue.start();
  }

  async pause(): Promise<void> {
    this.#isResting = true;
    await this.#running;
  }

  resume(next: Kept): void {
    this.#kept = next;
    this.#declared = new Map(next.enabled.map((one) => [refId(one.ref), one]));
    this.#disabled = new Map(next.disabled.map((one) => [refId(one.ref), one]));
    // The attempt has looked at every object, and says itself what stands in the way.
    this.#conflicts.clear();
    this.#failures.clear();
    // The watch may have brought what the attempt wrote before it was known here; what else came is found below.
    this.#doubtful.clear();
    this.#isResting = false;
    this.#watched.follow([...next.enabled, ...next.disabled].map(({ type }) => type));
    this.#lookAtMissed(next);
  }

  /** What happened while it rested. */
  #lookAtMissed({ applied }: Kept): void {
    for (const [id, one] of this.#declared) {
      const informer = this.#watched.of(one.type)!;
      if (!informer.isSynced) continue;
      const seen = informer.get(keyOfRef(one.ref));
      if (seen?.metadata.resourceVersion !== applied.get(id)) this.#lookAt(id);
    }
    for (const informer of this.#watched.informers())
      for (const object of informer.list()) {
        const id = refId(refOf(object as KubeObject));
        if (!this.#declared.has(id)) this.#lookAt(id);
      }
  }

  unchanged(next: Declared): Unchanged | undefined {
    const id = refId(next.ref);
    const one = this.#declared.get(id);
    if (!one || !this.#kept?.applied.has(id) || this.#doubtful.has(id) || this.#conflicts.has(id)) return undefined;
    const { since: _commit, ...before } = one;
    if (!deepEqual(before, next)) return undefined;
    const informer = this.#watched.of(one.type);
    if (!informer?.isSynced || informer.lastError !== undefined) return undefined;
    const live = informer.get(keyOfRef(one.ref));
    return live && !isDeleting(live) ? { one, live } : undefined;
  }

  errors(): readonly SyncError[] {
    return [
      ...this.#conflicts.values(),
      ...[...this.#fight.fights].flatMap((id) => {
        const one = this.#declared.get(id);
        if (!one) return [];
        return [
          syncError(2005, `something else keeps changing ${refText(one.ref)}: it is reverted again and again`, [
            errorResource(one.ref, { version: one.type.version, path: one.path }),
          ]),
        ];
      }),
      ...this.#failures.values(),
    ];
  }

  live(one: Declared): Live | undefined {
    return this.#watched.of(one.type)?.get(keyOfRef(one.ref));
  }

  async stop(): Promise<void> {
    this.#isResting = true;
    await this.#queue.stop();
    await this.#running;
    await this.#watched.stop();
  }

  #seen(type: ResourceType<KubeObject>, { object, previous, type: change }: Change<KubeObject>): void {
    const id = refId(refOf(object as KubeObject));
    this.#types.set(id, type);
    if (change !== 'deleted' && this.#kept?.applied.get(id) === object.metadata.resourceVersion) return;
    if (change === 'modified' && deepEqual(comparable(previous), comparable(object))) this.#options.onChange();
    else this.#lookAt(id);
  }

  #lookAt(id: string): void {
    this.#doubtful.add(id);
    this.#queue.add(id);
  }

  async #pass(id: string): Promise<void> {
    const { clock, log, signal, metrics, onChange } = this.#options;
    // What came while it rested is looked at as a whole by `resume`.
    if (this.#isResting || !this.#kept) return this.#queue.forget(id);
    const now = this.#kept;
    this.#doubtful.delete(id);
    const work = this.#remediate(id, now);
    const from = clock.monotonic();
    let ok = false;
    this.#running = work.then(
      () => {},
      () => {},
    );
    try {
      await work;
      ok = true;
      this.#failures.delete(id);
      this.#queue.forget(id);
    } catch (error) {
      if (signal.aborted) return;
      this.#doubtful.add(id);
      const one = this.#declared.get(id);
      if (one)
        this.#failures.set(
          id,
          apiSyncError(error, `failed to revert ${refText(one.ref)}`, [errorResource(one.ref, one.type)]),
        );
      log.warn('drift could not be reverted', {
        object: id,
        error: error instanceof Error ? error.message : String(error),
      });
      this.#queue.addRateLimited(id);
    } finally {
      this.#running = undefined;
      metrics.remediated({ ms: clock.monotonic() - from, ok });
      onChange();
    }
  }

  async #remediate(id: string, { by, spared, sparesAll }: Kept): Promise<void> {
    const { sync, target, log, signal } = this.#options;
    const one = this.#declared.get(id) ?? this.#disabled.get(id);
    const type = one?.type ?? this.#types.get(id);
    if (!type) return;
    const ref = one?.ref ?? refOfId(id);
    const live = await target.get(type, keyOfRef(ref), signal);
    this.#conflicts.delete(id);
    if (this.#declared.has(id)) return this.#putBack(this.#declared.get(id)!, live, by);
    // Whose it is on the way out is nobody's any more.
    if (!live || isDeleting(live) || ownershipOf(live, ref, sync).by !== 'us') return;
    const patch = releasePatch(live, sync);
    if (this.#disabled.has(id)) {
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
  }

  async #putBack(one: Declared, live: KubeObject | undefined, by: ManagedBy): Promise<void> {
    const { sync, target, log, signal, exists } = this.#options;
    const id = refId(one.ref);
    // Made anew once it is gone.
    if (live?.metadata.deletionTimestamp !== undefined) return;
    const rival = live && conflictingManager(live, one, { by, exists });
    if (rival !== undefined) {
      this.#conflicts.set(id, conflictError(one, sync, rival));
      return;
    }
    if (live && !(await isDrifted(one, live, { by, target, signal }))) return this.#fight.calm(id);
    log.info('drift is reverted', { object: id, was: live ? 'changed' : 'deleted' });
    if (!live) this.#options.onDeleted(one);
    if (live) await applyOne(one, live, { by, target, signal });
    else await applyWhole(one, live, { by, target, signal }, { force: false });
    if (!this.#fight.wrote(id)) return;
    this.#options.metrics.fought();
    log.warn('something else keeps changing an object that is declared', { object: id });
    this.#queue.addAfter(id, COOLING_MS);
  }
}

function refOfId(id: string) {
  const [group = '', kind = '', namespace = '', ...name] = id.split('/');
  return { group, kind, namespace, name: name.join('/') };
}
