/** VirtualMachineBackups from creation to their end: what they wait for, what the agent is asked, what they show. The test plays the agent. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { NODES, PERSISTENT_VOLUME_CLAIMS } from '../../packages/apimachinery/src/types/resource-types.ts';
import { POOL_LABEL } from '../../packages/cluster-rules/src/storage/pool-names.ts';
import { trackingState } from '../../packages/kubevirt/src/controllers/backup/tracking-controller.ts';
import {
  KUBEVIRTS,
  VIRTUAL_MACHINE_BACKUP_TRACKERS,
  VIRTUAL_MACHINE_BACKUPS,
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINES,
  type VirtualMachineBackup,
} from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import type { BackupRequest } from '../../packages/kubevirt/src/rules/backup/backup-request.ts';
import { checkpointHandle } from '../../packages/kubevirt/src/rules/backup/checkpoint-handles.ts';
import { eventually } from '../testkit/eventually.ts';
import { type FakeCluster, startFakeCluster } from '../testkit/fake-cluster.ts';

const namespace = 'default';
const key = (name: string) => ({ namespace, name });
let cluster: FakeCluster;
/** What the agent was asked, and what it says when it is. */
const asked: BackupRequest[] = [];
const removed: string[] = [];
let reply: (request: BackupRequest) => object | undefined = () => undefined;

before(async () => {
  cluster = await startFakeCluster({
    nodes: ['node-1'],
    components: 'vm,vmi,scheduler,backup',
    plane: {
      connectNode: async (node) => async (request) => {
        const body = JSON.parse(new TextDecoder().decode(request.body)) as BackupRequest;
        if (request.path === '/storage/v1/deleteSnapshot') {
          removed.push((body as unknown as { handle: string }).handle);
          return { status: 200, headers: {}, body: new TextEncoder().encode('{}') };
        }
        asked.push(body);
        const backupStatus = reply(body);
        if (backupStatus)
          await cluster.board.plane
            .clientForNode(node)
            .patch(
              VIRTUAL_MACHINE_INSTANCES,
              key('db'),
              { type: 'merge', body: { status: { changedBlockTracking: { state: 'Enabled', backupStatus } } } },
              { subresource: 'status' },
            );
        return { status: 200, headers: {} };
      },
    },
  });
  for (const [name, phase] of [
    ['disk', 'Bound'],
    ['out', 'Bound'],
    ['late', 'Pending'],
  ] as const) {
    const storage = '1Gi';
    await cluster.client.create(PERSISTENT_VOLUME_CLAIMS, {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name, namespace },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage } } },
    });
    const body = { status: { phase, ...(phase === 'Bound' && { capacity: { storage } }) } };
    await cluster.client.patch(PERSISTENT_VOLUME_CLAIMS, key(name), { type: 'merge', body }, { subresource: 'status' });
  }
});
after(async () => {
  await cluster.stop();
  assert.deepEqual(cluster.errors, [], 'every component had the rights it names');
});

const configure = (configuration: object) =>
  cluster.client.patch(
    KUBEVIRTS,
    { namespace: 'kubevirt', name: 'kubevirt' },
    { type: 'merge', body: { spec: { configuration } } },
  );
const create = (name: string, spec: object): Promise<unknown> =>
  cluster.client.create(VIRTUAL_MACHINE_BACKUPS, {
    apiVersion: 'backup.kubevirt.io/v1alpha1',
    kind: 'VirtualMachineBackup',
    metadata: { name, namespace },
    spec: { pvcName: 'out', ...spec },
  } as never);
const VM = { apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name: 'db' };
const TRACKER = { apiGroup: 'backup.kubevirt.io', kind: 'VirtualMachineBackupTracker', name: 'daily' };
/** `Type=Status Reason Message` of the conditions. */
const conditionsOf = ({ status }: VirtualMachineBackup): string[] =>
  (status?.conditions ?? []).map((one) => `${one.type}=${one.status} ${one.reason} ${one.message}`).sort();
const shows = (name: string, pattern: RegExp): Promise<VirtualMachineBackup> =>
  eventually(`${name} shows ${pattern}`, async () => {
    const backup = await cluster.client.get(VIRTUAL_MACHINE_BACKUPS, key(name));
    return conditionsOf(backup).some((text) => pattern.test(text)) ? backup : undefined;
  });
const uidOf = async (name: string): Promise<string> =>
  (await cluster.client.get(PERSISTENT_VOLUME_CLAIMS, key(name))).metadata.uid ?? '';
const completed = (more: object) => (request: BackupRequest) => ({
  backupName: request.backupName,
  startTimestamp: '2030-01-01T00:00:00Z',
  endTimestamp: '2030-01-01T00:00:01Z',
  completed: true,
  checkpointName: request.checkpoint,
  volumes: [{ volumeName: 'disk', type: request.incremental === undefined ? 'Full' : 'Incremental' }],
  quiesceStatus: 'Skipped',
  ...more,
});

