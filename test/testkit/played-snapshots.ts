/**
 * Plays the controllers of snapshots and restores: makes contents, machines and claims as soon as it sees what asks for
 * them. For tests of those who use snapshots.
 */

import type { ResourceType } from '../../packages/apimachinery/src/meta/gvk.ts';
import { type KubeObject, keyOf } from '../../packages/apimachinery/src/meta/object.ts';
import { applyJsonPatch } from '../../packages/apimachinery/src/patch/json-patch.ts';
import { PERSISTENT_VOLUME_CLAIMS } from '../../packages/apimachinery/src/types/resource-types.ts';
import type { PersistentVolumeClaim } from '../../packages/apimachinery/src/types/types.ts';
import { isAlreadyExists, isConflict, isNotFound } from '../../packages/client/src/api-failure.ts';
import type { Client } from '../../packages/client/src/client.ts';
import {
  VIRTUAL_MACHINE_RESTORES,
  VIRTUAL_MACHINE_SNAPSHOT_CONTENTS,
  VIRTUAL_MACHINE_SNAPSHOTS,
  VIRTUAL_MACHINES,
  type VirtualMachine,
  type VirtualMachineRestore,
  type VirtualMachineSnapshot,
  type VirtualMachineSnapshotContent,
} from '../../packages/kubevirt/src/kinds/kubevirt.ts';

export interface PlayedSnapshots {
  /** While true nothing becomes ready. */
  hold: boolean;
  /** What becomes of snapshots. */
  snapshotStatus: object;
  /** What becomes of restores. */
  restoreStatus: object;
  /** Phase of the claims that are made. */
  claimPhase: 'Bound' | 'Pending';
  stop(): Promise<void>;
}

const claimsOf = (vm: { spec?: VirtualMachine['spec'] }) =>
  (vm.spec?.template.spec?.volumes ?? []).filter(({ persistentVolumeClaim }) => persistentVolumeClaim !== undefined);

/** Starts playing in namespace `default`. */
export function playSnapshots(client: Client): PlayedSnapshots {
  const report = <T extends KubeObject>(type: ResourceType<T>, object: T, status: object) =>
    client.patch(type, keyOf(object), { type: 'merge', body: { status } }, { subresource: 'status' });
  const make = async <T extends KubeObject>(type: ResourceType<T>, object: T): Promise<T> => {
    try {
      return await client.create(type, object);
    } catch (error) {
      if (isAlreadyExists(error)) return client.get(type, keyOf(object));
      throw error;
    }
  };

  const snapshot = async (one: VirtualMachineSnapshot): Promise<void> => {
    if (one.status?.phase !== undefined) return;
    const vm = await client.get(VIRTUAL_MACHINES, { namespace: 'default', name: one.spec.source.name });
    const contentName = `vmsnapshot-content-${one.metadata.uid}`;
    await make(VIRTUAL_MACHINE_SNAPSHOT_CONTENTS, {
      apiVersion: 'snapshot.kubevirt.io/v1beta1',
      kind: 'VirtualMachineSnapshotContent',
      metadata: { name: contentName, namespace: 'default' },
      spec: {
        virtualMachineSnapshotName: one.metadata.name,
        source: {
          virtualMachine: { metadata: { ...vm.metadata, managedFields: undefined }, spec: vm.spec, status: vm.status },
        },
        volumeBackups: claimsOf(vm).map(({ name }) => ({
          volumeName: name,
          persistentVolumeClaim: { metadata: {}, spec: {} },
        })),
      },
    } as unknown as VirtualMachineSnapshotContent);
    const names = { virtualMachineSnapshotContentName: contentName, sourceUID: vm.metadata.uid };
    await report(VIRTUAL_MACHINE_SNAPSHOTS, one, { ...names, ...played.snapshotStatus });
  };

  const restore = async (one: VirtualMachineRestore): Promise<void> => {
    if (one.status?.complete === true || one.status?.conditions !== undefined) return;
    const { spec, metadata } = one;
    if (!Object.hasOwn(played.restoreStatus, 'complete')) {
      await report(VIRTUAL_MACHINE_RESTORES, one, played.restoreStatus);
      return;
    }
    const { status } = await client.get(VIRTUAL_MACHINE_SNAPSHOTS, {
      namespace: 'default',
      name: spec.virtualMachineSnapshotName,
    });
    const content = await client.get(VIRTUAL_MACHINE_SNAPSHOT_CONTENTS, {
      namespace: 'default',
      name: status?.virtualMachineSnapshotContentName ?? '',
    });
    const source = content.spec.source.virtualMachine!;
    const { labels = {}, annotations = {} } = source.metadata ?? {};
    const target = applyJsonPatch(
      {
        apiVersion: 'kubevirt.io/v1',
        kind: 'VirtualMachine',
        metadata: { name: spec.target.name, namespace: 'default', labels, annotations },
        spec: { ...source.spec, running: undefined, runStrategy: 'Halted' },
      },
      (spec.patches ?? []).map((text) => JSON.parse(text)),
    ) as VirtualMachine;
    const restores = [];
    for (const volume of claimsOf(target)) {
      const name = `restore-${metadata.uid}-${volume.name}`;
      const claim = await make<PersistentVolumeClaim>(PERSISTENT_VOLUME_CLAIMS, {
        apiVersion: 'v1',
        kind: 'PersistentVolumeClaim',
        metadata: { name, namespace: 'default', annotations: { 'restore.kubevirt.io/name': metadata.name ?? '' } },
        spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Mi' } } },
      });
      await report(PERSISTENT_VOLUME_CLAIMS, claim, { phase: played.claimPhase });
      volume.persistentVolumeClaim!.claimName = name;
      restores.push({ volumeName: volume.name, persistentVolumeClaim: name, volumeSnapshotName: 'v' });
    }
    await make(VIRTUAL_MACHINES, target);
    await report(VIRTUAL_MACHINE_RESTORES, one, { ...played.restoreStatus, restores });
  };

  const ended = new AbortController();
  const play = async <T extends KubeObject>(
    type: ResourceType<T>,
    act: (object: T) => Promise<void>,
  ): Promise<void> => {
    while (!ended.signal.aborted) {
      const { items } = played.hold ? { items: [] } : await client.list(type, { namespace: 'default' });
      for (const one of items)
        await act(one).catch((error: unknown) => {
          // Gone, or changed meanwhile: seen again.
          if (!isNotFound(error) && !isConflict(error)) throw error;
        });
      await new Promise((done) => setTimeout(done, 5));
    }
  };
  const played: PlayedSnapshots = {
    hold: false,
    snapshotStatus: { phase: 'Succeeded', readyToUse: true },
    restoreStatus: { complete: true },
    claimPhase: 'Bound',
    async stop() {
      ended.abort();
      await playing;
    },
  };
  const playing = Promise.all([play(VIRTUAL_MACHINE_SNAPSHOTS, snapshot), play(VIRTUAL_MACHINE_RESTORES, restore)]);
  return played;
}
