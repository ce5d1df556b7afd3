/** Machines with claims, their snapshots and restores, on a fake cluster: short words for tests. */

import type { ResourceType } from '../../packages/apimachinery/src/meta/gvk.ts';
import type { KubeObject } from '../../packages/apimachinery/src/meta/object.ts';
import { PERSISTENT_VOLUME_CLAIMS } from '../../packages/apimachinery/src/types/resource-types.ts';
import type { PersistentVolumeClaim } from '../../packages/apimachinery/src/types/types.ts';
import type { Client } from '../../packages/client/src/client.ts';
import {
  VIRTUAL_MACHINE_RESTORES,
  VIRTUAL_MACHINE_SNAPSHOTS,
  VIRTUAL_MACHINES,
  type VirtualMachine,
  type VirtualMachineRestore,
  type VirtualMachineSnapshot,
} from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { eventually } from './eventually.ts';

export const key = (name: string) => ({ namespace: 'default', name });

export interface SavedMachines {
  claim(
    name: string,
    more?: { storageClassName?: string; labels?: Record<string, string> },
  ): Promise<PersistentVolumeClaim>;
  /** A halted machine with a volume for each claim, which are made; `spec` goes over it. */
  machine(name: string, claims: readonly string[], spec?: object): Promise<VirtualMachine>;
  snapshot(name: string, vm: string, spec?: object): Promise<VirtualMachineSnapshot>;
  restore(name: string, snapshot: string, target: string, spec?: object): Promise<VirtualMachineRestore>;
  vm(name: string): Promise<VirtualMachine>;
  /** Waits until the snapshot can be restored and its machine is free. */
  saved(name: string): Promise<VirtualMachineSnapshot>;
  restored(name: string): Promise<VirtualMachineRestore>;
  /** Waits for an object that fits. */
  until<T extends KubeObject>(type: ResourceType<T>, name: string, holds: (object: T) => boolean): Promise<T>;
}

export function savedMachines(client: Client): SavedMachines {
  const words: SavedMachines = {
    claim: (name, { storageClassName = 'local', labels } = {}) =>
      client.create(PERSISTENT_VOLUME_CLAIMS, {
        apiVersion: 'v1',
        kind: 'PersistentVolumeClaim',
        metadata: { name, namespace: 'default', ...(labels && { labels }) },
        spec: { accessModes: ['ReadWriteOnce'], storageClassName, resources: { requests: { storage: '1Gi' } } },
      }),
    async machine(name, claims, spec = {}) {
      for (const each of claims) await words.claim(each);
      return client.create(VIRTUAL_MACHINES, {
        apiVersion: 'kubevirt.io/v1',
        kind: 'VirtualMachine',
        metadata: { name, namespace: 'default', labels: { app: name } },
        spec: {
          runStrategy: 'Halted',
          template: {
            spec: {
              domain: { devices: {}, memory: { guest: '64Mi' } },
              volumes: [
                ...claims.map((each) => ({
                  name: each.replace(`${name}-`, ''),
                  persistentVolumeClaim: { claimName: each },
                })),
                { name: 'boot', containerDisk: { image: 'tiny' } },
              ],
            },
          },
          ...spec,
        },
      } as unknown as VirtualMachine);
    },
    snapshot: (name, vm, spec = {}) =>
      client.create(VIRTUAL_MACHINE_SNAPSHOTS, {
        apiVersion: 'snapshot.kubevirt.io/v1beta1',
        kind: 'VirtualMachineSnapshot',
        metadata: { name, namespace: 'default' },
        spec: { source: { apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name: vm }, ...spec },
      } as VirtualMachineSnapshot),
    restore: (name, virtualMachineSnapshotName, target, spec = {}) =>
      client.create(VIRTUAL_MACHINE_RESTORES, {
        apiVersion: 'snapshot.kubevirt.io/v1beta1',
        kind: 'VirtualMachineRestore',
        metadata: { name, namespace: 'default' },
        spec: {
          target: { apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name: target },
          virtualMachineSnapshotName,
          ...spec,
        },
      } as VirtualMachineRestore),
    vm: (name) => client.get(VIRTUAL_MACHINES, key(name)),
    async saved(name) {
      const snapshot = await words.until(VIRTUAL_MACHINE_SNAPSHOTS, name, ({ status }) => status?.readyToUse === true);
      await words.until(
        VIRTUAL_MACHINES,
        snapshot.spec.source.name,
        (vm) => vm.status?.snapshotInProgress === undefined,
      );
      return snapshot;
    },
    restored: (name) => words.until(VIRTUAL_MACHINE_RESTORES, name, ({ status }) => status?.complete === true),
    async until(type, name, holds) {
      let last: KubeObject | undefined;
      return eventually(`${type.kind} ${name}`, async () => {
        const found = await client.get(type, key(name));
        last = found;
        return holds(found) ? found : undefined;
      }).catch((error: Error) => {
        throw new Error(`${error.message}: ${JSON.stringify((last as { status?: unknown } | undefined)?.status)}`);
      });
    },
  };
  return words;
}
