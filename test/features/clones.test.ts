/** VirtualMachineClones from the first write to the last, with the real controller; snapshots and restores are played. */
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import type { ResourceType } from '../../packages/apimachinery/src/meta/gvk.ts';
import type { KubeObject } from '../../packages/apimachinery/src/meta/object.ts';
import { PERSISTENT_VOLUME_CLAIMS } from '../../packages/apimachinery/src/types/resource-types.ts';
import { isNotFound } from '../../packages/client/src/api-failure.ts';
import type { Client } from '../../packages/client/src/client.ts';
import { chooseComponents, runComponent } from '../../packages/coracle/src/compose/components.ts';
import {
  VIRTUAL_MACHINE_CLONES,
  VIRTUAL_MACHINE_RESTORES,
  VIRTUAL_MACHINE_SNAPSHOTS,
  VIRTUAL_MACHINES,
  type VirtualMachine,
  type VirtualMachineClone,
  type VirtualMachineSnapshot,
} from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { silentLogger } from '../../packages/runtime/src/log/log.ts';
import { eventually } from '../testkit/eventually.ts';
import { type FakeCluster, startFakeCluster } from '../testkit/fake-cluster.ts';
import { type PlayedSnapshots, playSnapshots } from '../testkit/played-snapshots.ts';
import { promptClock } from '../testkit/prompt-clock.ts';

const component = chooseComponents('clone')[0]!;
let cluster: FakeCluster;
let played: PlayedSnapshots;
let stopController: () => Promise<void>;

/** Runs the controller with the rights that it names; `wrap` stands between it and the API. */
function runClones(wrap: (client: Client, kill: () => void) => Client = (client) => client): () => Promise<void> {
  const own = new AbortController();
  const client = wrap(cluster.board.plane.clientFor(component.account), () => own.abort());
  const running = runComponent({
    component,
    client,
    facts: { rootCa: '' },
    clock: promptClock,
    log: silentLogger,
    signal: own.signal,
  });
  return async () => {
    own.abort();
    await running;
  };
}

