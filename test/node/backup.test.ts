/**
 * Guests are backed up while they run, their data directory is wiped, and they come back from the backup elsewhere: same
 * data, same identity, started once.
 */
// test:full: many guests, one after the other.
import assert from 'node:assert/strict';
import { globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import {
  CONTROLLER_REVISIONS,
  NODES,
  PERSISTENT_VOLUME_CLAIMS,
  PODS,
} from '../../packages/apimachinery/src/types/resource-types.ts';
import type { Client } from '../../packages/client/src/client.ts';
import { nodeNames } from '../../packages/coracle/src/compose/agents.ts';
import {
  KUBEVIRTS,
  VIRTUAL_MACHINE_BACKUP_TRACKERS,
  VIRTUAL_MACHINE_BACKUPS,
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINES,
} from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { findProcesses, identify, isRunning } from '../../packages/runtime/src/process/identity.ts';
import { root, runProgram } from '../cli/workspace.ts';
import { adminOf, type ControlPlaneProcess, startProcess } from '../testkit/control-plane-process.ts';
import { eventually } from '../testkit/eventually.ts';
import { importTinyGuest, tinyVm, whyNoGuests } from '../testkit/tiny-guest.ts';

const why = whyNoGuests();
const namespace = 'default';
const MAC = '02:00:5e:10:00:2a';
/** Tells what the guest is and what it finds on its disk, and leaves a mark there. */
const LOOK = `#!/bin/sh
exec >/dev/console 2>&1
for d in /sys/block/vd*; do [ "$(cat $d/size)" = 131072 ] && disk=/dev/\${d##*/}; done
cd /sys/class/dmi/id
echo "SEEN uuid=$(cat product_uuid) serial=$(cat product_serial) mac=$(cat /sys/class/net/eth0/address) data=$(head -c 7 $disk | tr -cd a-z) END"
printf written | dd of=$disk conv=notrunc 2>/dev/null; sync
echo MARK LEFT
(i=0; while sleep 0.2; do i=$((i + 1)); echo "count $i " | dd of=$disk bs=512 seek=4096 conv=notrunc 2>/dev/null; sync; done) &
`;

const coracle = (argv: readonly string[]) =>
  runProgram(process.execPath, [join(root, 'packages/coracle/src/main.ts'), ...argv], {
    PATH: process.env['PATH']!,
    HOME: process.env['HOME'] ?? '/',
  });

/** Has changed blocks of every machine tracked. */
const trackChangedBlocks = (client: Client): Promise<unknown> =>
  client.patch(
    KUBEVIRTS,
    { namespace: 'kubevirt', name: 'kubevirt' },
    {
      type: 'merge',
      body: {
        spec: {
          configuration: {
            developerConfiguration: { featureGates: ['IncrementalBackup'] },
            changedBlockTrackingLabelSelectors: { virtualMachineLabelSelector: { matchLabels: { app: 'tiny' } } },
          },
        },
      },
    },
  );

/** VirtualMachineBackups of `kept`, one on the other: the second holds what the guest has written since, and no more. */
async function backUpTwice(data: string, client: Client): Promise<void> {
  const metadata = (name: string) => ({ name, namespace });
  const apiVersion = 'backup.kubevirt.io/v1alpha1';
  await client.create(VIRTUAL_MACHINE_BACKUP_TRACKERS, {
    apiVersion,
    kind: 'VirtualMachineBackupTracker',
    metadata: metadata('tracker'),
    spec: { source: { apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name: 'kept' } },
  });
  const source = { apiGroup: 'backup.kubevirt.io', kind: 'VirtualMachineBackupTracker', name: 'tracker' };
  const claim = await client.get(PERSISTENT_VOLUME_CLAIMS, { namespace, name: 'out' });
  const files: string[] = [];
  for (const [name, type] of [
    ['full', 'Full'],
    ['since', 'Incremental'],
  ] as const) {
    await client.create(VIRTUAL_MACHINE_BACKUPS, {
      apiVersion,
      kind: 'VirtualMachineBackup',
      metadata: metadata(name),
      spec: { source, pvcName: 'out' },
    });
    let last: unknown;
    const made = await eventually(`backup ${name}`, async () => {
      const backup = await client.get(VIRTUAL_MACHINE_BACKUPS, { namespace, name });
      last = backup.status?.conditions;
      return backup.status?.conditions?.some((one) => one.type === 'Done') ? backup : undefined;
    }).catch((error: Error) => {
      throw new Error(`${error.message}: ${JSON.stringify(last)}`);
    });
    assert.ok(
      made.status?.conditions?.some((one) => one.type === 'Complete'),
      JSON.stringify(made.status),
    );
    assert.deepEqual(made.status?.includedVolumes, [{ volumeName: 'data', type }]);
    files.push(join(data, 'claims', claim.metadata.uid ?? '', 'backups', made.metadata.uid ?? '', '0.qcow2'));
    await new Promise((wake) => setTimeout(wake, 1000));
  }
  const [full, since] = files as [string, string];
  const raw = join(data, 'read.raw');
  const read = async (): Promise<{ mark: string; count: number }> => {
    const done = await runProgram('qemu-img', ['convert', '-O', 'raw', since, raw]);
    assert.equal(done.code, 0, done.stderr);
    const disk = readFileSync(raw);
    const count = /^count (\d+)/.exec(disk.toString('latin1', 4096 * 512, 4096 * 512 + 20))?.[1];
    return { mark: disk.toString('latin1', 0, 7), count: Number(count) };
  };
  const alone = await read();
  assert.equal(alone.mark, '\0'.repeat(7), 'what was there before is not in the second one');
  assert.equal((await runProgram('qemu-img', ['rebase', '-u', '-b', full, '-F', 'qcow2', since])).code, 0);
  assert.deepEqual(await read(), { mark: 'written', count: alone.count }, 'both together are the disk');
  rmSync(raw);
}

// S-662: Guests that are backed up while they run, volumes of one guest at one moment, come back on another machine
//   with their data, UUID, serial, MAC addresses and revisions, each once; nodes of the directory that are no more go.
// S-664: A VirtualMachineBackup of a running guest is a qcow2 file for each volume in the claim it names; the next one
//   of its tracker holds what has changed since, and no more.
test('guests that are backed up while they run come back elsewhere with their data and identity, each once', {
  timeout: 600_000,
  ...(why && { skip: why }),
}, async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'coracle-guest-backup-'));
  const [first, second] = [join(dir, 'first'), join(dir, 'second')];
  let plane: ControlPlaneProcess | undefined;
  const guests = () =>
    findProcesses((argv) => argv[0]?.includes('qemu-system') === true && argv.some((word) => word.includes(dir)));
  const endGuests = async (): Promise<void> => {
    for (const pid of await guests()) {
      const identity = await identify(pid);
      if (!identity) continue;
      process.kill(pid, 'SIGKILL');
      while (await isRunning(identity)) await new Promise((wake) => setTimeout(wake, 5));
    }
  };
  t.after(async () => {
    await plane?.kill('SIGKILL');
    await endGuests();
    rmSync(dir, { recursive: true, force: true });
  });
  const [host, gone] = nodeNames(2) as [string, string];
  await importTinyGuest(first);
  plane = await startProcess(first, { nodes: 2 });
  let admin = adminOf(first);
  const cordon = (name: string, unschedulable: boolean | null) =>
    eventually(`${name} is there`, () =>
      admin.client.patch(NODES, { namespace: '', name }, { type: 'merge', body: { spec: { unschedulable } } }),
    );
  const running = (name: string, node?: string) =>
    eventually(`${name} runs${node === undefined ? '' : ` on ${node}`}`, async () => {
      const vmi = await admin.client.get(VIRTUAL_MACHINE_INSTANCES, { namespace, name });
      return vmi.status?.phase === 'Running' && (node === undefined || vmi.status.nodeName === node) ? vmi : undefined;
    });
  const said = (data: string, uid: string | undefined, pattern: RegExp) =>
    eventually(`${pattern} on the console`, async () => {
      const [log] = globSync(join(data, 'nodes/*/vms', uid ?? '', 'serial.log'));
      return pattern.exec(readFileSync(log ?? '', 'utf8')) ?? undefined;
    });

  for (const name of ['data', 'out'])
    await admin.client.create(PERSISTENT_VOLUME_CLAIMS, {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name, namespace },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '64Mi' } } },
    });
  await trackChangedBlocks(admin.client);
  await cordon(gone, null);
  await cordon(host, true);
  await admin.client.create(
    VIRTUAL_MACHINES,
    tinyVm('kept', ({ spec }) => {
      const { domain, volumes } = spec.template.spec!;
      domain.devices.disks!.push({ name: 'data', disk: { bus: 'virtio' } });
      domain.devices.interfaces![0]!.macAddress = MAC;
      volumes!.find(({ name }) => name === 'cloudinit')!.cloudInitNoCloud!.userData = LOOK;
      volumes!.push({ name: 'data', persistentVolumeClaim: { claimName: 'data' } });
    }),
  );
  const before = await running('kept', gone);
  await cordon(host, null);
  await cordon(gone, true);
  await admin.client.create(VIRTUAL_MACHINES, tinyVm('other'));
  await running('other', host);
  const [, seen] = await said(first, before.metadata.uid, /SEEN (.*) data= END/);
  await said(first, before.metadata.uid, /MARK LEFT/);
  const revisions = async () =>
    (await admin.client.list(CONTROLLER_REVISIONS, { namespace })).items.map(({ metadata }) => metadata.name).sort();
  const revisionsBefore = await revisions();
  const machine = await admin.client.get(VIRTUAL_MACHINES, { namespace, name: 'kept' });

  await backUpTwice(first, admin.client);

  const backup = join(dir, 'backup');
  const made = await coracle(['backup', 'create', backup, '--data-dir', first]);
  assert.equal(made.code, 0, made.stderr);
  assert.match(made.stdout, /2 volumes, with keys/);
  // Nothing of it is left behind in the pool, and the guest goes on.
  const pool = JSON.parse(readFileSync(join(first, 'claims/pool.json'), 'utf8')) as { snapshots: object };
  assert.equal(Object.keys(pool.snapshots).length, 1, 'the checkpoint of the tracker');
  assert.equal((await running('kept', gone)).metadata.uid, before.metadata.uid);

  await admin.close();
  await plane.kill('SIGKILL');
  await endGuests();
  rmSync(first, { recursive: true, force: true });
  const verified = await coracle(['backup', 'verify', backup]);
  assert.equal(verified.code, 0, verified.stderr + verified.stdout);
  const restored = await coracle(['backup', 'restore', backup, '--data-dir', second]);
  assert.equal(restored.code, 0, restored.stderr);
  plane = await startProcess(second, { nodes: 1 });
  admin = adminOf(second);
  const after = await eventually('kept runs again', async () => {
    const vmi = await running('kept', host);
    return vmi.metadata.uid === before.metadata.uid ? undefined : vmi;
  });
  const [, again] = await said(second, after.metadata.uid, /SEEN (.*) data=written END/);
  assert.equal(again, seen, 'UUID, serial and MAC address');
  assert.match(String(seen), new RegExp(`mac=${MAC}`));
  const there = await admin.client.get(VIRTUAL_MACHINES, { namespace, name: 'kept' });
  assert.deepEqual(there.spec.template.spec?.domain.firmware, machine.spec.template.spec?.domain.firmware);
  assert.equal(there.metadata.uid, machine.metadata.uid);
  for (const name of revisionsBefore) assert.ok((await revisions()).includes(name), `${name} is there`);
  await eventually('other runs again', async () => {
    const vmi = await running('other', host);
    return (await guests()).length === 2 ? vmi : undefined;
  });
  const nodes = (await admin.client.list(NODES)).items.map(({ metadata }) => metadata.name);
  assert.deepEqual(nodes, [host], `${gone} was of the directory before, ${hostname()} is of this one`);
  const launchers = (await admin.client.list(PODS, { namespace })).items.filter(
    ({ status }) => status?.phase === 'Running',
  );
  assert.equal(launchers.length, 2, 'each guest is started once');
  await admin.close();
});
