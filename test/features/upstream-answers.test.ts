/** Answers whose form was compared, byte by byte, with apiextensions-apiserver 1.36 over HTTP. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { definition, establish, version } from '../testkit/custom-definitions.ts';
import { type InProcessServer, startServer } from '../testkit/in-process-server.ts';

const GADGETS = '/apis/example.com/v1/namespaces/default/gadgets';
const TABLE = 'application/json;as=Table;v=v1;g=meta.k8s.io';
const gadget = (name: string | undefined, more: object = {}) => ({
  apiVersion: 'example.com/v1',
  kind: 'Gadget',
  metadata: name === undefined ? {} : { name },
  ...more,
});

let server: InProcessServer;
before(async () => {
  server = await startServer();
  const spec = {
    type: 'object',
    properties: {
      replicas: { type: 'integer' },
      template: {
        type: 'object',
        'x-kubernetes-embedded-resource': true,
        'x-kubernetes-preserve-unknown-fields': true,
      },
    },
    'x-kubernetes-validations': [{ rule: '!has(self.replicas) || self.replicas >= 0' }],
  };
  const status = { type: 'object', properties: { replicas: { type: 'integer' } } };
  const scale = { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.replicas' };
  await establish(
    server,
    definition({
      name: 'gadget',
      versions: [
        version('v1', { spec, status }, { storage: true, subresources: { status: {}, scale } }),
        version('v2', { spec, status }),
      ],
    }),
  );
});
after(() => server.stop());

const apply = (name: string, body: object) =>
  server.request('PATCH', `${GADGETS}/${name}?fieldManager=me`, {
    headers: { 'content-type': 'application/apply-patch+yaml' },
    body,
  });

// Compat Reading, P2, yes: lists of custom resources carry an empty `continue`; an empty PartialObjectMetadataList has
//   `items: null`
test('lists: an empty token of custom resources, no items of metadata that nothing has', async () => {
  const plain = await server.request('GET', GADGETS);
  assert.equal(plain.json.metadata.continue, '');
  const accept = 'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io';
  const { json } = await server.request('GET', GADGETS, { headers: { accept } });
  assert.equal(json.items, null);
  assert.equal('continue' in json.metadata, false);
});

// Compat Status, P2, yes: errors for readers of Tables alone are indented
test('errors for readers of Tables alone are indented and end without a newline', async () => {
  const { text, status } = await server.request('GET', `${GADGETS}/none`, { headers: { accept: TABLE } });
  assert.equal(status, 404);
  assert.match(text, /^\{\n {2}"kind": "Status"/);
  assert.ok(text.endsWith('\n}'));
  const both = await server.request('GET', `${GADGETS}/none`, { headers: { accept: `${TABLE},application/json` } });
  assert.match(both.text, /^\{"kind":"Status".*\}\n$/);
  const yaml = await server.request('GET', `${GADGETS}/none`, { headers: { accept: 'application/yaml' } });
  assert.equal(yaml.headers['content-type'], 'application/yaml');
});

test('?pretty is read as Go reads a boolean, and says nothing when it is empty', async () => {
  const pretty = async (query: string, agent: string) =>
    (await server.request('GET', `${GADGETS}?${query}`, { headers: { 'user-agent': agent } })).text.includes('\n  ');
  assert.equal(await pretty('pretty=x', 'kubectl'), false);
  assert.equal(await pretty('pretty=T', 'kubectl'), true);
  assert.equal(await pretty('pretty=', 'kubectl'), false);
  assert.equal(await pretty('pretty=', 'curl/8'), true);
  assert.equal(await pretty('', 'Mozilla/4.0'), false);
});

test('options that are refused are quoted whole', async () => {
  const refused = async (method: string, path: string, body?: object) => {
    const { status, json } = await server.request(method, path, { ...(body && { body }) });
    return `${status} ${json.message}`;
  };
  assert.equal(
    await refused('POST', `${GADGETS}?dryRun=Foo&dryRun=All`, gadget('x')),
    '422 CreateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["Foo","All"]: supported values: "All"',
  );
  assert.match(
    await refused('DELETE', `${GADGETS}/x?propagationPolicy=x`),
    /supported values: "Foreground", "Background", "Orphan", "nil"$/,
  );
  assert.equal(
    await refused('GET', `${GADGETS}?timeout=bad`),
    '400 invalid timeout specified in the request URL - time: invalid duration "bad"',
  );
  const watch = await server.request(
    'GET',
    `${GADGETS}?watch=1&resourceVersionMatch=Exact&sendInitialEvents=true&continue=x`,
  );
  assert.deepEqual(
    watch.json.details.causes.map(({ message }: { message: string }) => message),
    [
      'Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan',
      'Unsupported value: "Exact": supported values: "NotOlderThan"',
      'Forbidden: resourceVersionMatch is forbidden when continue is provided',
    ],
  );
  const stream = await server.request('GET', `${GADGETS}?watch=1`, { headers: { accept: 'application/yaml' } });
  assert.equal(stream.status, 406);
  assert.match(stream.text, /application\/json;stream=watch/);
  const rows = await server.request('GET', `${GADGETS}?includeObject=Bad`, { headers: { accept: TABLE } });
  assert.equal(
    rows.json.message,
    `Unable to convert to Table as requested: includeObject: Invalid value: "Bad": must be 'Metadata', 'Object', 'None', or empty`,
  );
});

// Compat Patch, P1, yes: a patch of nothing is 404 before it is read
test('what is not there: a subresource of a custom resource, and an object before the patch of it', async () => {
  const sub = await server.request('GET', '/apis/example.com/v2/namespaces/default/gadgets/x/status');
  assert.equal(`${sub.status} ${sub.json.message}`, '404 gadgets.example.com "x" not found');
  const patch = (name: string, body: string) =>
    server.request('PATCH', `/api/v1/namespaces/default/configmaps/${name}`, {
      headers: { 'content-type': 'application/merge-patch+json' },
      body: new TextEncoder().encode(body),
    });
  assert.equal((await patch('none', '"x"')).status, 404);
  assert.equal((await patch('none', '{')).status, 404);
  await server.create('/api/v1/namespaces/default/configmaps', {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'there' },
  });
  assert.equal((await patch('there', '"x"')).status, 400);
});

test('mistakes in the metadata keep rules from being asked, and are reported once', async () => {
  const nameless = await server.request('POST', GADGETS, { body: gadget(undefined) });
  assert.deepEqual(
    nameless.json.details.causes.map(({ field }: { field: string }) => field),
    ['metadata.name', '<nil>'],
  );
  const owners = { ownerReferences: [{ apiVersion: 'v1', kind: 'X', name: 'x' }], finalizers: ['a.b/c', 'a.b/c'] };
  const { json } = await server.request('POST', GADGETS, {
    body: { ...gadget('x'), metadata: { name: 'x', ...owners } },
  });
  assert.deepEqual(
    json.details.causes.map(({ field }: { field: string }) => field),
    ['metadata.ownerReferences.uid'],
  );
});

// Compat CustomResourceDefinitions, P1, yes: metadata of an embedded object is decoded with the whole: 400
test('the metadata of an object inside is decoded with the whole', async () => {
  const template = { apiVersion: 'v1', kind: 'Pod', metadata: { labels: { a: 1 } } };
  const { status, json } = await server.request('POST', GADGETS, { body: gadget('inside', { spec: { template } }) });
  assert.equal(status, 400);
  assert.equal(
    json.message,
    'Gadget in version "v1" cannot be handled as a Gadget: spec.template.metadata: Invalid value: {"labels":{"a":1}}: labels.a: expected string, got number 1',
  );
});

test('a built-in kind is refused for another one', async () => {
  const post = async (apiVersion: string, kind: string) =>
    (
      await server.request('POST', '/api/v1/namespaces/default/configmaps', {
        body: { apiVersion, kind, metadata: { name: 'x' } },
      })
    ).json.message;
  assert.equal(
    await post('v1', 'Secret'),
    'Secret in version "v1" cannot be handled as a ConfigMap: it is of kind Secret of v1, not ConfigMap of v1',
  );
  assert.match(
    await post('v2', 'ConfigMap'),
    /^ConfigMap in version "v2" cannot be handled as a ConfigMap: it is of kind ConfigMap of v2, not ConfigMap of v1$/,
  );
});

// Compat Server-side apply, P1, yes: an apply creates under the name in the configuration alone; a wrong name is
//   reported after conflicts
test('apply: a configuration goes by the name that it gives itself', async () => {
  const untyped = await apply('named', gadget('named', { extra: 1 }));
  assert.equal(
    untyped.json.message,
    'failed to create typed patch object (/named; example.com/v1, Kind=Gadget): .extra: field not declared in schema',
  );
  const nameless = await apply('named', gadget(undefined));
  assert.equal(
    `${nameless.status} ${nameless.json.message}`,
    '400 the name of the object (named based on URL) was undeterminable: name must be provided',
  );
  assert.equal((await apply('named', gadget('named', { spec: { replicas: 1 } }))).status, 201);
  assert.equal((await apply('named', gadget(undefined, { spec: { replicas: 2 } }))).status, 200);
  assert.equal((await apply('named', gadget('other', { spec: { replicas: 3 } }))).status, 400);
  const core = await server.request('PATCH', '/api/v1/namespaces/default/configmaps/x?fieldManager=me', {
    headers: { 'content-type': 'application/apply-patch+yaml' },
    body: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'x' }, bogus: 1 },
  });
  assert.match(core.json.message, /\(\/x; \/v1, Kind=ConfigMap\)/);
});

// Compat Writing, P2, yes: a Scale can be patched where no count is set
test('a Scale can be written where nothing has been counted yet', async () => {
  await server.create(GADGETS, gadget('bare'));
  const patch = (body: object) =>
    server.request('PATCH', `${GADGETS}/bare/scale`, {
      headers: { 'content-type': 'application/merge-patch+json' },
      body,
    });
  const untouched = await patch({ metadata: {} });
  assert.equal(
    `${untouched.status} ${untouched.json.message}`,
    '400 the spec replicas field ".spec.replicas" cannot be empty',
  );
  const scaled = await patch({ spec: { replicas: 2 } });
  assert.equal(scaled.status, 200);
  assert.equal(scaled.json.spec.replicas, 2);
});