before(async () => {
  cluster = await startFakeCluster({ nodes: [], components: 'garbage-collector-controller,vm' });
  played = playSnapshots(cluster.client);
  stopController = runClones();
});
after(async () => {
  await stopController();
  await played.stop();
  await cluster.stop();
});
beforeEach(() => {
  played.hold = false;
  played.snapshotStatus = { phase: 'Succeeded', readyToUse: true };
  played.restoreStatus = { complete: true };
  played.claimPhase = 'Bound';
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
const INTERFACE = { name: 'default', masquerade: {}, macAddress: '02:00:00:00:00:01' };

async function createMachine(
  name: string,
  volumes: readonly string[] = [],
  domain: object = {},
): Promise<VirtualMachine> {
  const made = await cluster.client.create(VIRTUAL_MACHINES, {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name, namespace: 'default', labels: { keep: 'a', drop: 'b' }, annotations: { note: 'c' } },
    spec: {
      runStrategy: 'Halted',
      template: {
        metadata: { labels: { keep: 'd', drop: 'e' } },
        spec: {
          domain: { devices: { interfaces: [INTERFACE] }, memory: { guest: '64Mi' }, ...domain },
          networks: [{ name: 'default', pod: {} }],
          volumes: volumes.map((volume) => ({
            name: volume,
            persistentVolumeClaim: { claimName: `${name}-${volume}` },
          })),
        },
      },
    },
  } as unknown as VirtualMachine);
  const body = { status: { volumeSnapshotStatuses: volumes.map((volume) => ({ name: volume, enabled: true })) } };
  return cluster.client.patch(
    VIRTUAL_MACHINES,
    key(made.metadata.name!),
    { type: 'merge', body },
    { subresource: 'status' },
  );
}
const createClone = (source: string, target: string, more: object = {}): Promise<VirtualMachineClone> =>
  cluster.client.create(VIRTUAL_MACHINE_CLONES, {
    apiVersion: 'clone.kubevirt.io/v1beta1',
    kind: 'VirtualMachineClone',
    metadata: { name: `to-${target}`, namespace: 'default' },
    spec: {
      source: { apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name: source },
      target: { apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name: target },
      ...more,
    },
  } as VirtualMachineClone);
const createSnapshot = (name: string, source: string): Promise<VirtualMachineSnapshot> =>
  cluster.client.create(VIRTUAL_MACHINE_SNAPSHOTS, {
    apiVersion: 'snapshot.kubevirt.io/v1beta1',
    kind: 'VirtualMachineSnapshot',
    metadata: { name, namespace: 'default' },
    spec: { source: { apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name: source } },
  });
const until = (clone: VirtualMachineClone, what: string, holds: (clone: VirtualMachineClone) => boolean) => {
  let last: VirtualMachineClone | undefined;
  return eventually(`${clone.metadata.name} ${what}`, async () => {
    last = await found(VIRTUAL_MACHINE_CLONES, clone.metadata.name!);
    return last && holds(last) && last;
  }).catch((error: Error) => {
    throw new Error(`${error.message}: ${JSON.stringify(last?.status)}`);
  });
};
const released = (clone: VirtualMachineClone): Promise<VirtualMachineClone> =>
  until(clone, 'done', ({ status }) => status?.phase === 'Succeeded' && !status.restoreName && !status.snapshotName);
const helpers = async (clone: VirtualMachineClone) => [
  await found(VIRTUAL_MACHINE_SNAPSHOTS, `tmp-snapshot-${clone.metadata.uid}`),
  await found(VIRTUAL_MACHINE_RESTORES, `tmp-restore-${clone.metadata.uid}`),
];
const reasons = async (clone: VirtualMachineClone): Promise<string[]> =>
  (await cluster.events(clone.metadata.name!)).map((event) => event.split(' ')[1]!);
const firmwareOf = ({ spec }: VirtualMachine) => spec.template.spec!.domain.firmware!;

// S-594: A VirtualMachineClone makes a stopped machine from a machine or a snapshot, says in phase, conditions and
//   events where it is and what it waits for, and lets its snapshot and restore go when the claims of the target are
//   bound.
// Compat KubeVirt's API, P1, yes: VirtualMachineClone: phases, conditions, events, helpers that go
test('a machine is cloned: another identity and address, the labels that are asked for, and nothing left over', async () => {
  const source = await createMachine('db', ['root', 'data']);
  const clone = await createClone('db', 'copy', {
    labelFilters: ['*', '!drop'],
    annotationFilters: [],
    template: { labelFilters: ['keep'] },
    newSMBiosSerial: 'mine',
    patches: ['{"op":"add","path":"/metadata/labels/made","value":"clone"}'],
  });
  const { status } = await released(clone);
  assert.deepEqual([status?.targetName, status?.phase], ['copy', 'Succeeded']);
  assert.ok(status?.creationTime);
  assert.deepEqual(
    status?.conditions?.map(({ type, status: is, reason }) => `${type} ${is} ${reason}`),
    ['Progressing False Ready', 'Ready True Ready'],
  );
  assert.deepEqual(await helpers(clone), [undefined, undefined]);
  const target = (await found(VIRTUAL_MACHINES, 'copy'))!;
  assert.deepEqual(target.metadata.labels, { keep: 'a', made: 'clone' });
  assert.equal(target.metadata.annotations?.['note'], undefined);
  assert.deepEqual(target.spec.template.metadata?.labels, { keep: 'd' });
  assert.equal(firmwareOf(target).serial, 'mine');
  assert.match(firmwareOf(target).uuid!, /^[0-9a-f-]{36}$/);
  assert.notEqual(firmwareOf(target).uuid, firmwareOf(source).uuid);
  const [{ macAddress, ...nic }] = target.spec.template.spec!.domain.devices.interfaces as [typeof INTERFACE];
  assert.deepEqual([macAddress, nic], [undefined, { name: 'default', masquerade: {} }]);
  const unchanged = (await found(VIRTUAL_MACHINES, 'db'))!;
  assert.deepEqual([unchanged.spec, unchanged.metadata.labels], [source.spec, source.metadata.labels]);
  await eventually('all events', async () => (await reasons(clone)).includes('PVCBound'));
  assert.deepEqual((await reasons(clone)).sort(), [
    'PVCBound',
    'RestoreCreated',
    'RestoreReady',
    'SnapshotCreated',
    'SnapshotReady',
    'TargetVMCreated',
  ]);
});

// S-594
// Compat KubeVirt's API, P1, yes: VirtualMachineClone: source that comes later, snapshot as source, target that is
//   there, target that goes
test('a clone waits for its source, and for volumes that can be saved', async () => {
  const clone = await createClone('late', 'late-copy');
  const waiting = await until(clone, 'waits', ({ status }) => status?.conditions !== undefined);
  assert.deepEqual(
    waiting.status?.conditions?.map(({ type, status: is, reason }) => `${type} ${is} ${reason}`),
    ['Progressing False Pending', 'Ready False Source doesnt exist: VirtualMachine default/late'],
  );
  assert.equal(waiting.status?.phase, undefined);
  await createMachine('late', ['root']);
  await released(clone);
  const reported = await cluster.events(clone.metadata.name!);
  assert.ok(
    reported.includes('Normal SourceDoesNotExist Source doesnt exist: VirtualMachine default/late'),
    String(reported),
  );
});

// S-594
test("a user's snapshot is cloned once it is there and ready, and stays", async () => {
  await createMachine('saved', ['root']);
  played.hold = true;
  const source = { apiGroup: 'snapshot.kubevirt.io', kind: 'VirtualMachineSnapshot', name: 'mine' };
  const clone = await createClone('', 'from-snapshot', { source });
  await until(clone, 'waits', ({ status }) => status?.conditions !== undefined);
  await createSnapshot('mine', 'saved');
  await until(clone, 'sees the snapshot', ({ status }) => status?.phase === 'SnapshotInProgress');
  played.hold = false;
  await released(clone);
  assert.ok(await found(VIRTUAL_MACHINE_SNAPSHOTS, 'mine'));
  assert.deepEqual(await helpers(clone), [undefined, undefined]);
});

// S-594
test('snapshot and restore stay until the claims of the target are bound', async () => {
  await createMachine('slow', ['root']);
  played.claimPhase = 'Pending';
  const clone = await createClone('slow', 'slow-copy');
  const { status } = await until(clone, 'succeeded', (one) => one.status?.phase === 'Succeeded');
  assert.deepEqual(
    [status?.snapshotName, status?.restoreName],
    [`tmp-snapshot-${clone.metadata.uid}`, `tmp-restore-${clone.metadata.uid}`],
  );
  const [snapshot, restore] = await helpers(clone);
  assert.ok(snapshot && restore);
  const claimName = (restore as { status?: { restores?: { persistentVolumeClaim: string }[] } }).status!.restores![0]!;
  const bound = { type: 'merge', body: { status: { phase: 'Bound' } } } as const;
  await cluster.client.patch(PERSISTENT_VOLUME_CLAIMS, key(claimName.persistentVolumeClaim), bound, {
    subresource: 'status',
  });
  await released(clone);
  assert.deepEqual(await helpers(clone), [undefined, undefined]);
});

// S-594
test('a source that is deleted when it is saved does not stop the clone', async () => {
  await createMachine('gone', ['root']);
  played.restoreStatus = { complete: false };
  const clone = await createClone('gone', 'gone-copy');
  await until(clone, 'restores', ({ status }) => status?.restoreName !== undefined);
  await cluster.client.delete(VIRTUAL_MACHINES, key('gone'));
  played.restoreStatus = { complete: true };
  await released(clone);
});

const failures: readonly [name: string, act: (name: string) => Promise<VirtualMachineClone>, reason: string][] = [
  [
    'a source that keeps firmware state',
    async (name) => {
      await createMachine(name, [], { devices: { interfaces: [INTERFACE], tpm: { persistent: true } } });
      return createClone(name, `${name}-copy`);
    },
    'SourceVMWithBackendStorageInvalid',
  ],
  [
    'a snapshot that fails',
    async (name) => {
      played.snapshotStatus = { phase: 'Failed', error: { message: 'deadline' } };
      await createMachine(name, ['root']);
      return createClone(name, `${name}-copy`);
    },
    'SnapshotFailed',
  ],
  [
    'a restore that fails',
    async (name) => {
      played.restoreStatus = { conditions: [{ type: 'Failure', status: 'True', message: 'no patch' }] };
      await createMachine(name, ['root']);
      return createClone(name, `${name}-copy`);
    },
    'RestoreFailed',
  ],
  [
    'a snapshot that somebody deletes',
    async (name) => {
      played.hold = true;
      await createMachine(name, ['root']);
      const clone = await createClone(name, `${name}-copy`);
      await until(clone, 'snapshot', ({ status }) => status?.snapshotName !== undefined);
      await cluster.client.delete(VIRTUAL_MACHINE_SNAPSHOTS, key(`tmp-snapshot-${clone.metadata.uid}`));
      return clone;
    },
    'SnapshotDeleted',
  ],
];
// S-595: A clone that cannot be made fails with the reason, and what it made goes with it.
for (const [i, [name, act, reason]] of failures.entries())
  test(`a clone fails with ${name}, and what it made goes with it`, async () => {
    const clone = await act(`fails-${i}`);
    const { status } = await until(clone, 'failed', (one) => one.status?.phase === 'Failed');
    assert.equal(status?.conditions?.find(({ type }) => type === 'Progressing')?.reason, 'Failed');
    await eventually('event', async () => (await reasons(clone)).includes(reason));
    assert.equal(await found(VIRTUAL_MACHINES, `fails-${i}-copy`), undefined);
    await cluster.client.delete(VIRTUAL_MACHINE_CLONES, key(clone.metadata.name!));
    await eventually('no helpers', async () => (await helpers(clone)).every((one) => one === undefined));
  });

test('a target that is there already is reported, and the clone goes on when it is away', async () => {
  await createMachine('one', ['root']);
  await createMachine('taken');
  await stopController();
  // As the webhook of restores refuses where a restore is not played.
  let refused = 0;
  stopController = runClones((client) => ({
    ...client,
    create: async (type, object, options) => {
      if (type.resource === 'virtualmachinerestores' && (await found(VIRTUAL_MACHINES, 'taken')) !== undefined) {
        refused++;
        throw new Error('target VM must not exist');
      }
      return client.create(type, object, options);
    },
  }));
  const clone = await createClone('one', 'taken');
  await eventually('event', async () => (await reasons(clone)).includes('RestoreCreationFailed'));
  const { status } = await until(clone, 'waits', (one) => one.status?.phase === 'RestoreInProgress');
  assert.equal(status?.restoreName, undefined);
  await cluster.client.delete(VIRTUAL_MACHINES, key('taken'));
  await released(clone);
  assert.ok(refused > 0);
  await stopController();
  stopController = runClones();
});

// S-594
test('a clone goes with its target', async () => {
  await createMachine('two');
  const clone = await createClone('two', 'two-copy');
  await released(clone);
  await cluster.client.delete(VIRTUAL_MACHINES, key('two-copy'));
  await eventually('gone', async () => (await found(VIRTUAL_MACHINE_CLONES, clone.metadata.name!)) === undefined);
});

// S-596: A controller of clones that ends after any of its writes leaves a clone that the next one finishes, and
//   nothing left over.
test('a controller that ends after any of its writes leaves a clone that the next one finishes', async () => {
  await stopController();
  await createMachine('crash', ['root']);
  let writes = 0;
  for (let last = 1; writes >= last - 1; last++) {
    writes = 0;
    // What the process still wants to write when it has ended reaches nobody.
    const stop = runClones((client, kill) => {
      const through =
        <A extends unknown[], R>(call: (...args: A) => Promise<R>) =>
        async (...args: A): Promise<R> => {
          if ((args[0] as { resource: string }).resource === 'events') return call(...args);
          if (writes >= last) throw new Error('the process has ended');
          writes++;
          const result = await call(...args);
          if (writes === last) kill();
          return result;
        };
      return {
        ...client,
        create: through(client.create) as Client['create'],
        patch: through(client.patch) as Client['patch'],
        delete: through(client.delete) as Client['delete'],
      };
    });
    const target = `crash-copy-${last}`;
    const clone = await createClone('crash', target);
    await eventually(`write ${last}`, async () => {
      if (writes >= last) return true;
      const status = (await found(VIRTUAL_MACHINE_CLONES, clone.metadata.name!))?.status;
      return status?.phase === 'Succeeded' && !status.restoreName && !status.snapshotName;
    });
    await stop();
    stopController = runClones();
    await released(clone);
    assert.deepEqual(await helpers(clone), [undefined, undefined], `after write ${last}`);
    const uuid = firmwareOf((await found(VIRTUAL_MACHINES, target))!).uuid;
    assert.notEqual(uuid, firmwareOf((await found(VIRTUAL_MACHINES, 'crash'))!).uuid);
    await stopController();
    if (writes < last) break;
  }
  assert.ok(writes >= 5, `only ${writes} writes`);
  stopController = runClones();
});
