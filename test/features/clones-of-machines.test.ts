/** Clones with the real controllers of snapshots and restores; only the storage is played. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { ResourceType } from '../../packages/apimachinery/src/meta/gvk.ts';
import type { KubeObject } from '../../packages/apimachinery/src/meta/object.ts';
import {
  CONTROLLER_REVISIONS,
  PERSISTENT_VOLUME_CLAIMS,
} from '../../packages/apimachinery/src/types/resource-types.ts';
import type { ControllerRevision } from '../../packages/apimachinery/src/types/types.ts';
import { isNotFound } from '../../packages/client/src/api-failure.ts';
import { VOLUME_SNAPSHOTS } from '../../packages/cluster-rules/src/volume-snapshot/kinds.ts';
import {
  VIRTUAL_MACHINE_CLONES,
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINE_RESTORES,
  VIRTUAL_MACHINE_SNAPSHOT_CONTENTS,
  VIRTUAL_MACHINE_SNAPSHOTS,
  VIRTUAL_MACHINES,
  type VirtualMachine,
  type VirtualMachineClone,
} from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { legacyFirmwareUuid } from '../../packages/kubevirt/src/rules/identity/firmware-identity.ts';
import { eventually } from '../testkit/eventually.ts';
import { type FakeCluster, startFakeCluster } from '../testkit/fake-cluster.ts';
import { playStorage, type StoragePlayer } from '../testkit/storage-player.ts';

let cluster: FakeCluster;
let storage: StoragePlayer;
before(async () => {
  cluster = await startFakeCluster({
    nodes: ['node-1'],
    components: 'vm,vmi,scheduler,snapshot,clone,garbage-collector-controller',
  });
  storage = playStorage(cluster.client);
});
after(async () => {
  await storage.stop();
  await cluster.stop();
  // What the API refuses is tried again; nothing else may go wrong.
  assert.deepEqual(cluster.errors, []);
});

const key = (name: string) => ({ namespace: 'default', name });
const found = async <T extends KubeObject>(type: ResourceType<T>, name: string): Promise<T | undefined> => {
  try {
    return await cluster.client.get(type, key(name));
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
};
const machineOf = async (name: string): Promise<VirtualMachine> => (await found(VIRTUAL_MACHINES, name))!;

async function createMachine(
  name: string,
  spec: object = {},
  volumes: readonly string[] = ['root'],
  storageClassName = 'local',
): Promise<void> {
  for (const volume of volumes)
    await cluster.client.create(PERSISTENT_VOLUME_CLAIMS, {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name: `${name}-${volume}`, namespace: 'default' },
      spec: { accessModes: ['ReadWriteOnce'], storageClassName, resources: { requests: { storage: '1Mi' } } },
    });
  await cluster.client.create(VIRTUAL_MACHINES, {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name, namespace: 'default', labels: { key1: 'a', key2: 'b' }, annotations: { key1: 'c', key2: 'd' } },
    spec: {
      runStrategy: 'Halted',
      template: {
        metadata: { labels: { key1: 'e' }, annotations: { key1: 'f' } },
        spec: {
          domain: {
            devices: { interfaces: [{ name: 'default', masquerade: {}, macAddress: '02:00:00:00:00:01' }] },
            memory: { guest: '64Mi' },
          },
          networks: [{ name: 'default', pod: {} }],
          volumes: volumes.map((volume) => ({
            name: volume,
            persistentVolumeClaim: { claimName: `${name}-${volume}` },
          })),
        },
      },
      ...spec,
    },
  } as unknown as VirtualMachine);
}
const createClone = (source: string | object, target: string, more: object = {}): Promise<VirtualMachineClone> =>
  cluster.client.create(VIRTUAL_MACHINE_CLONES, {
    apiVersion: 'clone.kubevirt.io/v1beta1',
    kind: 'VirtualMachineClone',
    metadata: { name: `to-${target}`, namespace: 'default' },
    spec: {
      source: typeof source === 'string' ? { apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name: source } : source,
      target: { apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name: target },
      ...more,
    },
  } as VirtualMachineClone);
const until = (clone: VirtualMachineClone, what: string, holds: (clone: VirtualMachineClone) => boolean) => {
  let last: VirtualMachineClone | undefined;
  return eventually(`${clone.metadata.name} ${what}`, async () => {
    last = await found(VIRTUAL_MACHINE_CLONES, clone.metadata.name!);
    return last && holds(last) && last;
  }).catch((error: Error) => {
    throw new Error(`${error.message}: ${JSON.stringify(last?.status)}`);
  });
};
/** Done, and nothing of the way is left. */
async function released(clone: VirtualMachineClone, snapshots: readonly string[] = []): Promise<void> {
  await until(
    clone,
    'done',
    ({ status }) => status?.phase === 'Succeeded' && !status.restoreName && !status.snapshotName,
  );
  for (const type of [
    VIRTUAL_MACHINE_SNAPSHOTS,
    VIRTUAL_MACHINE_SNAPSHOT_CONTENTS,
    VIRTUAL_MACHINE_RESTORES,
    VOLUME_SNAPSHOTS,
  ] as readonly ResourceType<KubeObject>[]) {
    if (snapshots.length > 0 && type !== (VIRTUAL_MACHINE_RESTORES as ResourceType<KubeObject>)) continue;
    await eventually(`no ${type.resource}`, async () => {
      const { items } = await cluster.client.list(type, { namespace: 'default' });
      return items.length === 0;
    });
  }
}
const firmwareOf = ({ spec }: VirtualMachine) => spec.template.spec!.domain.firmware!;
const claimsOf = ({ spec }: VirtualMachine): (string | undefined)[] =>
  (spec.template.spec?.volumes ?? []).map(({ persistentVolumeClaim }) => persistentVolumeClaim?.claimName);
