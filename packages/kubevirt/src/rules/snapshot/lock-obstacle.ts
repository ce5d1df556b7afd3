/** What keeps a snapshot from locking its source, in upstream's words (kubevirt pkg/storage/snapshot/source). */

import { isDeleting } from '@coracle/apimachinery/meta/object-state';
import type { ReadonlyClaim } from '@coracle/apimachinery/types/types';
import type { ReadonlyVm } from '../../kinds/kubevirt.ts';

export const NOT_LOCKED = 'Source not locked';
export const LOCKED = 'Source locked and operation in progress';

export interface LockFacts {
  readonly vm: ReadonlyVm;
  readonly snapshotName: string;
  readonly online: boolean;
  /** The claims of its volumes, by name; undefined for one that is not there. */
  readonly claims: ReadonlyMap<string, ReadonlyClaim | undefined>;
  /** Claims whose DataVolume is not done with filling them. */
  readonly unpopulated: ReadonlySet<string>;
  /** Pods that use one of the claims. */
  readonly pods: number;
}

/** The first obstacle; undefined when there is none. */
export function lockObstacle({ vm, snapshotName, online, claims, unpopulated, pods }: LockFacts): string | undefined {
  for (const [name, claim] of claims) {
    const problem = claimProblem(claim, unpopulated.has(name));
    if (problem) return `source ${vm.metadata.namespace}/${vm.metadata.name} ${problem}: ${name}`;
  }
  if (!online && pods > 0) return `source is offline but ${pods} pods using PVCs [${[...claims.keys()].join(' ')}]`;
  const { snapshotInProgress: other, restoreInProgress: restore } = vm.status ?? {};
  if (other !== undefined && other !== snapshotName) return `snapshot ${JSON.stringify(other)} in progress`;
  return restore === undefined ? undefined : `restore ${JSON.stringify(restore)} in progress`;
}

function claimProblem(claim: ReadonlyClaim | undefined, unpopulated: boolean): string | undefined {
  if (claim === undefined) return 'volume doesnt exist';
  if (isDeleting(claim)) return 'volume is being deleted';
  if (claim.status?.phase !== 'Bound') return 'volume not bound';
  return unpopulated ? 'volume not populated' : undefined;
}
