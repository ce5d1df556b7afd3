/**
 * What upstream's own tests ask of the volume controller (kubernetes test/integration/volume/persistent_volumes_test.go,
 * and the conformance tests of test/e2e/storage/persistent_volumes.go that need no Pod), acted out: many claims and
 * volumes at once, changes underneath, a start in the middle of what is bound, and the life of a pair.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import {
  createClaimProtectionController,
  createVolumeProtectionController,
} from '../../packages/kube-controllers/src/controllers/storage-protection-controllers.ts';
import { createVolumeController } from '../../packages/kube-controllers/src/storage/volume-controller.ts';
import { eventually } from '../testkit/eventually.ts';
import { type InProcessServer, startServer } from '../testkit/in-process-server.ts';
import { type RunningControllers, runControllers } from '../testkit/run-controllers.ts';
import { startStoragePlane } from '../testkit/storage-plane.ts';

const OBJECTS = 40;
const VOLUMES = '/api/v1/persistentvolumes';
const CLAIMS = '/api/v1/namespaces/default/persistentvolumeclaims';

// biome-ignore lint/suspicious/noExplicitAny: answers of every shape.
type Row = Record<string, any>;
let server: InProcessServer;
let controllers: RunningControllers;
const start = () =>
  runControllers(server, (environment) => [
    createVolumeController(environment),
    createClaimProtectionController(environment),
    createVolumeProtectionController(environment),
  ]);
before(async () => {
  server = await startServer({ defaultAdmission: true });
  controllers = start();
});
after(() => controllers.stop());

const get = async (path: string): Promise<Row> => (await server.request('GET', path)).json;
const list = async (path: string): Promise<Row[]> => (await get(path))['items'];
/** Each test has a class of its own, so that none takes the volumes of another. */
const volumeOf = (storageClassName: string, name: string, spec: object = {}, metadata: object = {}) => ({
  apiVersion: 'v1',
  kind: 'PersistentVolume',
  metadata: { name, ...metadata },
  spec: {
    capacity: { storage: '1G' },
    accessModes: ['ReadWriteOnce'],
    hostPath: { path: `/tmp/${name}` },
    persistentVolumeReclaimPolicy: 'Retain',
    storageClassName,
    ...spec,
  },
});
const claimOf = (storageClassName: string, name: string, spec: object = {}, metadata: object = {}) => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { name, ...metadata },
  spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1G' } }, storageClassName, ...spec },
});
const make = (path: string, object: object): Promise<Row> => server.create(path, object) as Promise<Row>;
const numbered = (prefix: string): string[] => Array.from({ length: OBJECTS }, (_, at) => `${prefix}-${at}`);
const phase = (path: string, wanted: string) => eventually(async () => (await get(path)).status?.phase === wanted);
const ofClass = async (path: string, name: string): Promise<Row[]> =>
  (await list(path)).filter(({ spec }) => spec.storageClassName === name);

test('of many claims the one that a volume is kept for gets it, and no other', async () => {
  for (const name of numbered('race')) await make(CLAIMS, claimOf('race', name));
  const claimRef = { namespace: 'default', name: 'race-12' };
  await make(VOLUMES, volumeOf('race', 'race', { capacity: { storage: '10G' }, claimRef }));
  await phase(`${VOLUMES}/race`, 'Bound');
  await phase(`${CLAIMS}/race-12`, 'Bound');
  const bound = (await ofClass(CLAIMS, 'race')).filter(({ status }) => status.phase !== 'Pending');
  assert.deepEqual(
    bound.map(({ metadata }) => metadata.name),
    ['race-12'],
  );
});

test('a selector with expressions chooses the volume', async () => {
  await make(VOLUMES, volumeOf('chosen', 'no', {}, { labels: { foo: 'valB', baz: '' } }));
  await make(VOLUMES, volumeOf('chosen', 'yes', {}, { labels: { foo: 'valA', bar: '' } }));
  const matchExpressions = [
    { key: 'foo', operator: 'In', values: ['valA'] },
    { key: 'foo', operator: 'NotIn', values: ['valB'] },
    { key: 'bar', operator: 'Exists', values: [] },
    { key: 'baz', operator: 'DoesNotExist', values: [] },
  ];
  await make(CLAIMS, claimOf('chosen', 'chosen', { selector: { matchExpressions } }));
  await phase(`${CLAIMS}/chosen`, 'Bound');
  assert.equal((await get(`${VOLUMES}/yes`))['spec'].claimRef.name, 'chosen');
  assert.equal((await get(`${VOLUMES}/no`))['spec'].claimRef, undefined);
});

