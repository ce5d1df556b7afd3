/** ValidatingAdmissionPolicy: what it matches, what its expressions see, what it answers. */
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { createAdmissionMetrics } from '../../packages/apiserver/src/admission/admission-metrics.ts';
import { policyPlugins } from '../../packages/apiserver/src/admission/policy/policy-plugins.ts';
import { systemClock } from '../../packages/runtime/src/clock/clock.ts';
import { NEVER } from '../../packages/runtime/src/http/seam.ts';
import { silentLogger } from '../../packages/runtime/src/log/log.ts';
import { type Answer, type InProcessServer, type RequestOptions, startServer } from '../testkit/in-process-server.ts';

const GROUP = '/apis/admissionregistration.k8s.io/v1';
const API_VERSION = 'admissionregistration.k8s.io/v1';
const CONFIGMAPS = '/api/v1/namespaces/default/configmaps';
const CONFIGMAP_RULE = { apiGroups: [''], apiVersions: ['v1'], resources: ['configmaps'], operations: ['*'] };

let server: InProcessServer;

before(async () => {
  server = await startServer({
    authorize: (_user, attributes) => ({
      allowed: attributes.type === 'path' || attributes.verb !== 'forbid',
      reason: 'because',
    }),
  });
});

after(() => server.stop());

beforeEach(async () => {
  await server.request('DELETE', `${GROUP}/validatingadmissionpolicybindings`);
  await server.request('DELETE', `${GROUP}/validatingadmissionpolicies`);
  for (const namespace of ['default', 'kube-public']) {
    await server.request('DELETE', `/api/v1/namespaces/${namespace}/configmaps`);
  }
});

interface PolicyOptions {
  readonly name?: string;
  readonly binding?: object | null;
  readonly rules?: object[];
  readonly constraints?: object;
  [field: string]: unknown;
}

/** A policy over config maps with its binding. */
async function policy({ name = 'p', binding = {}, rules, constraints, ...spec }: PolicyOptions): Promise<void> {
  await server.create(`${GROUP}/validatingadmissionpolicies`, {
    apiVersion: API_VERSION,
    kind: 'ValidatingAdmissionPolicy',
    metadata: { name },
    spec: { matchConstraints: { resourceRules: rules ?? [CONFIGMAP_RULE], ...constraints }, ...spec },
  });
  if (binding) await bind({ policyName: name, ...binding });
}

const bind = (spec: object, name = 'b') =>
  server.create(`${GROUP}/validatingadmissionpolicybindings`, {
    apiVersion: API_VERSION,
    kind: 'ValidatingAdmissionPolicyBinding',
    metadata: { name },
    spec: { validationActions: ['Deny'], ...spec },
  });

/** Takes the policy of a case away. */
async function unbind(): Promise<void> {
  await server.request('DELETE', `${GROUP}/validatingadmissionpolicybindings/b`);
  await server.request('DELETE', `${GROUP}/validatingadmissionpolicies/p`);
}

const configMap = (name = 'one', more: object = {}) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name },
  data: { n: '1' },
  ...more,
});

const post = (body: object = configMap(), how: RequestOptions & { query?: string; namespace?: string } = {}) =>
  server.request('POST', `/api/v1/namespaces/${how.namespace ?? 'default'}/configmaps${how.query ?? ''}`, {
    ...how,
    body,
  });

const denied = (message: string, { name = 'one', at = "'p' with binding 'b'" } = {}): string =>
  `configmaps "${name}" is forbidden: ValidatingAdmissionPolicy ${at} denied request: ${message}`;

function assertDenied(answer: Answer, message: string, code = 422): void {
  assert.equal(answer.json.message, message);
  assert.equal(answer.status, code);
}

