// test:full: many guests, one after the other.
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { PERSISTENT_VOLUME_CLAIMS } from '../../packages/apimachinery/src/types/resource-types.ts';
import { calledInProcess } from '../../packages/runtime/src/http/in-process-peer.ts';
import { NEVER } from '../../packages/runtime/src/http/seam.ts';
import { eventually } from '../testkit/eventually.ts';
import { collect, kernelSpec, NAMESPACE } from './board.ts';
import { heartbeat, type MigrationBoard, startMigrationBoard } from './migration-board.ts';
import { type MovingGuests, movingGuests, SLOW } from './moving-guests.ts';

let board: MigrationBoard;
let guests: MovingGuests;
before(async () => {
  board = await startMigrationBoard();
  guests = movingGuests(board);
});
afterEach(() => board.endGuests());
after(() => board?.close());

const DISKS = {
  terminationGracePeriodSeconds: 5,
  domain: {
    devices: {
      disks: [
        { name: 'root', disk: { bus: 'virtio' } },
        { name: 'seed', disk: { bus: 'virtio' } },
        { name: 'scratch', disk: { bus: 'virtio' } },
      ],
      interfaces: [{ name: 'default', masquerade: {}, ports: [{ port: 8080 }] }],
    },
    memory: { guest: '128Mi' },
  },
  networks: [{ name: 'default', pod: {} }],
  volumes: [
    { name: 'root', containerDisk: { image: 'localhost/tiny' } },
    { name: 'seed', cloudInitNoCloud: { userData: '#cloud-config\nhostname: mover\n' } },
    { name: 'scratch', emptyDisk: { capacity: '64Mi' } },
  ],
};
const encoder = new TextEncoder();

async function callPool(node: string, name: string, body: object): Promise<number> {
  const { status } = await calledInProcess(board.agents.get(node)!.handler)({
    method: 'POST',
    path: `/storage/v1/${name}`,
    query: '',
    headers: {},
    body: encoder.encode(JSON.stringify(body)),
    peer: { address: '' },
    signal: NEVER,
  });
  return status;
}

// S-193: A running guest moves to another node with its disks and its address and does not notice, and back again.
// S-282
// Compat KubeVirt's API, P0, yes: a guest moves with its disks and its address
test('a guest moves with its disks and its address and does not notice; and back again', {
  timeout: 600_000,
}, async () => {
  await board.createVmi('mover', DISKS);
  const vmi = await guests.running('mover');
  const migratable = vmi.status?.conditions?.find(({ type }) => type === 'LiveMigratable');
  assert.equal(migratable?.status, 'True', JSON.stringify(migratable));
  assert.equal(vmi.status?.migrationMethod, 'BlockMigration');
  const beats = await heartbeat(vmi);
  const console = await board.console(vmi);
  const line = collect(console);
  let closed = false;
  console.onClose(() => {
    closed = true;
  });
  console.send(encoder.encode('\n'));
  await line.has('login:');
  console.send(encoder.encode('root\n'));
  await line.has('# ');
  console.send(encoder.encode('echo written-before > /dev/vdc; sync; echo wr""ote; dd if=/dev/vdb bs=1M | md5sum\n'));
  await line.has('wrote');
  await line.has(/[0-9a-f]{32}/);
  const seed = /[0-9a-f]{32}/.exec(line.text())?.[0];

  const there = await board.hand('mover');
  const moved = await guests.movedTo('mover', there, beats);
  const state = moved.status?.migrationState;
  assert.equal(state?.completed, true);
  assert.ok(state?.startTimestamp && state.endTimestamp && state.targetNodeDomainReadyTimestamp);
  assert.equal(state.mode, 'PreCopy');
  assert.equal(moved.status?.interfaces?.[0]?.ipAddress, vmi.status?.interfaces?.[0]?.ipAddress);
  await eventually('the console of the source is closed', () => closed);

  const next = await board.console(moved);
  const after = collect(next);
  await after.has('wrote');
  next.send(encoder.encode('head -c 14 /dev/vdc; dd if=/dev/vdb bs=1M | md5sum; hostname\n'));
  await after.has(/written-before[\s\S]*mover/);
  await eventually('the seed is the same to the bit', () => after.text().split(seed ?? '?').length >= 3);
  next.send(encoder.encode('echo written-after > /dev/vdc; sync; echo wr""ote-again\n'));
  await after.has('wrote-again');

  await guests.clean('mover');
  const back = await board.hand('mover');
  assert.equal(back.target, there.source);
  const returned = await guests.movedTo('mover', back, beats);
  const last = await board.console(returned);
  const end = collect(last);
  last.send(encoder.encode('head -c 13 /dev/vdc\n'));
  await end.has(/head -c 13[^\n]*\n[^\n]*written-after/);
});

// S-395: Guests with disks that they cannot write, CD-ROMs of images among them, migrate: such disks are not mirrored.
test('disks that the guest cannot write stay out of the way: CD-ROMs of images, read-only and not', {
  timeout: 600_000,
}, async () => {
  const image = { containerDisk: { image: 'localhost/tiny' } };
  const spec = kernelSpec({
    volumes: [
      { name: 'cd', ...image },
      { name: 'scratch-cd', ...image },
      { name: 'fixed', ...image },
      { name: 'blank', emptyDisk: { capacity: '1Mi' } },
      { name: 'seed', cloudInitNoCloud: { userData: '#cloud-config\nhostname: reader\n' } },
    ],
  });
  const domain = spec['domain'] as { devices: object };
  const disks = [
    { name: 'cd', cdrom: { bus: 'sata' } },
    { name: 'scratch-cd', cdrom: { bus: 'scsi', readonly: false } },
    { name: 'fixed', disk: { bus: 'virtio', readonly: true } },
    { name: 'blank', cdrom: { bus: 'sata' } },
    { name: 'seed', cdrom: { bus: 'sata' } },
  ];
  await board.createVmi('reader', { ...spec, domain: { ...domain, devices: { ...domain.devices, disks } } });
  const vmi = await guests.running('reader');
  const migratable = vmi.status?.conditions?.find(({ type }) => type === 'LiveMigratable');
  assert.equal(migratable?.status, 'True', JSON.stringify(migratable));
  const beats = await heartbeat(vmi);
  await guests.movedTo('reader', await board.hand('reader'), beats);
  await guests.clean('reader');
  await guests.movedTo('reader', await board.hand('reader'), beats);
});

