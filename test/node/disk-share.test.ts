/** A guest that fills its share of the node's disk stands still before it takes what is others', and goes on with room. */
// test:full: many guests, one after the other.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { PODS } from '../../packages/apimachinery/src/types/resource-types.ts';
import { directoryBytes } from '../../packages/node-agent/src/agent/guest/disk-watch.ts';
import { eventually } from '../testkit/eventually.ts';
import { type Board, collect, kernelSpec, NAMESPACE, startBoard } from './board.ts';

let board: Board;
before(async () => {
  board = await startBoard();
});
after(() => board.close());

const MIB = 1024 * 1024;
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

// S-501: A guest that fills its share of the disk, or the node's last room, is paused with a condition and goes on when
//   there is room; empty disks count in scheduling and quotas.
test('a guest that fills its share is paused with a condition, and goes on when there is room again', async () => {
  const spec = kernelSpec();
  spec.domain.devices.disks = [{ name: 'scratch', disk: { bus: 'virtio' } }];
  spec.domain.resources = { ...spec.domain.resources, limits: { 'ephemeral-storage': '24Mi' } };
  spec.volumes = [{ name: 'scratch', emptyDisk: { capacity: '256Mi' } }];
  const created = await board.createVmi('writer', spec);
  await board.until('writer', 'running', (vmi) => vmi.status?.phase === 'Running');
  const pod = (await board.client.list(PODS, { namespace: NAMESPACE })).items.find(({ metadata }) =>
    metadata.ownerReferences?.some(({ uid }) => uid === created.metadata.uid),
  );
  // Scheduling and quotas count the empty disk, up to the limit beside it.
  assert.equal(pod?.spec.containers[0]?.resources?.requests?.['ephemeral-storage'], '24Mi');

  const conditions = async () =>
    new Map(((await board.vmi('writer')).status?.conditions ?? []).map((one) => [one.type, one]));
  const directory = join(board.directory, 'node/vms', created.metadata.uid ?? '');
  // Whatever fills it, logs too; an agent that comes in between knows that it was no user who paused the guest.
  await writeFile(join(directory, 'serial.log.1'), randomBytes(30 * MIB));
  await eventually('paused', async () => (await conditions()).get('Paused')?.reason === 'PausedIOError');
  await board.restartAgent(() => rm(join(directory, 'serial.log.1')));
  await eventually(
    'no condition',
    async () => !(await conditions()).has('Paused') && !(await conditions()).has('DiskFull'),
  );

  const socket = await board.connect('writer/console?backlog=true');
  const seen = collect(socket);
  await seen.has('login:');
  socket.send(bytes('root\n'));
  await seen.has(':~# ');
  socket.send(
    bytes(
      'for i in $(seq 0 4 248); do dd if=/dev/urandom of=/dev/vda bs=1M count=4 seek=$i; sync; done; echo wr""ote\n',
    ),
  );
  await eventually('paused', async () => (await conditions()).get('Paused')?.reason === 'PausedIOError');
  assert.equal((await conditions()).get('DiskFull')?.reason, 'EphemeralStorageLimitReached');
  assert.ok((await directoryBytes(directory)) <= 160 * MIB, 'it has not written all that it wanted');
  assert.ok(!seen.text().includes('wrote'));

  socket.close();
});