test('of many volumes one is bound, the smallest that is large enough; without its claim it is Released', async () => {
  for (const [at, name] of numbered('sized').entries())
    await make(VOLUMES, volumeOf('sized', name, { capacity: { storage: `${at + 1}G` } }));
  await eventually(async () => (await ofClass(VOLUMES, 'sized')).every(({ status }) => status?.phase === 'Available'));
  await make(CLAIMS, claimOf('sized', 'sized', { resources: { requests: { storage: '20G' } } }));
  await phase(`${CLAIMS}/sized`, 'Bound');
  const taken = (await ofClass(VOLUMES, 'sized')).filter(({ spec }) => spec.claimRef);
  assert.deepEqual(
    taken.map(({ spec }) => spec.capacity.storage),
    ['20G'],
  );
  await server.request('DELETE', `${CLAIMS}/sized`);
  await phase(`${VOLUMES}/sized-19`, 'Released');
});

// S-840: Upstream's own tests of the volume controller hold: many claims and volumes at once, changes underneath, a
//   start over what is bound, selectors with expressions, provisioning of many, and the life of a pair through both
//   protections.
test('as many claims as volumes are bound, each to one of its own, while users change all of them underneath', async () => {
  const volumes = numbered('pair-v');
  const claims = numbered('pair-c');
  let working = true;
  const disturb = async (): Promise<void> => {
    for (let turn = 0; working; turn++) {
      const path = turn % 2 === 0 ? `${VOLUMES}/${volumes[turn % OBJECTS]}` : `${CLAIMS}/${claims[turn % OBJECTS]}`;
      const { status, json } = await server.request('GET', path);
      if (status === 200) {
        const annotations = { ...json.metadata.annotations, changed: `${turn}` };
        // The controller may have been first: then it is refused, as a user's would be.
        await server.request('PUT', path, { body: { ...json, metadata: { ...json.metadata, annotations } } });
      }
      await new Promise((next) => setTimeout(next, 0));
    }
  };
  const disturbed = disturb();
  for (const name of volumes) await make(VOLUMES, volumeOf('pairs', name));
  for (const name of claims) await make(CLAIMS, claimOf('pairs', name));
  await eventually(async () => (await ofClass(CLAIMS, 'pairs')).every(({ status }) => status.phase === 'Bound'));
  await eventually(async () => (await ofClass(VOLUMES, 'pairs')).every(({ status }) => status.phase === 'Bound'));
  working = false;
  await disturbed;
  const ends = new Map((await ofClass(CLAIMS, 'pairs')).map(({ metadata, spec }) => [spec.volumeName, metadata.uid]));
  assert.equal(ends.size, OBJECTS);
  for (const { metadata, spec } of await ofClass(VOLUMES, 'pairs'))
    assert.equal(spec.claimRef.uid, ends.get(metadata.name), metadata.name);
});

// S-840
test('a controller that starts leaves everything as it is that is bound', async () => {
  const own = await startServer({ defaultAdmission: true });
  for (const name of numbered('there')) {
    const annotations = { 'pv.kubernetes.io/bind-completed': 'yes' };
    const claim = (await own.create(CLAIMS, claimOf('there', name, { volumeName: name }, { annotations }))) as Row;
    await own.request('PATCH', `${CLAIMS}/${name}/status`, {
      body: { status: { phase: 'Bound', accessModes: ['ReadWriteOnce'], capacity: { storage: '1G' } } },
    });
    const { uid } = claim['metadata'];
    const claimRef = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', namespace: 'default', name, uid };
    await own.create(VOLUMES, volumeOf('there', name, { claimRef }));
    await own.request('PATCH', `${VOLUMES}/${name}/status`, { body: { status: { phase: 'Bound' } } });
  }
  const seen = async (): Promise<string[]> =>
    (await Promise.all([VOLUMES, CLAIMS].map(async (path) => (await own.request('GET', path)).json.items))).flatMap(
      (items: Row[]) =>
        items.map(
          ({ kind, metadata, status }) => `${kind} ${metadata.name} ${metadata.resourceVersion} ${status.phase}`,
        ),
    );
  const before = await seen();
  const running = runControllers(own, (environment) => [createVolumeController(environment)]);
  // It has seen all of them when it has bound this pair, which comes last.
  await own.create(VOLUMES, volumeOf('last', 'last'));
  await own.create(CLAIMS, claimOf('last', 'last'));
  await eventually(async () => (await own.request('GET', `${CLAIMS}/last`)).json.status.phase === 'Bound');
  assert.deepEqual(
    (await seen()).filter((line) => !line.includes(' last ')),
    before,
  );
  await running.stop();
});

