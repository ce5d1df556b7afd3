/** Steps of a restore: the machine is locked, written, and let go. */

import { keyOf } from '@coracle/apimachinery/meta/object';
import { hasEnded } from '@coracle/apimachinery/meta/object-state';
import { orAbsent } from '@coracle/client/api-failure';
import type { Client } from '@coracle/client/client';
import { commit } from '@coracle/client/commit/commit';
import {
  type ReadonlyRestore,
  type ReadonlyVm,
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINES,
  type VirtualMachine,
  type VirtualMachineRestore,
} from '../../kinds/kubevirt.ts';
import { resumeAfterRestore } from '../../rules/memory-state/saved-memory.ts';
import { isMarked } from '../../rules/snapshot/restored-claim.ts';
import { restoredMachine } from '../../rules/snapshot/restored-machine.ts';
import { nameDataVolumes, restoreDataVolumes } from './restore-data-volumes.ts';
import { type RestorePass, RestoreProblem, type StepOutcome } from './restore-pass.ts';
import { namedInSpec, restoreRevisions } from './restore-revisions.ts';
import { restoreStateClaim } from './restore-state-claim.ts';
import type { SnapshotStores } from './snapshot-stores.ts';

/** Whether nothing runs on the disks of a machine: it has no instance, or one whose guest has ended. */
export function isStopped(vm: ReadonlyVm, { vmis }: Pick<SnapshotStores, 'vmis'>): boolean {
  const vmi = vmis.get(keyOf(vm));
  return vmi === undefined || hasEnded(vmi);
}

/**
 * Says on the machine that it is being restored: it is not started meanwhile. `waiting` when it was started just before.
 * @throws RestoreProblem while another restore, or a snapshot, is in progress
 */
export async function lockTarget({ restore, target, client }: Omit<RestorePass, 'content'>): Promise<StepOutcome> {
  if (target === undefined || isMarked(target, restore)) return 'done';
  const name = restore.metadata.name ?? '';
  const other = target.status?.restoreInProgress;
  if (other === name) return 'done';
  if (other !== undefined) throw new RestoreProblem(`vm restore ${other} in progress`);
  const snapshot = target.status?.snapshotInProgress;
  if (snapshot !== undefined) throw new RestoreProblem(`snapshot ${JSON.stringify(snapshot)} in progress`);
  const before = target as VirtualMachine;
  await commit(client, VIRTUAL_MACHINES, {
    before,
    after: { ...before, status: { ...before.status, restoreInProgress: name } },
  });
  const vmi = await orAbsent(client.get(VIRTUAL_MACHINE_INSTANCES, keyOf(before)));
  if (vmi === undefined || hasEnded(vmi)) return 'waiting';
  // It was started before it could read that it must not be.
  await unlockTarget((await orAbsent(client.get(VIRTUAL_MACHINES, keyOf(before)))) ?? before, name, client);
  return 'waiting';
}

/** Lets a machine go that says this restore is in progress. */
export async function unlockTarget(vm: ReadonlyVm, restoreName: string, client: Client): Promise<void> {
  if (vm.status?.restoreInProgress !== restoreName) return;
  const before = vm as VirtualMachine;
  const { restoreInProgress: _, memoryDumpRequest: __, ...status } = before.status ?? {};
  await orAbsent(commit(client, VIRTUAL_MACHINES, { before, after: { ...before, status } }));
}

/**
 * Writes the machine once: a new one, or the one that is there as it was saved. The mark on it says that it is done.
 * @throws RestoreProblem when it cannot be written
 */
export async function restoreMachine(pass: RestorePass): Promise<StepOutcome> {
  const { restore, target, content, client } = pass;
  if (target !== undefined && isMarked(target, restore)) return 'done';
  const saved = content.spec.source.virtualMachine;
  if (saved?.spec?.template === undefined) throw new RestoreProblem('unexpected snapshot source');
  if ((await nameDataVolumes(pass)) === 'waiting') return 'waiting';
  const revisions = namedInSpec(pass, await restoreRevisions(pass));
  const machine = problemOf(() =>
    restoredMachine({
      restore,
      saved,
      target,
      restores: restore.status?.restores ?? [],
      revisions,
      resume: resumeAfterRestore(pass.stores.snapshots.get(snapshotOf(restore)), restore),
    }),
  );
  if ((await restoreDataVolumes(pass, machine)) === 'waiting') return 'waiting';
  if ((await restoreStateClaim(pass)) === 'waiting') return 'waiting';
  if (target === undefined) await client.create(VIRTUAL_MACHINES, machine);
  else await commit(client, VIRTUAL_MACHINES, { before: target as VirtualMachine, after: machine });
  return 'waiting';
}

const snapshotOf = ({ metadata, spec }: VirtualMachineRestore) => ({
  namespace: metadata.namespace ?? '',
  name: spec.virtualMachineSnapshotName,
});

function problemOf(make: () => VirtualMachine): VirtualMachine {
  try {
    return make();
  } catch (error) {
    throw new RestoreProblem((error as Error).message);
  }
}

/** The machine that a restore goes to. */
export const targetOf = (restore: ReadonlyRestore, { vms }: SnapshotStores): ReadonlyVm | undefined =>
  vms.get({ namespace: restore.metadata.namespace ?? '', name: restore.spec.target.name });