// S-158: ValidatingAdmissionPolicies: denials, parameters, match conditions and audit annotations are upstream's.
// Compat Admission and quota, P1, yes: ValidatingAdmissionPolicy
test('a denial is shaped as upstream shapes it', async () => {
  await policy({ validations: [{ expression: 'false', message: ' no ' }] });
  const { status, json } = await post();
  const text = "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no";
  assert.equal(status, 422);
  assert.deepEqual(json, {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message: `configmaps "one" is forbidden: ${text}`,
    reason: 'Invalid',
    details: { name: 'one', kind: 'configmaps', causes: [{ message: text }] },
    code: 422,
  });
});

test('the reason of a validation decides the code', async () => {
  for (const [reason, code] of [
    ['Forbidden', 403],
    ['Invalid', 422],
    ['RequestEntityTooLarge', 413],
  ] as const) {
    await policy({ name: 'r', validations: [{ expression: 'false', reason }] });
    const { json } = await post();
    assert.deepEqual([json.code, json.reason], [code, reason]);
    await server.request('DELETE', `${GROUP}/validatingadmissionpolicybindings/b`);
    await server.request('DELETE', `${GROUP}/validatingadmissionpolicies/r`);
  }
});

test('messages: messageExpression, else message, else the expression', async () => {
  const long = 'x'.repeat(6000);
  const cases: [object, string][] = [
    [{ messageExpression: "'n is ' + object.data.n", message: 'm' }, 'n is 1'],
    [{ messageExpression: "'  '", message: 'm' }, 'm'],
    [{ messageExpression: "'two\\nlines'", message: 'm' }, 'm'],
    [{ messageExpression: `'${long}'`, message: 'm' }, 'm'],
    [{ messageExpression: 'string(object.data.absent)', message: 'm' }, 'm'],
    [{}, "failed expression: object.metadata.name == 'two'"],
  ];
  for (const [more, message] of cases) {
    await policy({ validations: [{ expression: " object.metadata.name == 'two' ", ...more }] });
    assertDenied(await post(), denied(message));
    await unbind();
  }
});

test('every name of the environment is there', async () => {
  const cases: [string, boolean][] = [
    ['object.data.n == "1" && oldObject == null', true],
    ["request.kind.kind == 'ConfigMap' && request.resource.resource == 'configmaps'", true],
    ["request.requestKind.version == 'v1' && !has(request.subResource)", true],
    ["request.name == 'one' && request.namespace == 'default' && request.operation == 'CREATE'", true],
    ["request.userInfo.username == 'tester' && 'system:masters' in request.userInfo.groups", true],
    ["request.dryRun == false && request.options.kind == 'CreateOptions'", true],
    ["namespaceObject.metadata.labels['kubernetes.io/metadata.name'] == 'default'", true],
    ["namespaceObject.metadata.creationTimestamp > timestamp('2020-01-01T00:00:00Z')", true],
    ["namespaceObject.status.phase == 'Active'", true],
    ["authorizer.group('').resource('pods').namespace('default').check('get').allowed()", true],
    ["authorizer.requestResource.check('forbid').allowed()", false],
    ["authorizer.path('/healthz').check('get').reason() == 'because'", true],
  ];
  for (const [expression, holds] of cases) {
    await policy({ validations: [{ expression }] });
    const { status, json } = await post();
    assert.equal(status, holds ? 201 : 422, `${expression}: ${json.message}`);
    await unbind();
    await server.request('DELETE', `${CONFIGMAPS}/one`);
  }
});

test('on delete there is no object, on update there are both', async () => {
  await policy({
    validations: [
      { expression: "request.operation != 'DELETE' || (object == null && oldObject.data.n == '2')", message: 'd' },
      { expression: "request.operation != 'UPDATE' || oldObject.data.n < object.data.n", message: 'u' },
    ],
  });
  await post();
  assertDenied(await server.request('DELETE', `${CONFIGMAPS}/one`), denied('d'));
  const raise = { body: { data: { n: '2' } } };
  assert.equal((await server.request('PATCH', `${CONFIGMAPS}/one`, raise)).status, 200);
  assertDenied(await server.request('PATCH', `${CONFIGMAPS}/one`, raise), denied('u'));
  assert.equal((await server.request('DELETE', `${CONFIGMAPS}/one`)).status, 200);
});

