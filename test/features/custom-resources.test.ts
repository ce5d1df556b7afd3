import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { kubevirtCrds, kubevirtResources } from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { DEFINITIONS, definition, establish, settled, version } from '../testkit/custom-definitions.ts';
import { type InProcessServer, startServer } from '../testkit/in-process-server.ts';

let server: InProcessServer;
before(async () => {
  server = await startServer();
});
after(() => server.stop());

const WIDGETS = '/apis/example.com/v1/namespaces/default/widgets';
const widget = (name: string, spec: object, more: object = {}) => ({
  apiVersion: 'example.com/v1',
  kind: 'Widget',
  metadata: { name },
  spec,
  ...more,
});
const refused = (answer: { status: number; json: { message: string } }, status: number, text: RegExp): void => {
  assert.equal(answer.status, status, answer.json?.message);
  assert.match(answer.json.message, text);
};

const WIDGET = definition({
  name: 'widget',
  names: { shortNames: ['wd'], categories: ['all'] },
  spec: {
    type: 'object',
    required: ['color'],
    properties: {
      color: { type: 'string', enum: ['red', 'blue'] },
      replicas: { type: 'integer', default: 1, minimum: 0 },
      label: { type: 'string', nullable: true },
      note: { type: 'string' },
      ports: {
        type: 'array',
        items: {
          type: 'object',
          required: ['port'],
          properties: { port: { type: 'integer' }, name: { type: 'string' } },
        },
        'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['port'],
      },
      args: { type: 'array', items: { type: 'string' } },
      either: { 'x-kubernetes-int-or-string': true },
      any: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
      template: {
        type: 'object',
        'x-kubernetes-embedded-resource': true,
        properties: { data: { type: 'object', additionalProperties: { type: 'string' } } },
      },
    },
  },
  root: { status: { type: 'object', properties: { replicas: { type: 'integer' }, selector: { type: 'string' } } } },
  version: {
    subresources: {
      status: {},
      scale: {
        specReplicasPath: '.spec.replicas',
        statusReplicasPath: '.status.replicas',
        labelSelectorPath: '.status.selector',
      },
    },
    additionalPrinterColumns: [
      { name: 'Color', type: 'string', jsonPath: '.spec.color' },
      { name: 'Replicas', type: 'integer', jsonPath: '.spec.replicas', priority: 1 },
      { name: 'Note', type: 'string', jsonPath: '.spec.note' },
    ],
    selectableFields: [{ jsonPath: '.spec.color' }, { jsonPath: '.spec.note' }],
  },
});

// S-150: A CustomResourceDefinition is served before its status says Established; discovery and OpenAPI know the kind.
// Compat CustomResourceDefinitions, P0, yes: served, and in discovery, before the status says Established
test('a definition is served before its status says Established', async () => {
  const watch = await server.watch(`${DEFINITIONS}?watch=true`);
  const created = await server.request('POST', DEFINITIONS, { body: WIDGET });
  assert.equal(created.status, 201, created.text);
  assert.deepEqual(created.json.status, {
    conditions: null,
    acceptedNames: { plural: '', kind: '' },
    storedVersions: ['v1'],
  });
  for (;;) {
    const event = await watch.next();
    const { status } = event!.object;
    const served = server.catalog.serves('example.com', 'v1');
    if (!status.conditions?.some((one: { type: string; status: string }) => one.type === 'Established')) continue;
    assert.ok(served, 'routes come first');
    const types = status.conditions.map((one: { type: string; status: string }) => `${one.type}=${one.status}`);
    assert.deepEqual(types, ['NamesAccepted=True', 'Established=True']);
    const names = { plural: 'widgets', singular: 'widget', kind: 'Widget', listKind: 'WidgetList' };
    assert.deepEqual(status.acceptedNames, { ...names, shortNames: ['wd'], categories: ['all'] });
    assert.equal(status.observedGeneration, 1);
    break;
  }
  watch.close();
  assert.equal((await server.request('GET', WIDGETS)).status, 200);
});

