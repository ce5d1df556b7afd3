/** What upstream's conformance suite asks of documents, probes and representations beside resources. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openApiV3 } from '../../packages/apiserver/src/kinds/openapi/openapi-v3.ts';
import { startPlane } from '../testkit/control-plane.ts';
import { definition, establish } from '../testkit/custom-definitions.ts';
import { type InProcessServer, startServer } from '../testkit/in-process-server.ts';

let server: InProcessServer;
before(async () => {
  server = await startServer();
  await establish(server, definition({ name: 'gadget' }));
});
after(() => server.stop());

const CONFIG_MAPS = '/api/v1/namespaces/default/configmaps';
const GADGETS = '/apis/example.com/v1/namespaces/default/gadgets';
const shape = (as: string, version = 'v1'): string => `application/json;as=${as};v=${version};g=meta.k8s.io`;
const get = (path: string, accept: string) => server.request('GET', path, { headers: { accept } });

const WRONG_NUMBER: readonly (readonly [path: string, as: string, message: string])[] = [
  [CONFIG_MAPS, 'PartialObjectMetadata', 'the requested object is a list'],
  [GADGETS, 'PartialObjectMetadata', 'the requested object is a list'],
  [`${CONFIG_MAPS}/one`, 'PartialObjectMetadataList', 'the requested object is not a list'],
  ['/apis/apps/v1/deployments', 'PartialObjectMetadata', 'the requested object is a list'],
];
for (const [path, as, message] of WRONG_NUMBER) {
  // Compat Reading, P1, yes: metadata of one asked of a list, or the other way round: 406
  test(`metadata in the wrong number is 406: ${as} of ${path}`, async () => {
    await server.request('POST', CONFIG_MAPS, { body: { metadata: { name: 'one' } } });
    const { status, json } = await get(path, shape(as));
    assert.equal(status, 406);
    assert.equal(json.reason, 'NotAcceptable');
    assert.equal(json.message, `you requested ${as}, but ${message}`);
  });
}

// S-207
test('metadata in the right number is given, and a watch takes the name of one', async () => {
  assert.equal((await get(CONFIG_MAPS, shape('PartialObjectMetadataList'))).json.kind, 'PartialObjectMetadataList');
  await server.request('POST', CONFIG_MAPS, { body: { metadata: { name: 'watched' } } });
  const watch = await server.watch(`${CONFIG_MAPS}?watch=true&fieldSelector=metadata.name=watched`, {
    headers: { accept: shape('PartialObjectMetadata') },
  });
  assert.equal((await watch.next())?.object.kind, 'PartialObjectMetadata');
  watch.close();
});

test('an export is refused, and not asked for by false', async () => {
  for (const value of ['true', '', 'yes']) {
    const { status, json } = await server.request('GET', `/api/v1/namespaces/default?export=${value}`);
    assert.deepEqual(
      [status, json.reason, json.message],
      [400, 'BadRequest', 'the export parameter, deprecated since v1.14, is no longer supported'],
    );
  }
  for (const value of ['false', 'False', '0']) {
    assert.equal((await server.request('GET', `/api/v1/namespaces/default?export=${value}`)).status, 200);
  }
});

test('a review has no table: 406', async () => {
  const plane = await startPlane();
  const body = { spec: { nonResourceAttributes: { path: '/', verb: 'get' } } };
  for (const version of ['v1', 'v1beta1']) {
    const { status, json } = await plane.ask('POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews', {
      as: ['admin', 'system:masters'],
      headers: { accept: shape('Table', version) },
      body,
    });
    assert.deepEqual([status, json.code, json.reason], [406, 406, 'NotAcceptable']);
  }
  await plane.stop();
});

for (const path of ['/version', '/api', '/apis', '/apis/apps', '/apis/apps/v1', '/api/v1', '/openapi/v2', '/metrics']) {
  // S-207: What cannot be had is refused as upstream refuses it: 405 for documents that can only be read, 406 for
  //   metadata in the wrong number, undeclared fields of an apply.
  // Compat HTTP, P2, yes: discovery, version, OpenAPI and metrics are read-only: 405
  test(`what can only be read is 405 for other methods: ${path}`, async () => {
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
      const { status, json } = await server.request(method, path, method === 'DELETE' ? {} : { body: {} });
      assert.equal(status, 405, method);
      assert.equal(json.reason, 'MethodNotAllowed');
      assert.equal(json.message, 'the server does not allow this method on the requested resource');
    }
  });
}

// Compat HTTP, P2, yes: HEAD of built-in kinds is 405; custom resources and proxies take it
test('HEAD of a built-in kind is no method its router knows', async () => {
  for (const path of ['/api/v1/pods', '/api/v1/namespaces/default', '/api/v1/namespaces/default/pods/none/log']) {
    assert.equal((await server.request('HEAD', path)).status, 405, path);
    assert.notEqual((await server.request('GET', path)).status, 405, path);
  }
});

test('a path nobody has stays 404 whatever the method is', async () => {
  for (const path of ['/none', '/apis/none', '/apis/apps/v9']) {
    const answer = await server.request('POST', path, { body: {} });
    assert.deepEqual([answer.status, answer.text], [404, '404 page not found\n'], path);
  }
});

/** The names that upstream's test of the health handlers wants, with what readyz has beside them. */
const CHECKS = [
  'ping',
  'log',
  'etcd',
  'autoregister-completion',
  'poststarthook/start-apiserver-admission-initializer',
  'poststarthook/generic-apiserver-start-informers',
  'poststarthook/start-apiextensions-controllers',
  'poststarthook/crd-informer-synced',
  'poststarthook/bootstrap-controller',
  'poststarthook/rbac/bootstrap-roles',
  'poststarthook/scheduling/bootstrap-system-priority-classes',
  'poststarthook/apiservice-status-local-available-controller',
  'poststarthook/apiservice-status-remote-available-controller',
  'poststarthook/apiservice-openapi-controller',
];
for (const [probe, more] of [
  ['healthz', []],
  ['livez', []],
  ['readyz', ['informer-sync', 'shutdown']],
] as const) {
  // Compat Priority and fairness, audit, health, metrics, P0, yes: healthz, livez, readyz with upstream's names
  test(`${probe} lists the checks that upstream lists, by any method`, async () => {
    const { text } = await server.request('GET', `/${probe}?verbose=1`);
    const lines = text.split('\n');
    const missing = [...CHECKS, ...more].filter((name) => !lines.includes(`[+]${name} ok`));
    assert.deepEqual(missing, []);
    assert.ok(lines.includes(`${probe} check passed`));
    assert.equal((await server.request('POST', `/${probe}`)).text, 'ok');
  });
}

