import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type InProcessServer, startServer } from '../testkit/in-process-server.ts';

let server: InProcessServer;
before(async () => {
  server = await startServer({ defaultAdmission: true });
});
after(() => server.stop());

let number = 0;
/** A namespace with these limits; returns what is below it. */
async function namespaceWith(limits: readonly object[]): Promise<string> {
  const name = `n${number++}`;
  await server.create('/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
  const path = `/api/v1/namespaces/${name}`;
  await server.create(`${path}/serviceaccounts`, {
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: { name: 'default' },
  });
  await server.create(`${path}/limitranges`, {
    apiVersion: 'v1',
    kind: 'LimitRange',
    metadata: { name: 'limits' },
    spec: { limits },
  });
  return path;
}

const podOf = (resources: object, more: object = {}) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'p' },
  spec: { containers: [{ name: 'c', image: 'i', resources }], ...more },
});

// S-167: Limit ranges fill in what a container leaves out and refuse what is outside.
// Compat Admission and quota, P1, yes: LimitRanger
test('what a container leaves out is filled in, and named in an annotation', async () => {
  const path = await namespaceWith([
    { type: 'Container', default: { cpu: '1', memory: '512Mi' }, defaultRequest: { cpu: '500m' } },
  ]);
  const { json } = await server.request('POST', `${path}/pods`, {
    body: podOf({ limits: { memory: '1Gi' } }, { initContainers: [{ name: 'first', image: 'i' }] }),
  });
  assert.deepEqual(json.spec.containers[0].resources, {
    limits: { cpu: '1', memory: '1Gi' },
    requests: { cpu: '500m', memory: '1Gi' },
  });
  assert.equal(
    json.metadata.annotations['kubernetes.io/limit-ranger'],
    'LimitRanger plugin set: cpu request for container c; cpu limit for container c; ' +
      'cpu, memory request for init container first; cpu, memory limit for init container first',
  );
  assert.equal(json.status.qosClass, 'Burstable');
});

// S-167
test('a Pod outside the range is refused in words that say which bound', async (t) => {
  const cases: [string, object, object, string][] = [
    [
      'no request',
      { type: 'Pod', min: { cpu: '100m' } },
      {},
      'minimum cpu usage per Pod is 100m.  No request is specified',
    ],
    [
      'request too small',
      { type: 'Container', min: { cpu: '100m' } },
      { requests: { cpu: '50m' } },
      'minimum cpu usage per Container is 100m, but request is 50m',
    ],
    [
      'limit too large',
      { type: 'Container', max: { memory: '1Gi' } },
      { limits: { memory: '2Gi' }, requests: { memory: '1Gi' } },
      'maximum memory usage per Container is 1Gi, but limit is 2Gi',
    ],
    [
      'no limit',
      { type: 'Pod', max: { memory: '1Gi' } },
      { requests: { memory: '1Mi' } },
      'maximum memory usage per Pod is 1Gi.  No limit is specified',
    ],
    [
      'too far apart',
      { type: 'Container', maxLimitRequestRatio: { cpu: '2' } },
      { limits: { cpu: '3' }, requests: { cpu: '1' } },
      'cpu max limit to request ratio per Container is 2, but provided ratio is 3.000000',
    ],
    [
      'two at once',
      { type: 'Pod', min: { cpu: '1', memory: '1Gi' } },
      { requests: { cpu: '500m', memory: '1Mi' } },
      '[minimum cpu usage per Pod is 1, but request is 500m, minimum memory usage per Pod is 1Gi, but request is 1Mi]',
    ],
  ];
  for (const [name, limit, resources, message] of cases) {
    await t.test(name, async () => {
      const path = await namespaceWith([limit]);
      const { status, json } = await server.request('POST', `${path}/pods`, { body: podOf(resources) });
      assert.equal(status, 403);
      assert.equal(json.message, `pods "p" is forbidden: ${message}`);
    });
  }
});

test('a claim has to be within its range', async () => {
  const path = await namespaceWith([
    { type: 'PersistentVolumeClaim', min: { storage: '1Gi' }, max: { storage: '5Gi' } },
  ]);
  const claim = (storage: string) =>
    server.request('POST', `${path}/persistentvolumeclaims`, {
      body: {
        apiVersion: 'v1',
        kind: 'PersistentVolumeClaim',
        metadata: { name: `c${number++}` },
        spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage } } },
      },
    });
  assert.equal((await claim('2Gi')).status, 201);
  assert.match(
    (await claim('500Mi')).json.message,
    /minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 500Mi/,
  );
  assert.match(
    (await claim('6Gi')).json.message,
    /maximum storage usage per PersistentVolumeClaim is 5Gi, but request is 6Gi/,
  );
});