// S-150
test('discovery, aggregated discovery and OpenAPI know the kind', async () => {
  const list = await server.request('GET', '/apis/example.com/v1');
  const found = Object.fromEntries(list.json.resources.map((one: { name: string }) => [one.name, one]));
  assert.deepEqual(Object.keys(found), ['widgets', 'widgets/status', 'widgets/scale']);
  assert.deepEqual(found.widgets.shortNames, ['wd']);
  assert.deepEqual(found.widgets.categories, ['all']);
  assert.equal(found['widgets/scale'].group, 'autoscaling');
  const accept = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList';
  const groups = await server.request('GET', '/apis', { headers: { accept } });
  assert.ok(groups.json.items.some((one: { metadata: { name: string } }) => one.metadata.name === 'example.com'));
  const index = await server.request('GET', '/openapi/v3');
  const url = index.json.paths['apis/example.com/v1'].serverRelativeURL;
  const document = await server.request('GET', url);
  const kind = document.json.components.schemas['com.example.v1.Widget'];
  assert.deepEqual(Object.keys(kind.properties.spec.properties.color), ['enum', 'type']);
  assert.deepEqual(kind['x-kubernetes-group-version-kind'], [{ group: 'example.com', kind: 'Widget', version: 'v1' }]);
  const selectable = [{ fieldPath: 'spec.color' }, { fieldPath: 'spec.note' }];
  assert.deepEqual(kind['x-kubernetes-selectable-fields'], selectable);
  const swagger = await server.request('GET', '/openapi/v2');
  assert.ok(swagger.json.definitions['com.example.v1.Widget']);
});

// S-151: Custom resources are pruned, defaulted and checked in that order; status, scale, columns and selectable fields
//   are those of the definition.
// Compat CustomResourceDefinitions, P0, yes: prune, drop nulls, default, in that order, also on reads
test('input is pruned, nulls without a default go, defaults come, in that order', async () => {
  const sent = widget('order', { color: 'red', replicas: null, label: null, note: null, foo: 1, any: { x: { y: 1 } } });
  const { status, json, headers } = await server.request('POST', WIDGETS, { body: sent });
  assert.equal(status, 201);
  assert.deepEqual(json.spec, { color: 'red', replicas: 1, label: null, any: { x: { y: 1 } } });
  assert.equal(headers['warning'], '299 - "unknown field \\"spec.foo\\""');
  const strict = await server.request('POST', `${WIDGETS}?fieldValidation=Strict`, {
    body: widget('strict', { color: 'red', foo: 1 }, { metadata: { name: 'strict', nope: 1 } }),
  });
  refused(strict, 400, /strict decoding error: unknown field "metadata.nope", unknown field "spec.foo"$/);
  const silent = await server.request('POST', `${WIDGETS}?fieldValidation=Ignore`, {
    body: widget('silent', { color: 'red', foo: 1 }),
  });
  assert.equal(silent.status, 201);
  assert.equal(silent.headers['warning'], undefined);
});

const INVALID: readonly (readonly [string, object, RegExp])[] = [
  ['a required field', {}, /spec.color: Required value/],
  ['an enum', { color: 'green' }, /spec.color: Unsupported value: "green": supported values: "red", "blue"/],
  ['a type', { color: 'red', args: 1 }, /spec.args: Invalid value: "integer": spec.args in body must be of type array/],
  ['a minimum', { color: 'red', replicas: -1 }, /spec.replicas in body should be greater than or equal to 0/],
  ['a map list', { color: 'red', ports: [{ port: 1 }, { port: 1 }] }, /spec.ports\[1\]: Duplicate value: {"port":1}/],
  ['an int-or-string', { color: 'red', either: 1.5 }, /spec.either: Invalid value/],
  ['an embedded object', { color: 'red', template: { data: {} } }, /spec.template.apiVersion: Required value/],
];
for (const [what, spec, text] of INVALID) {
  test(`${what} is checked`, async () => {
    refused(await server.request('POST', WIDGETS, { body: widget('bad', spec) }), 422, text);
  });
}

