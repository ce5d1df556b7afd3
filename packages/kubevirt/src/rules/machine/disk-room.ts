/**
 * When a guest has to stop writing: at the limit of its Pod, or before the disk of the node has none left for the node
 * itself. Pure; the agent measures.
 */

import { quantityToBytes } from '@coracle/apimachinery/quantity/quantity';
import type { ReadonlyPod } from '@coracle/apimachinery/types/types';

const GIB = 1024 ** 3;

/** Bytes of a file system. */
export interface DiskSpace {
  readonly free: number;
  readonly total: number;
}

/**
 * Free bytes below which guests that write are paused, and below which the node says DiskPressure, takes no new ones, and
 * pauses those that write beyond their request.
 * Far above the mark below which the API server takes no new objects (64 MiB): a guest may write a gigabyte a second.
 */
export function diskFloor(total: number): { readonly pause: number; readonly pressure: number } {
  return { pause: Math.min(total * 0.075, GIB), pressure: Math.min(total * 0.1, 2 * GIB) };
}

/** Whether the node is short of disk space; once it is, until there is a quarter more than that. */
export const hasDiskPressure = ({ free, total }: DiskSpace, before: boolean): boolean =>
  free < diskFloor(total).pressure * (before ? 1.25 : 1);

/** What a Pod's files may take: the limits of its containers together, as a kubelet counts; undefined without one. */
export const ephemeralLimit = (pod: ReadonlyPod): number | undefined => ephemeralSum(pod, 'limits');

/** What was set aside for them, when the Pod was placed. */
export const ephemeralRequest = (pod: ReadonlyPod): number => ephemeralSum(pod, 'requests') ?? 0;

function ephemeralSum(pod: ReadonlyPod, list: 'limits' | 'requests'): number | undefined {
  let sum: number | undefined;
  for (const { resources } of pod.spec.containers) {
    const amount = resources?.[list]?.['ephemeral-storage'];
    if (amount !== undefined) sum = (sum ?? 0) + quantityToBytes(String(amount));
  }
  return sum;
}

/** Why a guest is paused for its disks: its Pod's limit, or the room of the node. */
export type DiskPause = 'limit' | 'floor';

export interface DiskMeasure {
  /** Bytes that the guest's own files take. */
  readonly used: number;
  /** Bytes that all files it writes to have grown by since the measure before; claims among them. */
  readonly grown: number;
  readonly limit: number | undefined;
  /** What was set aside for these files. */
  readonly requested: number;
  readonly space: DiskSpace;
}

/** Growth that is no writing to speak of: a log line, a table of an image. */
const STILL = 1024 * 1024;
/** A guest that was stopped at its limit goes on when this part of it is free. */
const LIMIT_SPARE = 0.1;

/**
 * Whether the guest is to be paused. One that runs is looked at with what it may write until the next look; one that is
 * paused goes on only with room to spare, so that it does not stop and go. Where the node is short of room, those that have
 * more than was set aside for them stop first: the others' is kept for them.
 */
export function diskPauseOf(
  { used, grown, limit, requested, space }: DiskMeasure,
  before: DiskPause | undefined,
): DiskPause | undefined {
  if (limit !== undefined) {
    if (before === 'limit' ? used > limit * (1 - LIMIT_SPARE) : used + grown > limit) return 'limit';
  }
  const { pause, pressure } = diskFloor(space.total);
  const mark = used > requested ? pressure : pause;
  if (before === 'floor') return space.free < mark * 1.25 ? 'floor' : undefined;
  return space.free - grown < mark && grown > STILL ? 'floor' : undefined;
}
