/**
 * What comes back with a restore on real guests: disks of one moment although the guest was writing to all of them, the
 * memory together with claims, and the memory of a guest that was booted by UEFI.
 */
// test:full: many guests, one after the other.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { PERSISTENT_VOLUME_CLAIMS } from '../../packages/apimachinery/src/types/resource-types.ts';
import {
  VIRTUAL_MACHINE_RESTORES,
  VIRTUAL_MACHINE_SNAPSHOT_CONTENTS,
  VIRTUAL_MACHINE_SNAPSHOTS,
  VIRTUAL_MACHINES,
  type VirtualMachine,
  type VirtualMachineSnapshot,
} from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { key, type SavedMachines, savedMachines } from '../testkit/saved-machines.ts';
import { whyNoFirmware } from '../testkit/tiny-guest.ts';
import { type Board, kernelSpec, NAMESPACE, startBoard } from './board.ts';
import { type Shell, shell } from './shell.ts';
import { inUefiShell, SHOW_VARIABLE, setVariable, shown } from './uefi-shell.ts';

let board: Board;
let words: SavedMachines;
before(async () => {
  board = await startBoard();
  words = savedMachines(board.client);
});
after(() => board?.close());

const claim = (name: string, more: object = {}): Promise<unknown> =>
  board.client.create(PERSISTENT_VOLUME_CLAIMS, {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name, namespace: NAMESPACE },
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '16Mi' } }, ...more },
  });
/** A machine whose disks are these claims: vda, vdb and so on. */
const machine = (name: string, claims: readonly string[]): Promise<VirtualMachine> => {
  const spec = kernelSpec({
    terminationGracePeriodSeconds: 0,
    volumes: claims.map((claimName) => ({ name: claimName, persistentVolumeClaim: { claimName } })),
  }) as { domain: { devices: Record<string, unknown> } };
  spec.domain.devices['disks'] = claims.map((disk) => ({ name: disk, disk: { bus: 'virtio' } }));
  return create(name, spec);
};
const create = (name: string, spec: object): Promise<VirtualMachine> =>
  board.client.create(VIRTUAL_MACHINES, {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name, namespace: NAMESPACE },
    spec: { runStrategy: 'Always', template: { spec } },
  } as unknown as VirtualMachine);
async function runs(name: string, not = ''): Promise<string> {
  const vmi = await board.until(
    name,
    'running',
    ({ metadata, status }) => metadata.uid !== not && status?.phase === 'Running',
  );
  return vmi.metadata.uid ?? '';
}
const start = (name: string): Promise<unknown> =>
  board.client.patch(VIRTUAL_MACHINES, key(name), { type: 'merge', body: { spec: { runStrategy: 'Always' } } });
const withMemory = async (name: string, source: string): Promise<void> => {
  await board.client.create(VIRTUAL_MACHINE_SNAPSHOTS, {
    apiVersion: 'snapshot.kubevirt.io/v1beta1',
    kind: 'VirtualMachineSnapshot',
    metadata: { name, namespace: NAMESPACE, annotations: { 'coracle.dev/include-memory': 'true' } },
    spec: { source: { apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name: source } },
  });
  await words.saved(name);
  const found = ({ status }: VirtualMachineSnapshot) =>
    status?.conditions?.find(({ type }) => type === 'MemoryIncluded');
  const condition = found(
    await words.until(VIRTUAL_MACHINE_SNAPSHOTS, name, (snapshot) => found(snapshot) !== undefined),
  );
  assert.equal(condition?.status, 'True', `${condition?.reason}: ${condition?.message}`);
};
const restoreRunning = async (name: string, snapshot: string, target: string, more: object = {}): Promise<void> => {
  await words.restore(name, snapshot, target, { targetReadinessPolicy: 'StopTarget', ...more });
  await words.restored(name);
  await start(target);
  await runs(target);
};

/** How often a pair is saved while it is written to: one could be consistent by chance. */
const TIMES = 4;

