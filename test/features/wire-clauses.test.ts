/** Small print of the wire, clause by clause: what clients see that is no feature of its own. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { ensureBootstrapObjects } from '../../packages/apiserver/src/registry/bootstrap-objects.ts';
import { keepBootstrapObjects } from '../../packages/apiserver/src/registry/keep-bootstrap-objects.ts';
import { silentLogger } from '../../packages/runtime/src/log/log.ts';
import { type InProcessServer, type RequestOptions, startServer } from '../testkit/in-process-server.ts';

let server: InProcessServer;
before(async () => {
  server = await startServer({ corsAllowedOrigins: ['^https://ui\\.example\\.com$'] });
});
after(() => server.stop());

const AUTHENTICATION = '/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication';
const CONFIG_MAPS = '/api/v1/namespaces/default/configmaps';
const ask = (path: string, headers: Record<string, string> = {}, method = 'GET') =>
  server.request(method, path, { headers });

// S-188
// Compat HTTP, P2, yes: CORS, off unless origins are named
test('pages of a named origin may call, others may not', async () => {
  const preflight = await ask('/api/v1/nodes', { origin: 'https://ui.example.com' }, 'OPTIONS');
  assert.equal(preflight.status, 204);
  assert.equal(preflight.headers['access-control-allow-origin'], 'https://ui.example.com');
  assert.match(preflight.headers['access-control-allow-methods']!, /PATCH/);
  const allowed = await ask('/api/v1/nodes', { origin: 'https://ui.example.com' });
  assert.equal(allowed.status, 200);
  assert.equal(allowed.headers['access-control-allow-credentials'], 'true');
  const other = await ask('/api/v1/nodes', { origin: 'https://ui.example.com.evil.org' });
  assert.equal(other.headers['access-control-allow-origin'], undefined);
  const without = await startServer();
  const { headers } = await without.request('GET', '/version', { headers: { origin: 'https://ui.example.com' } });
  assert.equal(headers['access-control-allow-origin'], undefined, 'off unless asked for');
  await without.stop();
});

for (const body of ['{"a":1,', '', '[1']) {
  // Compat Status, P1, yes: a body that does not parse: `the object provided is unrecognized ...`
  test(`a body that does not parse is refused: ${JSON.stringify(body)}`, async () => {
    const answer = await server.request('POST', CONFIG_MAPS, { body, headers: { 'content-type': 'application/json' } });
    assert.equal(answer.status, 400);
    assert.equal(
      answer.json.message,
      "the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json parse error: unexpected end of JSON input",
    );
  });
}

// Compat HTTP, P0, yes: legacy `/api/v1/watch/...` paths
test('watches by the old path are watches', async () => {
  for (const path of [
    '/api/v1/watch/namespaces',
    '/api/v1/watch/namespaces/default/configmaps',
    '/apis/apps/v1/watch/deployments',
  ]) {
    const watch = await server.watch(`${path}?timeoutSeconds=1`);
    assert.equal(watch.headers['content-type'], 'application/json', path);
    watch.close();
  }
  const named = await server.watch('/api/v1/watch/namespaces/default');
  assert.equal((await named.next())?.object.metadata.name, 'default');
  assert.equal(named.pending().length, 0);
  named.close();
});

// Compat Watch, P0, yes: selectors: ADDED on entering, DELETED with the old state on leaving
test('a watch by label follows an object in and out', async () => {
  const send = (method: string, path: string, options: RequestOptions = {}) => server.request(method, path, options);
  const watch = await server.watch(
    `${CONFIG_MAPS}?watch=1&labelSelector=in=yes&resourceVersion=${server.store.revision()}`,
  );
  await send('POST', CONFIG_MAPS, { body: { metadata: { name: 'mover', labels: { in: 'no' } } } });
  await send('PATCH', `${CONFIG_MAPS}/mover`, { body: { metadata: { labels: { in: 'yes' } } } });
  await send('PATCH', `${CONFIG_MAPS}/mover`, { body: { data: { a: '1' } } });
  const out = await send('PATCH', `${CONFIG_MAPS}/mover`, {
    body: { metadata: { labels: { in: 'no' } }, data: { a: '2' } },
  });
  await send('DELETE', `${CONFIG_MAPS}/mover`);
  const seen: string[] = [];
  for (let i = 0; i < 3; i++) {
    const event = await watch.next();
    seen.push(`${event?.type} ${event?.object.data?.a ?? '-'}`);
    if (i === 2) {
      assert.equal(
        event?.object.metadata.resourceVersion,
        out.json.metadata.resourceVersion,
        'the revision of the change',
      );
      assert.equal(event?.object.metadata.labels.in, 'yes', 'the state before it');
    }
  }
  assert.deepEqual(seen, ['ADDED -', 'MODIFIED 1', 'DELETED 1']);
  assert.equal(watch.pending().length, 0, 'its end is out of sight');
  watch.close();
});

// Compat Watch, P0, yes: an object that goes while its watch begins
test('an object deleted while its watch begins is not left over', async () => {
  const brief = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'brief' } };
  await server.create(CONFIG_MAPS, brief);
  const [watch] = await Promise.all([
    server.watch(`${CONFIG_MAPS}?watch=1&fieldSelector=metadata.name=brief`),
    server.request('DELETE', `${CONFIG_MAPS}/brief`),
  ]);
  const again = (await server.create(CONFIG_MAPS, brief)) as { metadata: { uid?: string } };
  // Whether the first one was still seen is open; whoever saw it come has to see it go.
  const seen: string[] = [];
  for (let uid = ''; uid !== again.metadata.uid; ) {
    const event = await watch.next();
    uid = event?.object.metadata.uid;
    seen.push(event?.type ?? '');
  }
  assert.ok(['ADDED', 'ADDED DELETED ADDED'].includes(seen.join(' ')), seen.join(' '));
  watch.close();
});

// Compat Aggregation, P1, yes: checks of APIService objects
test('an APIService is checked as the aggregator checks it', async () => {
  const post = (name: string, spec: object) =>
    server.request('POST', '/apis/apiregistration.k8s.io/v1/apiservices', {
      body: { metadata: { name }, spec: { group: 'g.example.com', version: 'v1', ...spec } },
    });
  const named = await post('wrong', { groupPriorityMinimum: 1, versionPriority: 1 });
  assert.equal(named.status, 422);
  assert.match(
    named.json.message,
    /metadata\.name: Invalid value: "wrong": must be `spec\.version\+"\."\+spec\.group`: "v1\.g\.example\.com"/,
  );
  const priorities = await post('v1.g.example.com', { groupPriorityMinimum: 20_001, versionPriority: 0 });
  assert.deepEqual(
    priorities.json.details.causes.map(({ field }: { field: string }) => field),
    ['spec.groupPriorityMinimum', 'spec.versionPriority'],
  );
  const bundle = await post('v1.g.example.com', {
    groupPriorityMinimum: 1,
    versionPriority: 1,
    insecureSkipTLSVerify: true,
  });
  assert.equal(bundle.json.details.causes[0].field, 'spec.insecureSkipTLSVerify');
});

// S-162: Objects that every cluster needs come back when somebody deletes them.
// Compat Bootstrap objects, controllers, events, leases, P1, yes: what the cluster needs comes back when it was deleted
test('what the cluster needs comes back when somebody deletes it', async () => {
  const own = await startServer();
  const options = {
    resources: own.catalog,
    advertise: { address: '127.0.0.1', port: 6443 },
    frontProxy: { ca: 'the CA', allowedNames: ['front-proxy-client'] },
  };
  await ensureBootstrapObjects(own.server.registry, options);
  const stop = keepBootstrapObjects(own.server.registry, { ...options, log: silentLogger });
  for (const path of [
    '/api/v1/namespaces/default/services/kubernetes',
    '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes',
    '/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas/catch-all',
  ]) {
    const { json: before } = await own.request('GET', path);
    const parts = path.split('/');
    const collection = parts.slice(0, -1).join('/');
    const watch = await own.watch(
      `${collection}?watch=1&fieldSelector=metadata.name=${parts.at(-1)}&resourceVersion=${own.store.revision()}`,
    );
    assert.equal((await own.request('DELETE', path)).status, 200);
    assert.equal((await watch.next())?.type, 'DELETED');
    const event = await watch.next();
    assert.equal(event?.type, 'ADDED', path);
    assert.notEqual(event?.object.metadata.uid, before.metadata.uid);
    watch.close();
  }
  // Endpoints that somebody bent point at the server again.
  const slice = '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes';
  const watch = await own.watch(
    `/apis/discovery.k8s.io/v1/namespaces/default/endpointslices?watch=1&resourceVersion=${own.store.revision()}`,
  );
  await own.request('PATCH', slice, { body: { endpoints: [{ addresses: ['10.0.0.9'] }] } });
  await watch.next();
  assert.deepEqual((await watch.next())?.object.endpoints[0].addresses, ['127.0.0.1']);
  watch.close();
  const { json: config } = await own.request('GET', AUTHENTICATION);
  assert.equal(config.data['requestheader-client-ca-file'], 'the CA');
  await own.request('PATCH', AUTHENTICATION, { body: { data: { 'requestheader-client-ca-file': 'another' } } });
  const corrected = await own.watch('/api/v1/namespaces/kube-system/configmaps?watch=1');
  for (let ca = ''; ca !== 'the CA'; ) ca = (await corrected.next())?.object.data['requestheader-client-ca-file'];
  corrected.close();
  stop();
  await own.stop();
});

// Compat Types, P1, yes: deprecated kinds warn
test('kinds on their way out say so in every answer', async () => {
  const { headers } = await ask('/api/v1/namespaces/default/endpoints');
  assert.match(
    headers['warning']!,
    /^299 - "v1 Endpoints is deprecated in v1\.33\+; use discovery\.k8s\.io\/v1 EndpointSlice"$/,
  );
  assert.equal((await ask('/api/v1/namespaces/default/services')).headers['warning'], undefined);
});