test('metadata of a wrong type is refused', async () => {
  const body = widget('meta', { color: 'red' }, { metadata: { name: 'meta', labels: { a: 1 } } });
  const answer = await server.request('POST', WIDGETS, { body });
  assert.equal(answer.status, 400);
});

test('a wrong kind is refused, another version is a bad request', async () => {
  const kind = await server.request('POST', WIDGETS, { body: { ...widget('k', { color: 'red' }), kind: 'Gadget' } });
  assert.ok(kind.status === 422 || kind.status === 400);
  const other = { ...widget('k', { color: 'red' }), apiVersion: 'example.com/v2' };
  refused(await server.request('POST', WIDGETS, { body: other }), 400, /does not match the expected API version/);
});

// S-308: A body of a custom resource says its kind and version.
// Compat CustomResourceDefinitions, P1, yes: a body must say its kind and apiVersion, which is asked of built-in kinds
//   by nobody
test('a body must say its kind and its version, which is asked of built-in kinds by nobody', async () => {
  const { kind, apiVersion, ...bare } = widget('says-nothing', { color: 'red' });
  const create = (body: object) => server.request('POST', WIDGETS, { body });
  refused(
    await create({ apiVersion, ...bare }),
    400,
    /^the object provided is unrecognized \(must be of type Widget\): Object 'Kind' is missing$/,
  );
  refused(
    await create({ kind, ...bare }),
    400,
    /^the API version in the data \(\) does not match the expected API version \(example.com\/v1\)$/,
  );
  refused(await server.request('PUT', `${WIDGETS}/says-nothing`, { body: bare }), 400, /Object 'Kind' is missing/);
  const sent = (body: string) =>
    server.request('POST', WIDGETS, {
      body: new TextEncoder().encode(body),
      headers: { 'content-type': 'application/json' },
    });
  const unrecognized = 'the object provided is unrecognized (must be of type Widget): ';
  const reported: [string, string][] = [
    [' {"a": 1}', `${unrecognized}Object 'Kind' is missing`],
    ['null', `${unrecognized}Object 'Kind' is missing`],
    ['[]', `${unrecognized}couldn't get version/kind; json parse error: expected object, got array`],
    ['{"kind":1}', `${unrecognized}couldn't get version/kind; json parse error: kind: expected string, got number`],
    [
      '{"kind":"Widget"} x',
      `${unrecognized}couldn't get version/kind; json parse error: invalid character 'x' after top-level value`,
    ],
  ];
  for (const [body, message] of reported) assert.equal((await sent(body)).json.message, message, body);
  const other = await create({ apiVersion, kind: 'Gadget', ...bare });
  refused(
    other,
    422,
    /^Gadget\.example\.com "says-nothing" is invalid: kind: Invalid value: "Gadget": must be Widget$/,
  );
  assert.equal(other.json.details.kind, 'Gadget');
  const built = { metadata: { name: 'says-nothing' } };
  assert.equal(
    (await server.request('POST', '/api/v1/namespaces/default/configmaps', { body: built })).status,
    201,
    'of a built-in kind the path says enough',
  );
});

// Compat Writing, P1, yes: a PUT without a version, and a patch that takes it away, are 422 where one is needed
test('a PUT must name the version it replaces', async () => {
  await server.create(WIDGETS, widget('put', { color: 'red' }));
  const blind = await server.request('PUT', `${WIDGETS}/put`, { body: widget('put', { color: 'blue' }) });
  refused(
    blind,
    422,
    /^widgets\.example\.com "put" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update/,
  );
  const patched = await server.request('PATCH', `${WIDGETS}/put`, { body: { metadata: { resourceVersion: null } } });
  refused(patched, 422, /metadata.resourceVersion: Invalid value: 0: must be specified for an update/);
  const { json } = await server.request('GET', `${WIDGETS}/put`);
  const put = await server.request('PUT', `${WIDGETS}/put`, { body: { ...json, spec: { color: 'blue' } } });
  assert.equal(put.status, 200);
  assert.equal(put.json.metadata.generation, 2);
});