test('variables are lazy, ordered and typed', async () => {
  await policy({
    variables: [
      { name: 'broken', expression: 'object.data.absent' },
      { name: 'n', expression: 'int(object.data.n)' },
      { name: 'next', expression: 'variables.n + 1' },
    ],
    validations: [
      { expression: 'variables.next == 2' },
      { expression: 'variables.next > 2', messageExpression: "'next is ' + string(variables.next)" },
    ],
  });
  assertDenied(await post(), denied('next is 2'));
});

test('a variable that fails shows where it is used', async () => {
  await policy({
    variables: [{ name: 'broken', expression: 'object.data.absent' }],
    validations: [{ expression: "variables.broken == 'x'" }],
  });
  assertDenied(
    await post(),
    denied(
      `expression 'variables.broken == 'x'' resulted in error: composited variable "broken" fails to evaluate: no such key: absent`,
    ),
  );
});

test('all validations run, the first denial is the answer, a plain false is not softened', async () => {
  await policy({
    failurePolicy: 'Ignore',
    validations: [
      { expression: "object.data.absent == 'x'" },
      { expression: 'false', message: 'first' },
      { expression: 'false', message: 'second' },
    ],
  });
  assertDenied(await post(), denied('first'));
});

test('errors follow failurePolicy', async () => {
  await policy({ validations: [{ expression: "object.data.absent == 'x'" }] });
  assertDenied(await post(), denied("expression 'object.data.absent == 'x'' resulted in error: no such key: absent"));
  await server.request('PATCH', `${GROUP}/validatingadmissionpolicies/p`, {
    body: { spec: { failurePolicy: 'Ignore' } },
  });
  assert.equal((await post()).status, 201);
});

// S-158
test('match conditions: one false wins over errors, errors follow failurePolicy', async () => {
  const cases: [string[], 'Fail' | 'Ignore', number, string?][] = [
    [['true'], 'Fail', 422, 'no'],
    [['false'], 'Fail', 201],
    [['object.data.absent == "x"', 'false'], 'Fail', 201],
    [
      ['object.data.absent == "x"'],
      'Fail',
      422,
      `expression 'object.data.absent == "x"' resulted in error: no such key: absent`,
    ],
    [['object.data.absent == "x"'], 'Ignore', 201],
    [['namespaceObject == null'], 'Fail', 422, 'no'],
  ];
  for (const [conditions, failurePolicy, code, message] of cases) {
    await policy({
      failurePolicy,
      matchConditions: conditions.map((expression, i) => ({ name: `c${i}`, expression })),
      validations: [{ expression: 'false', message: 'no' }],
    });
    const answer = await post();
    assert.equal(answer.status, code, `${conditions}: ${answer.text}`);
    if (message) assert.equal(answer.json.message, denied(message));
    await server.request('DELETE', `${CONFIGMAPS}/one`);
    await unbind();
    await server.request('DELETE', `${CONFIGMAPS}/one`);
  }
});

test('Warn warns in a dry run as well, and lets the request pass', async () => {
  await policy({
    validations: [{ expression: 'false', message: 'hm' }],
    binding: { validationActions: ['Warn', 'Audit'] },
  });
  const { status, headers } = await post(configMap(), { query: '?dryRun=All' });
  assert.equal(status, 201);
  assert.equal(headers['warning'], `299 - "Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': hm"`);
});

