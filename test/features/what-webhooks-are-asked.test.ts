/** Which writes webhooks are asked about, in which version, and what they are shown of them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startServer } from '../testkit/in-process-server.ts';
import { convertAddresses, jsonPatch, type Review } from '../testkit/webhook-server.ts';
import { CONFIGMAPS, configMap, GROUP, RULE, webhookSuite } from '../testkit/webhook-suite.ts';

const suite = webhookSuite({
  '/allow': () => ({}),
  '/deny': () => ({ allowed: false, status: { message: 'not today', code: 418, reason: 'Teapot' } }),
  '/label': () => jsonPatch({ op: 'add', path: '/metadata/labels', value: { hooked: 'yes' } }),
  '/convert': (review) => convertAddresses(review),
  '/port': () => jsonPatch({ op: 'replace', path: '/spec/port', value: '443' }),
});
const { configure, post, webhook } = suite;

// Compat Admission and quota, P1, yes: matching: rules, selectors, match conditions
test('selectors and match conditions narrow what a webhook is asked about', async () => {
  const cases: [string, object, object, boolean][] = [
    [
      'object label',
      { objectSelector: { matchLabels: { a: 'b' } } },
      { metadata: { name: 'x', labels: { a: 'b' } } },
      true,
    ],
    ['object without it', { objectSelector: { matchLabels: { a: 'b' } } }, {}, false],
    ['namespace label', { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'default' } } }, {}, true],
    ['another namespace', { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'x' } } }, {}, false],
    ['true condition', { matchConditions: [{ name: 'c', expression: 'object.metadata.name == "x"' }] }, {}, true],
    [
      'false condition',
      { matchConditions: [{ name: 'c', expression: 'request.userInfo.username == "me"' }] },
      {},
      false,
    ],
    [
      'a right',
      { matchConditions: [{ name: 'c', expression: "authorizer.group('').resource('pods').check('get').allowed()" }] },
      {},
      true,
    ],
    [
      'false beats an error',
      {
        matchConditions: [
          { name: 'a', expression: 'object.nope' + ' == 1' },
          { name: 'b', expression: 'false' },
        ],
      },
      {},
      false,
    ],
    ['scope', { rules: [{ ...RULE, scope: 'Cluster' }] }, {}, false],
    ['subresources only', { rules: [{ ...RULE, resources: ['*/*'] }] }, {}, true],
    ['another operation', { rules: [{ ...RULE, operations: ['DELETE'] }] }, {}, false],
  ];
  for (const [label, options, more, asked] of cases) {
    suite.hooks.calls.length = 0;
    await configure('Validating', 'v', { path: '/allow', ...options });
    const { status } = await post(configMap('x', more));
    assert.equal(status, 201, label);
    assert.equal(suite.hooks.calls.length, asked ? 1 : 0, label);
    await suite.server.request('DELETE', `${CONFIGMAPS}/x`);
    await suite.server.request('DELETE', `${GROUP}/validatingwebhookconfigurations/v`);
  }
});

test('a match condition that fails closes the door, or leaves the webhook out', async () => {
  const matchConditions = [{ name: 'c', expression: 'object.nope == 1' }];
  await configure('Validating', 'v', { path: '/allow', matchConditions });
  const { status, json } = await post();
  assert.equal(status, 403);
  assert.equal(
    json.message,
    `configmaps "one" is forbidden: expression 'object.nope == 1' resulted in error: no such key: nope`,
  );
  await suite.server.request('DELETE', `${GROUP}/validatingwebhookconfigurations/v`);
  await configure('Validating', 'v', { path: '/deny', matchConditions, failurePolicy: 'Ignore' });
  assert.equal((await post()).status, 201);
  assert.equal(suite.hooks.calls.length, 0);
});

test('taking the label off does not escape the object selector', async () => {
  await post(configMap('one', { metadata: { name: 'one', labels: { guarded: 'yes' } } }));
  await configure('Validating', 'v', { path: '/deny', objectSelector: { matchLabels: { guarded: 'yes' } } });
  const { status } = await suite.server.request('PUT', `${CONFIGMAPS}/one`, { body: configMap() });
  assert.equal(status, 418);
});

test('a delete shows the old object only, a collection gives no name', async () => {
  await post();
  const rules = [{ ...RULE, operations: ['DELETE'] }];
  await configure('Validating', 'v', { path: '/deny', rules });
  const one = await suite.server.request('DELETE', `${CONFIGMAPS}/one?propagationPolicy=Background`);
  assert.equal(one.status, 418);
  const { object, oldObject, name, options } = suite.hooks.calls[0]!.body.request;
  assert.deepEqual([object, oldObject.metadata.name, name], [null, 'one', 'one']);
  assert.deepEqual(options, { kind: 'DeleteOptions', apiVersion: 'meta.k8s.io/v1', propagationPolicy: 'Background' });
  const all = await suite.server.request('DELETE', CONFIGMAPS);
  assert.equal(all.status, 418);
  assert.equal(suite.hooks.calls[1]!.body.request.name, undefined);
});