const run = async (name: string): Promise<void> => {
  await cluster.client.patch(VIRTUAL_MACHINES, key(name), { type: 'merge', body: { spec: { runStrategy: 'Always' } } });
  await eventually(`${name} runs`, async () => {
    const vmi = await found(VIRTUAL_MACHINE_INSTANCES, name);
    return vmi?.status?.phase === 'Running';
  });
};

// S-599: A clone is another machine than its source and than any clone of it, whatever it is named, and has claims and
//   copies of instance types of its own.
test('a machine that runs is cloned to one that runs too, with claims and an identity of its own', async () => {
  await createMachine('db', {}, ['root', 'data']);
  await run('db');
  const before = await machineOf('db');
  const clone = await createClone('db', 'copy');
  await released(clone);
  const target = await machineOf('copy');
  const [root, data] = claimsOf(target);
  assert.match(root!, /^restore-.+-root$/);
  assert.match(data!, /^restore-.+-data$/);
  for (const name of [root!, data!]) {
    const claim = await found(PERSISTENT_VOLUME_CLAIMS, name);
    assert.equal(claim?.status?.phase, 'Bound');
    assert.equal(claim?.metadata.ownerReferences?.[0]?.name, 'copy');
  }
  assert.equal(target.spec.runStrategy, 'Halted');
  assert.notEqual(firmwareOf(target).uuid, firmwareOf(before).uuid);
  assert.notEqual(firmwareOf(target).serial, firmwareOf(before).serial);
  assert.equal(target.spec.template.spec?.domain.devices.interfaces?.[0]?.macAddress, undefined);
  assert.deepEqual(target.metadata.labels, before.metadata.labels);
  assert.deepEqual(target.spec.template.metadata?.labels, { key1: 'e' });
  await run('copy');
  const source = await machineOf('db');
  assert.deepEqual([source.spec, source.metadata.labels], [before.spec, before.metadata.labels]);
  assert.equal(source.status?.snapshotInProgress, undefined);
});

// S-599
test('filters that let nothing through, patches, and claims named after the target; and a clone of the clone', async () => {
  await createMachine('first');
  const filters = { labelFilters: [], annotationFilters: [] };
  const clone = await createClone('first', 'second', {
    ...filters,
    template: filters,
    volumeNamePolicy: 'PrefixTargetName',
    newSMBiosSerial: 'mine',
    newMacAddresses: { default: '02:00:00:00:00:02' },
    patches: ['{"op":"replace","path":"/spec/template/spec/domain/memory/guest","value":"96Mi"}'],
  });
  await released(clone);
  const target = await machineOf('second');
  const { devices, memory, firmware } = target.spec.template.spec!.domain;
  assert.deepEqual(target.metadata.labels ?? {}, {});
  assert.deepEqual(
    [target.metadata.annotations?.['key1'], target.metadata.annotations?.['key2']],
    [undefined, undefined],
  );
  assert.deepEqual(target.spec.template.metadata?.labels, {});
  assert.deepEqual(claimsOf(target), ['second-root']);
  assert.deepEqual([memory?.guest, firmware?.serial], ['96Mi', 'mine']);
  assert.equal(devices.interfaces?.[0]?.macAddress, '02:00:00:00:00:02');
  await released(await createClone('second', 'third', { ...filters, template: filters }));
  const uuids = await Promise.all(
    ['first', 'second', 'third'].map(async (name) => firmwareOf(await machineOf(name)).uuid),
  );
  assert.equal(new Set(uuids).size, 3);
});

// S-599
test('a clone of a snapshot under the name of its lost source is another machine, also of one without a UUID', async () => {
  await createMachine('lost');
  const snapshot = await cluster.client.create(VIRTUAL_MACHINE_SNAPSHOTS, {
    apiVersion: 'snapshot.kubevirt.io/v1beta1',
    kind: 'VirtualMachineSnapshot',
    metadata: { name: 'of-lost', namespace: 'default' },
    spec: { source: { apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name: 'lost' } },
  });
  await eventually('ready', async () => (await found(VIRTUAL_MACHINE_SNAPSHOTS, 'of-lost'))?.status?.readyToUse);
  const before = await machineOf('lost');
  await cluster.client.delete(VIRTUAL_MACHINES, key('lost'));
  await eventually('gone', async () => (await found(VIRTUAL_MACHINES, 'lost')) === undefined);
  const source = { apiGroup: 'snapshot.kubevirt.io', kind: 'VirtualMachineSnapshot', name: snapshot.metadata.name };
  await released(await createClone(source, 'lost'), ['of-lost']);
  const uuid = firmwareOf(await machineOf('lost')).uuid;
  assert.match(uuid!, /^[0-9a-f-]{36}$/);
  assert.ok(![firmwareOf(before).uuid, legacyFirmwareUuid('lost')].includes(uuid!));
  await cluster.client.delete(VIRTUAL_MACHINE_SNAPSHOTS, key('of-lost'));
});