test('selectors: either object counts, namespaces by their labels, excluded rules win', async () => {
  const NS = { matchLabels: { 'kubernetes.io/metadata.name': 'kube-public' } };
  const cases: [string, object, object, boolean][] = [
    [
      'object label',
      { objectSelector: { matchLabels: { a: 'b' } } },
      { metadata: { name: 'one', labels: { a: 'b' } } },
      true,
    ],
    ['no label', { objectSelector: { matchLabels: { a: 'b' } } }, {}, false],
    ['namespace', { namespaceSelector: NS }, {}, false],
    ['excluded', { excludeResourceRules: [{ ...CONFIGMAP_RULE, operations: ['CREATE'] }] }, {}, false],
    ['excluded by name', { excludeResourceRules: [{ ...CONFIGMAP_RULE, resourceNames: ['one'] }] }, {}, false],
    ['another excluded', { excludeResourceRules: [{ ...CONFIGMAP_RULE, resourceNames: ['two'] }] }, {}, true],
  ];
  for (const [label, constraints, more, matches] of cases) {
    await policy({ constraints, validations: [{ expression: 'false', message: 'no' }] });
    assert.equal((await post(configMap('one', more))).status, matches ? 422 : 201, label);
    await unbind();
    await server.request('DELETE', `${CONFIGMAPS}/one`);
  }
});

test('an update that takes the label off is still validated', async () => {
  await post(configMap('one', { metadata: { name: 'one', labels: { guarded: 'yes' } } }));
  await policy({
    constraints: { objectSelector: { matchLabels: { guarded: 'yes' } } },
    validations: [{ expression: 'false', message: 'no' }],
  });
  assertDenied(await server.request('PUT', `${CONFIGMAPS}/one`, { body: configMap() }), denied('no'));
});

test('the binding narrows the policy, and none of its rules means all', async () => {
  const deny = { validations: [{ expression: 'false', message: 'no' }] };
  await policy({ ...deny, binding: null });
  assert.equal((await post()).status, 201, 'a policy without a binding does nothing');
  const matchResources = { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'kube-public' } } };
  await bind({ policyName: 'p', matchResources });
  assert.equal((await post(configMap('two'))).status, 201);
  assertDenied(await post(configMap(), { namespace: 'kube-public' }), denied('no'));
});

test('resourceNames and request.name know nothing of generated names and collections', async () => {
  await post(configMap('one'));
  await policy({
    rules: [{ ...CONFIGMAP_RULE, operations: ['DELETE'] }],
    validations: [{ expression: "has(request.name) || oldObject.metadata.name != 'one'", message: 'from oldObject' }],
  });
  assertDenied(await server.request('DELETE', CONFIGMAPS), denied('from oldObject', { name: 'Unknown' }));
  assert.equal((await server.request('DELETE', `${CONFIGMAPS}/one`)).status, 200);
});

test('namespaces are validated by their own labels, with no namespaceObject', async () => {
  await policy({
    rules: [{ apiGroups: [''], apiVersions: ['v1'], resources: ['namespaces'], operations: ['CREATE', 'DELETE'] }],
    constraints: { namespaceSelector: { matchLabels: { guarded: 'yes' } } },
    validations: [{ expression: "namespaceObject != null || request.operation != 'DELETE'", message: 'guarded' }],
  });
  const namespace = (name: string, labels: object) => ({
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name, labels },
  });
  await server.create('/api/v1/namespaces', namespace('loose', {}));
  await server.create('/api/v1/namespaces', namespace('tight', { guarded: 'yes' }));
  assert.equal((await server.request('DELETE', '/api/v1/namespaces/loose')).status, 200);
  const { status, json } = await server.request('DELETE', '/api/v1/namespaces/tight');
  assert.equal(status, 422);
  assert.equal(
    json.message,
    `namespaces "tight" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: guarded`,
  );
});

