/** MutatingAdmissionPolicy: what its mutations build, in which order, and what it refuses. */
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { type InProcessServer, startServer } from '../testkit/in-process-server.ts';

const GROUP = '/apis/admissionregistration.k8s.io/v1';
const API_VERSION = 'admissionregistration.k8s.io/v1';
const CONFIGMAPS = '/api/v1/namespaces/default/configmaps';
const RULE = { apiGroups: [''], apiVersions: ['v1'], resources: ['configmaps'], operations: ['CREATE', 'UPDATE'] };

let server: InProcessServer;

before(async () => {
  server = await startServer();
});

after(() => server.stop());

beforeEach(async () => {
  for (const kind of ['policies', 'policybindings']) {
    await server.request('DELETE', `${GROUP}/mutatingadmission${kind}`);
    await server.request('DELETE', `${GROUP}/validatingadmission${kind}`);
  }
  await server.request('DELETE', CONFIGMAPS);
});

const apply = (expression: string) => ({ patchType: 'ApplyConfiguration', applyConfiguration: { expression } });
const patch = (expression: string) => ({ patchType: 'JSONPatch', jsonPatch: { expression } });

async function policy(
  name: string,
  mutations: object[],
  { binding = {}, rules = [RULE], ...spec }: { binding?: object; rules?: object[]; [field: string]: unknown } = {},
): Promise<void> {
  await server.create(`${GROUP}/mutatingadmissionpolicies`, {
    apiVersion: API_VERSION,
    kind: 'MutatingAdmissionPolicy',
    metadata: { name },
    spec: { matchConstraints: { resourceRules: rules }, reinvocationPolicy: 'Never', mutations, ...spec },
  });
  await server.create(`${GROUP}/mutatingadmissionpolicybindings`, {
    apiVersion: API_VERSION,
    kind: 'MutatingAdmissionPolicyBinding',
    metadata: { name: `bind-${name}` },
    spec: { policyName: name, ...binding },
  });
}

const post = (more: object = {}) =>
  server.request('POST', CONFIGMAPS, {
    body: {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'one', labels: { own: 'yes' } },
      data: { a: 'b' },
      ...more,
    },
  });

// S-159: MutatingAdmissionPolicies merge as server-side apply merges and come to own nothing; atomic values cannot be
//   set in part.
// Compat Admission and quota, P1, yes: MutatingAdmissionPolicy
test('an ApplyConfiguration is merged as server-side apply merges, and owns nothing', async () => {
  await policy('p', [
    apply("Object{metadata: Object.metadata{labels: {'policy': 'was-here'}}, data: {'n': string(size(object.data))}}"),
  ]);
  const { status, json } = await post();
  assert.equal(status, 201);
  assert.deepEqual(json.metadata.labels, { own: 'yes', policy: 'was-here' });
  assert.deepEqual(json.data, { a: 'b', n: '1' });
  const [{ fieldsV1 }] = json.metadata.managedFields;
  assert.deepEqual(fieldsV1['f:data'], { '.': {}, 'f:a': {} });
});

test('a keyed list is merged by its key', async () => {
  await policy(
    'sidecar',
    [apply("Object{spec: Object.spec{containers: [Object.spec.containers{name: 'mesh', image: 'mesh:1'}]}}")],
    { rules: [{ ...RULE, resources: ['pods'], operations: ['CREATE'] }] },
  );
  const { json } = await server.request('POST', '/api/v1/namespaces/default/pods', {
    body: {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'p' },
      spec: { containers: [{ name: 'c', image: 'c:1' }] },
    },
  });
  const containers = json.spec.containers as { name: string; imagePullPolicy: string }[];
  assert.deepEqual(containers.map(({ name }) => name).sort(), ['c', 'mesh']);
  // Defaulted again after the mutation.
  assert.ok(containers.every(({ imagePullPolicy }) => imagePullPolicy === 'IfNotPresent'));
});

// S-159
test('JSONPatch: operations in order, escaped keys, a test that fails changes nothing', async () => {
  await policy('p', [
    patch(`[
      JSONPatch{op: "add", path: "/metadata/annotations", value: {}},
      JSONPatch{op: "add", path: "/metadata/annotations/" + jsonpatch.escapeKey("example.com/a"), value: "1"},
      JSONPatch{op: "copy", from: "/data/a", path: "/data/c"},
      JSONPatch{op: "remove", path: "/data/a"}
    ]`),
    patch('[JSONPatch{op: "test", path: "/data/c", value: "no"}, JSONPatch{op: "remove", path: "/data/c"}]'),
  ]);
  const { status, json } = await post();
  assert.equal(status, 201, JSON.stringify(json));
  assert.deepEqual(json.metadata.annotations, { 'example.com/a': '1' });
  assert.deepEqual(json.data, { c: 'b' });
});

