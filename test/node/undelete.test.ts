/** A real guest whose machine is deleted and brought back: the same disk, UUID, serial number and MAC address. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { controllerReference } from '../../packages/apimachinery/src/meta/controller-reference.ts';
import { PERSISTENT_VOLUME_CLAIMS } from '../../packages/apimachinery/src/types/resource-types.ts';
import { isNotFound } from '../../packages/client/src/api-failure.ts';
import { DELETED_VIRTUAL_MACHINES } from '../../packages/kubevirt/src/kinds/kinds.ts';
import { VIRTUAL_MACHINES, type VirtualMachine } from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { eventually } from '../testkit/eventually.ts';
import { key } from '../testkit/saved-machines.ts';
import { type Board, kernelSpec, NAMESPACE, startBoard } from './board.ts';
import { shell } from './shell.ts';

let board: Board;
before(async () => {
  board = await startBoard();
});
after(() => board?.close());

const runs = (not = '') =>
  board.until('db', 'running', ({ metadata, status }) => metadata.uid !== not && status?.phase === 'Running');
const DMI = '/sys/class/dmi/id';
const seen = async (isWritten: boolean): Promise<string> => {
  const guest = await shell(board, 'db', true);
  if (!isWritten) await guest.run('printf precious | dd of=/dev/vda conv=notrunc,fsync 2>/dev/null');
  return guest.run(
    `head -c 8 /dev/vda; echo; cat ${DMI}/product_uuid ${DMI}/product_serial; cat /sys/class/net/e*/address`,
  );
};

// S-782: A guest whose machine was deleted and brought back finds the disk, UUID, serial number and MAC address of
//   before.
test('a guest whose machine was deleted and brought back finds its disk, UUID, serial number and MAC address', async () => {
  const spec = kernelSpec({
    terminationGracePeriodSeconds: 0,
    volumes: [{ name: 'disk', persistentVolumeClaim: { claimName: 'db-disk' } }],
    networks: [{ name: 'default', pod: {} }],
  }) as { domain: { devices: Record<string, unknown>; firmware: Record<string, unknown> } };
  spec.domain.devices['disks'] = [{ name: 'disk', disk: { bus: 'virtio' } }];
  spec.domain.devices['interfaces'] = [{ name: 'default', masquerade: {}, macAddress: '02:00:5e:00:53:01' }];
  const made = await board.client.create(VIRTUAL_MACHINES, {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name: 'db', namespace: NAMESPACE },
    spec: { runStrategy: 'Always', template: { spec } },
  } as unknown as VirtualMachine);
  await board.client.create(PERSISTENT_VOLUME_CLAIMS, {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: {
      name: 'db-disk',
      namespace: NAMESPACE,
      ownerReferences: [controllerReference({ ...made, apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine' })],
    },
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '16Mi' } } },
  });
  const first = await runs();
  const before = await seen(false);
  const uuid = made.spec.template.spec?.domain.firmware?.uuid ?? '?';
  assert.match(before, new RegExp(`^precious\\n${uuid}\\n[0-9a-f-]{36}\\n[^]*02:00:5e:00:53:01`));

  await board.client.delete(VIRTUAL_MACHINES, key('db'));
  const isGone = (reading: Promise<unknown>): Promise<boolean> => reading.then(() => false, isNotFound);
  await eventually(
    'the machine and its claim are gone',
    async () =>
      (await isGone(board.client.get(VIRTUAL_MACHINES, key('db')))) &&
      isGone(board.client.get(PERSISTENT_VOLUME_CLAIMS, key('db-disk'))),
  );
  const { items } = await board.client.list(DELETED_VIRTUAL_MACHINES, { namespace: NAMESPACE });
  await board.client.patch(DELETED_VIRTUAL_MACHINES, key(items[0]?.metadata.name ?? ''), {
    type: 'merge',
    body: { spec: { undelete: { id: 'back' } } },
  });
  await eventually('the machine is back', async () => !(await isGone(board.client.get(VIRTUAL_MACHINES, key('db')))));
  await runs(first.metadata.uid);
  assert.equal(await seen(true), before);
});
