/** The source of a snapshot as the caches have it. */

import { conditionOf } from '@coracle/apimachinery/meta/object-state';
import { hasFinalizer } from '@coracle/client/finalizer/finalizer';
import type { ReadonlySnapshot, ReadonlyVm, ReadonlyVmi } from '../../kinds/kubevirt.ts';
import { LOCKED, NOT_LOCKED } from '../../rules/snapshot/lock-obstacle.ts';
import { SOURCE_FINALIZER } from '../../rules/snapshot/snapshot-names.ts';
import type { SourceView } from '../../rules/snapshot/snapshot-status.ts';
import type { SnapshotStores } from './snapshot-stores.ts';

export interface SourceState extends SourceView {
  readonly vm: ReadonlyVm;
  readonly vmi: ReadonlyVmi | undefined;
  /** Its file systems are held still. */
  readonly frozen: boolean;
}

/** Undefined while there is no such machine. */
export function sourceState(
  snapshot: ReadonlySnapshot,
  { vms, vmis }: Pick<SnapshotStores, 'vms' | 'vmis'>,
): SourceState | undefined {
  const key = { namespace: snapshot.metadata.namespace ?? '', name: snapshot.spec.source.name };
  const vm = vms.get(key);
  if (vm === undefined) return undefined;
  const vmi = vmis.get(key);
  const condition = (type: string) => conditionOf(vmi, type);
  const locked = isHeldBy(vm, snapshot) && hasFinalizer(vm, SOURCE_FINALIZER);
  return {
    vm,
    vmi,
    uid: vm.metadata.uid ?? '',
    online: vmi !== undefined,
    paused: condition('Paused')?.status === 'True',
    guestAgent: condition('AgentConnected') !== undefined,
    frozen: vmi?.status?.fsFreezeStatus === 'frozen',
    locked,
    lockMessage: locked ? LOCKED : NOT_LOCKED,
  };
}

/** Whether a machine says that this snapshot is being taken of it: it may be so before and after it is locked. */
export const isHeldBy = ({ status }: ReadonlyVm, { metadata }: ReadonlySnapshot): boolean =>
  status?.snapshotInProgress === metadata.name;