// S-681: A VirtualMachineSnapshot of a running machine has all of its disks at one point in time: of writes made in
//   order to several of them none is saved without those before it.
test('disks that a guest writes to in order are saved in that order, at one point in time', async () => {
  for (const name of ['left', 'right']) await claim(name);
  await machine('pair', ['left', 'right']);
  await runs('pair');
  const guest = await shell(board, 'pair', true);
  const put = (disk: string): string => `printf '%08d' $i | dd of=/dev/${disk} conv=notrunc,fsync 2>/dev/null`;
  await guest.run(`(i=0; while :; do i=$((i+1)); ${put('vda')}; ${put('vdb')}; done) &`);
  const claims: string[] = [];
  for (let time = 1; time <= TIMES; time++) {
    await guest.run('n=$(head -c 8 /dev/vdb); until [ "$(head -c 8 /dev/vdb)" != "$n" ]; do sleep 0.1; done');
    await words.snapshot(`pair-${time}`, 'pair');
    const { status } = await words.saved(`pair-${time}`);
    const content = await board.client.get(
      VIRTUAL_MACHINE_SNAPSHOT_CONTENTS,
      key(status?.virtualMachineSnapshotContentName ?? ''),
    );
    for (const { volumeName, volumeSnapshotName } of content.spec.volumeBackups ?? []) {
      const dataSource = { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot', name: volumeSnapshotName };
      await claim(`${volumeName}-${time}`, { dataSource });
    }
    claims.push(`left-${time}`, `right-${time}`);
  }
  await board.client.delete(VIRTUAL_MACHINES, key('pair'));
  // One guest sees them all.
  await machine('reader', claims);
  await runs('reader');
  const reader = await shell(board, 'reader', true);
  const seen: number[] = [];
  for (let at = 0; at < claims.length; at++)
    seen.push(Number(await reader.run(`head -c 8 /dev/vd${String.fromCharCode(97 + at)}`)));
  for (let time = 0; time < TIMES; time++) {
    const [left = 0, right = 0] = [seen[2 * time], seen[2 * time + 1]];
    assert.ok(right > 0 && (left === right || left === right + 1), `${left} and ${right}, of ${seen.join(' ')}`);
  }
  assert.ok(new Set(seen).size >= TIMES, `it wrote on meanwhile: ${seen.join(' ')}`);
  await board.client.delete(VIRTUAL_MACHINES, key('reader'));
});

const data = (guest: Shell): Promise<string> =>
  guest.run('echo 1 >/proc/sys/vm/drop_caches; head -c 5 /dev/vda; cat /run/mark');

// S-682: A machine with claims that is restored in place with its memory goes on where it was, its disks as they were
//   at that moment, under each volume restore policy; without its memory it boots from the same disks.
test('a machine with a claim goes on in place where it was, with the disk of that moment, under each policy', async () => {
  await claim('store');
  await machine('store', ['store']);
  let uid = await runs('store');
  const first = await shell(board, 'store', true);
  await first.run('printf first | dd of=/dev/vda conv=notrunc,fsync 2>/dev/null; echo kept >/run/mark; sleep 1000 & :');
  await withMemory('moment', 'store');

  let guest = first;
  for (const [name, more] of [
    ['other-names', {}],
    ['same-names', { volumeRestorePolicy: 'InPlace' }],
  ] as const) {
    await guest.run('printf other | dd of=/dev/vda conv=notrunc,fsync 2>/dev/null; echo lost >/run/mark');
    assert.equal(await data(guest), 'otherlost');
    await restoreRunning(name, 'moment', 'store', more);
    uid = await runs('store', uid);
    guest = await shell(board, 'store', false);
    assert.equal(await data(guest), 'firstkept', name);
    assert.equal(await guest.run('pidof sleep >/dev/null && echo alive'), 'alive', name);
  }
  // Without its memory, the disk of the same moment.
  await guest.run('printf third | dd of=/dev/vda conv=notrunc,fsync 2>/dev/null');
  await board.client.create(VIRTUAL_MACHINE_RESTORES, {
    apiVersion: 'snapshot.kubevirt.io/v1beta1',
    kind: 'VirtualMachineRestore',
    metadata: { name: 'disk-alone', namespace: NAMESPACE, annotations: { 'coracle.dev/include-memory': 'false' } },
    spec: {
      target: { apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name: 'store' },
      virtualMachineSnapshotName: 'moment',
      targetReadinessPolicy: 'StopTarget',
    },
  });
  await words.restored('disk-alone');
  await start('store');
  await runs('store', uid);
  const booted = await shell(board, 'store', true);
  assert.equal(await booted.run('head -c 5 /dev/vda; ls /run/mark 2>/dev/null'), 'first');
  await board.client.delete(VIRTUAL_MACHINES, key('store'));
});

// S-683: A guest that was booted by UEFI goes on from its saved memory, with its EFI variables of that moment.
test('a guest that was booted by UEFI goes on where it was, with its variables of that moment', {
  skip: whyNoFirmware() ?? false,
  timeout: 600_000,
}, async () => {
  for (const persistent of [false, true]) {
    const name = persistent ? 'lasting' : 'passing';
    const inShell = (command: string, isThere = true): Promise<string> =>
      inUefiShell(() => board.connect(`${name}/console?backlog=true`), command, { isThere });
    await create(name, {
      terminationGracePeriodSeconds: 0,
      domain: {
        devices: { autoattachPodInterface: false },
        memory: { guest: '256Mi' },
        firmware: { bootloader: { efi: { persistent, secureBoot: false } } },
      },
    });
    const uid = await runs(name);
    await inShell(setVariable('moment'), false);
    // Volatile: in the memory of the shell alone.
    await inShell('set -v mark still');
    await withMemory(`${name}-moment`, name);
    await inShell(setVariable('later'));
    await inShell('set -v mark gone');
    await restoreRunning(`${name}-back`, `${name}-moment`, name);
    assert.notEqual(await runs(name, uid), uid);
    assert.match(await inShell('echo [%mark%]'), /\[still\]/, 'its memory');
    assert.match(await inShell(SHOW_VARIABLE), shown('moment'), 'its variables');
    await board.client.delete(VIRTUAL_MACHINES, key(name));
  }
});