test('Equivalent converts to the version of the rule, Exact does not match', async () => {
  const event = {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: 'h' },
    involvedObject: { kind: 'Pod', namespace: 'default', name: 'p' },
    message: 'hello',
  };
  const rules = [{ apiGroups: ['events.k8s.io'], apiVersions: ['v1'], resources: ['events'], operations: ['CREATE'] }];
  const validations = [
    {
      expression: "object.note != 'hello' || request.kind.group != 'events.k8s.io' || request.requestKind.group != ''",
      message: 'seen as events.k8s.io',
    },
  ];
  const path = '/api/v1/namespaces/default/events';
  await policy({ rules, validations });
  const { json } = await server.request('POST', path, { body: event });
  assert.match(json.message, /seen as events.k8s.io$/);
  await server.request('PATCH', `${GROUP}/validatingadmissionpolicies/p`, {
    body: { spec: { matchConstraints: { matchPolicy: 'Exact' } } },
  });
  assert.equal((await server.request('POST', path, { body: event })).status, 201);
});

// S-158
test('parameters: by name, by selector, of the request’s namespace, absent', async () => {
  const params = (name: string, max: string, labels: object, namespace = 'default') =>
    server.create(`/api/v1/namespaces/${namespace}/secrets`, {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name, labels, annotations: { max } },
    });
  await params('strict', '0', { set: 'a' });
  await params('mild', '9', { set: 'a' });
  await params('strict', '9', {}, 'kube-public');
  const decoded = 'params.metadata.annotations.max';
  const validations = [
    {
      expression: `params == null || int(object.data.n) <= int(${decoded})`,
      messageExpression: `'above ' + ${decoded}`,
    },
  ];
  const notFound =
    'failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction';
  const cases: [object | undefined, number, (string | undefined)?, string?][] = [
    [undefined, 201],
    [{ name: 'mild', parameterNotFoundAction: 'Deny' }, 201],
    [{ name: 'strict', parameterNotFoundAction: 'Deny' }, 422, 'above 0'],
    [{ name: 'strict', parameterNotFoundAction: 'Deny' }, 201, undefined, 'kube-public'],
    [{ name: 'strict', namespace: 'default', parameterNotFoundAction: 'Deny' }, 422, 'above 0', 'kube-public'],
    [{ selector: { matchLabels: { set: 'a' } }, parameterNotFoundAction: 'Deny' }, 422, 'above 0'],
    [{ selector: { matchLabels: { set: 'x' } }, parameterNotFoundAction: 'Deny' }, 422, notFound],
    [{ name: 'gone', parameterNotFoundAction: 'Deny' }, 422, notFound],
    [{ name: 'gone', parameterNotFoundAction: 'Allow' }, 201],
  ];
  for (const [paramRef, code, message, namespace = 'default'] of cases) {
    await policy({
      paramKind: { apiVersion: 'v1', kind: 'Secret' },
      validations,
      binding: { ...(paramRef && { paramRef }) },
    });
    const answer = await post(configMap(), { namespace });
    assert.equal(answer.status, code, `${JSON.stringify(paramRef)}: ${answer.text}`);
    if (message) assert.equal(answer.json.message, denied(message));
    await unbind();
    await server.request('DELETE', `/api/v1/namespaces/${namespace}/configmaps/one`);
  }
});

test('a paramKind that nobody serves is a fault of the policy', async () => {
  await policy({
    paramKind: { apiVersion: 'rules.example.com/v1', kind: 'Limit' },
    validations: [{ expression: 'true' }],
  });
  assertDenied(
    await post(),
    denied(
      "failed to configure policy: failed to find resource referenced by paramKind: 'rules.example.com/v1, Kind=Limit'",
      { at: "'p'" },
    ),
  );
  await server.request('PATCH', `${GROUP}/validatingadmissionpolicies/p`, {
    body: { spec: { failurePolicy: 'Ignore' } },
  });
  assert.equal((await post()).status, 201);
});

test('an audit annotation that fails refuses the request even when the binding only warns', async () => {
  await policy({
    validations: [],
    auditAnnotations: [
      { key: 'n', valueExpression: "'n is ' + object.data.n" },
      { key: 'gone', valueExpression: 'string(object.data.absent)' },
    ],
    binding: { validationActions: ['Warn'] },
  });
  assertDenied(await post(), denied("expression 'string(object.data.absent)' resulted in error: no such key: absent"));
});

