import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type InProcessServer, startServer } from '../testkit/in-process-server.ts';

let server: InProcessServer;
before(async () => {
  server = await startServer();
});
after(() => server.stop());

const AGGREGATED = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList';

// S-019: Discovery (plain and aggregated), `/version`, `/openapi/v2`, `/openapi/v3`, health endpoints.
// Compat What is easily got wrong, P0, yes: 13, discovery details
test('discovery names groups, versions and resources', async () => {
  assert.deepEqual((await server.request('GET', '/api')).json.versions, ['v1']);
  const group = await server.request('GET', '/apis/apps');
  assert.equal(group.json.preferredVersion.groupVersion, 'apps/v1');
  const { json } = await server.request('GET', '/api/v1');
  const byName = new Map<string, { kind: string; group?: string; version?: string }>(
    json.resources.map((entry: { name: string }) => [entry.name, entry]),
  );
  assert.equal(byName.get('pods')?.kind, 'Pod');
  const eviction = byName.get('pods/eviction');
  assert.deepEqual([eviction?.group, eviction?.version, eviction?.kind], ['policy', 'v1', 'Eviction']);
});

// S-019
// Compat Discovery, version, OpenAPI, P0, yes: aggregated discovery v2; v2beta1 is not answered
test('aggregated discovery echoes its parameters and can be revalidated', async () => {
  const accept = `${AGGREGATED},application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json`;
  const first = await server.request('GET', '/apis', { headers: { accept } });
  assert.equal(first.headers['content-type'], AGGREGATED);
  assert.equal(first.json.kind, 'APIGroupDiscoveryList');
  assert.match(first.headers['etag']!, /^"[0-9A-F]{128}"$/);
  const again = await server.request('GET', '/apis', { headers: { accept, 'if-none-match': first.headers['etag']! } });
  assert.equal(again.status, 304);
  const old = await server.request('GET', '/apis', {
    headers: { accept: 'application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json' },
  });
  assert.equal(old.json.kind, 'APIGroupList');
});

// Compat HTTP, P0, yes: unknown paths are `404 page not found` in plain text
test('discovery follows the catalog', async () => {
  const own = await startServer();
  assert.equal((await own.request('GET', '/apis/batch/v1')).status, 200);
  own.catalog.remove(...own.catalog.all().filter((info) => info.group === 'batch'));
  assert.equal((await own.request('GET', '/apis/batch/v1')).text, '404 page not found\n');
  const { json } = await own.request('GET', '/apis');
  assert.ok(!json.groups.some((group: { name: string }) => group.name === 'batch'));
  await own.stop();
});

// S-019
// Compat Discovery, version, OpenAPI, P0, yes: OpenAPI v3: index, hash, 301, `immutable`
test('OpenAPI v3 documents are named by their hash', async () => {
  const { json: index } = await server.request('GET', '/openapi/v3');
  const url: string = index.paths['apis/apps/v1'].serverRelativeURL;
  assert.match(url, /^\/openapi\/v3\/apis\/apps\/v1\?hash=[0-9A-F]+$/);
  const page = await server.request('GET', url);
  assert.equal(page.status, 200);
  assert.equal(page.headers['cache-control'], 'public, immutable');
  assert.ok(page.json.components.schemas['io.k8s.api.apps.v1.Deployment']);
  const moved = await server.request('GET', '/openapi/v3/apis/apps/v1?hash=OLD');
  assert.equal(moved.status, 301);
  assert.equal(moved.headers['location'], url);
});

// S-019
// Compat What is easily got wrong, P0, yes: 14, OpenAPI formats
test('OpenAPI v2 is one Swagger document', async () => {
  const { status, json } = await server.request('GET', '/openapi/v2');
  assert.equal(status, 200);
  assert.equal(json.swagger, '2.0');
  const type = 'application/com.github.proto-openapi.spec.v2@v1.0+protobuf';
  const proto = await server.request('GET', '/openapi/v2', { headers: { accept: type } });
  // The name it is asked by is one that Go refuses to parse in an answer.
  assert.equal(proto.headers['content-type'], type.replace('@', '.'));
  // Field 1 (swagger), three bytes: "2.0".
  assert.ok(proto.text.startsWith('\n\u00032.0'));
});

