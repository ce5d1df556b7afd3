/** A clone of a running guest with a disk of its own: the same data, another machine in every respect, the source as it was. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { PERSISTENT_VOLUME_CLAIMS } from '../../packages/apimachinery/src/types/resource-types.ts';
import {
  VIRTUAL_MACHINE_CLONES,
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINES,
  type VirtualMachine,
  type VirtualMachineClone,
} from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { eventually } from '../testkit/eventually.ts';
import { type Board, kernelSpec, NAMESPACE, startBoard } from './board.ts';
import { inGuest } from './in-guest.ts';

let board: Board;
before(async () => {
  board = await startBoard();
});
after(() => board?.close());

const keyOf = (name: string) => ({ namespace: NAMESPACE, name });
const SECTORS = (16 * 1024 * 1024) / 512;
const FIND_DISK = `for d in /sys/block/vd*; do [ "$(cat $d/size)" = ${SECTORS} ] && disk=/dev/\${d##*/}; done`;

interface Seen {
  readonly uuid: string;
  readonly serial: string;
  readonly mac: string;
  readonly instance: string;
  readonly data: string;
}

async function look(name: string): Promise<Seen> {
  const dmi = (file: string): string => `$(cat /sys/class/dmi/id/product_${file})`;
  const said = await inGuest(
    board,
    name,
    `${FIND_DISK}; cat /run/seed/meta-data; echo; echo "SEEN-"${dmi('uuid')} ${dmi('serial')} $(cat /sys/class/net/eth0/address) $(head -c 8 $disk)`,
  );
  const instance = /"instance-id":"([^"]+)"/.exec(said)?.[1];
  const [, uuid, serial, mac, data] = /SEEN-([0-9a-f-]{36}) (\S+) (\S+) (\S+)/.exec(said) ?? [];
  assert.ok(instance && uuid && serial && mac && data, said);
  return { uuid, serial, mac, instance, data };
}
const write = (name: string, text: string): Promise<string> =>
  inGuest(board, name, `${FIND_DISK}; printf ${text} | dd of=$disk conv=notrunc 2>/dev/null; sync`);
const run = async (name: string, not = ''): Promise<string> => {
  await board.client.patch(VIRTUAL_MACHINES, keyOf(name), { type: 'merge', body: { spec: { runStrategy: 'Always' } } });
  const vmi = await board.until(
    name,
    'running',
    ({ metadata, status }) => metadata.uid !== not && status?.phase === 'Running',
  );
  return vmi.metadata.uid!;
};

// S-600: A clone of a running guest boots with its source's data, another UUID, serial, MAC address and cloud-init
//   instance id; the source notices nothing, and both stay who they are.
// Compat KubeVirt's API, P1, yes: VirtualMachineClone of a running guest: data, identity, cloud-init
test('a clone of a running guest starts with its data as another machine, and the source stays who it was', {
  timeout: 600_000,
}, async () => {
  await board.client.create(PERSISTENT_VOLUME_CLAIMS, {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name: 'db', namespace: NAMESPACE },
    spec: {
      accessModes: ['ReadWriteOnce'],
      volumeMode: 'Block',
      storageClassName: 'local',
      resources: { requests: { storage: '16Mi' } },
    },
  });
  const spec = kernelSpec({
    terminationGracePeriodSeconds: 1,
    volumes: [
      { name: 'data', persistentVolumeClaim: { claimName: 'db' } },
      { name: 'seed', cloudInitNoCloud: { userData: '#cloud-config\n' } },
    ],
  }) as { domain: { devices: { interfaces: { macAddress?: string }[]; disks?: object[] } } };
  spec.domain.devices.disks = ['data', 'seed'].map((name) => ({ name, disk: { bus: 'virtio' } }));
  spec.domain.devices.interfaces[0]!.macAddress = '02:00:5e:10:00:01';
  await board.client.create(VIRTUAL_MACHINES, {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name: 'db', namespace: NAMESPACE },
    spec: { runStrategy: 'Halted', template: { metadata: {}, spec } },
  } as unknown as VirtualMachine);
  const sourceUid = await run('db');
  await write('db', 'original');
  const source = await look('db');
  assert.equal(source.data, 'original');

  await board.client.create(VIRTUAL_MACHINE_CLONES, {
    apiVersion: 'clone.kubevirt.io/v1beta1',
    kind: 'VirtualMachineClone',
    metadata: { name: 'to-copy', namespace: NAMESPACE },
    spec: {
      source: { apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name: 'db' },
      target: { apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name: 'copy' },
    },
  } as VirtualMachineClone);
  let last: unknown;
  await eventually('the clone is done', async () => {
    const { status } = await board.client.get(VIRTUAL_MACHINE_CLONES, keyOf('to-copy'));
    last = status;
    return status?.phase === 'Succeeded' && !status.restoreName && !status.snapshotName;
  }).catch((error: Error) => {
    throw new Error(`${error.message}: ${JSON.stringify(last)}`);
  });
  // What the source writes after it is not in the clone.
  await write('db', 'modified');
  await run('copy');
  const copy = await look('copy');
  assert.equal(copy.data, 'original');
  for (const member of ['uuid', 'serial', 'mac', 'instance'] as const)
    assert.notEqual(copy[member], source[member], member);
  assert.equal(copy.instance, copy.uuid);

  await write('copy', 'of-clone');
  assert.deepEqual(await look('db'), { ...source, data: 'modified' });
  // A new start of either is the same machine.
  await board.client.delete(VIRTUAL_MACHINE_INSTANCES, keyOf('db'));
  await run('db', sourceUid);
  assert.deepEqual(await look('db'), { ...source, data: 'modified' });
  assert.deepEqual(await look('copy'), { ...copy, data: 'of-clone' });
});