// S-158
// Compat Admission and quota, P2, yes: the audit annotation of a failed validation holds the first failure
test('Audit and audit annotations reach the audit event', async () => {
  for (const name of ['first', 'second']) {
    await server.create('/api/v1/namespaces/default/secrets', {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name, labels: { for: 'audit' } },
    });
  }
  await policy({
    paramKind: { apiVersion: 'v1', kind: 'Secret' },
    validations: [{ expression: 'true' }, { expression: 'false', message: 'hm' }],
    auditAnnotations: [
      { key: 'by', valueExpression: 'string(params.metadata.name)' },
      { key: 'same', valueExpression: "'same'" },
      { key: 'none', valueExpression: 'null' },
    ],
    binding: {
      validationActions: ['Audit'],
      paramRef: { selector: { matchLabels: { for: 'audit' } }, parameterNotFoundAction: 'Deny' },
    },
  });
  const seen = new Map<string, string>();
  const plugins = policyPlugins({
    store: server.store,
    clock: systemClock,
    log: silentLogger,
    resources: server.catalog,
    authorize: () => ({ allowed: true, reason: '' }),
    metrics: createAdmissionMetrics(systemClock),
  });
  const plugin = plugins.find(({ name }) => name === 'ValidatingAdmissionPolicy')!;
  await plugin.validate!({
    operation: 'CREATE',
    requestVerb: 'create',
    info: server.catalog.lookup('', 'v1', 'configmaps')!,
    subresource: '',
    namespace: 'default',
    name: 'one',
    user: { username: 'u', groups: [] },
    dryRun: false,
    object: configMap(),
    oldObject: undefined,
    options: {},
    companions: undefined,
    reinvocation: undefined,
    signal: NEVER,
    warn: () => {},
    annotate: (key, value) => seen.set(key, value),
  });
  const failure = { message: 'hm', policy: 'p', binding: 'b', expressionIndex: 1, validationActions: ['Audit'] };
  assert.deepEqual(JSON.parse(seen.get('validation.policy.admission.k8s.io/validation_failure')!), [failure]);
  assert.deepEqual([seen.get('p/by'), seen.get('p/same'), seen.get('p/none')], ['first, second', 'same', undefined]);
});

test('an audit annotation may name the authorizer, which has no value there', async () => {
  const valueExpression = "authorizer.path('/').check('get').allowed() ? 'yes' : 'no'";
  const auditAnnotations = [{ key: 'k', valueExpression }];
  await policy({ validations: [{ expression: 'true' }], auditAnnotations });
  assertDenied(
    await post(),
    denied(`expression '${valueExpression}' resulted in error: no such attribute(s): authorizer`),
  );
});

// S-191
test('whoever may not read the parameters may not write the policy', async () => {
  const mine = await startServer({
    authorize: (_user, attributes) => ({
      allowed: attributes.type === 'path' || attributes.resource !== 'secrets',
      reason: '',
    }),
  });
  const spec = {
    paramKind: { apiVersion: 'v1', kind: 'Secret' },
    matchConstraints: { resourceRules: [CONFIGMAP_RULE] },
    validations: [{ expression: 'true' }],
  };
  const written = await mine.request('POST', `${GROUP}/validatingadmissionpolicies`, {
    body: { apiVersion: API_VERSION, kind: 'ValidatingAdmissionPolicy', metadata: { name: 'p' }, spec },
  });
  assert.equal(written.status, 422);
  assert.equal(written.json.details.causes[0].field, 'spec.paramKind');
  const { paramKind: _none, ...plain } = spec;
  const allowed = await mine.request('POST', `${GROUP}/validatingadmissionpolicies`, {
    body: { apiVersion: API_VERSION, kind: 'ValidatingAdmissionPolicy', metadata: { name: 'p' }, spec: plain },
  });
  assert.equal(allowed.status, 201);
  await mine.stop();
});