// S-019
// Compat HTTP, P0, yes: 503 with Retry-After instead of 404 until every kind is served
// Compat Priority and fairness, audit, health, metrics, P2, yes: `/metrics/slis`
test('health endpoints tell what is wrong', async () => {
  const starting = await startServer({ ready: false });
  assert.equal((await starting.request('GET', '/livez')).text, 'ok');
  const notReady = await starting.request('GET', '/readyz');
  assert.equal(notReady.status, 500);
  assert.match(notReady.text, /^\[\+\]ping ok\n.*\[-\]informer-sync failed: still starting\n.*readyz check failed\n$/s);
  assert.equal((await starting.request('GET', '/apis/not.there/v1/things')).status, 503);
  starting.server.setReady();
  assert.equal((await starting.request('GET', '/readyz')).text, 'ok');
  assert.match(
    (await starting.request('GET', '/readyz?verbose&exclude=etcd')).text,
    /\[\+\]etcd excluded: ok\n.*readyz check passed\n$/s,
  );
  assert.match(
    (await starting.request('GET', '/livez?verbose&exclude=none&exclude=a%22b&exclude=ping')).text,
    /^\[\+\]ping excluded: ok\n.*\nwarn: some health checks cannot be excluded: no matches for "a\\"b","none"\nlivez check passed\n$/s,
  );
  assert.equal((await starting.request('GET', '/livez/')).status, 404);
  const slis = await starting.request('GET', '/metrics/slis');
  assert.equal(slis.headers['content-type'], 'text/plain; version=0.0.4; charset=utf-8');
  for (const line of [
    '# TYPE kubernetes_healthcheck gauge',
    'kubernetes_healthcheck{name="etcd",type="livez"} 1',
    'kubernetes_healthcheck{name="informer-sync",type="readyz"} 1',
    '# TYPE kubernetes_healthchecks_total counter',
    'kubernetes_healthchecks_total{name="informer-sync",status="error",type="readyz"} 1',
    'kubernetes_healthchecks_total{name="informer-sync",status="success",type="readyz"} 2',
    'kubernetes_healthchecks_total{name="ping",status="success",type="livez"} 1',
  ])
    assert.ok(slis.text.split('\n').includes(line), line);
  assert.equal((await starting.request('POST', '/metrics/slis')).status, 405);
  assert.equal((await starting.request('GET', '/readyz/etcd')).text, 'ok');
  assert.equal((await starting.request('GET', '/readyz/nothing')).status, 404);
  assert.equal((await starting.request('GET', '/apis/not.there/v1/things')).status, 404);
  await starting.stop();
});

test('version, paths and metrics', async () => {
  assert.match((await server.request('GET', '/version')).json.gitVersion, /^v1\.\d+\.\d+/);
  const { json } = await server.request('GET', '/');
  assert.ok(json.paths.includes('/apis/apps/v1'));
  const { text, headers } = await server.request('GET', '/metrics');
  assert.match(headers['content-type']!, /^text\/plain/);
  const labels = 'component="apiserver",dry_run="",group="",resource="",scope="",subresource="",verb="GET",version=""';
  assert.match(text, new RegExp(`^apiserver_request_total\\{code="200",${labels}\\} \\d+$`, 'm'));
  assert.match(text, /^apiserver_storage_objects\{resource="namespaces"\} 4$/m);
});

// Compat HTTP, P0, yes: a verb a resource does not have: 405, in the router's words for built-in kinds, with verb and
//   kind for custom ones
test('what exists but cannot be done is 405', async (t) => {
  const cases: [string, string][] = [
    ['DELETE', '/api/v1/namespaces'],
    ['POST', '/api/v1/configmaps'],
    ['POST', '/api/v1/namespaces/default/configmaps/x'],
    ['DELETE', '/api/v1/configmaps'],
    ['PATCH', '/api/v1/namespaces/default/pods/x/eviction'],
    ['GET', '/apis/authorization.k8s.io/v1/subjectaccessreviews'],
  ];
  for (const [method, path] of cases) {
    await t.test(`${method} ${path}`, async () => {
      const { status, json } = await server.request(method, path);
      assert.deepEqual(
        [status, json.reason, json.message, json.details],
        [405, 'MethodNotAllowed', 'the server does not allow this method on the requested resource', {}],
      );
    });
  }
});

// Compat HTTP, P0, yes: time limits: 60 s, 34 s for writes, `?timeout=` as a Go duration
test('a timeout that is no duration is refused', async () => {
  const { status, json } = await server.request('GET', '/api/v1/pods?timeout=soon');
  assert.equal(status, 400);
  assert.match(json.message, /^invalid timeout specified in the request URL/);
});