// S-660: A VirtualMachineBackup waits for what is missing, is begun once, shows what the agent reports, and ends with
//   upstream's conditions; a tracker has the next one build on it.
test('a backup waits, and says what for, in upstream words', async () => {
  await configure({ developerConfiguration: { featureGates: ['IncrementalBackup'] } });
  await create('first', { source: VM });
  await shows('first', /^Progressing=True Initializing VM default\/db doesnt exist$/);
  await cluster.client.create(VIRTUAL_MACHINES, {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name: 'db', namespace, labels: { backed: 'up' } },
    spec: {
      runStrategy: 'Always',
      template: {
        spec: {
          domain: { devices: { disks: [{ name: 'disk', disk: {} }] }, memory: { guest: '64Mi' } },
          volumes: [{ name: 'disk', persistentVolumeClaim: { claimName: 'disk' } }],
        },
      },
    },
  });
  await shows('first', /vm db has no ChangedBlockTracking, cannot start backup$/);
  assert.deepEqual(asked, []);
});

// S-661: Changed blocks are tracked for the machines that the selectors of the KubeVirt object name.
test('tracking follows the selectors of the KubeVirt object; then the backup runs, and ends', async () => {
  reply = completed({});
  await configure({
    changedBlockTrackingLabelSelectors: { virtualMachineLabelSelector: { matchLabels: { backed: 'up' } } },
  });
  const done = await shows('first', /^Complete=True/);
  assert.deepEqual(conditionsOf(done), [
    'Complete=True Completed Successfully completed VirtualMachineBackup',
    'Done=True Completed Successfully completed VirtualMachineBackup',
    'Progressing=False Completed Successfully completed VirtualMachineBackup',
    'Quiesced=False QuiesceSkipped Guest filesystem quiesce was skipped',
  ]);
  assert.deepEqual(done.status?.includedVolumes, [{ volumeName: 'disk', type: 'Full' }]);
  assert.equal(done.status?.checkpointName, undefined, 'nobody keeps it');
  assert.deepEqual(done.metadata.finalizers, ['backup.kubevirt.io/vmbackup-protection']);
  const [request] = asked;
  assert.deepEqual(
    [request?.cmd, request?.targetPath, request?.incremental, request?.keepsCheckpoint, request?.maxBytes],
    ['Start', await uidOf('out'), undefined, undefined, 1024 ** 3],
  );
  const vmi = await eventually('the report makes room', async () => {
    const found = await cluster.client.get(VIRTUAL_MACHINE_INSTANCES, key('db'));
    return found.status?.changedBlockTracking?.backupStatus ? undefined : found;
  });
  assert.equal(vmi.status?.changedBlockTracking?.state, 'Enabled');
  const vm = await cluster.client.get(VIRTUAL_MACHINES, key('db'));
  assert.equal(vm.status?.changedBlockTracking?.state, 'Enabled');
  assert.ok((await cluster.events('first')).some((text) => text.includes('VirtualMachineBackupCompletedSuccessfully')));
  await cluster.client.delete(VIRTUAL_MACHINE_BACKUPS, key('first'));
  await eventually('it goes', async () =>
    (await cluster.client.get(VIRTUAL_MACHINE_BACKUPS, key('first')).catch(() => undefined)) === undefined
      ? true
      : undefined,
  );
});

// S-660
// Compat KubeVirt's API, P2, partly: VirtualMachineBackup, VirtualMachineBackupTracker: rules, phases, full and
//   incremental backups in push mode Note: Missing: pull mode, in which backup software reads the disks
//   of a Pod: it fails at once and says so
test('a tracker has the next backup build on the last one, unless all of it is asked for', async () => {
  await create('waits', { source: TRACKER });
  await shows('waits', /BackupTracker daily does not exist$/);
  await cluster.client.create(VIRTUAL_MACHINE_BACKUP_TRACKERS, {
    apiVersion: 'backup.kubevirt.io/v1alpha1',
    kind: 'VirtualMachineBackupTracker',
    metadata: { name: 'daily', namespace },
    spec: { source: VM },
  });
  const first = await shows('waits', /^Complete=True/);
  const checkpoint = first.status?.checkpointName;
  assert.equal(checkpoint, `waits-${first.metadata.uid}`);
  const latest = async () =>
    (await cluster.client.get(VIRTUAL_MACHINE_BACKUP_TRACKERS, key('daily'))).status?.latestCheckpoint;
  assert.deepEqual(await latest(), { name: checkpoint, creationTime: '2030-01-01T00:00:00Z' });
  await create('next', { source: TRACKER });
  const second = await shows('next', /^Complete=True/);
  assert.deepEqual(second.status?.includedVolumes, [{ volumeName: 'disk', type: 'Incremental' }]);
  const of = (name: string) => asked.find(({ backupName }) => backupName === name);
  assert.deepEqual([of('next')?.incremental, of('next')?.keepsCheckpoint], [checkpoint, true]);
  assert.equal((await latest())?.name, second.status?.checkpointName);
  await create('all', { source: TRACKER, forceFullBackup: true });
  await shows('all', /^Complete=True/);
  assert.equal(of('all')?.incremental, undefined);
});

