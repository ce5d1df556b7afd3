/** Disks and media that come to real guests while they run, and go, as the guests see them. */
// test:full: boots guests, and starts one of them anew.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { PERSISTENT_VOLUME_CLAIMS } from '../../packages/apimachinery/src/types/resource-types.ts';
import type { PersistentVolumeClaim } from '../../packages/apimachinery/src/types/types.ts';
import { VOLUME_SNAPSHOTS, type VolumeSnapshot } from '../../packages/cluster-rules/src/volume-snapshot/kinds.ts';
import {
  VIRTUAL_MACHINES,
  type VirtualMachine,
  type VirtualMachineInstance,
} from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { eventually } from '../testkit/eventually.ts';
import { partly } from '../testkit/partly.ts';
import { type Board, kernelSpec, NAMESPACE, startBoard } from './board.ts';
import { inGuest } from './in-guest.ts';

let board: Board;
before(async () => {
  board = await startBoard();
});
after(() => board?.close());

const claim = (name: string) =>
  board.client.create(
    PERSISTENT_VOLUME_CLAIMS,
    partly<PersistentVolumeClaim>({
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name, namespace: NAMESPACE },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '16Mi' } } },
    }),
  );
const run = async (name: string, change: (spec: ReturnType<typeof kernelSpec>) => void = () => {}) => {
  const spec = kernelSpec();
  change(spec);
  await board.client.create(
    VIRTUAL_MACHINES,
    partly<VirtualMachine>({
      apiVersion: 'kubevirt.io/v1',
      kind: 'VirtualMachine',
      metadata: { name, namespace: NAMESPACE },
      spec: { runStrategy: 'Always', template: { spec } },
    }),
  );
  return board.until(name, 'runs', ({ status }) => status?.phase === 'Running');
};
const put = (name: string, subresource: string, body: object) =>
  board.client.raw(
    'PUT',
    `/apis/subresources.kubevirt.io/v1/namespaces/${NAMESPACE}/virtualmachines/${name}/${subresource}`,
    { body },
  );
const add = (name: string, volume: string, bus = 'scsi') =>
  put(name, 'addvolume', {
    name: volume,
    disk: { disk: { bus } },
    volumeSource: { persistentVolumeClaim: { claimName: volume } },
  });
const stateOf = (vmi: VirtualMachineInstance, name: string) =>
  vmi.status?.volumeStatus?.find((one) => one.name === name);
const ready = (name: string, volume: string) =>
  board.until(name, `has ${volume}`, (vmi) => stateOf(vmi, volume)?.phase === 'Ready');
const gone = (name: string, volume: string) =>
  board.until(name, `has no ${volume}`, (vmi) => stateOf(vmi, volume) === undefined);
/** What the guest says, asked again until it fits; a failure shows its last answer. */
const says = (name: string, command: string, expected: RegExp) =>
  eventually(`${command}: ${expected}`, async () => {
    assert.match(await inGuest(board, name, command), expected);
    return true;
  });
/** Writes on the disk and reads it. A guest looks for a disk at its leisure: before that a shell makes a file of that name. */
const writes = (name: string, text: string) =>
  says(
    name,
    `test -b /dev/sda && echo ${text} >/dev/sda; sync; head -c ${text.length} /dev/sda`,
    new RegExp(`\\n${text}`),
  );

// S-1255: What a guest writes on a disk that was plugged is there when it is plugged again, after a restart of the agent,
//   and after a restart of the machine, which keeps the disks of its template and their PCI places.
test('a disk is plugged, written to, unplugged, plugged again and read; agent and machine start anew with it', {
  timeout: 600_000,
}, async () => {
  await claim('data');
  const first = await run('writer');
  const cards = await inGuest(board, 'writer', 'basename $(readlink -f /sys/class/net/eth0/device/..)');
  await add('writer', 'data');
  const plugged = await ready('writer', 'data');
  assert.equal(stateOf(plugged, 'data')?.target, 'sda');
  await says('writer', 'cat /sys/block/sda/size', /^32768\r?$/m);
  await writes('writer', 'written-here');
  assert.ok((await board.record(plugged)).volumes?.['data']);

  await put('writer', 'removevolume', { name: 'data' });
  await gone('writer', 'data');
  await says('writer', 'ls /dev/sda', /No such file/);
  const after = await board.record(plugged);
  assert.deepEqual([after.volumes, after.plan.disks], [{}, []]);

  await add('writer', 'data');
  await ready('writer', 'data');
  await says('writer', 'head -c 12 /dev/sda', /\nwritten-here/);

  await board.restartAgent();
  await put('writer', 'removevolume', { name: 'data' });
  await gone('writer', 'data');
  await says('writer', 'ls /dev/sda', /No such file/);
  await add('writer', 'data');
  const last = await ready('writer', 'data');
  assert.equal(last.metadata.uid, first.metadata.uid);

  await put('writer', 'restart', { gracePeriodSeconds: 0 });
  await board.until(
    'writer',
    'starts anew',
    ({ metadata, status }) => metadata.uid !== first.metadata.uid && status?.phase === 'Running',
  );
  await ready('writer', 'data');
  await says('writer', 'head -c 12 /dev/sda', /\nwritten-here/);
  const moved = await inGuest(board, 'writer', 'basename $(readlink -f /sys/class/net/eth0/device/..)');
  const place = (text: string): string | undefined => /0000:[0-9a-f:.]+/.exec(text)?.[0];
  assert.equal(place(moved), place(cards));
  await put('writer', 'removevolume', { name: 'data' });
  await gone('writer', 'data');
  await says('writer', 'ls /dev/sda', /No such file/);
});

