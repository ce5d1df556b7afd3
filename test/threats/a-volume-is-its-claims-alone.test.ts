/** A claim names a volume as its writer likes: whose a volume is, its own claimRef says, to the binder, the agent and the Node authorizer. */
import assert from 'node:assert/strict';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES } from '../../packages/apimachinery/src/types/resource-types.ts';
import type { PersistentVolumeClaim } from '../../packages/apimachinery/src/types/types.ts';
import { createVolumeController } from '../../packages/kube-controllers/src/storage/volume-controller.ts';
import { claimDisk } from '../../packages/node-agent/src/disk/claim-volumes.ts';
import type { VolumeRequest } from '../../packages/node-agent/src/disk/volume-request.ts';
import { openPool, type Pool } from '../../packages/node-agent/src/storage/pool.ts';
import { systemClock } from '../../packages/runtime/src/clock/clock.ts';
import { NEVER } from '../../packages/runtime/src/http/seam.ts';
import { silentLogger } from '../../packages/runtime/src/log/log.ts';
import { startPlane, type TestPlane } from '../testkit/control-plane.ts';
import { eventually } from '../testkit/eventually.ts';
import { startServer } from '../testkit/in-process-server.ts';
import { type RunningControllers, runControllers } from '../testkit/run-controllers.ts';

let directory: string;
let controllers: RunningControllers;
let pool: Pool;
before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'coracle-volumes-'));
  pool = await openPool({ directory: join(directory, 'claims'), clock: systemClock, log: silentLogger, signal: NEVER });
  const server = await startServer();
  controllers = runControllers(server, (environment) => [createVolumeController(environment)]);
  for (const name of ['victim', 'tenant'])
    await server.create('/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
});
after(async () => {
  await controllers.stop();
  await pool.close();
  await rm(directory, { recursive: true });
});

const volume = async (name: string, spec: object = {}): Promise<string> => {
  const path = await mkdtemp(join(directory, `${name}-`));
  await writeFile(join(path, 'disk.img'), `the disk of ${name}`.padEnd(1024 * 1024));
  await controllers.client.create(PERSISTENT_VOLUMES, {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name },
    spec: { capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'], hostPath: { path }, ...spec },
  });
  return path;
};
const claim = (namespace: string, name: string, volumeName?: string): Promise<PersistentVolumeClaim> =>
  controllers.client.create(PERSISTENT_VOLUME_CLAIMS, {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { namespace, name },
    spec: {
      accessModes: ['ReadWriteOnce'],
      resources: { requests: { storage: '1Mi' } },
      ...(volumeName && { volumeName }),
    },
  });
const stored = (namespace: string, name: string) =>
  controllers.client.get(PERSISTENT_VOLUME_CLAIMS, { namespace, name });
const bound = (namespace: string, name: string) =>
  eventually(async () => (await stored(namespace, name)).status?.phase === 'Bound');
/** The file that an agent would open; it may read every object here: it must see for itself whose the volume is. */
const open = async (namespace: string, name: string): Promise<string> => {
  const request = {
    vmi: { metadata: { namespace, uid: 'v' } },
    nodeName: 'n',
    client: controllers.client,
    signal: NEVER,
  };
  return (await claimDisk({ ...request, pool } as unknown as VolumeRequest, 'disk', name, 'write')).file;
};