// S-840
test('many claims are provisioned at once, each has a volume of its own, and all go with their claims', async () => {
  const plane = await startStoragePlane();
  try {
    await Promise.all(numbered('many').map((name) => plane.claim(name)));
    const { items } = await plane.settled(CLAIMS, (all) =>
      all['items'].every((one: Row) => one['status'].phase === 'Bound'),
    );
    assert.equal(new Set(items.map((one: Row) => one['spec'].volumeName)).size, OBJECTS);
    assert.equal(plane.pool.volumes.size, OBJECTS);
    await plane.admin(`DELETE ${CLAIMS}`);
    await plane.settled(VOLUMES, (all) => all['items'].length === 0);
    assert.equal(plane.pool.volumes.size, 0);
  } finally {
    await plane.stop();
  }
});

// S-840
test('the life of a pair: made, listed, changed, deleted by name and by label, through both protections', async () => {
  const labels = { pair: 'life' };
  const both = async (): Promise<void> => {
    await make(VOLUMES, volumeOf('life', 'life', {}, { labels }));
    await make(CLAIMS, claimOf('life', 'life', {}, { labels }));
    await phase(`${CLAIMS}/life`, 'Bound');
    await phase(`${VOLUMES}/life`, 'Bound');
  };
  await both();
  for (const path of [VOLUMES, CLAIMS, '/api/v1/persistentvolumeclaims'])
    assert.equal((await list(`${path}?labelSelector=pair%3Dlife`)).length, 1);
  for (const path of [`${VOLUMES}/life`, `${CLAIMS}/life`]) {
    const patched = await server.request('PATCH', path, { body: { metadata: { labels: { patched: 'yes' } } } });
    assert.equal(patched.json.metadata.labels.patched, 'yes');
    const current = await get(path);
    current['metadata'].labels.updated = 'yes';
    assert.equal((await server.request('PUT', path, { body: current })).json.metadata.labels.updated, 'yes');
  }
  // A volume that is bound only looks deleted; so it goes when its claim has gone.
  await server.request('DELETE', `${VOLUMES}/life`);
  assert.ok((await get(`${VOLUMES}/life`))['metadata'].deletionTimestamp);
  await server.request('DELETE', `${CLAIMS}/life`);
  const gone = (path: string) => eventually(async () => (await server.request('GET', path)).status === 404);
  await gone(`${CLAIMS}/life`);
  await gone(`${VOLUMES}/life`);
  await both();
  await server.request('DELETE', `${CLAIMS}?labelSelector=pair%3Dlife`);
  await server.request('DELETE', `${VOLUMES}?labelSelector=pair%3Dlife`);
  await gone(`${CLAIMS}/life`);
  await gone(`${VOLUMES}/life`);
});

test('statuses of both are patched and replaced, and what users write there stays', async () => {
  await make(VOLUMES, volumeOf('status', 'status', { claimRef: { namespace: 'default', name: 'status' } }));
  await make(CLAIMS, claimOf('status', 'status'));
  await phase(`${CLAIMS}/status`, 'Bound');
  await phase(`${VOLUMES}/status`, 'Bound');
  const condition = (type: string) => ({ type, status: 'True', reason: 'E2E', message: 'Set by a test' });
  const patched = await server.request('PATCH', `${CLAIMS}/status/status`, {
    body: { status: { conditions: [condition('StatusPatched')] } },
  });
  assert.equal(patched.json.status.conditions[0].type, 'StatusPatched');
  // The controller may write in between, as anybody may.
  await eventually(async () => {
    const claim = await get(`${CLAIMS}/status`);
    claim['status'].conditions.push(condition('StatusUpdated'));
    return (await server.request('PUT', `${CLAIMS}/status/status`, { body: claim })).status === 200;
  });
  await server.request('PATCH', `${VOLUMES}/status/status`, {
    body: { status: { message: 'patched', reason: 'E2E' } },
  });
  const volume = await get(`${VOLUMES}/status`);
  assert.deepEqual(
    [volume['status'].phase, volume['status'].message, volume['status'].reason],
    ['Bound', 'patched', 'E2E'],
  );
  const types = (await get(`${CLAIMS}/status`))['status'].conditions.map(({ type }: Row) => type);
  assert.deepEqual(types, ['StatusPatched', 'StatusUpdated']);
});
