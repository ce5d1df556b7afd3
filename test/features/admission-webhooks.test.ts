/** Admission webhooks: asked about the right writes, in the right order, and believed as upstream believes them. */
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { createOutbound } from '../../src/cmd/compose/outbound.ts';
import type { ObjectStore } from '../../src/server/cache/object-store.ts';
import { createAdmissionEar } from '../testkit/admission-ear.ts';
import { type InProcessServer, startServer } from '../testkit/in-process-server.ts';
import {
  convertAddresses,
  jsonPatch,
  type Review,
  startWebhookServer,
  type WebhookServer,
} from '../testkit/webhook-server.ts';

const GROUP = '/apis/admissionregistration.k8s.io/v1';
const CONFIGMAPS = '/api/v1/namespaces/default/configmaps';

let server: InProcessServer;
let hooks: WebhookServer;
let outbound: ReturnType<typeof createOutbound>;
const ear = createAdmissionEar();
const { annotations } = ear;

before(async () => {
  let store: ObjectStore | undefined;
  hooks = await startWebhookServer(
    {
      '/allow': () => ({}),
      '/deny': () => ({ allowed: false, status: { message: 'not today', code: 418, reason: 'Teapot' } }),
      '/deny-mute': () => ({ allowed: false }),
      '/deny-ok': () => ({ allowed: false, status: { code: 200, reason: 'Because' } }),
      '/label': () => jsonPatch({ op: 'add', path: '/metadata/labels', value: { hooked: 'yes' } }),
      '/unknown': () =>
        jsonPatch({ op: 'add', path: '/nonsense', value: 1 }, { op: 'add', path: '/data', value: { from: 'hook' } }),
      '/mistyped': () => jsonPatch({ op: 'add', path: '/data', value: ['a'] }),
      '/unpatchable': () => jsonPatch({ op: 'remove', path: '/data/absent' }),
      '/count': ({ request }: Review) =>
        jsonPatch({ op: 'add', path: '/data/count', value: `${Number(request.object.data.count ?? 0) + 1}` }),
      '/seal': () => jsonPatch({ op: 'add', path: '/data/sealed', value: 'yes' }),
      '/warn': () => ({ warnings: ['mind the gap'], auditAnnotations: { seen: 'by me' } }),
      '/broken': () => ({ code: 500, text: 'kaboom' }),
      '/gibberish': () => ({ code: 200, text: '{"response":{"allowed":true}}' }),
      '/rename': () => jsonPatch({ op: 'add', path: '/metadata/namespace', value: 'kube-system' }),
      '/take-identity': () => jsonPatch({ op: 'add', path: '/metadata/uid', value: 'mine' }),
      '/scale-up': () =>
        jsonPatch(
          { op: 'add', path: '/spec/replicas', value: 7 },
          { op: 'add', path: '/status', value: { replicas: 9 } },
        ),
      '/convert': (review) => convertAddresses(review),
      '/port': () => jsonPatch({ op: 'replace', path: '/spec/port', value: '443' }),
      '/slow': () => new Promise((resolve) => setTimeout(() => resolve({}), 3000).unref()),
    },
    ['localhost', 'hook.default.svc'],
  );
  outbound = createOutbound({ store: { get: (key) => store!.get(key), list: (...args) => store!.list(...args) } });
  server = await startServer({
    connectOutbound: outbound.connect,
    admission: [ear.plugin],
  });
  ({ store } = server);
});

after(async () => {
  await server.stop();
  outbound.close();
  await hooks.close();
});

beforeEach(async () => {
  hooks.calls.length = 0;
  annotations.clear();
  for (const kind of ['mutating', 'validating'])
    await server.request('DELETE', `${GROUP}/${kind}webhookconfigurations`);
  await server.request('DELETE', CONFIGMAPS);
});

const RULE = { apiGroups: [''], apiVersions: ['v1'], resources: ['configmaps'], operations: ['CREATE', 'UPDATE'] };

interface HookOptions {
  readonly path?: string;
  readonly client?: object;
  [field: string]: unknown;
}

const webhook = ({ path = '/allow', client, ...more }: HookOptions) => ({
  name: `${path.slice(1)}.example.com`,
  clientConfig: client ?? { url: hooks.url(path), caBundle: hooks.caBundle },
  rules: [RULE],
  sideEffects: 'None',
  admissionReviewVersions: ['v1'],
  ...more,
});

