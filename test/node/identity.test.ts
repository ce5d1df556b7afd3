/**
 * The rows of docs/identity.md, each read inside a real guest; and machines of an older server (stored without UUID, one
 * of them running), upgraded, restarted and migrated: what their guests see never changes.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import {
  VIRTUAL_MACHINE_INSTANCE_MIGRATIONS,
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINES,
  type VirtualMachine,
  type VirtualMachineInstance,
  type VirtualMachineInstanceMigration,
} from '../../src/api/kinds/kubevirt/kubevirt.ts';
import type { UnstructuredObject } from '../../src/api/meta/object.ts';
import { isNotFound } from '../../src/client/api-failure.ts';
import { legacyFirmwareUuid } from '../../src/domain/identity/firmware-identity.ts';
import { eventually, kernelSpec, NAMESPACE } from './board.ts';
import { type GuestIdentity, readIdentity } from './guest-identity.ts';
import { type MigrationBoard, startMigrationBoard } from './migration-board.ts';

let board: MigrationBoard;
before(async () => {
  board = await startMigrationBoard({ controller: true });
});
after(() => board?.close());

const keyOf = (name: string) => ({ namespace: NAMESPACE, name });
type Firmware = NonNullable<NonNullable<VirtualMachine['spec']['template']['spec']>['domain']['firmware']>;
const specWith = (identity: Firmware = {}): Record<string, unknown> => {
  const spec = kernelSpec({ terminationGracePeriodSeconds: 1 }) as { domain: { firmware: Firmware } };
  Object.assign(spec.domain.firmware, identity);
  return spec;
};
const createVm = (name: string, runStrategy: string, identity?: Firmware): Promise<VirtualMachine> =>
  board.client.create(VIRTUAL_MACHINES, {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name, namespace: NAMESPACE },
    spec: { runStrategy, template: { metadata: {}, spec: specWith(identity) } },
  } as unknown as VirtualMachine);
const vm = (name: string): Promise<VirtualMachine> => board.client.get(VIRTUAL_MACHINES, keyOf(name));
const firmwareOf = (machine: VirtualMachine): Firmware => machine.spec.template.spec?.domain.firmware ?? {};
const patch = (name: string, spec: object): Promise<VirtualMachine> =>
  board.client.patch(VIRTUAL_MACHINES, keyOf(name), { type: 'merge', body: { spec } });
async function runs(name: string, not = ''): Promise<VirtualMachineInstance> {
  // Between two instances there is none.
  await eventually(`an instance of ${name}`, () =>
    board.vmi(name).then(({ metadata }) => metadata.uid !== not, isAbsent),
  );
  return board.until(name, 'running', ({ status }) => status?.phase === 'Running');
}
function isAbsent(error: unknown): false {
  if (isNotFound(error)) return false;
  throw error;
}
const guest = async (name: string): Promise<GuestIdentity> => readIdentity(await board.vmi(name), board.console);

async function restart(name: string): Promise<void> {
  const { uid = '' } = (await board.vmi(name)).metadata;
  await board.client.delete(VIRTUAL_MACHINE_INSTANCES, keyOf(name));
  await runs(name, uid);
}

async function migrate(name: string): Promise<void> {
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
async function storeAsOlderServer(name: string): Promise<void> {
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

const hasUuid = (name: string): Promise<void> =>
  eventually(`${name} has a UUID`, async () => Boolean(firmwareOf(await vm(name)).uuid));

test('a new machine: what is written in it is what its guest sees, through restart, edit and another UUID', {
  timeout: 240_000,
}, async () => {
  const made = firmwareOf(await createVm('web', 'Always'));
  await runs('web');
  const seen = await guest('web');
  assert.deepEqual(seen, { uuid: made.uuid, serial: made.serial });

  // A manifest without identity, as a user keeps it, takes nothing away.
  const stored = await vm('web');
  const { uuid: _, serial: __, ...firmware } = firmwareOf(stored);
  stored.spec.template.spec!.domain.firmware = firmware;
  await board.client.update(VIRTUAL_MACHINES, stored);
  await restart('web');
  assert.deepEqual(await guest('web'), seen);

  const uuid = '5D307CA9-B3EF-428C-8861-06E72D69F223';
  await patch('web', { template: { spec: { domain: { firmware: { uuid, serial: 'SER-1' } } } } });
  await eventually('a restart is asked for', async () =>
    ((await vm('web')).status?.conditions ?? []).some(({ type }) => type === 'RestartRequired'),
  );
  assert.deepEqual(await guest('web'), seen, 'until then it is who it was');
  await restart('web');
  assert.deepEqual(await guest('web'), { uuid: uuid.toLowerCase(), serial: 'SER-1' });
  await patch('web', { runStrategy: 'Halted' });
});

test('an instance without a machine has a UUID of its own and no serial', { timeout: 120_000 }, async () => {
  const { spec } = await board.createVmi('alone', specWith());
  await runs('alone');
  const seen = await guest('alone');
  assert.equal(seen.uuid, spec.domain.firmware?.uuid);
  assert.match(seen.uuid, /^.{14}4/, 'random');
  assert.doesNotMatch(seen.serial, /[0-9a-f]{8}-/);
  await board.client.delete(VIRTUAL_MACHINE_INSTANCES, keyOf('alone'));
});

test('a machine of an older server that was stopped wakes up as who it was', { timeout: 120_000 }, async () => {
  await createVm('slept', 'Halted');
  await storeAsOlderServer('slept');
  await hasUuid('slept');
  await patch('slept', { runStrategy: 'Always' });
  await runs('slept');
  assert.equal((await guest('slept')).uuid, legacyFirmwareUuid('slept'));
  await patch('slept', { runStrategy: 'Halted' });
});

test('a machine of an older server that runs stays who it is: upgrade, migration, restart', {
  timeout: 240_000,
}, async () => {
  // What an older server started: the UUID of the name, in no object but the instance.
  await createVm('old', 'Halted');
  await storeAsOlderServer('old');
  await hasUuid('old');
  await patch('old', { runStrategy: 'Always' });
  const instance = await runs('old');
  const seen = await guest('old');
  assert.equal(seen.uuid, legacyFirmwareUuid('old'));
  const { generation } = (await vm('old')).metadata;

  await storeAsOlderServer('old');
  await hasUuid('old');
  await eventually('the controller is done', async () => {
    const { metadata, status } = await vm('old');
    return status?.observedGeneration === metadata.generation;
  });
  const upgraded = await vm('old');
  assert.equal(firmwareOf(upgraded).uuid, seen.uuid);
  assert.equal(upgraded.metadata.generation, generation, 'no edit');
  assert.ok(!(upgraded.status?.conditions ?? []).some(({ type }) => type === 'RestartRequired'));
  assert.equal((await board.vmi('old')).metadata.uid, instance.metadata.uid, 'no restart');
  assert.deepEqual(await guest('old'), seen);

  await migrate('old');
  assert.deepEqual(await guest('old'), seen, 'after a migration');
  await restart('old');
  assert.deepEqual(await guest('old'), seen, 'after a restart');
  await patch('old', { runStrategy: 'Halted' });
});