// S-151
// Compat Writing, P0, yes: generation of custom resources
test('status has an endpoint of its own and moves no generation', async () => {
  await server.create(WIDGETS, widget('status', { color: 'red' }, { status: { replicas: 9 } }));
  const before = await server.request('GET', `${WIDGETS}/status`);
  assert.equal(before.json.status, undefined);
  const patch = { metadata: { annotations: { a: 'b' } }, spec: { color: 'blue' }, status: { replicas: 3 } };
  const { json } = await server.request('PATCH', `${WIDGETS}/status/status`, { body: patch });
  assert.deepEqual(json.status, { replicas: 3 });
  assert.equal(json.spec.color, 'red');
  assert.equal(json.metadata.annotations, undefined);
  assert.equal(json.metadata.generation, 1);
});

// S-151
// Compat Writing, P0, yes: `/scale` of custom kinds by their paths
test('the scale subresource reads and writes the paths of the definition', async () => {
  await server.create(WIDGETS, widget('scaled', { color: 'red' }));
  await server.request('PATCH', `${WIDGETS}/scaled/status`, { body: { status: { replicas: 2, selector: 'app=x' } } });
  const scale = await server.request('GET', `${WIDGETS}/scaled/scale`);
  assert.deepEqual([scale.json.spec, scale.json.status], [{ replicas: 1 }, { replicas: 2, selector: 'app=x' }]);
  const scaled = await server.request('PATCH', `${WIDGETS}/scaled/scale`, { body: { spec: { replicas: 5 } } });
  assert.equal(scaled.json.spec.replicas, 5);
  assert.equal((await server.request('GET', `${WIDGETS}/scaled`)).json.spec.replicas, 5);
  const put = (metadata: object, spec: object = { replicas: 4 }) =>
    server.request('PUT', `${WIDGETS}/scaled/scale`, { body: { metadata, spec } });
  refused(
    await put({}),
    400,
    /^the name of the object \(scaled based on URL\) was undeterminable: name must be provided$/,
  );
  refused(await put({ name: 'scaled', uid: 'x' }), 409, /Precondition failed: UID in precondition: x/);
  refused(await put({ name: 'scaled' }, { replicas: '4' }), 400, /spec\.replicas: expected int32, got string$/);
  assert.equal((await put({ name: 'scaled' })).json.spec.replicas, 4, 'the version may be left out');
});

// S-151
// Compat Reading, P0, yes: columns of custom kinds
// Compat CustomResourceDefinitions, P0, yes: selectableFields, printer columns
test('printed columns are those of the definition, and selectors may name selectable fields', async () => {
  const accept = 'application/json;as=Table;v=v1;g=meta.k8s.io';
  await server.create(WIDGETS, widget('shown', { color: 'blue', note: 'here' }));
  const table = await server.request('GET', `${WIDGETS}/shown`, { headers: { accept } });
  assert.deepEqual(
    table.json.columnDefinitions.map((one: { name: string; priority: number }) => `${one.name}/${one.priority}`),
    ['Name/0', 'Color/0', 'Replicas/1', 'Note/0'],
  );
  assert.deepEqual(table.json.rows[0].cells, ['shown', 'blue', 1, 'here']);
  const names = async (selector: string): Promise<string[]> => {
    const { json } = await server.request('GET', `${WIDGETS}?fieldSelector=${encodeURIComponent(selector)}`);
    return json.items.map((one: { metadata: { name: string } }) => one.metadata.name);
  };
  assert.deepEqual(await names('spec.note=here'), ['shown']);
  assert.ok((await names('spec.note=')).includes('scaled'));
  const unknown = await server.request('GET', `${WIDGETS}?fieldSelector=spec.replicas=1`);
  refused(unknown, 400, /field label not supported: spec.replicas/);
});