test('a delete under a grace period that does not shorten it asks nobody', async () => {
  const pods = '/api/v1/namespaces/default/pods';
  const spec = { nodeName: 'n', containers: [{ name: 'c', image: 'i' }] };
  await suite.server.create(pods, { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p' }, spec });
  const rules = [{ ...RULE, resources: ['pods'], operations: ['DELETE'] }];
  await configure('Validating', 'v', { path: '/allow', rules });
  const remove = async (query = ''): Promise<[status: number, asked: number]> => {
    const { status } = await suite.server.request('DELETE', `${pods}/p${query}`);
    return [status, suite.hooks.calls.length];
  };
  assert.deepEqual(await remove(), [200, 1]);
  assert.deepEqual(await remove(), [200, 1]);
  assert.deepEqual(await remove('?gracePeriodSeconds=30&propagationPolicy=Foreground'), [200, 1]);
  assert.deepEqual(await remove('?gracePeriodSeconds=5'), [200, 2]);
  assert.deepEqual(await remove('?gracePeriodSeconds=0'), [200, 3]);
});

// S-157
test('a deleted collection stops at the first denial, in list order', async () => {
  for (const name of ['a', 'b', 'c']) await post(configMap(name));
  const matchConditions = [{ name: 'b', expression: "oldObject.metadata.name == 'b'" }];
  await configure('Validating', 'v', { path: '/deny', rules: [{ ...RULE, operations: ['DELETE'] }], matchConditions });
  assert.equal((await suite.server.request('DELETE', CONFIGMAPS)).status, 418);
  const { json } = await suite.server.request('GET', CONFIGMAPS);
  assert.deepEqual(
    json.items.map((item: Review) => item.metadata.name),
    ['b', 'c'],
  );
});

test('Equivalent shows the object in the version of the rule, Exact looks away', async () => {
  const rules = [{ apiGroups: ['events.k8s.io'], apiVersions: ['v1'], resources: ['events'], operations: ['CREATE'] }];
  const event = (name: string) => ({
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name },
    involvedObject: { kind: 'Pod', namespace: 'default', name: 'p' },
    message: 'hello',
  });
  const path = '/api/v1/namespaces/default/events';
  await configure('Mutating', 'm', { path: '/label', rules });
  const made: Review = await suite.server.create(path, event('one'));
  const { request } = suite.hooks.calls[0]!.body;
  assert.equal(request.object.apiVersion, 'events.k8s.io/v1');
  assert.equal(request.object.note, 'hello');
  assert.deepEqual([request.kind.group, request.requestKind.group], ['events.k8s.io', '']);
  assert.deepEqual([request.resource.group, request.requestResource.group], ['events.k8s.io', '']);
  assert.equal(made.apiVersion, 'v1');
  assert.deepEqual(made.metadata.labels, { hooked: 'yes' });
  assert.equal(made.message, 'hello');
  await suite.server.request('DELETE', `${GROUP}/mutatingwebhookconfigurations/m`);
  await configure('Mutating', 'm', { path: '/label', rules, matchPolicy: 'Exact' });
  await suite.server.create(path, event('two'));
  assert.equal(suite.hooks.calls.length, 1);
});

test('Equivalent asks the conversion webhook of a custom kind, both ways', async () => {
  const text = { type: 'string' };
  const version = (name: string, storage: boolean, properties: object) => ({
    name,
    served: true,
    storage,
    schema: { openAPIV3Schema: { type: 'object', properties: { spec: { type: 'object', properties } } } },
  });
  await suite.server.create('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'doors.example.com' },
    spec: {
      group: 'example.com',
      scope: 'Namespaced',
      names: { plural: 'doors', singular: 'door', kind: 'Door', listKind: 'DoorList' },
      versions: [version('v1', true, { host: text, port: text }), version('v2', false, { address: text })],
      conversion: {
        strategy: 'Webhook',
        webhook: {
          conversionReviewVersions: ['v1'],
          clientConfig: { url: suite.hooks.url('/convert'), caBundle: suite.hooks.caBundle },
        },
      },
    },
  });
  while (!suite.server.catalog.lookup('example.com', 'v2', 'doors'))
    await new Promise((resolve) => setImmediate(resolve));
  const rules = [{ apiGroups: ['example.com'], apiVersions: ['v1'], resources: ['doors'], operations: ['CREATE'] }];
  await configure('Mutating', 'm', { path: '/port', rules });
  const { status, json } = await suite.server.request('POST', '/apis/example.com/v2/namespaces/default/doors', {
    body: { apiVersion: 'example.com/v2', kind: 'Door', metadata: { name: 'd' }, spec: { address: 'here:80' } },
  });
  assert.equal(status, 201, JSON.stringify(json));
  const review = suite.hooks.calls.find(({ path }) => path.startsWith('/port'))!.body;
  assert.deepEqual(review.request.object.spec, { host: 'here', port: '80' });
  assert.deepEqual(json.spec, { address: 'here:443' });
});