async function configure(kind: 'Mutating' | 'Validating', name: string, ...webhooks: HookOptions[]): Promise<void> {
  await server.create(`${GROUP}/${kind.toLowerCase()}webhookconfigurations`, {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: `${kind}WebhookConfiguration`,
    metadata: { name },
    webhooks: webhooks.map(webhook),
  } as never);
}

const configMap = (name = 'one', more: object = {}) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name },
  data: { a: 'b' },
  ...more,
});

const post = (body: object = configMap(), query = '') => server.request('POST', `${CONFIGMAPS}${query}`, { body });

test('a mutating webhook sees the whole review and its patch is applied', async () => {
  await configure('Mutating', 'm', { path: '/label' });
  const { status, json } = await post(configMap(), '?fieldManager=me&fieldValidation=Strict');
  assert.equal(status, 201);
  assert.deepEqual(json.metadata.labels, { hooked: 'yes' });
  const [{ path, body }] = hooks.calls as [(typeof hooks.calls)[0]];
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

test('failures are worded as upstream words them', async () => {
  const dead = { url: 'https://127.0.0.1:1/x', caBundle: hooks.caBundle };
  const service = { service: { namespace: 'default', name: 'nowhere', path: '/x' }, caBundle: hooks.caBundle };
  const untrusted = { url: hooks.url('/allow') };
  const fail = (name: string, why: string): string =>
    `Internal error occurred: failed calling webhook "${name}.example.com": ${why}`;
  const cases: [HookOptions, RegExp | string][] = [
    [
      { path: '/dead', client: dead },
      fail(
        'dead',
        'failed to call webhook: Post "https://127.0.0.1:1/x?timeout=10s": dial tcp 127.0.0.1:1: connect: connection refused',
      ),
    ],
    [
      { path: '/svc', client: service },
      fail(
        'svc',
        'failed to call webhook: Post "https://nowhere.default.svc:443/x?timeout=10s": service "nowhere" not found',
      ),
    ],
    [
      { path: '/who', client: untrusted },
      fail(
        'who',
        `failed to call webhook: Post "${hooks.url('/allow')}?timeout=10s": tls: failed to verify certificate: x509: certificate signed by unknown authority`,
      ),
    ],
    [{ path: '/absent' }, fail('absent', 'failed to call webhook: the server could not find the requested resource')],
    [
      { path: '/broken' },
      fail(
        'broken',
        'failed to call webhook: an error on the server ("kaboom") has prevented the request from succeeding',
      ),
    ],
    [{ path: '/gibberish' }, /received invalid webhook response: expected response.uid=/],
    [
      { path: '/slow', timeoutSeconds: 1 },
      fail('slow', `failed to call webhook: Post "${hooks.url('/slow')}?timeout=1s": context deadline exceeded`),
    ],
    [{ path: '/mistyped' }, /^Internal error occurred: /],
    [{ path: '/unpatchable' }, /^Internal error occurred: .*missing/],
  ];
  for (const [options, message] of cases) {
    await configure('Mutating', 'm', options);
    const { status, json } = await post();
    assert.equal(status, 500, `${options.path}: ${json.message}`);
    assert.equal(json.reason, 'InternalError');
    if (typeof message === 'string') assert.equal(json.message, message);
    else assert.match(json.message, message);
    await server.request('DELETE', `${GROUP}/mutatingwebhookconfigurations/m`);
  }
});

test('failurePolicy Ignore passes a dead webhook by and says so in the audit', async () => {
  const client = { url: 'https://127.0.0.1:1/x', caBundle: hooks.caBundle };
  await configure('Mutating', 'm', { path: '/dead', client, failurePolicy: 'Ignore' });
  await configure('Validating', 'v', { path: '/dead', client, failurePolicy: 'Ignore' });
  assert.equal((await post()).status, 201);
  assert.equal(annotations.get('failed-open.mutation.webhook.admission.k8s.io/round_0_index_0'), 'dead.example.com');
  assert.equal(annotations.get('failed-open.validating.webhook.admission.k8s.io/round_0_index_0'), 'dead.example.com');
});

test('a denial is the webhook’s own status, at least a 400', async () => {
  const cases = [
    ['/deny', 418, 'Teapot', 'admission webhook "deny.example.com" denied the request: not today'],
    ['/deny-mute', 400, undefined, 'admission webhook "deny-mute.example.com" denied the request without explanation'],
    ['/deny-ok', 400, 'Because', 'admission webhook "deny-ok.example.com" denied the request: Because'],
  ] as const;
  for (const kind of ['Mutating', 'Validating'] as const) {
    for (const [path, code, reason, message] of cases) {
      await configure(kind, 'x', { path });
      const { status, json } = await post();
      assert.deepEqual([status, json.code, json.reason, json.message], [code, code, reason, message]);
      await server.request('DELETE', `${GROUP}/${kind.toLowerCase()}webhookconfigurations/x`);
    }
  }
});

test('webhooks are reached through a Service and its endpoints', async () => {
  const slice = (ready: boolean) => ({
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: 'hook-1', labels: { 'kubernetes.io/service-name': 'hook' } },
    addressType: 'IPv4',
    endpoints: [{ addresses: ['127.0.0.1'], conditions: { ready } }],
    ports: [{ name: 'web', port: hooks.port, protocol: 'TCP' }],
  });
  const slices = '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices';
  await server.create('/api/v1/namespaces/default/services', {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'hook' },
    spec: { ports: [{ name: 'web', port: 8443, targetPort: 'https' }] },
  } as never);
  await server.create(slices, slice(false) as never);
  const client = {
    service: { namespace: 'default', name: 'hook', port: 8443, path: '/label' },
    caBundle: hooks.caBundle,
  };
  await configure('Mutating', 'm', { path: '/label', client });
  const refused = await post();
  assert.match(
    refused.json.message,
    /Post "https:\/\/hook\.default\.svc:8443\/label\?timeout=10s": no endpoints available for service "hook"$/,
  );
  await server.request('PUT', `${slices}/hook-1`, { body: slice(true) });
  const { json } = await post();
  assert.deepEqual(json.metadata.labels, { hooked: 'yes' });
});

