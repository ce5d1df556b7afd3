/** What a DELETE makes of an object: gone, marked, or left as it is. Pure (registry/rest/delete.go and store.go). */

import { formatTime, type UnstructuredObject } from '@coracle/apimachinery/meta/object';
import type { ResourceInfo } from '@coracle/apimachinery/types/resource';
import type { ResourceStrategy } from '@coracle/apimachinery/types/strategy';
import type { Decision, StoredObject } from '../cache/object-store.ts';

export const ORPHAN_FINALIZER = 'orphan';
export const FOREGROUND_FINALIZER = 'foregroundDeletion';

/** The parts of meta/v1 DeleteOptions that decide. */
export interface DeleteOptions {
  readonly gracePeriodSeconds?: number;
  readonly propagationPolicy?: 'Background' | 'Foreground' | 'Orphan';
  /** Deprecated form of propagationPolicy. */
  readonly orphanDependents?: boolean;
  readonly preconditions?: { readonly uid?: string; readonly resourceVersion?: string };
}

export type DeletionEffect =
  | { readonly type: 'remove' }
  | { readonly type: 'mark'; readonly object: UnstructuredObject }
  | { readonly type: 'already-terminating' };

/** Decides over the stored object (frozen); 'mark' returns a changed copy. */
export function deletionEffect(
  info: ResourceInfo,
  object: Readonly<UnstructuredObject>,
  { options, now }: { readonly options: DeleteOptions; readonly now: number },
): DeletionEffect {
  const { strategy } = info;
  // What is below these is replaced where it changes, never written into: a copy of all of a large object takes long.
  const next: UnstructuredObject = { ...object, metadata: { ...object.metadata } as UnstructuredObject['metadata'] };
  const { metadata } = next;
  if (object.metadata.deletionTimestamp === undefined && strategy.beginDeletion !== undefined) {
    // Its own first step, whatever the options say: neither policy nor grace, and no new generation.
    strategy.beginDeletion(next, now);
    metadata.deletionTimestamp = formatTime(now);
    return { type: 'mark', object: next };
  }
  // While a grace period runs, a later delete may only shorten it: what it says of dependents is not heard either.
  if (saysNothingNew(info, object, options)) return { type: 'already-terminating' };
  const left = graceLeft(strategy, object) ?? 0;
  const isShorter = left > 0;
  const finalizers = finalizersAfter(strategy, metadata.finalizers ?? [], options);
  if (finalizers.length > 0) metadata.finalizers = finalizers;
  else delete metadata.finalizers;

  const grace = isShorter ? atLeastASecond(options) : gracePeriod(strategy, object, options);
  const held = finalizers.length > 0 || strategy.isHeld?.(object) === true;
  if (grace === 0 && !held) return { type: 'remove' };

  const finalizersChanged = String(finalizers) !== String(object.metadata.finalizers ?? []);
  if (object.metadata.deletionTimestamp !== undefined) {
    const isUnstamped = object.metadata.deletionGracePeriodSeconds === undefined && !strategy.isHeld;
    if (!isShorter && !finalizersChanged && !isUnstamped) return { type: 'already-terminating' };
    // Counted from the first delete.
    if (isShorter) stamp(metadata, grace, Date.parse(object.metadata.deletionTimestamp) - left * 1000);
    else if (isUnstamped) {
      // Where marking is a step of its own, the generation moves with the second DELETE.
      metadata.deletionGracePeriodSeconds = 0;
      moveGeneration(metadata);
    }
    return { type: 'mark', object: next };
  }
  stamp(metadata, grace, now);
  if (strategy.isHeld) delete metadata.deletionGracePeriodSeconds;
  moveGeneration(metadata);
  strategy.markDeleted?.(next);
  return { type: 'mark', object: next };
}

/** What the store is given; `marked` is the stored form of a marked object, where that is another one. */
export function deletionDecision(effect: DeletionEffect, current: StoredObject, marked?: UnstructuredObject): Decision {
  if (effect.type === 'already-terminating') return { type: 'keep' };
  return effect.type === 'mark'
    ? { type: 'put', object: marked ?? effect.object }
    : { type: 'delete', object: current.object as UnstructuredObject };
}