// S-1253
test('a medium is put into an empty drive and taken out; a virtio disk is plugged into a port and unplugged', {
  timeout: 600_000,
}, async () => {
  await claim('medium');
  await claim('fast');
  const drive = { name: 'drive', cdrom: { bus: 'sata' as const } };
  await run('reader', (spec) => {
    spec.domain.devices.disks = [drive];
  });
  await says('reader', 'modprobe -a ahci sr_mod; cat /sys/block/sr0/size', /\n(0|2097151)\r?\n/);
  const edit = (volumes: object[]) =>
    board.client.patch(
      VIRTUAL_MACHINES,
      { namespace: NAMESPACE, name: 'reader' },
      { type: 'merge', body: { spec: { template: { spec: { volumes } } } } },
    );
  await edit([{ name: 'drive', persistentVolumeClaim: { claimName: 'medium', hotpluggable: true } }]);
  await ready('reader', 'drive');
  await says('reader', 'dd if=/dev/sr0 bs=1M 2>/dev/null | wc -c', /\n16777216\r?\n/);
  await edit([]);
  await gone('reader', 'drive');
  await says('reader', 'dd if=/dev/sr0 of=/dev/null bs=1M', /No medium found/);

  await add('reader', 'fast', 'virtio');
  const vmi = await ready('reader', 'fast');
  assert.equal(stateOf(vmi, 'fast')?.target, 'vda');
  await says('reader', 'cat /sys/block/vda/size', /\n32768\r?\n/);
  await put('reader', 'removevolume', { name: 'fast' });
  await gone('reader', 'fast');
  await says('reader', 'ls /dev/vda', /No such file/);
});

// S-1256: The cable of a card is pulled and put in again while the guest runs (`state: down`, `up`), and the instance's
//   status says how it is.
test('a cable is pulled and put in again, and the guest sees it', { timeout: 600_000 }, async () => {
  const first = await run('linked');
  const edit = (state: string) =>
    board.client.patch(
      VIRTUAL_MACHINES,
      { namespace: NAMESPACE, name: 'linked' },
      {
        type: 'merge',
        body: {
          spec: {
            template: { spec: { domain: { devices: { interfaces: [{ name: 'default', masquerade: {}, state }] } } } },
          },
        },
      },
    );
  const linkState = (vmi: VirtualMachineInstance) => vmi.status?.interfaces?.[0]?.linkState;
  const carrier = 'ip link set eth0 up; cat /sys/class/net/eth0/carrier';
  await says('linked', carrier, /\n1\r?\n/);
  await edit('down');
  await board.until('linked', 'has its cable pulled', (vmi) => linkState(vmi) === 'down');
  await says('linked', carrier, /\n0\r?\n/);
  await board.restartAgent();
  await edit('up');
  const vmi = await board.until('linked', 'has its cable again', (now) => linkState(now) === 'up');
  await says('linked', carrier, /\n1\r?\n/);
  assert.equal(vmi.metadata.uid, first.metadata.uid);
});

// S-1258: A volume that another guest has is not plugged: its status says so, and it is plugged once the other has given
//   it back. A snapshot of a plugged volume is one of what the guest wrote, and keeps nobody from unplugging it.
test('a volume of another guest is waited for; one that was snapshotted while it was plugged is unplugged', {
  timeout: 600_000,
}, async () => {
  await claim('taken');
  await run('first');
  await run('second');
  await add('first', 'taken');
  await ready('first', 'taken');
  await add('second', 'taken');
  const waits = await board.until('second', 'waits', (vmi) => stateOf(vmi, 'taken')?.reason === 'FailedHotplug');
  assert.match(stateOf(waits, 'taken')?.message ?? '', /is in use by another guest/);
  assert.equal(stateOf(waits, 'taken')?.phase, 'AttachedToNode');
  await put('first', 'removevolume', { name: 'taken' });
  await gone('first', 'taken');
  await ready('second', 'taken');

  await writes('second', 'before');
  await board.client.create(
    VOLUME_SNAPSHOTS,
    partly<VolumeSnapshot>({
      apiVersion: 'snapshot.storage.k8s.io/v1',
      kind: 'VolumeSnapshot',
      metadata: { name: 'then', namespace: NAMESPACE },
      spec: { volumeSnapshotClassName: 'local', source: { persistentVolumeClaimName: 'taken' } },
    }),
  );
  await eventually('the snapshot is ready', async () => {
    const { status } = await board.client.get(VOLUME_SNAPSHOTS, { namespace: NAMESPACE, name: 'then' });
    return status?.readyToUse === true;
  });
  await writes('second', 'behind');
  await put('second', 'removevolume', { name: 'taken' });
  await gone('second', 'taken');
  await add('first', 'taken');
  await ready('first', 'taken');
  await says('first', 'head -c 6 /dev/sda', /\nbehind/);
});