// S-599
for (const runStrategy of ['Always', 'Halted'])
  test(`a clone has copies of instance type and preference of its own (source ${runStrategy})`, async () => {
    const suffix = runStrategy.toLowerCase();
    const make = (resource: string, kind: string, spec: object) =>
      cluster.board.send('POST', `/apis/instancetype.kubevirt.io/v1beta1/namespaces/default/${resource}`, {
        apiVersion: 'instancetype.kubevirt.io/v1beta1',
        kind,
        metadata: { name: suffix, namespace: 'default' },
        spec,
      });
    await make('virtualmachineinstancetypes', 'VirtualMachineInstancetype', {
      cpu: { guest: 1 },
      memory: { guest: '128Mi' },
    });
    await make('virtualmachinepreferences', 'VirtualMachinePreference', { cpu: { preferredCPUTopology: 'sockets' } });
    const name = `typed-${suffix}`;
    await createMachine(name, {
      runStrategy,
      instancetype: { kind: 'VirtualMachineInstancetype', name: suffix },
      preference: { kind: 'VirtualMachinePreference', name: suffix },
      template: {
        spec: {
          domain: { devices: {} },
          volumes: [{ name: 'root', persistentVolumeClaim: { claimName: `${name}-root` } }],
        },
      },
    });
    const refs = (vm: VirtualMachine): string[] =>
      [vm.status?.instancetypeRef, vm.status?.preferenceRef].flatMap((ref) => ref?.controllerRevisionRef?.name ?? []);
    const captured = (machine: string) =>
      eventually(`${machine} captured`, async () => {
        const names = refs(await machineOf(machine));
        return names.length === 2 && names;
      });
    const own = await captured(name);
    await released(await createClone(name, `${name}-copy`));
    const copied = await captured(`${name}-copy`);
    assert.equal(new Set([...own, ...copied]).size, 4, String([own, copied]));
    const data = async (revision: string): Promise<unknown> =>
      (await cluster.client.get<ControllerRevision>(CONTROLLER_REVISIONS, key(revision))).data;
    for (const i of [0, 1]) assert.deepEqual(await data(copied[i]!), await data(own[i]!));
  });

// S-599
test('a clone of claims that wait for their consumer keeps what it made until the target has run', async () => {
  await createMachine('waits', {}, ['root'], 'local-wait');
  await eventually(
    'bound',
    async () => (await found(PERSISTENT_VOLUME_CLAIMS, 'waits-root'))?.status?.phase === 'Bound',
  );
  storage.holds.add('bind');
  const clone = await createClone('waits', 'waits-copy');
  const { status } = await until(clone, 'succeeded', (one) => one.status?.phase === 'Succeeded');
  assert.ok(await found(VIRTUAL_MACHINE_SNAPSHOTS, status?.snapshotName ?? ''));
  assert.ok(await found(VIRTUAL_MACHINE_RESTORES, status?.restoreName ?? ''));
  storage.holds.delete('bind');
  await released(clone);
});

// S-599
test('a target that is there already, and a patch that does not fit, are reported on the clone', async () => {
  await createMachine('source');
  await createMachine('taken', {}, []);
  const clone = await createClone('source', 'taken');
  const held = await until(
    clone,
    'held',
    ({ status }) => status?.conditions?.some(({ type, message }) => type === 'Progressing' && !!message) === true,
  );
  assert.match(held.status?.conditions?.[0]?.message ?? '', /target already exists/);
  const { uid } = (await machineOf('taken')).metadata;
  await cluster.client.delete(VIRTUAL_MACHINES, key('taken'));
  await released(clone);
  assert.notEqual((await machineOf('taken')).metadata.uid, uid);
  const wrong = await createClone('source', 'wrong', { patches: ['{"op":"remove","path":"/spec/nothing"}'] });
  await until(wrong, 'held', ({ status }) => /error patching VM wrong/.test(status?.conditions?.[0]?.message ?? ''));
  await cluster.client.delete(VIRTUAL_MACHINE_CLONES, key('to-wrong'));
  for (const type of [
    VIRTUAL_MACHINE_SNAPSHOTS,
    VIRTUAL_MACHINE_RESTORES,
    VOLUME_SNAPSHOTS,
  ] as ResourceType<KubeObject>[])
    await eventually(`no ${type.resource}`, async () => {
      const { items } = await cluster.client.list(type, { namespace: 'default' });
      return items.length === 0;
    });
});