/** True when a terminating object has nothing left to wait for, so that the write that made it so removes it. */
export function finishedDeleting(info: ResourceInfo, object: Readonly<UnstructuredObject>): boolean {
  const { metadata } = object;
  return (
    metadata.deletionTimestamp !== undefined &&
    (metadata.finalizers ?? []).length === 0 &&
    (metadata.deletionGracePeriodSeconds ?? 0) === 0 &&
    info.strategy.isHeld?.(object) !== true
  );
}

/** Of an object whose generation is the client's own it may be a bigint. */
function moveGeneration(metadata: UnstructuredObject['metadata']): void {
  if ((metadata.generation ?? 0) > 0) metadata.generation = Number(metadata.generation) + 1;
}

function stamp(metadata: UnstructuredObject['metadata'], grace: number, now: number): void {
  metadata.deletionTimestamp = formatTime(Math.min(now + grace * 1000, LAST_SECOND));
  metadata.deletionGracePeriodSeconds = grace;
}

/** 9999-12-31T23:59:59Z: RFC 3339 has no later time. */
const LAST_SECOND = 253_402_300_799_000;

/** The grace period that runs, in seconds, 0 when it is over and finalizers are left; undefined when none does. */
function graceLeft(strategy: ResourceStrategy, { metadata }: Readonly<UnstructuredObject>): number | undefined {
  const { deletionTimestamp, deletionGracePeriodSeconds } = metadata;
  return strategy.gracePeriod && deletionTimestamp !== undefined ? deletionGracePeriodSeconds : undefined;
}

/** Whether a delete comes to an object under a grace period, and does not shorten it: then nobody is asked either. */
export function saysNothingNew(
  { strategy }: ResourceInfo,
  object: Readonly<UnstructuredObject>,
  options: DeleteOptions,
): boolean {
  const left = graceLeft(strategy, object);
  return left !== undefined && (options.gracePeriodSeconds === undefined || atLeastASecond(options) >= left);
}

/** The grace period that was asked for; a negative one means a second. */
const atLeastASecond = ({ gracePeriodSeconds = 0 }: DeleteOptions): number =>
  gracePeriodSeconds < 0 ? 1 : gracePeriodSeconds;

/** What a first delete waits, where the kind gives time; nothing when the object is terminating already with none left. */
function gracePeriod(strategy: ResourceStrategy, object: Readonly<UnstructuredObject>, options: DeleteOptions): number {
  if (!strategy.gracePeriod || object.metadata.deletionTimestamp !== undefined) return 0;
  return atLeastASecond({ gracePeriodSeconds: strategy.gracePeriod(object, options.gracePeriodSeconds) });
}

/** The garbage collector's finalizers follow the propagation policy; others stay. */
function finalizersAfter(strategy: ResourceStrategy, finalizers: readonly string[], options: DeleteOptions): string[] {
  if (strategy.garbageCollection === 'unsupported') return [...finalizers];
  const { orphanDependents, propagationPolicy } = options;
  const asked = orphanDependents !== undefined || propagationPolicy !== undefined;
  const orphan = asked
    ? orphanDependents === true || propagationPolicy === 'Orphan'
    : finalizers.includes(ORPHAN_FINALIZER) ||
      (strategy.garbageCollection === 'orphan-dependents' && !finalizers.includes(FOREGROUND_FINALIZER));
  const foreground = asked ? propagationPolicy === 'Foreground' : finalizers.includes(FOREGROUND_FINALIZER);
  const others = finalizers.filter((finalizer) => finalizer !== ORPHAN_FINALIZER && finalizer !== FOREGROUND_FINALIZER);
  if (orphan) others.push(ORPHAN_FINALIZER);
  if (foreground) others.push(FOREGROUND_FINALIZER);
  return others;
}
