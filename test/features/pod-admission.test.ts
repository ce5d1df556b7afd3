import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createFakeClock } from '../../packages/runtime/src/clock/fake-clock.fixture.ts';
import { type InProcessServer, startServer } from '../testkit/in-process-server.ts';

const clock = createFakeClock();
let server: InProcessServer;
before(async () => {
  server = await startServer({ defaultAdmission: true, clock });
  await account('default');
  await account('puller', { imagePullSecrets: [{ name: 'registry' }] });
  await account('quiet', { automountServiceAccountToken: false });
});
after(() => server.stop());

const account = (name: string, more: object = {}, namespace = 'default') =>
  server.create(`/api/v1/namespaces/${namespace}/serviceaccounts`, {
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: { name },
    ...more,
  });

let number = 0;
const create = (spec: object = {}, metadata: object = {}, namespace = 'default') =>
  server.request('POST', `/api/v1/namespaces/${namespace}/pods`, {
    body: {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: `p${number++}`, ...metadata },
      spec: { containers: [{ name: 'c', image: 'i' }], ...spec },
    },
  });

const MOUNT = '/var/run/secrets/kubernetes.io/serviceaccount';

// S-128: A Pod runs as an account of its namespace, with its token mounted, its priority, its tolerations; claims get
//   the default class.
// Compat Admission and quota, P1, yes: ServiceAccount, Priority, DefaultTolerationSeconds, DefaultStorageClass
test('a Pod runs as the default account, with its token mounted', async () => {
  const { spec } = (await create()).json;
  assert.equal(spec.serviceAccountName, 'default');
  assert.equal(spec.serviceAccount, 'default');
  const [volume] = spec.volumes;
  assert.match(volume.name, /^kube-api-access-[a-z0-9]{5}$/);
  assert.deepEqual(
    volume.projected.sources.map((source: object) => Object.keys(source)[0]),
    ['serviceAccountToken', 'configMap', 'downwardAPI'],
  );
  assert.equal(volume.projected.sources[0].serviceAccountToken.expirationSeconds, 3607);
  assert.deepEqual(spec.containers[0].volumeMounts, [{ name: volume.name, readOnly: true, mountPath: MOUNT }]);
});

test('nothing is mounted where it is not wanted', async (t) => {
  const cases: [string, object][] = [
    ['the account says no', { serviceAccountName: 'quiet' }],
    ['the Pod says no', { automountServiceAccountToken: false }],
    [
      'something else is mounted there',
      {
        containers: [{ name: 'c', image: 'i', volumeMounts: [{ name: 'v', mountPath: MOUNT }] }],
        volumes: [{ name: 'v', emptyDir: {} }],
      },
    ],
  ];
  for (const [name, spec] of cases) {
    await t.test(name, async () => {
      const { volumes = [] } = (await create(spec)).json.spec;
      assert.ok(!volumes.some((volume: { name: string }) => volume.name.startsWith('kube-api-access-')));
    });
  }
  const wins = await create({ serviceAccountName: 'quiet', automountServiceAccountToken: true });
  assert.equal(wins.json.spec.volumes.length, 1);
});

test('pull secrets of the account are taken when the Pod has none', async () => {
  const taken = await create({ serviceAccountName: 'puller' });
  assert.deepEqual(taken.json.spec.imagePullSecrets, [{ name: 'registry' }]);
  const own = await create({ serviceAccountName: 'puller', imagePullSecrets: [{ name: 'mine' }] });
  assert.deepEqual(own.json.spec.imagePullSecrets, [{ name: 'mine' }]);
});

// S-128
test('an account that is not there is refused', async () => {
  const { status, json } = await create({ serviceAccountName: 'nobody' });
  assert.equal(status, 403);
  assert.match(json.message, /error looking up service account default\/nobody: serviceaccount "nobody" not found/);
});

test('a Pod that comes before its namespace has the default account waits for it, not for ever', async () => {
  await server.create('/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'fresh' } });
  const waiting = create({}, {}, 'fresh');
  await account('default', {}, 'fresh');
  assert.equal((await waiting).status, 201);
  await server.create('/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'bare' } });
  const late = create({}, {}, 'bare');
  await new Promise((resolve) => setImmediate(resolve));
  await clock.advance(2000);
  assert.equal((await late).status, 403);
});

// S-128
test('a priority class becomes a number', async (t) => {
  await server.create('/apis/scheduling.k8s.io/v1/priorityclasses', {
    apiVersion: 'scheduling.k8s.io/v1',
    kind: 'PriorityClass',
    metadata: { name: 'high' },
    value: 100,
    preemptionPolicy: 'Never',
  });
  const { spec } = (await create({ priorityClassName: 'high' })).json;
  assert.deepEqual([spec.priority, spec.preemptionPolicy], [100, 'Never']);
  assert.equal((await create()).json.spec.priority, 0);
  const cases: [string, object, RegExp][] = [
    ['an unknown class', { priorityClassName: 'no' }, /no PriorityClass with name no was found/],
    ['a number of its own', { priority: 7 }, /the integer value of priority \(7\) must not be provided in pod spec/],
  ];
  for (const [name, spec, message] of cases) {
    await t.test(name, async () => {
      const refused = await create(spec);
      assert.equal(refused.status, 403);
      assert.match(refused.json.message, message);
    });
  }
});

// S-128
test('a Pod outlives its node by five minutes unless it says otherwise', async () => {
  const { tolerations } = (await create()).json.spec;
  assert.deepEqual(
    tolerations.map((one: { key: string; tolerationSeconds: number }) => [one.key, one.tolerationSeconds]),
    [
      ['node.kubernetes.io/not-ready', 300],
      ['node.kubernetes.io/unreachable', 300],
    ],
  );
  assert.equal((await create({ tolerations: [{ operator: 'Exists' }] })).json.spec.tolerations.length, 1);
});

// Compat Admission and quota, P1, yes: Priority and DefaultTolerationSeconds act on updates of a Pod too
test('a Pod that is put again keeps what a create gave it', async () => {
  const { json } = await create();
  const { priority: _priority, preemptionPolicy: _policy, tolerations: _tolerations, ...spec } = json.spec;
  const path = `/api/v1/namespaces/default/pods/${json.metadata.name}`;
  const answer = await server.request('PUT', path, { body: { ...json, spec } });
  assert.equal(answer.status, 200, answer.text);
  assert.deepEqual(answer.json.spec, json.spec);
});

// S-128
test('the default class of a claim', async () => {
  await server.create('/apis/storage.k8s.io/v1/storageclasses', {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    metadata: { name: 'std', annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' } },
    provisioner: 'p',
  });
  const claim = (name: string, spec: object) =>
    server.request('POST', '/api/v1/namespaces/default/persistentvolumeclaims', {
      body: {
        apiVersion: 'v1',
        kind: 'PersistentVolumeClaim',
        metadata: { name },
        spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, ...spec },
      },
    });
  assert.equal((await claim('a', {})).json.spec.storageClassName, 'std');
  assert.equal((await claim('b', { storageClassName: '' })).json.spec.storageClassName, '');
});