// S-456: A PersistentVolume is for the claim that its `claimRef` names by uid, whatever a claim names: at binding, in
//   the agent, and in what a node may read.
test('a claim of another namespace that names a bound volume is not bound, and no agent opens a disk for it', async () => {
  const path = await volume('data');
  await claim('victim', 'mine', 'data');
  await bound('victim', 'mine');
  const { spec, status } = await controllers.client.get(PERSISTENT_VOLUMES, { namespace: '', name: 'data' });
  assert.equal(spec?.claimRef?.uid, (await stored('victim', 'mine')).metadata.uid);
  await eventually(async () => {
    const { status: now } = await controllers.client.get(PERSISTENT_VOLUMES, { namespace: '', name: 'data' });
    return now?.phase === 'Bound' || status?.phase === 'Bound';
  });
  assert.equal(await open('victim', 'mine'), join(path, 'disk.img'));

  await claim('tenant', 'mine', 'data');
  await eventually(async () => {
    const events = (await controllers.client.raw('GET', '/api/v1/namespaces/tenant/events', {})) as {
      items: { reason: string; message: string }[];
    };
    return events.items.some(({ message }) => message === 'volume "data" already bound to a different claim.');
  });
  assert.notEqual((await stored('tenant', 'mine')).status?.phase, 'Bound');
  await assert.rejects(open('tenant', 'mine'), /claim mine: volume data is not bound to it/);

  // The same name in the same namespace, later: not the same claim.
  await controllers.client.delete(PERSISTENT_VOLUME_CLAIMS, { namespace: 'victim', name: 'mine' });
  await claim('victim', 'mine', 'data');
  await assert.rejects(open('victim', 'mine'), /is not bound to it/);
  assert.match(await readFile(join(path, 'disk.img'), 'utf8'), /^the disk of data/);
  assert.deepEqual(await readdir(path), ['disk.img']);
});

// S-457: A claim that names a free volume is bound to it, and a volume that is kept for a claim is completed with its
//   uid.
test('a volume that is kept for a claim by name is completed with its uid; nobody else gets it', async () => {
  const path = await volume('kept', { claimRef: { namespace: 'victim', name: 'waits' } });
  await claim('tenant', 'waits', 'kept');
  await assert.rejects(open('tenant', 'waits'), /is not bound to it/);
  const { metadata } = await claim('victim', 'waits');
  await bound('victim', 'waits');
  const { spec } = await controllers.client.get(PERSISTENT_VOLUMES, { namespace: '', name: 'kept' });
  assert.equal(spec?.claimRef?.uid, metadata.uid);
  assert.equal((await stored('victim', 'waits')).spec?.volumeName, 'kept');
  assert.equal(await open('victim', 'waits'), join(path, 'disk.img'));
});

// S-456
test('a volume that does not exist, or is nobody’s yet, is opened for nobody', async () => {
  await claim('tenant', 'early', 'later');
  await assert.rejects(open('tenant', 'early'), /persistentvolumes "later" not found/);
  await volume('later', { capacity: { storage: '1Ki' } });
  await assert.rejects(open('tenant', 'early'), /volume later is not bound to it/);
});

// S-456
test('a node does not read the Secrets of a volume that a claim of its Pods merely names', async () => {
  const plane: TestPlane = await startPlane();
  try {
    const admin = (path: string, kind: string, name: string, more: object) =>
      plane.admin(`POST /api/v1${path}`, { apiVersion: 'v1', kind, metadata: { name }, ...more });
    const csi = { driver: 'd', volumeHandle: 'h', nodePublishSecretRef: { namespace: 'default', name: 'key' } };
    await admin('/persistentvolumes', 'PersistentVolume', 'data', {
      spec: {
        capacity: { storage: '1Gi' },
        accessModes: ['ReadWriteOnce'],
        csi,
        claimRef: { namespace: 'default', name: 'mine', uid: 'u' },
      },
    });
    await admin('/namespaces/default/secrets', 'Secret', 'key', {});
    await admin('/namespaces/kube-system/serviceaccounts', 'ServiceAccount', 'default', {});
    await admin('/namespaces/kube-system/persistentvolumeclaims', 'PersistentVolumeClaim', 'c', {
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Mi' } }, volumeName: 'data' },
    });
    await admin('/namespaces/kube-system/pods', 'Pod', 'p', {
      spec: {
        nodeName: 'n1',
        containers: [{ name: 'c', image: 'i' }],
        volumes: [{ name: 'v', persistentVolumeClaim: { claimName: 'c' } }],
      },
    });
    const as = ['system:node:n1', 'system:nodes'] as const;
    assert.equal((await plane.ask('GET /api/v1/namespaces/kube-system/persistentvolumeclaims/c', { as })).status, 200);
    assert.equal((await plane.ask('GET /api/v1/namespaces/default/secrets/key', { as })).status, 403);
    assert.equal((await plane.ask('GET /api/v1/persistentvolumes/data', { as })).status, 403);
  } finally {
    await plane.stop();
  }
});