// S-151
test('server-side apply: keyed lists merge, plain lists and conflicts are taken whole', async () => {
  const apply = (manager: string, spec: object, query = '') =>
    server.request('PATCH', `${WIDGETS}/applied?fieldManager=${manager}${query}`, {
      body: widget('applied', spec),
      headers: { 'content-type': 'application/apply-patch+yaml' },
    });
  const one = await apply('one', { color: 'red', ports: [{ port: 1, name: 'a' }], args: ['x'], any: { k: { l: 1 } } });
  assert.equal(one.status, 201, one.text);
  const two = await apply('two', { color: 'red', ports: [{ port: 2 }], any: { k: { m: 2 } } });
  assert.deepEqual(two.json.spec.ports, [{ port: 1, name: 'a' }, { port: 2 }]);
  assert.deepEqual(two.json.spec.any, { k: { l: 1, m: 2 } });
  const conflict = await apply('two', { color: 'red', args: ['y'] });
  assert.equal(conflict.status, 409);
  assert.equal(conflict.json.details.causes[0].field, '.spec.args');
  const forced = await apply('two', { color: 'red', args: ['y'] }, '&force=true');
  assert.deepEqual(forced.json.spec.args, ['y']);
});

test('strategic merge patch is not for custom resources', async () => {
  const headers = { 'content-type': 'application/strategic-merge-patch+json' };
  const answer = await server.request('PATCH', `${WIDGETS}/applied`, { body: { spec: {} }, headers });
  assert.equal(answer.status, 415);
});

// Compat CustomResourceDefinitions, P0, yes: endpoints by scope, a namespace must be there
test('a namespaced kind has no cluster path, and a namespace must be there', async () => {
  const across = await server.request('POST', '/apis/example.com/v1/widgets', { body: widget('x', { color: 'red' }) });
  assert.equal(across.status, 404);
  const nowhere = await server.request('POST', '/apis/example.com/v1/namespaces/nowhere/widgets', {
    body: widget('x', { color: 'red' }),
  });
  refused(nowhere, 404, /namespaces "nowhere" not found/);
  assert.equal((await server.request('GET', '/apis/example.com/v1/widgets')).status, 200);
});

// S-152: A changed definition takes effect: open watches end, old objects get new defaults when read, and a stricter
//   schema lets stand what a write does not touch.
// Compat CustomResourceDefinitions, P1, yes: a changed definition ends watches and keeps data
test('a changed schema ends watches and gives old objects its defaults when they are read', async () => {
  const CRD = definition({
    name: 'grow',
    spec: { type: 'object', properties: { a: { type: 'string' }, gone: { type: 'string' } } },
  });
  await establish(server, CRD);
  const GROWS = '/apis/example.com/v1/namespaces/default/grows';
  const grow = { apiVersion: 'example.com/v1', kind: 'Grow', metadata: { name: 'old' }, spec: { a: 'x', gone: 'y' } };
  await server.create(GROWS, grow);
  const watch = await server.watch(`${GROWS}?watch=true&resourceVersion=0`);
  assert.equal((await watch.next())?.type, 'ADDED');
  const changed = structuredClone(CRD.spec.versions[0]) as { schema: { openAPIV3Schema: { properties: object } } };
  changed.schema.openAPIV3Schema.properties = {
    spec: { type: 'object', properties: { a: { type: 'string' }, b: { type: 'string', default: 'new' } } },
  };
  const patch = await server.request('PATCH', `${DEFINITIONS}/grows.example.com`, {
    body: { spec: { versions: [changed] } },
  });
  assert.equal(patch.status, 200, patch.text);
  await settled(server, 'grows.example.com');
  assert.equal(await watch.next(), undefined, 'the stream ended');
  const read = await server.request('GET', `${GROWS}/old`);
  assert.deepEqual(read.json.spec, { a: 'x', b: 'new' });
  const list = await server.request('GET', GROWS);
  assert.deepEqual(list.json.items[0].spec, { a: 'x', b: 'new' });
  const stored = server.store.get({ prefix: 'example.com/grows', namespace: 'default', name: 'old' });
  assert.deepEqual(
    stored?.object['spec'],
    { a: 'x', gone: 'y' },
    'what lies in the store is written when somebody writes',
  );
  await server.request('PATCH', `${GROWS}/old`, { body: { metadata: { labels: { touched: 'yes' } } } });
  const written = server.store.get({ prefix: 'example.com/grows', namespace: 'default', name: 'old' });
  assert.deepEqual(written?.object['spec'], { a: 'x', b: 'new' });
});

