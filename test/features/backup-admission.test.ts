/** VirtualMachineBackups and their trackers as users write them: what is refused and in which words, and that they are listed. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { KUBEVIRTS } from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { type InProcessControlPlane, startInProcess } from '../testkit/in-process-control-plane.ts';

let board: InProcessControlPlane;
before(async () => {
  board = await startInProcess();
});
after(() => board.stop());

const BASE = '/apis/backup.kubevirt.io/v1alpha1/namespaces/default';
const VM = { apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name: 'db' };
const TRACKER = { apiGroup: 'backup.kubevirt.io', kind: 'VirtualMachineBackupTracker', name: 'daily' };
const create = (kind: string, name: string, spec: object) =>
  board.send('POST', `${BASE}/${kind.toLowerCase()}s`, {
    apiVersion: 'backup.kubevirt.io/v1alpha1',
    kind,
    metadata: { name, namespace: 'default' },
    spec,
  });
const backup = (name: string, spec: object) => create('VirtualMachineBackup', name, { pvcName: 'out', ...spec });
const messageOf = ({ json }: { json: unknown }): string => String((json as { message?: string }).message);

// S-659
test('backups need their feature gate', async () => {
  const { status, json } = await backup('early', { source: VM });
  assert.equal(status, 400);
  assert.match(messageOf({ json }), /IncrementalBackup feature gate not enabled/);
  const admin = await board.plane.adminClient();
  const [kubevirt] = (await admin.list(KUBEVIRTS)).items;
  await admin.patch(
    KUBEVIRTS,
    { namespace: kubevirt!.metadata.namespace ?? '', name: kubevirt!.metadata.name ?? '' },
    {
      type: 'merge',
      body: { spec: { configuration: { developerConfiguration: { featureGates: ['IncrementalBackup'] } } } },
    },
  );
});

const refused: [name: string, spec: object, message: RegExp][] = [
  ['a source without a group', { source: { kind: 'VirtualMachine', name: 'db' } }, /apiGroup is required/],
  ['a source of another group', { source: { ...VM, apiGroup: 'apps' } }, /apiGroup must be kubevirt.io or backup/],
  ['a source of another kind', { source: { ...VM, kind: 'Pod' } }, /kind must be VirtualMachine for kubevirt.io or/],
  ['a source without a name', { source: { ...VM, name: '' } }, /name is required/],
  ['no claim to write to', { source: VM, pvcName: '' }, /pvcName is required/],
  ['pull mode without a token', { source: VM, mode: 'Pull' }, /tokenSecretRef is required when mode is Pull/],
  ['an unknown mode', { source: VM, mode: 'Throw' }, /Unsupported value: "Throw": supported values: "Push", "Pull"/],
];
for (const [name, spec, message] of refused)
  test(`a backup with ${name} is refused`, async () => {
    const answer = await backup('bad', spec);
    assert.equal(answer.status, 422);
    assert.match(messageOf(answer), message);
  });

test('a tracker is of one virtual machine', async () => {
  const bad = await create('VirtualMachineBackupTracker', 'bad', { source: TRACKER });
  assert.equal(bad.status, 422);
  assert.match(messageOf(bad), /apiGroup must be kubevirt.io.*kind must be VirtualMachine/);
  assert.equal((await create('VirtualMachineBackupTracker', 'daily', { source: VM })).status, 201);
});

// S-659: VirtualMachineBackups and VirtualMachineBackupTrackers are refused in upstream's words; a source has one
//   backup at a time.
test('a source has one backup at a time, and its spec stays', async () => {
  assert.equal((await backup('one', { source: VM })).status, 201);
  const second = await backup('two', { source: VM });
  assert.equal(second.status, 422);
  assert.match(messageOf(second), /VirtualMachineBackup "one" in progress for source/);
  assert.equal((await backup('three', { source: TRACKER })).status, 201);
  const changed = await board.send(
    'PATCH',
    `${BASE}/virtualmachinebackups/one`,
    { spec: { skipQuiesce: true } },
    'application/merge-patch+json',
  );
  assert.equal(changed.status, 422);
  assert.match(messageOf(changed), /spec is immutable after creation/);
});
