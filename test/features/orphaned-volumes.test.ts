/** Volumes that a crash of the provisioner left in a pool, without a PersistentVolume: found, and removed after a while. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { eventually } from '../testkit/eventually.ts';
import { poolNode } from '../testkit/fake-pool.ts';
import { CLAIMS, type StoragePlane, startStoragePlane, VOLUMES } from '../testkit/storage-plane.ts';

const uid = (n: number): string => `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`;
const [ORPHAN, BUSY, FRESH, RETAINED, WRITTEN] = [uid(1), uid(2), uid(3), uid(4), uid(5)];
const ago = (minutes: number): string => new Date(Date.now() - minutes * 60_000).toISOString();
const held = { bytes: 2 ** 30, format: 'qcow2' } as const;

let plane: StoragePlane;
/** Uid of the claim whose provisioning was cut off. */
let claimed: string;
before(async () => {
  plane = await startStoragePlane(['local-volume-sweeper'], async ({ admin }, pool) => {
    const claim = await admin(`POST ${CLAIMS}`, {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name: 'cut-off' },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
    });
    claimed = claim.metadata.uid;
    await admin(`POST ${VOLUMES}`, {
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: { name: `pvc-${WRITTEN}` },
      spec: {
        capacity: { storage: '1Gi' },
        accessModes: ['ReadWriteOnce'],
        persistentVolumeReclaimPolicy: 'Retain',
        csi: { driver: 'local.coracle.dev', volumeHandle: WRITTEN, volumeAttributes: { pool: 'pool-1' } },
      },
    });
    for (const handle of [ORPHAN, BUSY, WRITTEN, claimed])
      pool.volumes.set(handle, { ...held, provisionalSince: ago(11) });
    pool.volumes.set(FRESH, { ...held, provisionalSince: ago(9) });
    pool.volumes.set(RETAINED, { ...held });
    pool.inUse.add(BUSY);
  });
});
after(() => plane.stop());

// S-684: A volume that was made in a pool and that no PersistentVolume was ever written for, because the program was
//   killed between the two and the claim went, is found and removed after ten minutes; never one that a guest has, that
//   a claim waits for, or that policy Retain left.
test('a volume whose claim went before its PersistentVolume was written is removed, and no other', async () => {
  const { volumes } = plane.pool;
  await eventually(() => !volumes.has(ORPHAN) && volumes.get(WRITTEN)?.provisionalSince === undefined);
  assert.ok(volumes.has(BUSY), 'one that a guest has stays');
  assert.ok(volumes.has(FRESH), 'one that was just made stays');
  assert.ok(volumes.has(RETAINED), 'one that policy Retain left stays');
  assert.ok(volumes.has(WRITTEN), 'one with a PersistentVolume stays, and is not looked at again');
});

// S-684
test('a claim whose provisioning was cut off gets the volume that was made for it', async () => {
  const claim = await plane.settled(`${CLAIMS}/cut-off`, ({ status }) => status?.phase === 'Bound');
  assert.equal(claim['spec'].volumeName, `pvc-${claimed}`);
  await eventually(() => plane.pool.volumes.get(claimed)?.provisionalSince === undefined);
});

// S-684
test('a volume that was in use is removed when it no longer is', async () => {
  plane.pool.inUse.delete(BUSY);
  // The pool is looked through every five minutes, and when another node serves it.
  const { status: _, ...node } = poolNode('n2');
  await plane.admin('POST /api/v1/nodes', node);
  await eventually(() => !plane.pool.volumes.has(BUSY));
  assert.deepEqual([...plane.pool.volumes.keys()].sort(), [FRESH, RETAINED, WRITTEN, claimed].sort());
});

test('a claim that is provisioned as usual leaves nothing provisional', async () => {
  const { metadata } = await plane.claim('usual');
  await plane.settled(`${CLAIMS}/usual`, ({ status }) => status?.phase === 'Bound');
  await eventually(() => plane.pool.calls.some((call) => call.startsWith(`confirmVolume {"handle":"${metadata.uid}"`)));
  assert.equal(plane.pool.volumes.get(metadata.uid)?.provisionalSince, undefined);
});