test('warnings and audit annotations are passed on', async () => {
  await configure('Validating', 'v', { path: '/warn' });
  const { headers } = await post();
  assert.equal(headers['warning'], '299 - "mind the gap"');
  assert.equal(annotations.get('warn.example.com/seen'), 'by me');
});

test('a dry run reaches only webhooks without side effects', async () => {
  await configure('Validating', 'v', { path: '/allow', sideEffects: 'NoneOnDryRun' });
  assert.equal((await post(configMap(), '?dryRun=All')).status, 201);
  assert.equal(hooks.calls[0]!.body.request.dryRun, true);
  // What is stored may come from before this was required.
  const prefix = 'admissionregistration.k8s.io/validatingwebhookconfigurations';
  await server.store.write({ prefix, namespace: '', name: 'v' }, (current) => {
    const object = structuredClone(current!.object) as never as { webhooks: { sideEffects: string }[] };
    object.webhooks[0]!.sideEffects = 'Some';
    return { type: 'put', object: object as never };
  });
  const { status, json } = await post(configMap(), '?dryRun=All');
  assert.equal(status, 400);
  assert.equal(json.message, 'admission webhook "allow.example.com" does not support dry run');
});

test('a change by a later webhook has the earlier one asked again, once, when it allows that', async () => {
  await configure('Mutating', 'a', { path: '/count', reinvocationPolicy: 'IfNeeded' });
  await configure('Mutating', 'b', { path: '/seal' });
  const { json } = await post();
  assert.deepEqual(json.data, { a: 'b', count: '2', sealed: 'yes' });
  assert.deepEqual(
    hooks.calls.map(({ path }) => path.split('?')[0]),
    ['/count', '/seal', '/count'],
  );
});

test('configurations are asked by name, webhooks in their order', async () => {
  await configure('Mutating', 'z', { path: '/allow' });
  await configure('Mutating', 'a', { path: '/seal' }, { path: '/label' });
  await post();
  assert.deepEqual(
    hooks.calls.map(({ path }) => path.split('?')[0]),
    ['/seal', '/label', '/allow'],
  );
});

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
    hooks.calls.length = 0;
    await configure('Validating', 'v', { path: '/allow', ...options });
    const { status } = await post(configMap('x', more));
    assert.equal(status, 201, label);
    assert.equal(hooks.calls.length, asked ? 1 : 0, label);
    await server.request('DELETE', `${CONFIGMAPS}/x`);
    await server.request('DELETE', `${GROUP}/validatingwebhookconfigurations/v`);
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
  await server.request('DELETE', `${GROUP}/validatingwebhookconfigurations/v`);
  await configure('Validating', 'v', { path: '/deny', matchConditions, failurePolicy: 'Ignore' });
  assert.equal((await post()).status, 201);
  assert.equal(hooks.calls.length, 0);
});

test('taking the label off does not escape the object selector', async () => {
  await post(configMap('one', { metadata: { name: 'one', labels: { guarded: 'yes' } } }));
  await configure('Validating', 'v', { path: '/deny', objectSelector: { matchLabels: { guarded: 'yes' } } });
  const { status } = await server.request('PUT', `${CONFIGMAPS}/one`, { body: configMap() });
  assert.equal(status, 418);
});

