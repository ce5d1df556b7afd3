/** Mutating webhooks: what they may change of an object, and what becomes of the rest. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { definition, establish, version } from '../testkit/custom-definitions.ts';
import { jsonPatch, type Review } from '../testkit/webhook-server.ts';
import { CONFIGMAPS, configMap, GROUP, webhookSuite } from '../testkit/webhook-suite.ts';

const OWNER = { apiVersion: 'v1', kind: 'ConfigMap', name: 'owner', uid: '00000000-0000-0000-0000-000000000001' };

const remove = (field: string) => ({ op: 'remove', path: `/metadata/managedFields/0/${field}` });
const replace = (field: string, value: unknown) => ({ ...remove(field), op: 'replace', value });
/** What a webhook does to the ownership of a ConfigMap of that name, and what its client hears. */
const BLOTS: Readonly<Record<string, readonly [readonly object[], string]>> = {
  unversioned: [[remove('apiVersion'), remove('fieldsV1'), remove('fieldsType')], 'apiVersion must not be empty'],
  untyped: [[remove('fieldsType')], 'missing fieldsType in managed fields entry 0'],
  mistyped: [
    [replace('fieldsType', 'FieldsV2')],
    'metadata.managedFields[0].fieldsType: Invalid value: "FieldsV2": must be `FieldsV1`',
  ],
  unoperated: [
    [replace('operation', 'Guess'), replace('fieldsType', 'FieldsV2')],
    '[metadata.managedFields[0].operation: Invalid value: "Guess": must be `Apply` or `Update`, metadata.managedFields[0].fieldsType: Invalid value: "FieldsV2": must be `FieldsV1`]',
  ],
};

/** What a webhook makes of the kind of a ConfigMap of that name, and what its client hears. */
const KINDS: Readonly<Record<string, readonly [op: object, message: string | undefined, reason?: string]>> = {
  bare: [{ op: 'remove', path: '/kind' }, undefined],
  unversioned: [{ op: 'remove', path: '/apiVersion' }, undefined],
  unheard: [{ op: 'replace', path: '/kind', value: 'Nothing' }, 'it is of kind Nothing of v1, not ConfigMap of v1'],
  secret: [{ op: 'replace', path: '/kind', value: 'Secret' }, 'it is of kind Secret of v1, not ConfigMap of v1'],
  numbered: [
    { op: 'replace', path: '/kind', value: 7 },
    "Internal error occurred: couldn't get version/kind; json parse error: kind: expected string, got number",
    'InternalError',
  ],
};
/** What a webhook makes of a custom resource. */
const CUSTOM_KINDS: typeof KINDS = {
  mistyped: [
    { op: 'add', path: '/spec', value: { size: 7 } },
    'Door.example.com "mistyped" is invalid: spec.size: Invalid value: "integer": spec.size in body must be of type string: "integer"',
    'Invalid',
  ],
  other: [
    { op: 'replace', path: '/kind', value: 'Gate' },
    'Gate.example.com "other" is invalid: kind: Invalid value: "Gate": must be Door',
    'Invalid',
  ],
  elsewhere: [
    { op: 'replace', path: '/apiVersion', value: 'example.com/v9' },
    'request to convert CR from an invalid group/version: example.com/v9',
  ],
  second: [{ op: 'replace', path: '/apiVersion', value: 'example.com/v2' }, undefined],
};

const suite = webhookSuite({
  '/call-it': ({ request }: Review) =>
    jsonPatch({ ...KINDS, ...CUSTOM_KINDS }[request.object.metadata.name as string]![0]),
  '/allow': () => ({}),
  '/deny': () => ({ allowed: false, status: { message: 'not today', code: 418, reason: 'Teapot' } }),
  '/label': () => jsonPatch({ op: 'add', path: '/metadata/labels', value: { hooked: 'yes' } }),
  '/unknown': () =>
    jsonPatch({ op: 'add', path: '/nonsense', value: 1 }, { op: 'add', path: '/data', value: { from: 'hook' } }),
  '/count': ({ request }: Review) =>
    jsonPatch({ op: 'add', path: '/data/count', value: `${Number(request.object.data.count ?? 0) + 1}` }),
  '/own-twice': () => jsonPatch({ op: 'add', path: '/metadata/ownerReferences', value: [OWNER, OWNER] }),
  '/blot': ({ request }: Review) => jsonPatch(...BLOTS[request.object.metadata.name as keyof typeof BLOTS]![0]),
  '/seal': () => jsonPatch({ op: 'add', path: '/data/sealed', value: 'yes' }),
  '/rename': () => jsonPatch({ op: 'add', path: '/metadata/namespace', value: 'kube-system' }),
  '/take-identity': () => jsonPatch({ op: 'add', path: '/metadata/uid', value: 'mine' }),
  '/scale-up': () =>
    jsonPatch({ op: 'add', path: '/spec/replicas', value: 7 }, { op: 'add', path: '/status', value: { replicas: 9 } }),
  '/attach': () => jsonPatch({ op: 'add', path: '/container', value: 'c' }, { op: 'add', path: '/nonsense', value: 1 }),
});
const { annotations, configure, post } = suite;

