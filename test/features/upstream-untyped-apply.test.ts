/** Server-side apply of what a kind does not have, and keys given twice: upstream's codes and words. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { definition, establish } from '../testkit/custom-definitions.ts';
import { type InProcessServer, startServer } from '../testkit/in-process-server.ts';

let server: InProcessServer;
before(async () => {
  server = await startServer();
  const ports = {
    type: 'array',
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': ['port', 'protocol'],
    items: {
      type: 'object',
      required: ['port', 'protocol'],
      properties: { port: { type: 'integer' }, protocol: { type: 'string' } },
    },
  };
  await establish(
    server,
    definition({ name: 'gadget', spec: { type: 'object', properties: { foo: { type: 'string' }, ports } } }),
  );
  const template = { type: 'object', 'x-kubernetes-embedded-resource': true, properties: { spec: { type: 'object' } } };
  await establish(
    server,
    definition({
      name: 'widget',
      spec: {
        type: 'object',
        'x-kubernetes-preserve-unknown-fields': true,
        properties: { foo: { type: 'string' }, template },
      },
    }),
  );
});
after(() => server.stop());

const apply = (path: string, body: string, fieldValidation: string) =>
  server.request('PATCH', `${path}?fieldManager=mgr&fieldValidation=${fieldValidation}`, {
    body: named(path.split('/')[7]!, body),
    headers: { 'content-type': 'application/apply-patch+yaml' },
  });

/** With a name: nothing is created under a name that the configuration does not give. */
function named(name: string, body: string): string {
  const own = `name: ${name}, namespace: default`;
  const metadata = /^metadata: \{/m;
  return metadata.test(body) ? body.replace(metadata, `metadata: {${own}, `) : `${body}metadata: {${own}}\n`;
}

const GADGET = '/apis/example.com/v1/namespaces/default/gadgets/one';
const WIDGET = '/apis/example.com/v1/namespaces/default/widgets/one';
const DEPLOYMENT = '/apis/apps/v1/namespaces/default/deployments/one';
const head = (apiVersion: string, kind: string): string => `apiVersion: ${apiVersion}\nkind: ${kind}\n`;
const gadget = head('example.com/v1', 'Gadget');
const widget = head('example.com/v1', 'Widget');
const deployment = head('apps/v1', 'Deployment');
const CONTAINER = 'spec:\n  template:\n    spec:\n      containers:\n      - name: a\n';

const noText = (path: string, kind: string): string => `${path}: expected string, got ${kind}`;

const UNDECLARED: readonly (readonly [name: string, path: string, body: string, problem: string])[] = [
  ['a field of the root', GADGET, `${gadget}extra: 1\n`, '.extra'],
  ['a field of spec', GADGET, `${gadget}spec: {foo: a, bar: b}\n`, '.spec.bar'],
  ['metadata', GADGET, `${gadget}metadata: {extra: 1}\n`, '.metadata.extra'],
  [
    'an item with keys is named by them',
    GADGET,
    `${gadget}spec: {ports: [{port: 80, protocol: TCP, x: 1}]}\n`,
    '.spec.ports[port=80,protocol="TCP"].x',
  ],
  [
    'what is declared below an open field',
    WIDGET,
    `${widget}spec: {any: 1, template: {kind: Sub, metadata: {extra: 1}}}\n`,
    '.spec.template.metadata.extra',
  ],
  ['a built-in kind', DEPLOYMENT, `${deployment}spec: {unknown: 1}\n`, '.spec.unknown'],
  [
    'a container of a built-in kind',
    DEPLOYMENT,
    `${deployment}${CONTAINER}        x: 1\n`,
    '.spec.template.spec.containers[name="a"].x',
  ],
];
for (const [name, path, body, problem] of UNDECLARED) {
  // S-207
  // Compat Server-side apply, P0, yes: fields a kind does not have: 500 `failed to create typed patch object`, whatever
  //   fieldValidation says
  test(`an undeclared field is refused whatever fieldValidation says: ${name}`, async () => {
    const [apiVersion, kind] = [...body.matchAll(/^(?:apiVersion|kind): (.*)$/gm)].map(([, value]) => value);
    for (const mode of ['Ignore', 'Warn', 'Strict']) {
      const { status, json } = await apply(path, body, mode);
      assert.equal(status, 500, mode);
      assert.equal(json.reason, undefined);
      const whose = `default/one; ${apiVersion}, Kind=${kind}`;
      assert.equal(
        json.message,
        `failed to create typed patch object (${whose}): ${problem}: field not declared in schema`,
      );
    }
    assert.equal((await server.request('GET', path)).status, 404, 'nothing was made');
  });
}

const MISTYPED: readonly (readonly [name: string, path: string, body: string, problem: string])[] = [
  ['a number for a text', GADGET, `${gadget}spec: {foo: 8080}\n`, noText('.spec.foo', 'number')],
  ['a truth for a text', GADGET, `${gadget}spec: {foo: true}\n`, noText('.spec.foo', 'bool')],
  ['a map for a text', GADGET, `${gadget}spec: {foo: {b: [x], a: 1.5}}\n`, noText('.spec.foo', 'object')],
  ['a label', GADGET, `${gadget}metadata: {labels: {a: 1}}\n`, noText('.metadata.labels.a', 'number')],
  ['a text for a list', GADGET, `${gadget}spec: {ports: none}\n`, '.spec.ports: expected list, got string'],
  ['a list for a map', GADGET, `${gadget}spec: [a, 1]\n`, '.spec: expected map, got array'],
  [
    'an item with keys is named by them',
    GADGET,
    `${gadget}spec: {ports: [{port: "80", protocol: TCP}]}\n`,
    '.spec.ports[port="80",protocol="TCP"].port: expected numeric (int or float), got string',
  ],
  [
    'a number of a built-in kind',
    DEPLOYMENT,
    `${deployment}spec: {replicas: lots}\n`,
    '.spec.replicas: expected numeric (int or float), got string',
  ],
  [
    'a truth of a built-in kind',
    DEPLOYMENT,
    `${deployment}spec: {paused: "no"}\n`,
    '.spec.paused: expected boolean, got string',
  ],
  [
    'a list of a built-in kind',
    DEPLOYMENT,
    `${deployment}${CONTAINER}        env: {A: b}\n`,
    '.spec.template.spec.containers[name="a"].env: expected list, got object',
  ],
  [
    'a text of a built-in kind',
    DEPLOYMENT,
    `${deployment}${CONTAINER}        env: [{name: PORT, value: 80}]\n`,
    noText('.spec.template.spec.containers[name="a"].env[name="PORT"].value', 'number'),
  ],
];
for (const [name, path, body, problem] of MISTYPED) {
  // S-227: A value of the wrong type in an apply is refused as upstream refuses it.
  // Compat Server-side apply, P0, yes: values of the wrong type in an apply: the same
  test(`a value of the wrong type is refused as upstream refuses it: ${name}`, async () => {
    const [apiVersion, kind] = [...body.matchAll(/^(?:apiVersion|kind): (.*)$/gm)].map(([, value]) => value);
    const { status, json } = await apply(path, body, 'Warn');
    assert.equal(status, 500, json.message);
    const whose = `default/one; ${apiVersion}, Kind=${kind}`;
    assert.equal(json.message, `failed to create typed patch object (${whose}): ${problem}`);
  });
}

test('any scalar will do where upstream does not look, and null everywhere', async () => {
  const path = '/api/v1/namespaces/default/pods/scalars?dryRun=All';
  const pod = `${head('v1', 'Pod')}spec: {hostNetwork: null, containers: [{name: a, image: i, resources: {limits: {cpu: 1}}}]}\n`;
  const sent = await server.request('PATCH', `${path}&fieldManager=mgr`, {
    body: named('scalars', pod),
    headers: { 'content-type': 'application/apply-patch+yaml' },
  });
  assert.equal(sent.status, 201, sent.text);
});

test('several problems are listed', async () => {
  const { json } = await apply(
    GADGET,
    `${gadget}spec: {foo: 3, b: 2, c: 1}\nmetadata: {labels: [], extra: 1}\n`,
    'Warn',
  );
  const lines = json.message.split('\n');
  assert.match(lines[0], /\): errors:$/);
  // The first field of a map that is not declared ends the map.
  assert.deepEqual(lines.slice(1), [
    `  ${noText('.spec.foo', 'number')}`,
    '  .spec.b: field not declared in schema',
    '  .metadata.labels: expected map, got array',
    '  .metadata.extra: field not declared in schema',
  ]);
});

