/** Policies and webhooks about kinds of several versions: what is equivalent, in which version it is shown, what that costs. */
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import type { ObjectStore } from '../../packages/apiserver/src/cache/object-store.ts';
import { createOutbound } from '../../packages/coracle/src/compose/outbound.ts';
import { createAdmissionRecorder } from '../testkit/admission-recorder.ts';
import { definition, establish, version } from '../testkit/custom-definitions.ts';
import { type InProcessServer, startServer } from '../testkit/in-process-server.ts';
import { convertAddresses, jsonPatch, startWebhookServer, type WebhookServer } from '../testkit/webhook-server.ts';

const GROUP = '/apis/admissionregistration.k8s.io/v1';
const API_VERSION = 'admissionregistration.k8s.io/v1';
const TEXT = { type: 'string' };

let server: InProcessServer;
let hooks: WebhookServer;
let outbound: ReturnType<typeof createOutbound>;
let converterFails = false;
const recorder = createAdmissionRecorder();
const { annotations } = recorder;

before(async () => {
  let store: ObjectStore | undefined;
  hooks = await startWebhookServer({
    '/convert': (review) =>
      convertAddresses(review, converterFails ? { status: 'Failed', message: 'out of ink' } : { status: 'Success' }),
    '/allow': () => ({}),
    '/no-patch': () => ({ patchType: 'JSONPatch', patch: btoa('{"op":"add"}') }),
    '/deny': () => ({ allowed: false }),
    '/label': () => jsonPatch({ op: 'add', path: '/metadata/labels', value: { hooked: 'yes' } }),
  });
  outbound = createOutbound({ store: { get: (key) => store!.get(key), list: (...args) => store!.list(...args) } });
  server = await startServer({
    connectOutbound: outbound.connect,
    admission: [recorder.plugin],
  });
  ({ store } = server);
  const spec = { type: 'object', properties: { replicas: { type: 'integer' }, color: TEXT } };
  const scale = { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.replicas' };
  const plates = [
    version('v1', { spec }, { storage: true, subresources: { status: {}, scale } }),
    version('v2', { spec }),
    { ...version('v3', { spec }, { subresources: { status: {} } }), served: false },
  ];
  await establish(server, definition({ name: 'plate', versions: plates }));
  const door = (properties: object) => ({ spec: { type: 'object', properties } });
  const webhook = {
    conversionReviewVersions: ['v1'],
    clientConfig: { url: hooks.url('/convert'), caBundle: hooks.caBundle },
  };
  await establish(
    server,
    definition({
      name: 'door',
      versions: [
        version('v1', door({ host: TEXT, port: TEXT }), { storage: true }),
        version('v2', door({ address: TEXT })),
      ],
      conversion: { strategy: 'Webhook', webhook },
    }),
  );
});

after(async () => {
  await server.stop();
  outbound.close();
  await hooks.close();
});

beforeEach(async () => {
  converterFails = false;
  for (const kind of ['validating', 'mutating']) {
    for (const plural of ['admissionpolicybindings', 'admissionpolicies', 'webhookconfigurations'])
      await server.request('DELETE', `${GROUP}/${kind}${plural}`);
  }
  for (const plural of ['plates', 'doors']) {
    await server.request('DELETE', `/apis/example.com/v1/namespaces/default/${plural}`);
  }
  hooks.calls.length = 0;
  annotations.clear();
});

const rule = (versionName: string, ...resources: string[]) => ({
  apiGroups: ['example.com'],
  apiVersions: [versionName],
  resources,
  operations: ['*'],
});

async function policy(kind: 'Validating' | 'Mutating', rules: object[], spec: object): Promise<void> {
  const at = `${GROUP}/${kind.toLowerCase()}admissionpolic`;
  await server.create(`${at}ies`, {
    apiVersion: API_VERSION,
    kind: `${kind}AdmissionPolicy`,
    metadata: { name: 'p' },
    spec: { matchConstraints: { resourceRules: rules }, ...spec },
  });
  await server.create(`${at}ybindings`, {
    apiVersion: API_VERSION,
    kind: `${kind}AdmissionPolicyBinding`,
    metadata: { name: 'b' },
    spec: { policyName: 'p', ...(kind === 'Validating' && { validationActions: ['Deny'] }) },
  });
}

async function webhooks(kind: 'Validating' | 'Mutating', ...paths: (readonly [string, object])[]): Promise<void> {
  await server.create(`${GROUP}/${kind.toLowerCase()}webhookconfigurations`, {
    apiVersion: API_VERSION,
    kind: `${kind}WebhookConfiguration`,
    metadata: { name: 'w' },
    webhooks: paths.map(([path, more]) => ({
      name: `${path.slice(1)}.example.com`,
      clientConfig: { url: hooks.url(path), caBundle: hooks.caBundle },
      sideEffects: 'None',
      admissionReviewVersions: ['v1'],
      ...more,
    })),
  });
}

const post = (plural: 'plates' | 'doors', versionName: string, spec: object) =>
  server.request('POST', `/apis/example.com/${versionName}/namespaces/default/${plural}`, {
    body: {
      apiVersion: `example.com/${versionName}`,
      kind: plural === 'plates' ? 'Plate' : 'Door',
      metadata: { name: 'one' },
      spec,
    },
  });

/** What a rule says, the subresource that is written in v1, and whether the rule is about it. */
const SUBRESOURCES: readonly (readonly [object, 'status' | 'scale', boolean])[] = [
  [rule('v1', 'plates/scale'), 'scale', true],
  [rule('v2', 'plates/*'), 'scale', false],
  [rule('v2', 'plates/*'), 'status', false],
  [rule('v3', 'plates/*'), 'scale', false],
  [rule('v3', 'plates/status'), 'status', true],
];
for (const [wanted, subresource, matches] of SUBRESOURCES) {
  const { apiVersions, resources } = wanted as ReturnType<typeof rule>;
  // S-303: Policies and webhooks match every version of a kind, also by subresource, also versions that are no longer
  //   served, and are shown what the conversion webhook makes of an object.
  test(`${resources} of ${apiVersions} is ${matches ? '' : 'not '}about ${subresource} of v1`, async () => {
    await post('plates', 'v1', { replicas: 1 });
    await policy('Validating', [wanted], { validations: [{ expression: 'false' }] });
    const { status } = await server.request(
      'PATCH',
      `/apis/example.com/v1/namespaces/default/plates/one/${subresource}`,
      {
        body: subresource === 'scale' ? { spec: { replicas: 2 } } : { metadata: { labels: { a: 'b' } } },
      },
    );
    assert.equal(status, matches ? 422 : 200);
  });
}

// S-303
// Compat Admission and quota, P1, yes: equivalent versions for policies and webhooks: by subresource, also versions
//   that are no longer served, through conversion webhooks
test('a version that is no longer served is equivalent, for policies and for webhooks', async () => {
  const seen = "request.kind.version == 'v3' && object.apiVersion == 'example.com/v3'";
  await policy('Validating', [rule('v3', 'plates')], { validations: [{ expression: `!(${seen})`, message: 'as v3' }] });
  assert.match((await post('plates', 'v2', {})).json.message, /denied request: as v3$/);
  await server.request('DELETE', `${GROUP}/validatingadmissionpolicies/p`);
  await webhooks('Validating', ['/allow', { rules: [rule('v3', 'plates')] }]);
  assert.equal((await post('plates', 'v2', {})).status, 201);
  assert.equal(hooks.calls[0]!.body.request.object.apiVersion, 'example.com/v3');
});

// S-303
// Compat Admission and quota, P1, yes: match conditions: `request.resource` is what was asked for, `request.kind` what
//   was matched
test('match conditions see the resource that was asked for and the kind that was matched', async () => {
  const conditions = [
    { name: 'resource', expression: "request.resource.version == 'v2'" },
    { name: 'kind', expression: "request.kind.version == 'v1' && object.apiVersion == 'example.com/v1'" },
  ];
  await policy('Validating', [rule('v1', 'plates')], {
    matchConditions: conditions,
    validations: [{ expression: "request.resource.version != 'v1'", message: 'v1 here' }],
  });
  assert.match((await post('plates', 'v2', {})).json.message, /denied request: v1 here$/);
  await server.request('DELETE', `${GROUP}/validatingadmissionpolicies/p`);
  await webhooks('Validating', ['/deny', { rules: [rule('v1', 'plates')], matchConditions: conditions }]);
  assert.equal((await post('plates', 'v2', {})).status, 400);
});

// S-303
test('policies are shown what the conversion webhook makes of an object', async () => {
  await policy('Validating', [{ ...rule('v1', 'doors'), operations: ['CREATE'] }], {
    matchConditions: [{ name: 'port', expression: "object.spec.port != '22'" }],
    validations: [
      { expression: "object.spec.host == 'here'", messageExpression: "'not at ' + string(object.spec.host)" },
    ],
  });
  assert.equal((await post('doors', 'v2', { address: 'here:80' })).status, 201);
  await server.request('DELETE', '/apis/example.com/v1/namespaces/default/doors/one');
  assert.match((await post('doors', 'v2', { address: 'there:80' })).json.message, /denied request: not at there$/);
  assert.equal((await post('doors', 'v2', { address: 'there:22' })).status, 201);
});

// S-303
test('a mutation of another version goes through the conversion webhook and back', async () => {
  await policy('Mutating', [rule('v1', 'doors')], {
    reinvocationPolicy: 'Never',
    mutations: [
      {
        patchType: 'ApplyConfiguration',
        applyConfiguration: { expression: "Object{spec: Object.spec{port: object.spec.port + '43'}}" },
      },
    ],
  });
  const { status, json } = await post('doors', 'v2', { address: 'here:4' });
  assert.equal(status, 201, json.message);
  assert.deepEqual(json.spec, { address: 'here:443' });
});

// S-303
test('an object that cannot be converted is a matter of the policy, and none of the webhook', async () => {
  const problem = 'conversion webhook for example.com/v2, Kind=Door failed: out of ink';
  const rules = [rule('v1', 'doors')];
  converterFails = true;
  const validations = [{ expression: 'true' }];
  for (const [failurePolicy, expected] of [
    ['Fail', `denied request: failed to configure binding: failed to convert object version: ${problem}`],
    ['Ignore', problem],
  ] as const) {
    await policy('Validating', rules, { failurePolicy, validations });
    const { json } = await post('doors', 'v2', { address: 'here:80' });
    assert.ok(json.message.endsWith(expected), json.message);
    for (const plural of ['policies', 'policybindings']) {
      await server.request('DELETE', `${GROUP}/validatingadmission${plural}`);
    }
  }
  await webhooks('Validating', ['/allow', { rules, failurePolicy: 'Ignore' }]);
  const { status, json } = await post('doors', 'v2', { address: 'here:80' });
  assert.deepEqual([status, json.message], [500, `Internal error occurred: ${problem}`]);
});

test('a patch that cannot be read is a failure of the webhook', async () => {
  const rules = [rule('v1', 'plates')];
  await webhooks('Mutating', ['/no-patch', { rules }]);
  const refused = await post('plates', 'v1', {});
  assert.equal(refused.status, 500);
  assert.equal(
    refused.json.message,
    'Internal error occurred: failed calling webhook "no-patch.example.com": received undecodable patch in webhook response: expected array, got object',
  );
  await server.request('DELETE', `${GROUP}/mutatingwebhookconfigurations`);
  await webhooks('Mutating', ['/no-patch', { rules, failurePolicy: 'Ignore' }]);
  assert.equal((await post('plates', 'v1', {})).status, 201);
});

test('audit annotations number webhooks among all of them, and tell of those that refuse', async () => {
  await webhooks(
    'Mutating',
    ['/allow', { rules: [rule('v1', 'doors')] }],
    ['/label', { rules: [rule('v1', 'plates')] }],
    ['/deny', { rules: [rule('v1', 'plates')] }],
  );
  assert.equal((await post('plates', 'v1', {})).status, 400);
  const reported = [...annotations].filter(([key]) => key.startsWith('mutation.'));
  assert.deepEqual(reported, [
    [
      'mutation.webhook.admission.k8s.io/round_0_index_1',
      '{"configuration":"w","webhook":"label.example.com","mutated":true}',
    ],
    [
      'mutation.webhook.admission.k8s.io/round_0_index_2',
      '{"configuration":"w","webhook":"deny.example.com","mutated":false}',
    ],
  ]);
});