// S-157: Admission webhooks are called as upstream calls them, and their failures are worded as upstream words them.
// Compat Admission and quota, P0, yes: mutating pass, validation, validating pass
test('a mutating webhook sees the whole review and its patch is applied', async () => {
  await configure('Mutating', 'm', { path: '/label' });
  const { status, json } = await post(configMap(), '?fieldManager=me&fieldValidation=Strict');
  assert.equal(status, 201);
  assert.deepEqual(json.metadata.labels, { hooked: 'yes' });
  const [{ path, body }] = suite.hooks.calls as [(typeof suite.hooks.calls)[0]];
  assert.equal(path, '/label?timeout=10s');
  assert.equal(body.kind, 'AdmissionReview');
  assert.equal(body.apiVersion, 'admission.k8s.io/v1');
  const { uid, object, ...request } = body.request;
  assert.match(uid, /^[0-9a-f-]{36}$/);
  assert.equal(object.data.a, 'b');
  assert.deepEqual(request, {
    kind: { group: '', version: 'v1', kind: 'ConfigMap' },
    resource: { group: '', version: 'v1', resource: 'configmaps' },
    requestKind: { group: '', version: 'v1', kind: 'ConfigMap' },
    requestResource: { group: '', version: 'v1', resource: 'configmaps' },
    name: 'one',
    namespace: 'default',
    operation: 'CREATE',
    userInfo: { username: 'tester', groups: ['system:masters', 'system:authenticated'] },
    dryRun: false,
    options: { kind: 'CreateOptions', apiVersion: 'meta.k8s.io/v1', fieldManager: 'me', fieldValidation: 'Strict' },
    oldObject: null,
  });
  assert.deepEqual(JSON.parse(annotations.get('mutation.webhook.admission.k8s.io/round_0_index_0')!), {
    configuration: 'm',
    webhook: 'label.example.com',
    mutated: true,
  });
  const patch = JSON.parse(annotations.get('patch.webhook.admission.k8s.io/round_0_index_0')!);
  assert.deepEqual(
    { ...patch, patch: patch.patch.map((operation: { op: string }) => operation.op) },
    { configuration: 'm', webhook: 'label.example.com', patch: ['add'], patchType: 'JSONPatch' },
  );
});

test('what a webhook sets is owned by nobody, unknown fields are dropped', async () => {
  await configure('Mutating', 'm', { path: '/unknown' });
  const { status, json } = await post();
  assert.equal(status, 201);
  assert.equal(json.nonsense, undefined);
  assert.deepEqual(json.data, { from: 'hook' });
  assert.deepEqual(json.metadata.managedFields[0].fieldsV1, { 'f:data': { '.': {}, 'f:a': {} } });
});

test('ownership that a webhook has damaged is put back, and the warning says what was wrong', async () => {
  await configure('Mutating', 'm', { path: '/blot' });
  for (const [name, [, problem]] of Object.entries(BLOTS)) {
    const { status, json, headers } = await post(configMap(name));
    assert.equal(status, 201, json.message);
    assert.equal(json.metadata.managedFields[0].fieldsType, 'FieldsV1');
    const expected = `.metadata.managedFields was in an invalid state after admission; this could be caused by an outdated mutating admission controller; please fix your requests: ${problem}`;
    assert.equal(headers['warning'], `299 - "${expected.replaceAll('"', '\\"')}"`);
  }
});

test('owners named twice count once, and the warning says who named them', async () => {
  const twice = (when: string) =>
    new RegExp(`^299 - "\\.metadata\\.ownerReferences contains duplicate entries${when}; API`);
  const sent = await post({ ...configMap(), metadata: { name: 'sent-twice', ownerReferences: [OWNER, OWNER] } });
  assert.match(sent.headers['warning']!, twice(''));
  const patched = await suite.server.request('PATCH', `${CONFIGMAPS}/sent-twice`, {
    headers: { 'content-type': 'application/json-patch+json' },
    body: [{ op: 'add', path: '/metadata/ownerReferences/-', value: OWNER }],
  });
  assert.match(patched.headers['warning']!, twice(' after mutating admission happens'));
  await configure('Mutating', 'm', { path: '/own-twice' });
  const created = await post({ ...configMap(), metadata: { name: 'made-twice' } });
  const updated = await suite.server.request('PUT', `${CONFIGMAPS}/made-twice`, {
    body: { ...created.json, data: { a: 'b' } },
  });
  for (const { headers } of [created, updated]) {
    assert.match(headers['warning']!, twice(' after mutating admission happens'));
  }
  for (const { json } of [sent, patched, created, updated]) assert.deepEqual(json.metadata.ownerReferences, [OWNER]);
});