// S-152
// Compat CustomResourceDefinitions, P1, yes: ratcheting
test('a stricter schema lets stand what is not touched', async () => {
  const CRD = definition({
    name: 'ratchet',
    spec: {
      type: 'object',
      properties: { a: { type: 'string' }, b: { type: 'string' }, list: { type: 'array', items: { type: 'string' } } },
    },
  });
  await establish(server, CRD);
  const PATH = '/apis/example.com/v1/namespaces/default/ratchets';
  const spec = { a: 'long', b: 'x', list: ['long'] };
  await server.create(PATH, { apiVersion: 'example.com/v1', kind: 'Ratchet', metadata: { name: 'r' }, spec });
  const strict = structuredClone(CRD.spec.versions[0]) as { schema: { openAPIV3Schema: { properties: object } } };
  const short = { type: 'string', maxLength: 2 };
  strict.schema.openAPIV3Schema.properties = {
    spec: { type: 'object', properties: { a: short, b: short, list: { type: 'array', items: short } } },
  };
  await server.request('PATCH', `${DEFINITIONS}/ratchets.example.com`, { body: { spec: { versions: [strict] } } });
  await settled(server, 'ratchets.example.com');
  const change = (body: object) => server.request('PATCH', `${PATH}/r`, { body: { spec: body } });
  assert.equal((await change({ b: 'y' })).status, 200, 'a stays as it was');
  refused(await change({ a: 'other' }), 422, /spec.a: Too long/);
  refused(await change({ list: ['long', 'b'] }), 422, /spec.list\[0\]: Too long/);
  assert.equal((await change({ a: 'ok' })).status, 200);
});

// S-152
test('names that another definition has are not given twice, and are given when they become free', async () => {
  await establish(server, definition({ name: 'first', names: { shortNames: ['same'] } }));
  const second = definition({ name: 'second', names: { shortNames: ['same'] } });
  await server.request('POST', DEFINITIONS, { body: second });
  const waiting = await settled(server, 'seconds.example.com');
  const conditions = waiting.status.conditions.map((one: Record<string, string>) => `${one['type']} ${one['reason']}`);
  assert.deepEqual(conditions, ['NamesAccepted ShortNamesConflict', 'Established NotAccepted']);
  assert.equal((await server.request('GET', '/apis/example.com/v1/seconds')).status, 404);
  const watch = await server.watch(`${DEFINITIONS}?watch=true&fieldSelector=metadata.name=seconds.example.com`);
  await server.request('DELETE', `${DEFINITIONS}/firsts.example.com`);
  for (;;) {
    const event = await watch.next();
    if (event!.object.status.conditions.every((one: { status: string }) => one.status === 'True')) break;
  }
  watch.close();
  assert.equal((await server.request('GET', '/apis/example.com/v1/seconds')).status, 200);
});

test('the definition of a built-in kind stays', async () => {
  const crd = definition({ name: 'lease', group: 'coordination.k8s.io', names: { kind: 'Lease' } });
  const approved = {
    ...crd,
    metadata: { ...crd.metadata, annotations: { 'api-approved.kubernetes.io': 'unapproved, a test' } },
  };
  const created = await server.request('POST', DEFINITIONS, { body: approved });
  assert.equal(created.status, 201, created.text);
  const { status } = await settled(server, 'leases.coordination.k8s.io');
  const approval = status.conditions.find(
    (one: { type: string }) => one.type === 'KubernetesAPIApprovalPolicyConformant',
  );
  assert.equal(approval.reason, 'UnapprovedAnnotation');
  const lease = {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name: 'kept' },
    spec: { holderIdentity: 'me' },
  };
  const LEASES = '/apis/coordination.k8s.io/v1/namespaces/default/leases';
  await server.create(LEASES, lease);
  await server.request('DELETE', `${DEFINITIONS}/leases.coordination.k8s.io`);
  const watch = await server.watch(`${DEFINITIONS}?watch=true&resourceVersion=0`);
  for (;;) {
    const event = await watch.next();
    if (event!.object.metadata.name === 'leases.coordination.k8s.io' && event!.type === 'DELETED') break;
    if ((await server.request('GET', `${DEFINITIONS}/leases.coordination.k8s.io`)).status === 404) break;
  }
  watch.close();
  assert.equal((await server.request('GET', `${LEASES}/kept`)).status, 200);
});

