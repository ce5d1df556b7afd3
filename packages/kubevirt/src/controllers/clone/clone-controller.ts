/** The VirtualMachineClone controller: which clones a change concerns, and the one write at the end of a pass. */

import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import type { ResourceType } from '@coracle/apimachinery/meta/gvk';
import {
  type DeepReadonly,
  type KubeObject,
  keyOf,
  type ObjectKey,
  type ReadonlyObject,
} from '@coracle/apimachinery/meta/object';
import { policyRules } from '@coracle/apimachinery/types/policy-rules';
import { PERSISTENT_VOLUME_CLAIMS } from '@coracle/apimachinery/types/resource-types';
import type { PersistentVolumeClaim } from '@coracle/apimachinery/types/types';
import { orAbsent, orGone } from '@coracle/client/api-failure';
import { commit } from '@coracle/client/commit/commit';
import { controllerOwner, createController, ownKeys, source } from '@coracle/client/controller/controller';
import type { ControllerEnvironment, Runnable } from '@coracle/client/controller/environment';
import { createEventRecorder } from '@coracle/client/events/recorder';
import type { Informer } from '@coracle/client/informer/informer';
import {
  CLONE_GROUP,
  type CloneStatus,
  type ReadonlyClone,
  VIRTUAL_MACHINE_CLONES,
  VIRTUAL_MACHINE_RESTORES,
  VIRTUAL_MACHINE_SNAPSHOT_CONTENTS,
  VIRTUAL_MACHINE_SNAPSHOTS,
  VIRTUAL_MACHINES,
  type VirtualMachineClone,
} from '../../kinds/kubevirt.ts';
import { RESTORE_NAME_ANNOTATION } from '../../rules/snapshot/restored-claim.ts';
import type { CloneCluster } from './clone-pass.ts';
import { takeSteps } from './clone-steps.ts';

/** Rights the controller needs, and no others. */
export const cloneControllerRules = policyRules(
  `get list watch delete : ${CLONE_GROUP} : virtualmachineclones`,
  `patch : ${CLONE_GROUP} : virtualmachineclones/status`,
  // Helpers that block their owner's deletion take this right on the owner.
  `update : ${CLONE_GROUP} : virtualmachineclones/finalizers`,
  'get list watch create delete : snapshot.kubevirt.io : virtualmachinesnapshots virtualmachinerestores',
  'get list watch : snapshot.kubevirt.io : virtualmachinesnapshotcontents',
  'get list watch : kubevirt.io : virtualmachines',
  'get list watch : core : persistentvolumeclaims',
  'create patch : core : events',
);

const textOf = (...parts: readonly (string | undefined)[]): string => parts.map((part) => part ?? '').join('/');
const keysOf = (clones: readonly ReadonlyClone[]): ObjectKey[] =>
  clones.map((clone) => keyOf(clone as VirtualMachineClone));

