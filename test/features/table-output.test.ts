import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { definition, establish, version } from '../testkit/custom-definitions.ts';
import { type InProcessServer, startServer } from '../testkit/in-process-server.ts';

const TABLE =
  'application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json';
const PODS = '/api/v1/namespaces/default/pods';
let server: InProcessServer;
before(async () => {
  server = await startServer();
  await server.create(PODS, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'p' },
    spec: { containers: [{ name: 'c', image: 'i' }] },
  });
});
after(() => server.stop());

const get = (path: string, accept = TABLE) => server.request('GET', path, { headers: { accept } });

// S-018: Table and PartialObjectMetadata output with upstream's columns.
test('a list as a Table has the columns kubectl prints, and metadata of each object', async () => {
  const { json, headers } = await get(PODS);
  assert.equal(headers['content-type'], 'application/json');
  assert.equal(json.kind, 'Table');
  assert.equal(json.apiVersion, 'meta.k8s.io/v1');
  assert.deepEqual(
    json.columnDefinitions.filter((c: { priority: number }) => c.priority === 0).map((c: { name: string }) => c.name),
    ['Name', 'Ready', 'Status', 'Restarts', 'Age'],
  );
  assert.equal(json.columnDefinitions[0].format, 'name');
  const [row] = json.rows;
  assert.deepEqual(row.cells.slice(0, 3), ['p', '0/1', 'Pending']);
  assert.match(row.cells[4], /^\d+s$/);
  assert.equal(row.object.kind, 'PartialObjectMetadata');
  assert.equal(row.object.metadata.name, 'p');
  assert.equal(row.object.spec, undefined);
  assert.equal(json.metadata.resourceVersion, String(server.store.revision()));
});

// Compat Reading, P0, yes: Tables: negotiation, includeObject, watches
test('includeObject chooses what rows carry', async () => {
  assert.equal((await get(`${PODS}?includeObject=Object`)).json.rows[0].object.kind, 'Pod');
  assert.equal((await get(`${PODS}?includeObject=None`)).json.rows[0].object, null);
  assert.equal((await get(`${PODS}?includeObject=Some`)).status, 400);
});

test('one object is a one-row Table', async () => {
  const { json } = await get(`${PODS}/p`);
  assert.equal(json.rows.length, 1);
});

// Compat Reading, P2, yes: order of flow schemas in a Table, conditions of rows of Pods that ended
test('flow schemas stand in the order in which they are matched', async () => {
  const { json } = await get('/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas');
  const at = json.columnDefinitions.findIndex(({ name }: { name: string }) => name === 'MatchingPrecedence');
  const found: [number, string][] = json.rows.map(({ cells }: { cells: [string, string] }) => [cells[at], cells[0]]);
  assert.ok(found.length > 5);
  assert.deepEqual(
    found,
    found.toSorted(([a, name], [b, other]) => a - b || (name < other ? -1 : 1)),
  );
  assert.equal(found[0]?.[1], 'exempt');
});

test('a Pod that has come to its end says so in its row', async () => {
  const name = 'ended';
  await server.create(PODS, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: { containers: [{ name: 'c', image: 'i' }] },
  });
  const conditions = async (phase: string) => {
    await server.request('PATCH', `${PODS}/${name}/status`, {
      headers: { 'content-type': 'application/merge-patch+json' },
      body: { status: { phase } },
    });
    return (await get(`${PODS}/${name}`)).json.rows[0].conditions;
  };
  assert.equal(await conditions('Running'), undefined);
  assert.deepEqual(await conditions('Succeeded'), [
    { type: 'Completed', status: 'True', reason: 'Succeeded', message: 'The pod has completed successfully.' },
  ]);
});

test('columns that all kinds share say what they are', async () => {
  const described = (column: { name: string; description: string }) => column.description.split(' ')[0];
  const { json } = await get('/apis/storage.k8s.io/v1/storageclasses');
  const [name, , , , , age] = json.columnDefinitions;
  assert.deepEqual([described(name), described(age)], ['Name', 'CreationTimestamp']);
});

