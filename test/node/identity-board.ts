/** Short words for tests of what a guest sees of its identity, on a board of two nodes. */
import assert from 'node:assert/strict';
import { after, before } from 'node:test';
import type { UnstructuredObject } from '../../packages/apimachinery/src/meta/object.ts';
import { isNotFound } from '../../packages/client/src/api-failure.ts';
import {
  VIRTUAL_MACHINE_INSTANCE_MIGRATIONS,
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINE_RESTORES,
  VIRTUAL_MACHINE_SNAPSHOTS,
  VIRTUAL_MACHINES,
  type VirtualMachine,
  type VirtualMachineInstance,
  type VirtualMachineInstanceMigration,
  type VirtualMachineRestore,
  type VirtualMachineSnapshot,
} from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { eventually } from '../testkit/eventually.ts';
import { kernelSpec, NAMESPACE } from './board.ts';
import { type GuestIdentity, readIdentity } from './guest-identity.ts';
import { type MigrationBoard, startMigrationBoard } from './migration-board.ts';

export let board: MigrationBoard;

/** Starts the board before the tests of a file, and ends it after them. */
export function useIdentityBoard(): void {
  before(async () => {
    board = await startMigrationBoard({ controller: true });
  });
  after(() => board?.close());
}

export const keyOf = (name: string) => ({ namespace: NAMESPACE, name });
export type Firmware = NonNullable<NonNullable<VirtualMachine['spec']['template']['spec']>['domain']['firmware']>;
export const specWith = (identity: Firmware = {}): Record<string, unknown> => {
  const spec = kernelSpec({ terminationGracePeriodSeconds: 1 }) as { domain: { firmware: Firmware } };
  Object.assign(spec.domain.firmware, identity);
  return spec;
};
export const createVm = (name: string, runStrategy: string, identity?: Firmware): Promise<VirtualMachine> =>
  board.client.create(VIRTUAL_MACHINES, {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name, namespace: NAMESPACE },
    spec: { runStrategy, template: { metadata: {}, spec: specWith(identity) } },
  } as unknown as VirtualMachine);
export const vm = (name: string): Promise<VirtualMachine> => board.client.get(VIRTUAL_MACHINES, keyOf(name));
export const firmwareOf = (machine: VirtualMachine): Firmware => machine.spec.template.spec?.domain.firmware ?? {};
export const patch = (name: string, spec: object): Promise<VirtualMachine> =>
  board.client.patch(VIRTUAL_MACHINES, keyOf(name), { type: 'merge', body: { spec } });
export async function runs(name: string, not = ''): Promise<VirtualMachineInstance> {
  // Between two instances there is none.
  await eventually(`an instance of ${name}`, () =>
    board.vmi(name).then(({ metadata }) => metadata.uid !== not, isAbsent),
  );
  return board.until(name, 'running', ({ status }) => status?.phase === 'Running');
}
export const isAbsentNow = (error: unknown): boolean => !isAbsent(error);
export function isAbsent(error: unknown): false {
  if (isNotFound(error)) return false;
  throw error;
}
export const guest = async (name: string): Promise<GuestIdentity> => readIdentity(await board.vmi(name), board.console);

export async function restart(name: string): Promise<void> {
  const { uid = '' } = (await board.vmi(name)).metadata;
  await board.client.delete(VIRTUAL_MACHINE_INSTANCES, keyOf(name));
  await runs(name, uid);
}

export async function migrate(name: string): Promise<void> {
  const source = (await board.vmi(name)).status?.nodeName;
  const migration = await board.client.create(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstanceMigration',
    metadata: { generateName: 'move-', namespace: NAMESPACE },
    spec: { vmiName: name },
  } as unknown as VirtualMachineInstanceMigration);
  await eventually('the migration is over', async () => {
    const { status } = await board.client.get(
      VIRTUAL_MACHINE_INSTANCE_MIGRATIONS,
      keyOf(migration.metadata.name ?? ''),
    );
    assert.notEqual(status?.phase, 'Failed', JSON.stringify(status));
    return status?.phase === 'Succeeded';
  });
  assert.notEqual((await board.vmi(name)).status?.nodeName, source);
}

/** Stores a machine as a server did that knew no UUIDs, the record of its start with it. */
export async function storeAsOlderServer(name: string): Promise<void> {
  const { uid = '' } = (await vm(name)).metadata;
  const strip = (prefix: string, object: string): Promise<unknown> =>
    board.store.write({ prefix, namespace: NAMESPACE, name: object }, (current) => {
      // biome-ignore lint/suspicious/noExplicitAny: objects of two shapes.
      const next = structuredClone(current!.object) as any;
      delete (next.spec ?? next.data.spec).template.spec.domain.firmware.uuid;
      delete (next.spec ?? next.data.spec).template.spec.domain.firmware.serial;
      delete next.metadata.annotations?.['coracle.dev/firmware-identity'];
      return { type: 'put', object: next as UnstructuredObject };
    });
  const revisions = board.store.list('apps/controllerrevisions', { namespace: NAMESPACE }).items;
  for (const revision of revisions.filter((each) => each.name.startsWith(`revision-start-vm-${uid}-`)))
    await strip(revision.prefix, revision.name);
  await strip('kubevirt.io/virtualmachines', name);
}

export const hasUuid = (name: string): Promise<unknown> =>
  eventually(`${name} has a UUID`, async () => Boolean(firmwareOf(await vm(name)).uuid));

/** Takes a snapshot and waits until its machine is free again. */
export async function snapshot(
  name: string,
  vmName: string,
  annotations: Record<string, string> = {},
): Promise<string> {
  await board.client.create(VIRTUAL_MACHINE_SNAPSHOTS, {
    apiVersion: 'snapshot.kubevirt.io/v1beta1',
    kind: 'VirtualMachineSnapshot',
    metadata: { name, namespace: NAMESPACE, annotations },
    spec: { source: { apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name: vmName } },
  } as unknown as VirtualMachineSnapshot);
  let content = '';
  await eventually(`snapshot ${name}`, async () => {
    const { status } = await board.client.get(VIRTUAL_MACHINE_SNAPSHOTS, keyOf(name));
    content = status?.virtualMachineSnapshotContentName ?? '';
    return status?.readyToUse === true && (await vm(vmName)).status?.snapshotInProgress === undefined;
  });
  return content;
}

export async function restore(name: string, virtualMachineSnapshotName: string, target: string): Promise<void> {
  await board.client.create(VIRTUAL_MACHINE_RESTORES, {
    apiVersion: 'snapshot.kubevirt.io/v1beta1',
    kind: 'VirtualMachineRestore',
    metadata: { name, namespace: NAMESPACE },
    spec: { target: { apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name: target }, virtualMachineSnapshotName },
  } as unknown as VirtualMachineRestore);
  await eventually(`restore ${name}`, async () => {
    const { status } = await board.client.get(VIRTUAL_MACHINE_RESTORES, keyOf(name));
    return status?.complete === true && (await vm(target)).status?.restoreInProgress === undefined;
  });
}