test('subresources and connections are asked about by their own names', async () => {
  await post();
  const pods = '/api/v1/namespaces/default/pods';
  await suite.server.create(pods, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'p' },
    spec: { containers: [{ name: 'c', image: 'i' }] },
  });
  const rule = { apiGroups: [''], apiVersions: ['v1'], operations: ['*'] };
  await configure('Validating', 'v', { path: '/deny', rules: [{ ...rule, resources: ['pods/*'] }] });
  const status = await suite.server.request('PATCH', `${pods}/p/status`, { body: { status: { phase: 'Running' } } });
  assert.equal(status.status, 418);
  const exec = await suite.server.request('POST', `${pods}/p/exec?command=ls&command=-l&stdout=true`);
  assert.equal(exec.status, 418);
  const [patched, connected] = suite.hooks.calls.map(({ body }) => body.request);
  assert.deepEqual([patched.operation, patched.subResource, patched.kind.kind], ['UPDATE', 'status', 'Pod']);
  assert.deepEqual([connected.operation, connected.subResource, connected.name], ['CONNECT', 'exec', 'p']);
  assert.deepEqual(connected.object, {
    kind: 'PodExecOptions',
    apiVersion: 'v1',
    stdout: true,
    command: ['ls', '-l'],
  });
  assert.equal(connected.options, undefined);
});

test('a binding of the legacy collection is asked about as a resource of its own', async () => {
  const rule = { apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'] };
  await configure('Validating', 'v', { path: '/deny', rules: [{ ...rule, resources: ['bindings'] }] });
  await suite.server.create('/api/v1/namespaces/default/pods', {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'to-bind' },
    spec: { containers: [{ name: 'c', image: 'i' }] },
  });
  const target = { apiVersion: 'v1', kind: 'Node', name: 'n' };
  const body = { apiVersion: 'v1', kind: 'Binding', metadata: { name: 'to-bind' }, target };
  const bound = await suite.server.request('POST', '/api/v1/namespaces/default/bindings', { body });
  assert.equal(bound.status, 418, bound.text);
  const { resource, subResource, kind, name } = suite.hooks.calls[0]!.body.request;
  assert.deepEqual([resource.resource, subResource, kind.kind, name], ['bindings', undefined, 'Binding', 'to-bind']);
  const bySubresource = await suite.server.request('POST', '/api/v1/namespaces/default/pods/to-bind/binding', { body });
  assert.equal(bySubresource.status, 201, bySubresource.text);
});

test('webhooks are never asked about the configuration of admission', async () => {
  const rules = [{ apiGroups: ['*'], apiVersions: ['*'], resources: ['*/*'], operations: ['*'] }];
  await configure('Validating', 'v', { path: '/deny', rules });
  await configure('Mutating', 'm', { path: '/deny', rules });
  assert.equal((await suite.server.request('DELETE', `${GROUP}/mutatingwebhookconfigurations/m`)).status, 200);
  assert.equal((await suite.server.request('DELETE', `${GROUP}/validatingwebhookconfigurations/v`)).status, 200);
  assert.equal(suite.hooks.calls.length, 0);
});

test('webhooks are asked about access reviews, policies are not', async () => {
  const rules = [{ apiGroups: ['*'], apiVersions: ['*'], resources: ['subjectaccessreviews'], operations: ['*'] }];
  const reviews = '/apis/authorization.k8s.io/v1/subjectaccessreviews';
  const server = await startServer({
    connectOutbound: suite.connect,
    createOnlyHandlers: new Map([
      ['authorization.k8s.io/subjectaccessreviews', async (review) => ({ ...review, status: { allowed: true } })],
    ]),
  });
  const ask = () =>
    server.request('POST', reviews, {
      body: {
        apiVersion: 'authorization.k8s.io/v1',
        kind: 'SubjectAccessReview',
        spec: { user: 'u', nonResourceAttributes: { path: '/', verb: 'get' } },
      },
    });
  await server.create(`${GROUP}/validatingadmissionpolicies`, {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingAdmissionPolicy',
    metadata: { name: 'p' },
    spec: { matchConstraints: { resourceRules: rules }, validations: [{ expression: 'false' }] },
  });
  await server.create(`${GROUP}/validatingadmissionpolicybindings`, {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingAdmissionPolicyBinding',
    metadata: { name: 'b' },
    spec: { policyName: 'p', validationActions: ['Deny'] },
  });
  assert.equal((await ask()).status, 201);
  await server.create(`${GROUP}/validatingwebhookconfigurations`, {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingWebhookConfiguration',
    metadata: { name: 'v' },
    webhooks: [webhook({ path: '/deny', rules })],
  });
  assert.equal((await ask()).status, 418);
  await server.stop();
});

test('v1beta1 reviews are spoken with webhooks that know nothing newer', async () => {
  await configure('Mutating', 'm', { path: '/label', admissionReviewVersions: ['v2', 'v1beta1', 'v1'] });
  const { json } = await post();
  assert.equal(suite.hooks.calls[0]!.body.apiVersion, 'admission.k8s.io/v1beta1');
  assert.deepEqual(json.metadata.labels, { hooked: 'yes' });
});