/** Makes the controller; nothing happens before `start`. */
export function createCloneController(environment: ControllerEnvironment): Runnable {
  const { client, informers, clock, log } = environment;
  const clones = informers.of(VIRTUAL_MACHINE_CLONES);
  const snapshots = informers.of(VIRTUAL_MACHINE_SNAPSHOTS);
  const restores = informers.of(VIRTUAL_MACHINE_RESTORES);
  const machines = informers.of(VIRTUAL_MACHINES);
  const claims = informers.of<PersistentVolumeClaim>(PERSISTENT_VOLUME_CLAIMS);
  const clusterOf = clusterReader(environment);
  const events = createEventRecorder(client, { component: 'clone-controller', clock, log });
  clones.addIndex('source', ({ metadata, spec }) => [textOf(metadata.namespace, spec.source.kind, spec.source.name)]);
  clones.addIndex('target', ({ metadata, status }) => [textOf(metadata.namespace, status?.targetName)]);
  clones.addIndex('restore', ({ metadata, status }) => [textOf(metadata.namespace, status?.restoreName)]);

  return createController({
    ...environment,
    name: 'clone',
    sources: [
      ownKeys(clones),
      controllerOwner(snapshots, { group: CLONE_GROUP, kind: 'VirtualMachineClone' }),
      controllerOwner(restores, { group: CLONE_GROUP, kind: 'VirtualMachineClone' }),
      source(snapshots, ({ metadata: { namespace, name } }) =>
        keysOf(clones.byIndex('source', textOf(namespace, 'VirtualMachineSnapshot', name))),
      ),
      source(machines, (machine, previous) => {
        const { namespace, name } = machine.metadata;
        // Machines change all the time; what counts is whether they are there, and can be saved.
        const changed = (what: (vm: typeof machine) => unknown): boolean =>
          previous === undefined || !deepEqual(what(machine), what(previous));
        const counts =
          changed(({ status }) => status?.volumeSnapshotStatuses) ||
          changed(({ metadata }) => metadata.deletionTimestamp) ||
          machines.get({ namespace: namespace ?? '', name: name ?? '' }) === undefined;
        return counts
          ? [
              ...keysOf(clones.byIndex('source', textOf(namespace, 'VirtualMachine', name))),
              ...keysOf(clones.byIndex('target', textOf(namespace, name))),
            ]
          : [];
      }),
      source(claims, ({ metadata: { namespace, annotations } }) => {
        const restoreName = annotations?.[RESTORE_NAME_ANNOTATION];
        return restoreName ? keysOf(clones.byIndex('restore', textOf(namespace, restoreName))) : [];
      }),
    ],
    reconcile: async (key) => {
      const clone = clones.get(key);
      if (clone === undefined) return;
      const status = cloneJson(clone.status ?? {}) as CloneStatus;
      let failure: unknown;
      try {
        await takeSteps({
          clone,
          status,
          cluster: clusterOf(key.namespace),
          record: (type, reason, message) => events.event(clone, type, reason, message),
          now: clock.now(),
        });
      } catch (error) {
        failure = error;
      }
      // What was reached counts, whatever came after.
      const after: VirtualMachineClone = { ...(clone as VirtualMachineClone), status };
      await orAbsent(commit(client, VIRTUAL_MACHINE_CLONES, { before: clone, after }));
      if (failure !== undefined) throw failure;
    },
  });
}

/** Reads objects from the caches, and from the API what they do not have. */
function clusterReader({ client, informers }: ControllerEnvironment): (namespace: string) => CloneCluster {
  const machines = informers.of(VIRTUAL_MACHINES);
  const snapshots = informers.of(VIRTUAL_MACHINE_SNAPSHOTS);
  const contents = informers.of(VIRTUAL_MACHINE_SNAPSHOT_CONTENTS);
  const restores = informers.of(VIRTUAL_MACHINE_RESTORES);
  const claims = informers.of<PersistentVolumeClaim>(PERSISTENT_VOLUME_CLAIMS);
  const find = async <T extends KubeObject>(
    type: ResourceType<T>,
    cache: Informer<T>,
    key: ObjectKey,
  ): Promise<DeepReadonly<T> | undefined> => {
    const cached = cache.get(key);
    if (cached !== undefined || key.name === '') return cached;
    return (await orAbsent(client.get(type, key))) as DeepReadonly<T> | undefined;
  };
  const remove = async <T extends KubeObject>(type: ResourceType<T>, { metadata }: ReadonlyObject) => {
    const { namespace = '', name = '', uid = '' } = metadata;
    // Gone, or another one of that name.
    await orGone(client.delete(type, { namespace, name }, { preconditions: { uid } }));
  };
  return (namespace) => ({
    machine: (name) => find(VIRTUAL_MACHINES, machines, { namespace, name }),
    snapshot: (name) => find(VIRTUAL_MACHINE_SNAPSHOTS, snapshots, { namespace, name }),
    content: (name) => find(VIRTUAL_MACHINE_SNAPSHOT_CONTENTS, contents, { namespace, name }),
    restore: (name) => find(VIRTUAL_MACHINE_RESTORES, restores, { namespace, name }),
    claim: (name) => find<PersistentVolumeClaim>(PERSISTENT_VOLUME_CLAIMS, claims, { namespace, name }),
    createSnapshot: async (snapshot) => {
      await client.create(VIRTUAL_MACHINE_SNAPSHOTS, snapshot);
    },
    createRestore: async (restore) => {
      await client.create(VIRTUAL_MACHINE_RESTORES, restore);
    },
    deleteSnapshot: (snapshot) => remove(VIRTUAL_MACHINE_SNAPSHOTS, snapshot),
    deleteRestore: (restore) => remove(VIRTUAL_MACHINE_RESTORES, restore),
    deleteClone: (clone) => remove(VIRTUAL_MACHINE_CLONES, clone),
  });
}