test('a delete shows the old object only, a collection gives no name', async () => {
  await post();
  const rules = [{ ...RULE, operations: ['DELETE'] }];
  await configure('Validating', 'v', { path: '/deny', rules });
  const one = await server.request('DELETE', `${CONFIGMAPS}/one?propagationPolicy=Background`);
  assert.equal(one.status, 418);
  const { object, oldObject, name, options } = hooks.calls[0]!.body.request;
  assert.deepEqual([object, oldObject.metadata.name, name], [null, 'one', 'one']);
  assert.deepEqual(options, { kind: 'DeleteOptions', apiVersion: 'meta.k8s.io/v1', propagationPolicy: 'Background' });
  const all = await server.request('DELETE', CONFIGMAPS);
  assert.equal(all.status, 418);
  assert.equal(hooks.calls[1]!.body.request.name, undefined);
});

test('a deleted collection stops at the first denial, in list order', async () => {
  for (const name of ['a', 'b', 'c']) await post(configMap(name));
  const matchConditions = [{ name: 'b', expression: "oldObject.metadata.name == 'b'" }];
  await configure('Validating', 'v', { path: '/deny', rules: [{ ...RULE, operations: ['DELETE'] }], matchConditions });
  assert.equal((await server.request('DELETE', CONFIGMAPS)).status, 418);
  const { json } = await server.request('GET', CONFIGMAPS);
  assert.deepEqual(
    json.items.map((item: Review) => item.metadata.name),
    ['b', 'c'],
  );
});

test('Equivalent shows the object in the version of the rule, Exact looks away', async () => {
  const rules = [
    {
      apiGroups: ['autoscaling'],
      apiVersions: ['v1'],
      resources: ['horizontalpodautoscalers'],
      operations: ['CREATE'],
    },
  ];
  const scaler = (name: string) => ({
    apiVersion: 'autoscaling/v2',
    kind: 'HorizontalPodAutoscaler',
    metadata: { name },
    spec: {
      maxReplicas: 3,
      scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'd' },
      metrics: [
        { type: 'Resource', resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 50 } } },
      ],
    },
  });
  const path = '/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers';
  await configure('Mutating', 'm', { path: '/label', rules });
  const made: Review = await server.create(path, scaler('one') as never);
  const { request } = hooks.calls[0]!.body;
  assert.equal(request.object.apiVersion, 'autoscaling/v1');
  assert.equal(request.object.spec.targetCPUUtilizationPercentage, 50);
  assert.deepEqual([request.kind.version, request.requestKind.version], ['v1', 'v2']);
  assert.deepEqual([request.resource.version, request.requestResource.version], ['v1', 'v2']);
  assert.equal(made.apiVersion, 'autoscaling/v2');
  assert.deepEqual(made.metadata.labels, { hooked: 'yes' });
  assert.equal(made.spec.metrics[0].resource.target.averageUtilization, 50);
  await server.request('DELETE', `${GROUP}/mutatingwebhookconfigurations/m`);
  await configure('Mutating', 'm', { path: '/label', rules, matchPolicy: 'Exact' });
  await server.create(path, scaler('two') as never);
  assert.equal(hooks.calls.length, 1);
});

test('Equivalent asks the conversion webhook of a custom kind, both ways', async () => {
  const text = { type: 'string' };
  const version = (name: string, storage: boolean, properties: object) => ({
    name,
    served: true,
    storage,
    schema: { openAPIV3Schema: { type: 'object', properties: { spec: { type: 'object', properties } } } },
  });
  await server.create('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', {
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
          clientConfig: { url: hooks.url('/convert'), caBundle: hooks.caBundle },
        },
      },
    },
  } as never);
  while (!server.catalog.lookup('example.com', 'v2', 'doors')) await new Promise((resolve) => setImmediate(resolve));
  const rules = [{ apiGroups: ['example.com'], apiVersions: ['v1'], resources: ['doors'], operations: ['CREATE'] }];
  await configure('Mutating', 'm', { path: '/port', rules });
  const { status, json } = await server.request('POST', '/apis/example.com/v2/namespaces/default/doors', {
    body: { apiVersion: 'example.com/v2', kind: 'Door', metadata: { name: 'd' }, spec: { address: 'here:80' } },
  });
  assert.equal(status, 201, JSON.stringify(json));
  const review = hooks.calls.find(({ path }) => path.startsWith('/port'))!.body;
  assert.deepEqual(review.request.object.spec, { host: 'here', port: '80' });
  assert.deepEqual(json.spec, { address: 'here:443' });
});