// S-660
test('what fails says why and keeps the checkpoint; pull mode is refused; a claim that is not bound is waited for', async () => {
  const before = await cluster.client.get(VIRTUAL_MACHINE_BACKUP_TRACKERS, key('daily'));
  reply = completed({ failed: true, backupMsg: 'no room is left' });
  await create('bad', { source: TRACKER });
  await shows('bad', /^Failed=True Failed Backup has failed: no room is left$/);
  const now = await cluster.client.get(VIRTUAL_MACHINE_BACKUP_TRACKERS, key('daily'));
  assert.deepEqual(now.status, before.status);
  await create('pull', { source: VM, mode: 'Pull', tokenSecretRef: 'x' });
  await shows('pull', /^Failed=True Failed Backup has failed: pull mode is not served here/);
  await create('late', { source: VM, pvcName: 'late' });
  await shows('late', /PVC default\/late is not bound$/);
  await cluster.client.delete(VIRTUAL_MACHINE_BACKUPS, key('late'));
});

// S-665: The checkpoint of a backup tracker goes with the tracker.
test('the checkpoint goes with its tracker', async () => {
  const tracker = await cluster.client.get(VIRTUAL_MACHINE_BACKUP_TRACKERS, key('daily'));
  await cluster.client.patch(
    NODES,
    { namespace: '', name: 'node-1' },
    { type: 'merge', body: { metadata: { labels: { [POOL_LABEL]: 'a-pool' } } } },
  );
  await cluster.client.delete(VIRTUAL_MACHINE_BACKUP_TRACKERS, key('daily'));
  await eventually('it goes', async () =>
    (await cluster.client.get(VIRTUAL_MACHINE_BACKUP_TRACKERS, key('daily')).catch(() => undefined)) === undefined
      ? true
      : undefined,
  );
  assert.deepEqual(removed, [checkpointHandle(namespace, tracker.status?.latestCheckpoint?.name ?? '', 'disk')]);
});

// S-660
test('a backup that is deleted while it runs is broken off; one whose instance goes has failed', async () => {
  reply = ({ backupName, cmd }) => ({
    backupName,
    startTimestamp: '2030-01-01T00:00:00Z',
    ...(cmd === 'Abort' && { completed: true, failed: true, backupMsg: 'it was broken off' }),
  });
  await create('gone', { source: VM });
  await shows('gone', /^Progressing=True Initiated Backup is in progress$/);
  await cluster.client.delete(VIRTUAL_MACHINE_BACKUPS, key('gone'));
  await eventually('it goes', async () =>
    (await cluster.client.get(VIRTUAL_MACHINE_BACKUPS, key('gone')).catch(() => undefined)) === undefined
      ? true
      : undefined,
  );
  assert.ok(asked.some(({ backupName, cmd }) => backupName === 'gone' && cmd === 'Abort'));
  await create('lost', { source: VM });
  await shows('lost', /^Progressing=True Initiated/);
  await cluster.client.patch(VIRTUAL_MACHINES, key('db'), { type: 'merge', body: { spec: { runStrategy: 'Halted' } } });
  await shows('lost', /^Failed=True Source(Lost|Unhealthy) Backup has failed: VMI /);
});

test('trackingState(): the gate, selectors of machines and of namespaces, and what was shown before', () => {
  const kubevirt = (gates: string[], selectors?: object) =>
    ({
      spec: {
        configuration: {
          developerConfiguration: { featureGates: gates },
          changedBlockTrackingLabelSelectors: selectors,
        },
      },
    }) as never;
  const on = ['IncrementalBackup'];
  const ofVm = { virtualMachineLabelSelector: { matchLabels: { a: 'b' } } };
  const ofNamespace = { namespaceLabelSelector: { matchExpressions: [{ key: 'x', operator: 'Exists' }] } };
  const machine = (labels: object, namespaceLabels: object = {}, shown?: string) =>
    ({ labels, namespaceLabels, shown }) as never;
  const rows = [
    [kubevirt(on), machine({ a: 'b' }), undefined],
    [kubevirt(on, ofVm), machine({ a: 'b' }), 'Enabled'],
    [kubevirt(on, ofVm), machine({ a: 'c' }), undefined],
    [kubevirt(on, ofVm), machine({ a: 'c' }, {}, 'Enabled'), 'Disabled'],
    [kubevirt(on, ofNamespace), machine({}, { x: '' }), 'Enabled'],
    [kubevirt([], ofVm), machine({ a: 'b' }), 'FGDisabled'],
    [kubevirt([], ofVm), machine({}, {}, 'Enabled'), undefined],
  ] as const;
  for (const [i, [config, one, expected]] of rows.entries())
    assert.equal(trackingState(config, one), expected, `row ${i}`);
});