// S-273: `/scale` is shown with columns of its own.
// Compat Reading, P2, yes: columns of `/scale`: NAME, DESIRED, AVAILABLE, AGE
test('/scale has columns of its own, on a read and on a write', async () => {
  const deployments = '/apis/apps/v1/namespaces/default/deployments';
  const labels = { app: 'counted' };
  await server.create(deployments, {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'counted' },
    spec: {
      paused: true,
      replicas: 0,
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers: [{ name: 'c', image: 'i' }] } },
    },
  });
  const scale = `${deployments}/counted/scale`;
  const { json } = await get(scale);
  assert.deepEqual(
    json.columnDefinitions.map((c: { name: string; type: string; format: string }) => [c.name, c.type, c.format]),
    [
      ['Name', 'string', ''],
      ['Desired', 'integer', ''],
      ['Available', 'integer', ''],
      ['Age', 'string', ''],
    ],
  );
  assert.deepEqual(json.rows[0].cells.slice(0, 3), ['counted', 0, 0]);
  assert.equal(json.rows[0].object.kind, 'PartialObjectMetadata');
  assert.equal((await get(`${scale}?includeObject=Object`)).json.rows[0].object.kind, 'Scale');
  const patched = await server.request('PATCH', scale, {
    headers: { accept: TABLE, 'content-type': 'application/merge-patch+json' },
    body: { spec: { replicas: 3 } },
  });
  assert.deepEqual(patched.json.rows[0].cells.slice(0, 3), ['counted', 3, 0]);
  const partial = await get(scale, 'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io');
  assert.equal(partial.json.kind, 'PartialObjectMetadata');
});

// S-273
test('/scale of a custom resource shows what its Scale has, and nothing for a count of 0', async () => {
  const group = 'counted.example.com';
  const count = { type: 'object', properties: { size: { type: 'integer' } } };
  const scale = { specReplicasPath: '.spec.size', statusReplicasPath: '.status.size' };
  const versions = [version('v1', { spec: count, status: count }, { storage: true, subresources: { scale } })];
  await establish(server, definition({ name: 'crowd', group, versions }));
  const crowds = `/apis/${group}/v1/namespaces/default/crowds`;
  await server.create(crowds, {
    apiVersion: `${group}/v1`,
    kind: 'Crowd',
    metadata: { name: 'five' },
    spec: { size: 5 },
  });
  const { json } = await get(`${crowds}/five/scale`);
  assert.deepEqual(
    json.columnDefinitions.map((c: { name: string; type: string; format: string }) => [c.name, c.type, c.format]),
    [
      ['Name', 'string', 'name'],
      ['Desired', 'integer', ''],
      ['Available', 'integer', ''],
      ['Age', 'date', ''],
    ],
  );
  assert.deepEqual(json.rows[0].cells.slice(0, 3), ['five', 5, 0]);
  await server.request('PATCH', `${crowds}/five`, {
    headers: { 'content-type': 'application/merge-patch+json' },
    body: { spec: { size: 0 } },
  });
  assert.equal((await get(`${crowds}/five/scale`)).json.rows[0].cells[1], null);
});

test('a kind without columns of its own shows when it was created', async () => {
  const { json } = await get('/apis/rbac.authorization.k8s.io/v1/clusterroles');
  assert.deepEqual(
    json.columnDefinitions.map((c: { name: string }) => c.name),
    ['Name', 'Created At'],
  );
});

// S-018
// Compat Reading, P0, yes: PartialObjectMetadata and its list, JSON and protobuf
test('metadata only, for one object and for a list', async () => {
  const one = await get(`${PODS}/p`, 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1');
  assert.deepEqual([one.json.kind, one.json.apiVersion], ['PartialObjectMetadata', 'meta.k8s.io/v1']);
  const list = await get(PODS, 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1');
  assert.equal(list.json.kind, 'PartialObjectMetadataList');
  assert.equal(list.json.items[0].kind, 'PartialObjectMetadata');
  assert.equal(list.json.items[0].spec, undefined);
});

test('protobuf first and JSON second is answered with JSON', async () => {
  const { status, json } = await get(`${PODS}/p`, 'application/vnd.kubernetes.protobuf,application/json');
  assert.equal(status, 200);
  assert.equal(json.kind, 'Pod');
});

test('a review cannot be a Table', async () => {
  const own = await startServer({
    createOnlyHandlers: new Map([
      ['authorization.k8s.io/selfsubjectaccessreviews', async (object) => ({ ...object, status: { allowed: true } })],
    ]),
  });
  const path = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews';
  const body = { spec: { resourceAttributes: { verb: 'get', resource: 'pods' } } };
  const answer = await own.request('POST', path, { body });
  assert.equal(answer.status, 201, answer.text);
  assert.equal(answer.json.status.allowed, true);
  const table = await own.request('POST', path, {
    body,
    headers: { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' },
  });
  assert.equal(table.status, 406);
  await own.stop();
});