test('variables, parameters and match conditions work as in validating policies', async () => {
  await server.create('/api/v1/namespaces/default/secrets', {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'team', labels: { team: 'blue' } },
  });
  await policy('p', [apply("Object{metadata: Object.metadata{labels: {'team': variables.team}}}")], {
    paramKind: { apiVersion: 'v1', kind: 'Secret' },
    variables: [{ name: 'team', expression: 'string(params.metadata.labels.team)' }],
    matchConditions: [{ name: 'own', expression: "object.metadata.?labels.own.orValue('') == 'yes'" }],
    binding: { paramRef: { name: 'team', parameterNotFoundAction: 'Deny' } },
  });
  assert.equal((await post()).json.metadata.labels.team, 'blue');
  const other = await post({ metadata: { name: 'two' } });
  assert.equal(other.json.metadata.labels, undefined);
});

test('policies run by name, each on what the one before left, and validation sees the result', async () => {
  await policy('b', [apply("Object{data: {'order': object.data.order + 'b'}}")]);
  await policy('a', [apply("Object{data: {'order': 'a'}}")]);
  await server.create(`${GROUP}/validatingadmissionpolicies`, {
    apiVersion: API_VERSION,
    kind: 'ValidatingAdmissionPolicy',
    metadata: { name: 'v' },
    spec: { matchConstraints: { resourceRules: [RULE] }, validations: [{ expression: "object.data.order == 'ab'" }] },
  });
  await server.create(`${GROUP}/validatingadmissionpolicybindings`, {
    apiVersion: API_VERSION,
    kind: 'ValidatingAdmissionPolicyBinding',
    metadata: { name: 'v' },
    spec: { policyName: 'v', validationActions: ['Deny'] },
  });
  const { status, json } = await post();
  assert.equal(status, 201, JSON.stringify(json));
  assert.equal(json.data.order, 'ab');
});

test('an earlier policy is asked again after a later change when it allows that', async () => {
  const seen = "object.data.?seen.orValue('')";
  await policy('a', [apply(`Object{data: {'seen': ${seen} + 'x', 'late': string(object.data.?b.orValue('no'))}}`)], {
    reinvocationPolicy: 'IfNeeded',
  });
  await policy('b', [apply("Object{data: {'b': 'set'}}")]);
  const { json } = await post();
  assert.deepEqual(json.data, { a: 'b', b: 'set', late: 'set', seen: 'xx' });
});

// S-304: Mutating policies are asked again, decoded and refused as upstream does.
test('a policy that allows it is asked twice, even when it was the last and changed nothing that others see', async () => {
  const count = "string(int(object.data.?n.orValue('0')) + 1)";
  await policy('a', [apply(`Object{data: {'n': ${count}}}`)], { reinvocationPolicy: 'IfNeeded' });
  assert.equal((await post()).json.data.n, '2');
  await server.request('DELETE', CONFIGMAPS);
  await policy('b', [apply(`Object{data: {'m': object.data.?m.orValue('') + 'x'}}`)]);
  assert.deepEqual((await post()).json.data, { a: 'b', n: '2', m: 'x' });
});

// S-304
// Compat Admission and quota, P1, yes: mutating policies are asked twice with IfNeeded; JSON patches are decoded
//   strictly; 403 with reason Invalid
test('the result of a JSON patch is decoded strictly', async () => {
  await policy('p', [patch('[JSONPatch{op: "add", path: "/nonsense", value: "1"}]')], { failurePolicy: 'Ignore' });
  const { status, json } = await post();
  assert.deepEqual(
    [status, json.message],
    [500, 'Internal error occurred: strict decoding error: unknown field "nonsense"'],
  );
});

// S-304
test('what a mutation may not do is refused in upstream’s words', async () => {
  const cases: [object, RegExp][] = [
    [
      apply("Object{data: {'x': object.data.absent}}"),
      /^policy 'p' with binding 'bind-p' denied request: expression '.*' resulted in error: no such key: absent$/,
    ],
    [
      patch('[JSONPatch{op: "remove", path: "/data/absent"}]'),
      /^policy 'p' with binding 'bind-p' denied request: JSON Patch: /,
    ],
    [
      apply("Object{nonsense: 'x'}"),
      /denied request: error applying patch: failed to convert patch object to typed object: \.nonsense: field not declared in schema$/,
    ],
  ];
  for (const [mutation, message] of cases) {
    await policy('p', [mutation]);
    const { status, json } = await post();
    assert.equal(status, 403, json.message);
    assert.equal(json.reason, 'Invalid');
    assert.match(json.message, message);
    assert.deepEqual(json.details.causes, [{ message: json.message }]);
    await server.request('DELETE', `${GROUP}/mutatingadmissionpolicies`);
    await server.request('DELETE', `${GROUP}/mutatingadmissionpolicybindings`);
  }
});

