/**
 * How a claim that asks for more is enlarged (what external-resizer writes): the claim says that it is being resized and
 * how much is set aside for it, the volume grows, and the claim has the new size. One decision a pass.
 */

import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import { conditionOf } from '@coracle/apimachinery/meta/object-state';
import { quantityToBytes } from '@coracle/apimachinery/quantity/quantity';
import type { PersistentVolume, PersistentVolumeClaim } from '@coracle/apimachinery/types/types';
import { capacityOf, requestOf } from './match-volume.ts';

type Claim = DeepReadonly<PersistentVolumeClaim>;
type Condition = NonNullable<NonNullable<Claim['status']>['conditions']>[number];

/** Conditions that tell of a resize; they go when it is done. */
const RESIZE_CONDITIONS: readonly string[] = [
  'Resizing',
  'FileSystemResizePending',
  'ControllerResizeError',
  'NodeResizeError',
];

export type ResizeStep =
  | { readonly type: 'done' }
  /** Write this status, then look again. */
  | { readonly type: 'claim-status'; readonly status: NonNullable<Claim['status']>; readonly starts: boolean }
  /** Have the pool enlarge the content to so many bytes, then write the volume's capacity. */
  | { readonly type: 'expand'; readonly bytes: number };

const others = (claim: Claim): Condition[] =>
  (claim.status?.conditions ?? []).filter(({ type }) => !RESIZE_CONDITIONS.includes(type));

/** Decides for a bound claim and its volume. `now` is an instant, RFC 3339. */
export function resizeStep(claim: Claim, volume: DeepReadonly<PersistentVolume>, now: string): ResizeStep {
  const wanted = requestOf(claim);
  const has = quantityToBytes(String(claim.status?.capacity?.['storage'] ?? '0'));
  if (claim.status?.phase !== 'Bound' || wanted <= has) return { type: 'done' };
  const storage = claim.spec?.resources?.requests?.['storage'];
  const set = claim.status?.allocatedResources?.['storage'];
  const isMarked =
    set !== undefined &&
    quantityToBytes(String(set)) >= wanted &&
    claim.status?.allocatedResourceStatuses?.['storage'] !== undefined;
  if (!isMarked) {
    const condition = { type: 'Resizing', status: 'True', lastTransitionTime: now } as unknown as Condition;
    const status = {
      ...claim.status,
      conditions: [...others(claim), condition],
      allocatedResources: { ...claim.status?.allocatedResources, storage },
      allocatedResourceStatuses: { ...claim.status?.allocatedResourceStatuses, storage: 'ControllerResizeInProgress' },
    } as NonNullable<Claim['status']>;
    return { type: 'claim-status', status, starts: true };
  }
  if (capacityOf(volume) < wanted) return { type: 'expand', bytes: wanted };
  const { allocatedResourceStatuses: statuses, ...rest } = claim.status ?? {};
  const { storage: _, ...left } = statuses ?? {};
  const status = {
    ...rest,
    capacity: { ...claim.status?.capacity, storage: volume.spec?.capacity?.['storage'] },
    conditions: others(claim),
    ...(Object.keys(left).length > 0 && { allocatedResourceStatuses: left }),
  } as NonNullable<Claim['status']>;
  return { type: 'claim-status', status, starts: false };
}

/** The status after the pool refused; `final` when to try again will not help. */
export function resizeFailed(claim: Claim, { message, final, now }: { message: string; final: boolean; now: string }) {
  const condition = {
    type: 'ControllerResizeError',
    status: 'True',
    lastTransitionTime: now,
    message,
  } as unknown as Condition;
  const resizing = (claim.status?.conditions ?? []).filter(({ type }) => type === 'Resizing');
  const before = conditionOf(claim, 'ControllerResizeError');
  const same = before && (before as { message?: string }).message === message;
  return {
    ...claim.status,
    conditions: [...others(claim), ...resizing, same ? before : condition],
    ...(final && {
      allocatedResourceStatuses: { ...claim.status?.allocatedResourceStatuses, storage: 'ControllerResizeInfeasible' },
    }),
  } as NonNullable<Claim['status']>;
}