// S-192: A policy that costs too much stops at its budget.
test('too costly an expression runs out of budget', async () => {
  const items = Array.from({ length: 300 }, (_, i) => [`k${i}`, 'x'.repeat(20)]);
  const all = 'object.data.all(a, object.data.all(b, object.data.all(c, a != "" || b != "" || c != "")))';
  await policy({ validations: [{ expression: all }] });
  const { status, json } = await post(configMap('one', { data: Object.fromEntries(items) }));
  assert.equal(status, 422);
  assert.match(json.message, /actual cost limit exceeded|running out of cost budget/);
});

test('policies are never asked about policies, and scale is validated as a Scale', async () => {
  await policy({
    rules: [{ apiGroups: ['*'], apiVersions: ['*'], resources: ['*/*'], operations: ['*'] }],
    matchConditions: [
      { name: 'mine', expression: "request.resource.group in ['apps', 'admissionregistration.k8s.io']" },
    ],
    validations: [
      {
        expression:
          "request.?subResource.orValue('') == 'scale' ? object.spec.replicas < 5 : request.operation == 'CREATE'",
        message: 'no',
      },
    ],
  });
  await server.create('/apis/apps/v1/namespaces/default/deployments', {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'd' },
    spec: {
      selector: { matchLabels: { a: 'b' } },
      template: { metadata: { labels: { a: 'b' } }, spec: { containers: [{ name: 'c', image: 'i' }] } },
    },
  });
  const scale = (replicas: number) =>
    server.request('PATCH', '/apis/apps/v1/namespaces/default/deployments/d/scale', { body: { spec: { replicas } } });
  assert.equal((await scale(4)).json.spec?.replicas, 4);
  assert.equal((await scale(5)).status, 422);
  assert.equal((await server.request('DELETE', `${GROUP}/validatingadmissionpolicies/p`)).status, 200);
});

// S-356: Admission policies check configurations of webhooks as any other object, and never policies or their bindings.
test('configurations of webhooks are validated', async () => {
  await policy({
    rules: [{ apiGroups: ['*'], apiVersions: ['*'], resources: ['*/*'], operations: ['CREATE'] }],
    validations: [{ expression: "request.resource.resource != 'validatingwebhookconfigurations'", message: 'no' }],
  });
  const configuration = { apiVersion: API_VERSION, kind: 'ValidatingWebhookConfiguration', metadata: { name: 'w' } };
  const { status, json } = await server.request('POST', `${GROUP}/validatingwebhookconfigurations`, {
    body: configuration,
  });
  assert.equal(status, 422);
  assert.equal(
    json.message,
    'validatingwebhookconfigurations.admissionregistration.k8s.io "w" is forbidden: ' +
      "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no",
  );
});