test('an open part takes what is said', async () => {
  const { status, json } = await apply(WIDGET, `${widget}spec: {any: {thing: 1}}\n`, 'Strict');
  assert.equal(status, 201);
  assert.deepEqual(json.spec, { any: { thing: 1 } });
});

test('a key given twice is refused by its line in strict mode, and warned of otherwise', async () => {
  const path = WIDGET.replace('one', 'twice');
  const body = `\n${widget}spec:\n  foo: a\n  foo: b\n  nested:\n    x: 1\n    x:\n      y: 2\n`;
  const strict = await apply(path, body, 'Strict');
  assert.equal(strict.status, 400);
  assert.equal(
    strict.json.message,
    'error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:\n' +
      '  line 6: key "foo" already set in map\n  line 10: key "x" already set in map',
  );
  const warned = await apply(path, body, 'Warn');
  assert.equal(warned.status, 201);
  assert.match(warned.headers['warning'] ?? '', /line 6: key \\"foo\\" already set in map/);
  const quiet = await apply(path, body, 'Ignore');
  assert.equal(quiet.headers['warning'], undefined);
});

// Compat Writing, P1, yes: keys given twice in YAML are named by their line
test('YAML bodies that are no patches name the line, too, before unknown fields', async () => {
  const body = `${head('v1', 'ConfigMap')}metadata:\n  name: twice\n  extra: 1\ndata:\n  a: x\n  a: z\n`;
  const post = (mode: string) =>
    server.request('POST', `/api/v1/namespaces/default/configmaps?fieldValidation=${mode}`, {
      body,
      headers: { 'content-type': 'application/yaml' },
    });
  const { status, json } = await post('Strict');
  assert.equal(status, 400);
  assert.ok(
    json.message.endsWith(
      'strict decoding error: yaml: unmarshal errors:\n  line 8: key "a" already set in map, unknown field "metadata.extra"',
    ),
    json.message,
  );
  assert.match((await post('Warn')).headers['warning'] ?? '', /line 8: key .*unknown field/s);
});

