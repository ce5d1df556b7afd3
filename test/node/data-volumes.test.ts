/** Machines that boot from DataVolumes, with real guests. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, test } from 'node:test';
import { PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES } from '../../packages/apimachinery/src/types/resource-types.ts';
import { DATA_VOLUMES } from '../../packages/kubevirt/src/kinds/kinds.ts';
import { VIRTUAL_MACHINES, type VirtualMachine } from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { ensureGuest } from '../../tools/guest/build-guest.ts';
import { eventually } from '../testkit/eventually.ts';
import { type ImageServer, startImageServer } from '../testkit/image-server.ts';
import { type Board, NAMESPACE, startBoard } from './board.ts';
import { shell } from './shell.ts';

let board: Board;
let server: ImageServer;
let disk: Uint8Array;
before(async () => {
  board = await startBoard();
  server = await startImageServer();
  disk = await readFile((await ensureGuest()).disk);
});
after(async () => {
  await board?.close();
  await server?.close();
});

const key = (name: string) => ({ namespace: NAMESPACE, name });
const gone = async (reading: Promise<unknown>): Promise<boolean> =>
  (await reading.catch(() => undefined)) === undefined;
const shown = async (name: string): Promise<string> =>
  (await board.client.get(VIRTUAL_MACHINES, key(name))).status?.printableStatus ?? '';

const machine = (name: string, storage: object, source: object): Promise<VirtualMachine> =>
  board.client.create(VIRTUAL_MACHINES, {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name, namespace: NAMESPACE },
    spec: {
      runStrategy: 'Always',
      dataVolumeTemplates: [
        {
          metadata: { name: `${name}-root` },
          spec: { storage: { resources: { requests: { storage: '256Mi' } }, ...storage }, ...source },
        },
      ],
      template: {
        spec: {
          terminationGracePeriodSeconds: 0,
          domain: { devices: { disks: [{ name: 'root', disk: { bus: 'virtio' } }] }, memory: { guest: '128Mi' } },
          volumes: [{ name: 'root', dataVolume: { name: `${name}-root` } }],
        },
      },
    },
  } as unknown as VirtualMachine);

// S-1111: A machine with dataVolumeTemplates has its disks made and filled first (Provisioning, DataVolumeError when that
//   fails), boots from them, and takes them with it when it is deleted, PersistentVolume and content too.
test('a machine boots from the DataVolume of its template', async () => {
  const url = server.serve('/tiny.qcow2', disk);
  server.fail.push(503);
  await machine('web', {}, { source: { http: { url } } });
  await eventually('a failure shows', async () => ['DataVolumeError', 'Provisioning'].includes(await shown('web')));
  const vmi = await board.until('web', 'running', ({ status }) => status?.phase === 'Running');
  const dataVolume = await board.client.get(DATA_VOLUMES, key('web-root'));
  assert.equal(dataVolume.status?.phase, 'Succeeded');
  assert.equal(dataVolume.status?.restartCount, 1);
  assert.equal(dataVolume.metadata.ownerReferences?.[0]?.kind, 'VirtualMachine');
  const guest = await shell(board, 'web', true);
  assert.match(await guest.run('cat /proc/partitions'), /vda/);
  assert.equal(vmi.spec.volumes?.[0]?.dataVolume?.name, 'web-root');
  const claim = await board.client.get(PERSISTENT_VOLUME_CLAIMS, key('web-root'));
  const volume = { namespace: '', name: claim.spec?.volumeName ?? '' };
  await board.client.delete(VIRTUAL_MACHINES, key('web'));
  await eventually('the DataVolume is gone', () => gone(board.client.get(DATA_VOLUMES, key('web-root'))));
  await eventually('the claim is gone', () => gone(board.client.get(PERSISTENT_VOLUME_CLAIMS, key('web-root'))));
  await eventually('the volume is gone', () => gone(board.client.get(PERSISTENT_VOLUMES, volume)));
});

// S-1112: A machine whose class waits for a first Pod brings that Pod itself: the disk is filled on the node that it is given.
test('a machine brings the first Pod of a class that waits for one', async () => {
  const url = server.serve('/waits.qcow2', disk);
  await machine('waits', { storageClassName: 'local-wait' }, { source: { http: { url } } });
  await board.until('waits', 'running', ({ status }) => status?.phase === 'Running');
  const claim = await board.client.get(PERSISTENT_VOLUME_CLAIMS, key('waits-root'));
  assert.equal(claim.metadata.annotations?.['volume.kubernetes.io/selected-node'], 'test-node');
  await board.client.delete(VIRTUAL_MACHINES, key('waits'));
});