test('what is wrong with a policy or binding is said at its field', async () => {
  const send = (kind: string, spec: object) =>
    server.request(
      'POST',
      `${GROUP}/${kind === 'ValidatingAdmissionPolicy' ? 'validatingadmissionpolicies' : 'validatingadmissionpolicybindings'}`,
      {
        body: { apiVersion: API_VERSION, kind, metadata: { name: 'x' }, spec },
      },
    );
  const matchConstraints = { resourceRules: [CONFIGMAP_RULE] };
  const good = { matchConstraints, validations: [{ expression: 'true' }] };
  const cases: [string, object, string, RegExp][] = [
    ['ValidatingAdmissionPolicy', { ...good, matchConstraints: undefined }, 'spec.matchConstraints', /^Required value/],
    [
      'ValidatingAdmissionPolicy',
      { ...good, matchConstraints: {} },
      'spec.matchConstraints.resourceRules',
      /^Required value/,
    ],
    [
      'ValidatingAdmissionPolicy',
      { matchConstraints },
      'spec.validations',
      /validations or auditAnnotations must contain at least one item/,
    ],
    [
      'ValidatingAdmissionPolicy',
      { ...good, validations: [{ expression: 'object.x.' }] },
      'spec.validations[0].expression',
      /compilation failed: ERROR: <input>:1:10: Syntax error/,
    ],
    [
      'ValidatingAdmissionPolicy',
      { ...good, validations: [{ expression: '1' }] },
      'spec.validations[0].expression',
      /must evaluate to bool but got int$/,
    ],
    [
      'ValidatingAdmissionPolicy',
      { ...good, validations: [{ expression: 'params.x == 1' }] },
      'spec.validations[0].expression',
      /undeclared reference to 'params'/,
    ],
    [
      'ValidatingAdmissionPolicy',
      {
        ...good,
        validations: [{ expression: 'true', messageExpression: 'authorizer.path("/x").check("get").reason()' }],
      },
      'spec.validations[0].messageExpression',
      /undeclared reference to 'authorizer'/,
    ],
    [
      'ValidatingAdmissionPolicy',
      { ...good, validations: [{ expression: 'true', message: 'a\nb' }] },
      'spec.validations[0].message',
      /must not contain line breaks/,
    ],
    [
      'ValidatingAdmissionPolicy',
      { ...good, validations: [{ expression: 'true', reason: 'Conflict' }] },
      'spec.validations[0].reason',
      /^Unsupported value/,
    ],
    [
      'ValidatingAdmissionPolicy',
      { ...good, variables: [{ name: 'a-b', expression: '1' }] },
      'spec.variables[0].name',
      /not a valid CEL identifier/,
    ],
    [
      'ValidatingAdmissionPolicy',
      {
        ...good,
        variables: [
          { name: 'a', expression: 'variables.b' },
          { name: 'b', expression: '1' },
        ],
      },
      'spec.variables[0].expression',
      /undefined field 'b'/,
    ],
    [
      'ValidatingAdmissionPolicy',
      {
        ...good,
        matchConditions: [
          { name: 'c', expression: 'true' },
          { name: 'c', expression: 'true' },
        ],
      },
      'spec.matchConditions[1].name',
      /^Duplicate value/,
    ],
    [
      'ValidatingAdmissionPolicy',
      { ...good, auditAnnotations: [{ key: 'k', valueExpression: '1' }] },
      'spec.auditAnnotations[0].valueExpression',
      /must evaluate to one of \[string null_type\]/,
    ],
    ['ValidatingAdmissionPolicyBinding', { policyName: 'p' }, 'spec.validationActions', /^Required value/],
    [
      'ValidatingAdmissionPolicyBinding',
      { policyName: 'p', validationActions: ['Deny', 'Warn'] },
      'spec.validationActions',
      /must not contain both Deny and Warn/,
    ],
    [
      'ValidatingAdmissionPolicyBinding',
      { policyName: 'p', validationActions: ['Deny', 'Deny'] },
      'spec.validationActions[1]',
      /^Duplicate value/,
    ],
    ['ValidatingAdmissionPolicyBinding', { validationActions: ['Deny'] }, 'spec.policyName', /^Required value/],
    [
      'ValidatingAdmissionPolicyBinding',
      {
        policyName: 'p',
        validationActions: ['Deny'],
        paramRef: { name: 'a', selector: {}, parameterNotFoundAction: 'Deny' },
      },
      'spec.paramRef.name',
      /mutually exclusive/,
    ],
    [
      'ValidatingAdmissionPolicyBinding',
      { policyName: 'p', validationActions: ['Deny'], paramRef: { name: 'a' } },
      'spec.paramRef.parameterNotFoundAction',
      /^Required value/,
    ],
  ];
  for (const [kind, spec, field, message] of cases) {
    const { status, json } = await send(kind, spec);
    assert.equal(status, 422, `${field}: ${JSON.stringify(json)}`);
    const cause = json.details.causes.find((one: { field: string }) => one.field === field);
    assert.ok(cause, `${field} is not among ${JSON.stringify(json.details.causes)}`);
    assert.match(cause.message, message);
  }
});