// S-159
test('atomic values may not be set in part', async () => {
  await policy('p', [apply("Object{spec: Object.spec{nodeSelector: {'a': 'b'}}}")], {
    rules: [{ ...RULE, resources: ['pods'], operations: ['CREATE'] }],
  });
  const { status, json } = await server.request('POST', '/api/v1/namespaces/default/pods', {
    body: { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'q' }, spec: { containers: [{ name: 'c', image: 'i' }] } },
  });
  assert.equal(status, 403);
  assert.equal(
    json.message,
    "policy 'p' with binding 'bind-p' denied request: error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: .spec.nodeSelector",
  );
});

test('failurePolicy Ignore lets the object through as it was', async () => {
  await policy('p', [apply("Object{data: {'x': object.data.absent}}")], { failurePolicy: 'Ignore' });
  const { status, json } = await post();
  assert.equal(status, 201);
  assert.deepEqual(json.data, { a: 'b' });
});

test('the body of a subresource is changed as what it is', async () => {
  const deployments = '/apis/apps/v1/namespaces/default/deployments';
  const spec = { containers: [{ name: 'c', image: 'i' }] };
  const template = { metadata: { labels: { a: 'b' } }, spec };
  await server.request('POST', deployments, {
    body: { metadata: { name: 'd' }, spec: { selector: { matchLabels: { a: 'b' } }, template } },
  });
  await server.request('POST', '/api/v1/namespaces/default/pods', { body: { metadata: { name: 'p' }, spec } });
  const rule = (apiGroup: string, resource: string) => ({
    apiGroups: [apiGroup],
    apiVersions: ['v1'],
    operations: ['*'],
    resources: [resource],
  });
  await policy('s', [apply('Object{spec: Object.spec{replicas: 5}}')], { rules: [rule('apps', 'deployments/scale')] });
  const scaled = await server.request('PUT', `${deployments}/d/scale`, {
    body: { metadata: { name: 'd' }, spec: { replicas: 2 } },
  });
  assert.equal(scaled.json.spec?.replicas, 5, scaled.text);
  await policy('b', [apply("Object{target: Object.target{name: 'n'}}")], { rules: [rule('', 'pods/binding')] });
  const bound = await server.request('POST', '/api/v1/namespaces/default/pods/p/binding', {
    body: { metadata: { name: 'p' }, target: { name: 'm' } },
  });
  assert.match(bound.json.message, /may not mutate atomic arrays, maps or structs: \.target$/);
  await policy('e', [apply('Object{deleteOptions: Object.deleteOptions{gracePeriodSeconds: 0}}')], {
    rules: [rule('', 'pods/eviction')],
  });
  const evicted = await server.request('POST', '/api/v1/namespaces/default/pods/p/eviction', {
    body: { metadata: { name: 'p' } },
  });
  assert.equal(evicted.status, 201, evicted.text);
});

test('what is wrong with a policy is said at its field', async () => {
  const spec = {
    matchConstraints: { resourceRules: [RULE] },
    reinvocationPolicy: 'Never',
    mutations: [apply('Object{}')],
  };
  const cases: [object, string, RegExp][] = [
    [{ ...spec, mutations: [] }, 'spec.mutations', /mutations must contain at least one item/],
    [{ ...spec, reinvocationPolicy: undefined }, 'spec.reinvocationPolicy', /^Required value/],
    [{ ...spec, mutations: [{ patchType: 'Merge' }] }, 'spec.mutations[0].patchType', /^Unsupported value/],
    [
      { ...spec, mutations: [{ patchType: 'JSONPatch' }] },
      'spec.mutations[0].jsonPatch',
      /must be specified when patchType is JSONPatch/,
    ],
    [
      { ...spec, mutations: [apply('1')] },
      'spec.mutations[0].applyConfiguration.expression',
      /must evaluate to Object/,
    ],
    [{ ...spec, mutations: [apply('Object{')] }, 'spec.mutations[0].applyConfiguration.expression', /Syntax error/],
  ];
  for (const [wrong, field, message] of cases) {
    const { status, json } = await server.request('POST', `${GROUP}/mutatingadmissionpolicies`, {
      body: { apiVersion: API_VERSION, kind: 'MutatingAdmissionPolicy', metadata: { name: 'x' }, spec: wrong },
    });
    assert.equal(status, 422, field);
    const cause = json.details.causes.find((one: { field: string }) => one.field === field);
    assert.ok(cause, `${field} is not among ${JSON.stringify(json.details.causes)}`);
    assert.match(cause.message, message);
  }
});
