/** The whole program, with kubectl: a claim, a machine that writes to it, a snapshot, a claim of that, another machine. */
import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { openWorkspace, type Workspace } from '../cli/workspace.ts';
import { eventually } from '../testkit/eventually.ts';
import { byKernel, importTinyGuest, tinyVm, whyNoGuests } from '../testkit/tiny-guest.ts';

const why = whyNoGuests();

const claimOf = (name: string, dataSource?: object) => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { name },
  spec: {
    accessModes: ['ReadWriteOnce'],
    resources: { requests: { storage: '1Gi' } },
    ...(dataSource && { dataSource }),
  },
});

/** A machine that runs the script once it has found the disk of the claim, as $d. */
const machine = (name: string, claimName: string, script: string) =>
  tinyVm(name, (vm) => {
    byKernel(vm);
    const { domain, volumes } = vm.spec.template.spec!;
    domain.devices.disks = domain.devices.disks!.filter((disk) => disk.name !== 'root');
    domain.devices.disks.push({ name: 'data', disk: { bus: 'virtio' }, serial: 'data' });
    volumes?.splice(0, 1, { name: 'data', persistentVolumeClaim: { claimName } });
    for (const volume of volumes ?? [])
      if (volume.cloudInitNoCloud)
        volume.cloudInitNoCloud.userData = `#!/bin/sh\nd=/dev/$(grep -l data /sys/block/vd*/serial | cut -d/ -f4)\n${script}\n`;
  });

// S-500
// S-549: With kubectl alone: a claim of the default class is bound, a machine writes to it, is snapshotted and enlarged
//   as it runs, a claim of the snapshot gives another machine what was written, and when all is deleted all space is
//   free.
test('what a machine writes is in its snapshot, and another machine reads it there; all space is free at the end', {
  timeout: 600_000,
  ...(why && { skip: why }),
}, async (t) => {
  const at: Workspace = openWorkspace(t);
  const kubectl = async (argv: readonly string[], input?: object): Promise<string> => {
    const { code, stdout, stderr } = await at.kubectl(argv, input && JSON.stringify(input));
    assert.equal(code, 0, `${argv.join(' ')}: ${stderr}`);
    return stdout;
  };
  const apply = (object: object): Promise<string> => kubectl(['apply', '-f', '-'], object);
  const waits = (what: string, path: string, value: string): Promise<string> =>
    kubectl(['wait', '--timeout=300s', what, `--for=jsonpath={${path}}=${value}`]);
  const says = (name: string, text: RegExp): Promise<string> =>
    eventually(`${text} of ${name}`, async () => {
      await setTimeout(1000); // a kubectl costs as much as a guest that boots meanwhile
      const pod = ['logs', '-l', `vm.kubevirt.io/name=${name}`, '-c', 'guest-console-log', '--tail=-1'];
      const { stdout } = await at.kubectl(pod);
      return text.test(stdout) ? stdout : undefined;
    });
  await importTinyGuest(at.data);
  const up = await at.up('--nodes', '1');
  assert.equal(up.code, 0, up.stderr);

  await apply(claimOf('data'));
  await waits('pvc/data', '.status.phase', 'Bound');
  await apply(machine('writer', 'data', 'echo written-by-writer >$d; sync; echo WRO""TE >/dev/console'));
  await says('writer', /WROTE/);
  await apply({
    apiVersion: 'snapshot.storage.k8s.io/v1',
    kind: 'VolumeSnapshot',
    metadata: { name: 'then' },
    spec: { volumeSnapshotClassName: 'local', source: { persistentVolumeClaimName: 'data' } },
  });
  await waits('volumesnapshot/then', '.status.readyToUse', 'true');
  await kubectl(['patch', 'pvc/data', '-p', '{"spec":{"resources":{"requests":{"storage":"2Gi"}}}}']);
  await waits('pvc/data', '.status.capacity.storage', '2Gi');
  await apply(claimOf('copy', { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot', name: 'then' }));
  await waits('pvc/copy', '.status.phase', 'Bound');
  await apply(machine('reader', 'copy', 'echo "READ $(head -c 17 $d)" >/dev/console'));
  await says('reader', /READ written-by-writer/);

  await kubectl(['delete', 'vm/writer', 'vm/reader', '--timeout=300s']);
  await kubectl(['delete', 'pvc/data', 'pvc/copy', 'volumesnapshot/then', '--timeout=300s']);
  await eventually('all space to be free', async () => {
    const left = await readdir(join(at.data, 'claims'));
    return left.join() === 'pool.json' ? left : undefined;
  });
});
