/** Says on each machine which of its volumes can be snapshotted. */

import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import { keyOf, type ObjectKey } from '@coracle/apimachinery/meta/object';
import { isDeleting } from '@coracle/apimachinery/meta/object-state';
import { orAbsent } from '@coracle/client/api-failure';
import { commit } from '@coracle/client/commit/commit';
import { type Controller, createController, ownKeys, source } from '@coracle/client/controller/controller';
import type { ControllerEnvironment } from '@coracle/client/controller/environment';
import { type ReadonlyVm, VIRTUAL_MACHINES, type VirtualMachine } from '../../kinds/kubevirt.ts';
import { snapshottableClaim, volumesOf } from '../../rules/snapshot/saved-volumes.ts';
import { volumeSnapshotStatuses } from '../../rules/snapshot/volume-snapshot-statuses.ts';
import type { SnapshotStores } from './snapshot-stores.ts';

/** Index of machines: `namespace/name` of their claims. */
const BY_CLAIM = 'claim';
/** Machines that start do not wait for these statuses; on a process that is busy all the time, they come so late at most. */
const PATIENCE_MS = 3000;
/** Machines whose statuses wait for that at the same time. */
const WAITING = 16;

export type VolumeStatusesOptions = Pick<ControllerEnvironment, 'client' | 'clock' | 'log'> & {
  readonly stores: SnapshotStores;
};

/** Makes the controller; nothing happens before `start`. */
export function createVolumeStatusesController({ client, clock, log, stores }: VolumeStatusesOptions): Controller {
  const { vms, claims, storageClasses, snapshotClasses } = stores;
  vms.addIndex(BY_CLAIM, (vm) =>
    volumesOf(vm).flatMap((volume) => {
      const claim = snapshottableClaim(volume);
      return claim === undefined ? [] : [`${vm.metadata.namespace}/${claim}`];
    }),
  );
  const keysOf = (machines: readonly ReadonlyVm[]): ObjectKey[] => machines.map((vm) => keyOf(vm as VirtualMachine));
  /** The machine and what its status should say of its volumes, where it does not say so. */
  const outdated = (key: ObjectKey) => {
    const vm = vms.get(key);
    if (vm === undefined || isDeleting(vm)) return undefined;
    // Whoever runs the machine speaks first: a status without conditions reads as one that is settled (kstatus).
    if (!vm.status?.conditions?.length) return undefined;
    const wanted = volumeSnapshotStatuses(vm, {
      claim: (name) => claims.get({ namespace: key.namespace, name }),
      snapshotClass: stores.snapshotClassOf,
    });
    return deepEqual(wanted, vm.status.volumeSnapshotStatuses ?? []) ? undefined : { vm, wanted };
  };
  let moment: Promise<void> | undefined;
  /** One wait for all of them. */
  const idle = (signal: AbortSignal): Promise<void> | undefined => {
    moment ??= clock.whenIdle(PATIENCE_MS, signal)?.finally(() => {
      moment = undefined;
    });
    return moment;
  };
  return createController({
    name: 'volume-statuses',
    client,
    log,
    clock,
    sources: [
      ownKeys(vms),
      source(claims, (claim, previous) => {
        const isGone = claims.get(keyOf(claim)) === undefined;
        const sameClass = previous !== undefined && previous.spec?.storageClassName === claim.spec?.storageClassName;
        return sameClass && !isGone
          ? []
          : keysOf(vms.byIndex(BY_CLAIM, `${claim.metadata.namespace}/${claim.metadata.name}`));
      }),
      source(storageClasses, () => keysOf(vms.list())),
      source(snapshotClasses, () => keysOf(vms.list())),
    ],
    concurrency: WAITING,
    reconcile: async (key, { signal }) => {
      if (outdated(key) === undefined) return;
      await idle(signal);
      signal.throwIfAborted();
      const found = outdated(key);
      if (found === undefined) return;
      const { vm, wanted } = found;
      const before = vm as VirtualMachine;
      const { volumeSnapshotStatuses: _, ...status } = before.status ?? {};
      const after = {
        ...before,
        status: { ...status, ...(wanted.length > 0 && { volumeSnapshotStatuses: wanted }) },
      };
      await orAbsent(commit(client, VIRTUAL_MACHINES, { before, after }));
    },
  });
}