// S-157
// Compat Admission and quota, P1, yes: reinvocation, once
test('a change by a later webhook has the earlier one asked again, once, when it allows that', async () => {
  await configure('Mutating', 'a', { path: '/count', reinvocationPolicy: 'IfNeeded' });
  await configure('Mutating', 'b', { path: '/seal' });
  const { json } = await post();
  assert.deepEqual(json.data, { a: 'b', count: '2', sealed: 'yes' });
  assert.deepEqual(
    suite.hooks.calls.map(({ path }) => path.split('?')[0]),
    ['/count', '/seal', '/count'],
  );
});

test('configurations are asked by name, webhooks in their order', async () => {
  await configure('Mutating', 'z', { path: '/allow' });
  await configure('Mutating', 'a', { path: '/seal' }, { path: '/label' });
  await post();
  assert.deepEqual(
    suite.hooks.calls.map(({ path }) => path.split('?')[0]),
    ['/seal', '/label', '/allow'],
  );
});

test('a patch of the options of a connection is taken', async () => {
  const pods = '/api/v1/namespaces/default/pods';
  const spec = { containers: [{ name: 'c', image: 'i' }] };
  await suite.server.create(pods, { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'patched' }, spec });
  const rules = [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CONNECT'], resources: ['pods/attach'] }];
  await configure('Mutating', 'm', { path: '/attach', rules });
  await configure('Validating', 'v', { path: '/deny', rules });
  assert.equal((await suite.server.request('POST', `${pods}/patched/attach`)).status, 418);
  const { object } = suite.hooks.calls[1]!.body.request;
  assert.deepEqual(object, { kind: 'PodAttachOptions', apiVersion: 'v1', container: 'c' });
});

// S-191: A webhook is bound by the walls that bind a client, and whoever may not read parameters may not write the
//   policy that uses them.
test('a webhook is bound by the walls that bind a client', async () => {
  await configure('Mutating', 'm', { path: '/rename' });
  const moved = await post();
  assert.equal(moved.status, 400);
  assert.match(moved.json.message, /namespace of the provided object does not match/);
  await suite.server.request('DELETE', `${GROUP}/mutatingwebhookconfigurations/m`);

  const deployments = '/apis/apps/v1/namespaces/default/deployments';
  await suite.server.create(deployments, {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'd' },
    spec: {
      selector: { matchLabels: { a: 'b' } },
      template: { metadata: { labels: { a: 'b' } }, spec: { containers: [{ name: 'c', image: 'i' }] } },
    },
  });
  const rules = [{ apiGroups: ['apps'], apiVersions: ['v1'], resources: ['deployments'], operations: ['UPDATE'] }];
  await configure('Mutating', 'm', { path: '/scale-up', rules });
  const { json } = await suite.server.request('PATCH', `${deployments}/d`, {
    body: { metadata: { labels: { x: 'y' } } },
  });
  assert.deepEqual([json.spec.replicas, json.metadata.generation], [7, 2]);
  assert.equal(json.status?.replicas, undefined);
  await suite.server.request('DELETE', `${GROUP}/mutatingwebhookconfigurations/m`);
  await configure('Mutating', 'm', { path: '/take-identity', rules });
  const taken = await suite.server.request('PATCH', `${deployments}/d`, { body: { metadata: { labels: { x: 'z' } } } });
  assert.equal(taken.status, 422);
  assert.match(taken.json.message, /metadata\.uid: Invalid value: "mine": field is immutable/);
});

test('an object that a webhook calls something else is refused, one that it calls nothing stays what it was', async () => {
  await suite.configure('Mutating', 'm', { path: '/call-it' });
  for (const [name, [, message, reason]] of Object.entries(KINDS)) {
    const { status, json } = await post(configMap(name, { immutable: false, surplus: 1 }));
    assert.equal(status, message === undefined ? 201 : 500, json.message);
    assert.deepEqual([json.message, json.reason], [message, reason], name);
    if (message === undefined) assert.deepEqual([json.kind, json.apiVersion], ['ConfigMap', 'v1']);
  }
});

test('a custom resource may become one of another version, of no other kind and type', async () => {
  const spec = { type: 'object', properties: { size: { type: 'string' } } };
  const versions = [version('v1', { spec }, { storage: true }), version('v2', {})];
  await establish(suite.server, definition({ name: 'door', versions }));
  const rules = [{ apiGroups: ['example.com'], apiVersions: ['v1'], resources: ['doors'], operations: ['CREATE'] }];
  await suite.configure('Mutating', 'm', { path: '/call-it', rules });
  for (const [name, [, message, reason]] of Object.entries(CUSTOM_KINDS)) {
    const { status, json } = await suite.server.request('POST', '/apis/example.com/v1/namespaces/default/doors', {
      body: { apiVersion: 'example.com/v1', kind: 'Door', metadata: { name } },
    });
    assert.equal(status, message === undefined ? 201 : reason === 'Invalid' ? 422 : 500, json.message);
    assert.deepEqual([json.message, json.reason], [message, reason], name);
    if (message === undefined) assert.equal(json.apiVersion, 'example.com/v1');
  }
});