test('subresources and connections are asked about by their own names', async () => {
  await post();
  const pods = '/api/v1/namespaces/default/pods';
  await server.create(pods, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'p' },
    spec: { containers: [{ name: 'c', image: 'i' }] },
  } as never);
  const rule = { apiGroups: [''], apiVersions: ['v1'], operations: ['*'] };
  await configure('Validating', 'v', { path: '/deny', rules: [{ ...rule, resources: ['pods/*'] }] });
  const status = await server.request('PATCH', `${pods}/p/status`, { body: { status: { phase: 'Running' } } });
  assert.equal(status.status, 418);
  const exec = await server.request('POST', `${pods}/p/exec?command=ls&command=-l&stdout=true`);
  assert.equal(exec.status, 418);
  const [patched, connected] = hooks.calls.map(({ body }) => body.request);
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

test('a webhook is bound by the walls that bind a client', async () => {
  await configure('Mutating', 'm', { path: '/rename' });
  const moved = await post();
  assert.equal(moved.status, 400);
  assert.match(moved.json.message, /namespace of the provided object does not match/);
  await server.request('DELETE', `${GROUP}/mutatingwebhookconfigurations/m`);

  const deployments = '/apis/apps/v1/namespaces/default/deployments';
  await server.create(deployments, {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'd' },
    spec: {
      selector: { matchLabels: { a: 'b' } },
      template: { metadata: { labels: { a: 'b' } }, spec: { containers: [{ name: 'c', image: 'i' }] } },
    },
  } as never);
  const rules = [{ apiGroups: ['apps'], apiVersions: ['v1'], resources: ['deployments'], operations: ['UPDATE'] }];
  await configure('Mutating', 'm', { path: '/scale-up', rules });
  const { json } = await server.request('PATCH', `${deployments}/d`, { body: { metadata: { labels: { x: 'y' } } } });
  assert.deepEqual([json.spec.replicas, json.metadata.generation], [7, 2]);
  assert.equal(json.status?.replicas, undefined);
  await server.request('DELETE', `${GROUP}/mutatingwebhookconfigurations/m`);
  await configure('Mutating', 'm', { path: '/take-identity', rules });
  const taken = await server.request('PATCH', `${deployments}/d`, { body: { metadata: { labels: { x: 'z' } } } });
  assert.equal(taken.status, 422);
  assert.match(taken.json.message, /metadata\.uid: Invalid value: "mine": field is immutable/);
});

test('webhooks are never asked about the configuration of admission', async () => {
  const rules = [{ apiGroups: ['*'], apiVersions: ['*'], resources: ['*/*'], operations: ['*'] }];
  await configure('Validating', 'v', { path: '/deny', rules });
  await configure('Mutating', 'm', { path: '/deny', rules });
  assert.equal((await server.request('DELETE', `${GROUP}/mutatingwebhookconfigurations/m`)).status, 200);
  assert.equal((await server.request('DELETE', `${GROUP}/validatingwebhookconfigurations/v`)).status, 200);
  assert.equal(hooks.calls.length, 0);
});

test('webhooks are asked about access reviews, policies are not', async () => {
  const rules = [{ apiGroups: ['*'], apiVersions: ['*'], resources: ['subjectaccessreviews'], operations: ['*'] }];
  const reviews = '/apis/authorization.k8s.io/v1/subjectaccessreviews';
  const server = await startServer({
    connectOutbound: outbound.connect,
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
  } as never);
  await server.create(`${GROUP}/validatingadmissionpolicybindings`, {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingAdmissionPolicyBinding',
    metadata: { name: 'b' },
    spec: { policyName: 'p', validationActions: ['Deny'] },
  } as never);
  assert.equal((await ask()).status, 201);
  await server.create(`${GROUP}/validatingwebhookconfigurations`, {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingWebhookConfiguration',
    metadata: { name: 'v' },
    webhooks: [webhook({ path: '/deny', rules })],
  } as never);
  assert.equal((await ask()).status, 418);
  await server.stop();
});

test('v1beta1 reviews are spoken with webhooks that know nothing newer', async () => {
  await configure('Mutating', 'm', { path: '/label', admissionReviewVersions: ['v2', 'v1beta1', 'v1'] });
  const { json } = await post();
  assert.equal(hooks.calls[0]!.body.apiVersion, 'admission.k8s.io/v1beta1');
  assert.deepEqual(json.metadata.labels, { hooked: 'yes' });
});