// S-193
// S-545
test('a disk on a shared claim stays where it is, and a claim of one node keeps its guest', {
  timeout: 600_000,
}, async () => {
  for (const [name, mode] of [
    ['shared', 'ReadWriteMany'],
    ['local', 'ReadWriteOnce'],
  ] as const)
    await board.client.create(PERSISTENT_VOLUME_CLAIMS, {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name, namespace: NAMESPACE },
      spec: { accessModes: [mode], resources: { requests: { storage: '16Mi' } } },
    });
  const withClaim = (claimName: string) => {
    const spec = kernelSpec({ volumes: [{ name: 'data', persistentVolumeClaim: { claimName } }] });
    const domain = spec['domain'] as { devices: object };
    const disks = [{ name: 'data', disk: { bus: 'virtio' } }];
    return { ...spec, domain: { ...domain, devices: { ...domain.devices, disks } } };
  };
  await board.createVmi('sharing', withClaim('shared'));
  await board.createVmi('staying', withClaim('local'));
  const vmi = await guests.running('sharing');
  const migratable = await board.until('sharing', 'migratable', ({ status }) =>
    (status?.conditions ?? []).some(({ type, status: is }) => type === 'LiveMigratable' && is === 'True'),
  );
  assert.equal(migratable.status?.migrationMethod, 'LiveMigration');
  const beats = await heartbeat(vmi);
  const line = await board.console(vmi);
  const text = collect(line);
  line.send(encoder.encode('\n'));
  await text.has('login:');
  line.send(encoder.encode('root\n'));
  await text.has('# ');
  line.send(encoder.encode('echo shared-before > /dev/vda; sync; echo wr""ote\n'));
  await text.has('wrote');
  // Its layers are many, and stay as they are while it moves.
  const claim = await board.client.get(PERSISTENT_VOLUME_CLAIMS, { namespace: NAMESPACE, name: 'shared' });
  const snapshot = (node: string, n: number): Promise<number> =>
    callPool(node, 'createSnapshots', {
      snapshots: [{ handle: `00000000-0000-4000-8000-00000000000${n}`, volume: claim.metadata.uid }],
    });
  const source = vmi.status?.nodeName ?? '';
  for (const n of [1, 2]) assert.equal(await snapshot(source, n), 200);
  let refused: number | undefined;
  board.gate = async (write) => {
    refused ??= await snapshot(source, 3);
    return write();
  };
  const moved = await guests.movedTo('sharing', await board.hand('sharing'), beats);
  board.gate = undefined;
  assert.equal(refused, 409);
  await eventually('the source has let go', async () => (await snapshot(moved.status?.nodeName ?? '', 3)) === 200);
  const next = await board.console(moved);
  const after = collect(next);
  next.send(
    encoder.encode(
      'echo 3 > /proc/sys/vm/drop_caches; head -c 13 /dev/vda; echo shared-after > /dev/vda; sync; echo do""ne\n',
    ),
  );
  await after.has(/shared-before[\s\S]*done/);

  const stays = await board.until('staying', 'decided', ({ status }) =>
    (status?.conditions ?? []).some(({ message }) => message?.includes('is not shared')),
  );
  const condition = stays.status?.conditions?.find(({ type }) => type === 'LiveMigratable');
  assert.deepEqual([condition?.status, condition?.reason], ['False', 'DisksNotLiveMigratable']);
});

// S-194
test('a migration that is aborted leaves the guest where it is', { timeout: 600_000 }, async () => {
  const { beats } = await guests.startGuest('aborted');
  const handed = await board.hand('aborted', { configuration: SLOW });
  await guests.underWay('aborted');
  await board.patchStatus('aborted', { migrationState: { abortRequested: true } });
  const vmi = await guests.staysAt('aborted', handed, beats);
  assert.equal(vmi.status?.migrationState?.abortStatus, 'Succeeded');
  assert.equal(vmi.status?.migrationState?.failureReason, 'Live migration aborted by request');
});

// S-194
test('one that takes too long is given up', { timeout: 600_000 }, async () => {
  const { beats } = await guests.startGuest('late');
  const handed = await board.hand('late', { configuration: { ...SLOW, completionTimeoutPerGiB: 1 } });
  const vmi = await guests.staysAt('late', handed, beats);
  assert.match(vmi.status?.migrationState?.failureReason ?? '', /^Live migration is not completed after/);
});

// S-195
test('the target dies in the middle: the guest stays, and moves at the next try', { timeout: 600_000 }, async () => {
  const { beats } = await guests.startGuest('target-dies');
  const handed = await board.hand('target-dies', { configuration: SLOW });
  await guests.underWay('target-dies');
  const pid = (await board.qemus(await board.vmi('target-dies'))).get(handed.target);
  process.kill(pid!, 'SIGKILL');
  await guests.staysAt('target-dies', handed, beats);
  await guests.clean('target-dies');
  await guests.movedTo('target-dies', await board.hand('target-dies'), beats);
});
