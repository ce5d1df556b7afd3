import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import {
  createClaimProtectionController,
  createVolumeProtectionController,
} from '../../packages/kube-controllers/src/controllers/storage-protection-controllers.ts';
import { eventually } from '../testkit/eventually.ts';
import { type InProcessServer, startServer } from '../testkit/in-process-server.ts';
import { type RunningControllers, runControllers } from '../testkit/run-controllers.ts';

let server: InProcessServer;
let controllers: RunningControllers;

before(async () => {
  server = await startServer({ defaultAdmission: true });
  controllers = runControllers(server, (environment) => [
    createClaimProtectionController(environment),
    createVolumeProtectionController(environment),
  ]);
  await server.create('/api/v1/namespaces/default/serviceaccounts', {
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: { name: 'default' },
  });
});
after(() => controllers.stop());

const PATH = '/api/v1/namespaces/default';
const claim = (name: string, spec: object = {}) =>
  server.create(`${PATH}/persistentvolumeclaims`, {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name },
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, ...spec },
  });
const gone = (path: string) => eventually(async () => (await server.request('GET', path)).status === 404);

// S-170: A claim stays while a bound Pod uses it; a volume stays while it is bound.
// Compat Admission and quota, P1, yes: StorageObjectInUseProtection, claim resize
test('a claim stays while a bound Pod uses it', async () => {
  const { metadata } = await claim('used');
  assert.deepEqual((metadata as { finalizers?: string[] }).finalizers, ['kubernetes.io/pvc-protection']);
  await server.create(`${PATH}/pods`, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'user' },
    spec: {
      nodeName: 'node1',
      containers: [{ name: 'c', image: 'i' }],
      volumes: [{ name: 'v', persistentVolumeClaim: { claimName: 'used' } }],
    },
  });
  await server.request('DELETE', `${PATH}/persistentvolumeclaims/used`);
  // Another claim that is free goes meanwhile, so the controller has had its turn.
  await claim('free');
  await server.request('DELETE', `${PATH}/persistentvolumeclaims/free`);
  await gone(`${PATH}/persistentvolumeclaims/free`);
  assert.equal((await server.request('GET', `${PATH}/persistentvolumeclaims/used`)).status, 200);
  await server.request('DELETE', `${PATH}/pods/user?gracePeriodSeconds=0`);
  await gone(`${PATH}/persistentvolumeclaims/used`);
});

test('a Pod that has ended holds no claim', async () => {
  await claim('done');
  await server.create(`${PATH}/pods`, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'ended' },
    spec: {
      nodeName: 'node1',
      containers: [{ name: 'c', image: 'i' }],
      volumes: [{ name: 'v', persistentVolumeClaim: { claimName: 'done' } }],
    },
  });
  await server.request('PATCH', `${PATH}/pods/ended/status`, { body: { status: { phase: 'Succeeded' } } });
  await server.request('DELETE', `${PATH}/persistentvolumeclaims/done`);
  await gone(`${PATH}/persistentvolumeclaims/done`);
  assert.equal((await server.request('GET', `${PATH}/pods/ended`)).status, 200);
});

// S-170
test('a volume stays while it is bound', async () => {
  await server.create('/api/v1/persistentvolumes', {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name: 'v' },
    spec: { capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'], hostPath: { path: '/x' } },
  });
  const status = (phase: string) =>
    server.request('PATCH', '/api/v1/persistentvolumes/v/status', { body: { status: { phase } } });
  await status('Bound');
  const deleted = await server.request('DELETE', '/api/v1/persistentvolumes/v');
  assert.ok(deleted.json.metadata.deletionTimestamp);
  await status('Released');
  await gone('/api/v1/persistentvolumes/v');
});

test('only a bound claim of a class that says so may grow', async () => {
  const sc = (name: string, allowVolumeExpansion: boolean) =>
    server.create('/apis/storage.k8s.io/v1/storageclasses', {
      apiVersion: 'storage.k8s.io/v1',
      kind: 'StorageClass',
      metadata: { name },
      provisioner: 'p',
      allowVolumeExpansion,
    });
  await sc('grows', true);
  await sc('fixed', false);
  await claim('g', { storageClassName: 'grows' });
  await claim('f', { storageClassName: 'fixed' });
  const grow = (name: string) =>
    server.request('PATCH', `${PATH}/persistentvolumeclaims/${name}`, {
      body: { spec: { resources: { requests: { storage: '2Gi' } } } },
    });
  const bind = (name: string) =>
    server.request('PATCH', `${PATH}/persistentvolumeclaims/${name}/status`, { body: { status: { phase: 'Bound' } } });
  assert.equal((await grow('g')).status >= 400, true);
  await bind('g');
  await bind('f');
  assert.equal((await grow('g')).status, 200);
  assert.match((await grow('f')).json.message, /the storageclass that provisions the pvc must support resize/);
});