const PROXIED: readonly (readonly [path: string, status: number, message: RegExp])[] = [
  ['/api/v1/namespaces/default/services/none/proxy/', 404, /^services "none" not found$/],
  [
    '/api/v1/namespaces/default/services/https:kubernetes:https/proxy/a',
    503,
    /^no endpoints available for service "kub/,
  ],
  [
    '/api/v1/namespaces/default/services/ftp:kubernetes:https/proxy/a',
    400,
    /^invalid service request "ftp:kubernetes:/,
  ],
  ['/api/v1/namespaces/default/pods/none:80/proxy/', 404, /^pods "none" not found$/],
  ['/api/v1/nodes/none:10250/proxy/healthz', 404, /^nodes "none" not found$/],
  ['/api/v1/nodes/a:b:c:d/proxy/healthz', 400, /^invalid node request "a:b:c:d"$/],
];
for (const [path, status, message] of PROXIED) {
  test(`a proxy that cannot be had says why: ${path}`, async () => {
    const answer = await server.request('GET', path);
    assert.equal(answer.status, status);
    assert.match(answer.json.message, message);
  });
}

// Compat Discovery, version, OpenAPI, P1, yes: OpenAPI v3 survives a round trip through Go types: nothing empty
test('OpenAPI v3 documents say nothing empty: they survive a round trip through Go types', async () => {
  const empty: string[] = [];
  const walk = (value: unknown, path: string): void => {
    if (typeof value !== 'object' || value === null) return;
    if (Object.keys(value).length === 0) empty.push(path);
    for (const [key, member] of Object.entries(value)) if (key !== 'default') walk(member, `${path}/${key}`);
  };
  walk(
    await openApiV3(server.catalog.all().filter(({ group }) => group === '' || group === 'apiextensions.k8s.io')),
    '',
  );
  // A schema without a keyword is `{}` in Go, too.
  assert.deepEqual(
    empty.filter((path) => !path.endsWith('/schema')),
    [],
  );
});

// Compat Discovery, version, OpenAPI, P2, yes: OpenAPI v3 in protobuf
test('OpenAPI v3 in protobuf, under either name', async () => {
  for (const sign of ['.', '@']) {
    const accept = `application/com.github.proto-openapi.spec.v3${sign}v1.0+protobuf`;
    const { status, headers, text } = await get('/openapi/v3/apis/apps/v1', accept);
    assert.equal(status, 200);
    assert.equal(headers['content-type'], 'application/com.github.proto-openapi.spec.v3.v1.0+protobuf');
    assert.equal(text.slice(0, 7), '\n\u00053.0.0', 'field 1, five bytes');
  }
  const json = await get('/openapi/v3/apis/apps/v1', 'application/json');
  assert.equal(json.headers['content-type'], 'application/json', 'each form is kept by itself');
  assert.equal(json.json.openapi, '3.0.0');
});

test('what kubectl explain prints of the common fields begins as its readers expect', async () => {
  const { json } = await server.request('GET', '/openapi/v3/apis/example.com/v1');
  const { schemas } = json.components;
  const gadget = schemas['com.example.v1.Gadget'].properties;
  assert.match(gadget.apiVersion.description, /^APIVersion defines/);
  assert.match(gadget.metadata.description, /^Standard object's metadata/);
  const meta = schemas['io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta'].properties;
  assert.match(meta.creationTimestamp.description, /^CreationTimestamp is a timestamp/);
  const silent = Object.keys(meta).filter((field) => meta[field].description === undefined);
  assert.deepEqual(silent, []);
});