// S-266
test('what an apply sets to null is its own, and is what the kind makes of null', async () => {
  const path = '/apis/apps/v1/namespaces/default/deployments/nulls';
  const template = 'template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}';
  const body = `${deployment}spec: {replicas: null, selector: {matchLabels: {a: b}}, ${template}}\n`;
  const { status, json, text } = await apply(path, body, 'Strict');
  assert.equal(status, 201, text);
  assert.equal(json.spec.replicas, 1);
  assert.deepEqual(json.metadata.managedFields[0].fieldsV1['f:spec']['f:replicas'], {});
});

// S-266
// Compat Server-side apply, P1, yes: custom kinds: an apply to `/status` owns the status alone, a PUT there what it
//   sends besides spec and metadata; `managedFields: []` is not heard
test('who owns what is written to the status of a custom kind', async () => {
  await establish(
    server,
    definition({
      name: 'sprocket',
      spec: { type: 'object', properties: { foo: { type: 'string' } } },
      root: {
        properties: {
          spec: { type: 'object', properties: { foo: { type: 'string' } } },
          status: { type: 'object', properties: { ready: { type: 'boolean' } } },
          more: { type: 'string' },
        },
      },
      version: { subresources: { status: {} } },
    }),
  );
  const path = '/apis/example.com/v1/namespaces/default/sprockets/one';
  const sprocket = head('example.com/v1', 'Sprocket');
  const made = await apply(path, `${sprocket}spec: {foo: a}\n`, 'Strict');
  assert.equal(made.status, 201, made.text);

  // An apply: of the status alone, whatever the configuration says of spec and metadata.
  const said = `${sprocket}metadata: {labels: {a: b}}\nspec: {foo: b}\nstatus: {ready: true}\n`;
  const applied = await apply(`${path}/status`, said, 'Strict');
  assert.equal(applied.status, 200, applied.text);
  const entryOf = (object: { metadata: { managedFields: { manager: string; subresource?: string }[] } }, of: string) =>
    object.metadata.managedFields.find(({ manager, subresource }) => manager === of && subresource === 'status');
  assert.deepEqual(entryOf(applied.json, 'mgr'), {
    ...entryOf(applied.json, 'mgr'),
    fieldsV1: { 'f:status': { 'f:ready': {} } },
  });

  // A PUT: of what it sends besides the two, though none of it is stored.
  const { json: live } = await server.request('GET', path);
  const put = { ...live, spec: { foo: 'c' }, more: 'x', status: { ready: false } };
  const updated = await server.request('PUT', `${path}/status?fieldManager=put`, { body: put });
  assert.equal(updated.status, 200, updated.text);
  assert.deepEqual(
    [updated.json.spec, updated.json.more, updated.json.status],
    [{ foo: 'a' }, undefined, { ready: false }],
  );
  assert.deepEqual(entryOf(updated.json, 'put'), {
    ...entryOf(updated.json, 'put'),
    fieldsV1: { 'f:more': {}, 'f:status': { 'f:ready': {} } },
  });

  // An empty list forgets nobody; a list of one empty entry does.
  const forget = (managedFields: object[]) =>
    server
      .request('PATCH', path, { body: { metadata: { managedFields } } })
      .then(({ json }) => json.metadata.managedFields);
  assert.equal((await forget([])).length, updated.json.metadata.managedFields.length);
  assert.equal(await forget([{}]), undefined);
});