test('a version of Kubernetes’ own kinds is theirs alone', async () => {
  const group = 'coordination.k8s.io';
  const schema = { spec: { type: 'object' } };
  const crd = definition({
    name: 'beside',
    group,
    versions: [version('v1', schema, { storage: true }), version('vfake', schema)],
  });
  const approved = {
    ...crd,
    metadata: { ...crd.metadata, annotations: { 'api-approved.kubernetes.io': 'unapproved' } },
  };
  assert.equal((await server.request('POST', DEFINITIONS, { body: approved })).status, 201);
  await settled(server, `besides.${group}`);
  const resources = async (of: string): Promise<string[]> =>
    (await server.request('GET', `/apis/${group}/${of}`)).json.resources.map((one: { name: string }) => one.name);
  assert.deepEqual(await resources('vfake'), ['besides']);
  assert.equal((await resources('v1')).includes('besides'), false);
  const at = (of: string) => server.request('GET', `/apis/${group}/${of}/namespaces/default/besides`);
  assert.equal((await at('vfake')).status, 200);
  assert.deepEqual([(await at('v1')).status, (await at('v1')).text], [404, '404 page not found\n']);
  await server.request('DELETE', `${DEFINITIONS}/besides.${group}`);
});

// S-153: The definition of a kind that the program serves by itself cannot be deleted, and a change of it is warned
//   about.
test('the definition of a kind that the program serves by itself cannot be deleted, and a change of it is warned about', async () => {
  const virt = await startServer({ resources: kubevirtResources() });
  try {
    const [crd] = kubevirtCrds(0);
    const created = await virt.request('POST', DEFINITIONS, { body: crd });
    assert.equal(created.status, 201, created.text);
    const at = `${DEFINITIONS}/${crd!.metadata.name}`;
    const before = virt.catalog.lookup('kubevirt.io', 'v1', 'virtualmachines');
    refused(await virt.request('DELETE', at), 403, /the kind is built into this server and cannot be taken away/);
    const patched = await virt.request('PATCH', at, { body: { spec: { names: { shortNames: ['mine'] } } } });
    assert.equal(patched.status, 200, patched.text);
    assert.match(patched.headers['warning'] ?? '', /a change of its definition has no effect/);
    const { status } = await settled(virt, crd!.metadata.name!);
    assert.ok(status.conditions.every((one: { status: string }) => one.status === 'True'));
    assert.equal(virt.catalog.lookup('kubevirt.io', 'v1', 'virtualmachines'), before, 'serving is left alone');
  } finally {
    await virt.stop();
  }
});

// Compat CustomResourceDefinitions, P2, yes: formats that nobody checks are warned about
test('formats that nobody checks are warned about', async () => {
  const properties = { a: { type: 'string', format: 'colour' }, b: { type: 'integer', format: 'int32' } };
  const crd = definition({ name: 'format', spec: { type: 'object', properties } });
  const created = await server.request('POST', DEFINITIONS, { body: crd });
  assert.equal(created.headers['warning'], '299 - "unrecognized format \\"colour\\""');
});

test('a cluster-scoped kind has no namespace', async () => {
  await establish(server, definition({ name: 'planet', scope: 'Cluster' }));
  const planet = { apiVersion: 'example.com/v1', kind: 'Planet', metadata: { name: 'earth' } };
  const created = await server.request('POST', '/apis/example.com/v1/planets', { body: planet });
  assert.equal(created.status, 201);
  assert.equal(created.json.metadata.namespace, undefined);
  const nested = await server.request('GET', '/apis/example.com/v1/namespaces/default/planets');
  assert.equal(nested.status, 404);
});
