/** What admission did, in /metrics under upstream's names; and selectors in the questions that policies ask. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startPlane, type TestPlane } from '../testkit/control-plane.ts';
import { eventually } from '../testkit/eventually.ts';

const GROUP = '/apis/admissionregistration.k8s.io/v1';
const CONFIG_MAPS = '/api/v1/namespaces/default/configmaps';
const RULE = { apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['configmaps'] };

let plane: TestPlane;
before(async () => {
  plane = await startPlane();
});
after(() => plane.stop());

const ADMIN = ['admin', 'system:masters'] as const;
const create = (name: string, more: object = {}, as: readonly [string, ...string[]] = ADMIN) =>
  plane.ask(`POST ${CONFIG_MAPS}?dryRun=All`, { as, body: { metadata: { name }, ...more } });

async function metrics(): Promise<string> {
  const { response } = await plane.ask('GET /metrics', { as: ADMIN });
  return new TextDecoder().decode(response.body as Uint8Array);
}

async function policy(name: string, spec: object, actions: string[]): Promise<void> {
  await plane.admin(`POST ${GROUP}/validatingadmissionpolicies`, {
    metadata: { name },
    spec: { matchConstraints: { resourceRules: [RULE] }, ...spec },
  });
  await plane.admin(`POST ${GROUP}/validatingadmissionpolicybindings`, {
    metadata: { name: `${name}-bound` },
    spec: { policyName: name, validationActions: actions },
  });
}

// S-206: Metrics of admission count what checks came to.
test('checks of policies are counted by what they came to', async () => {
  await policy('named', { validations: [{ expression: "object.metadata.name != 'bad'" }] }, ['Deny', 'Audit']);
  await eventually(
    () => create('bad'),
    ({ status }) => status === 422,
  );
  await create('good');
  const text = await metrics();
  assert.match(text, /^# TYPE apiserver_validating_admission_policy_check_total counter$/m);
  for (const action of ['allow', 'deny', 'audit']) {
    const labels = `policy="named",policy_binding="named-bound",enforcement_action="${action}",error_type="no_error"`;
    assert.ok(text.includes(`apiserver_validating_admission_policy_check_total{${labels}} `), action);
  }
  await plane.admin(`DELETE ${GROUP}/validatingadmissionpolicybindings/named-bound`);
});

test('webhooks that cannot be reached are counted as refusals, or as passed by', async () => {
  const hook = (name: string, failurePolicy: string) => ({
    name,
    clientConfig: { url: 'https://127.0.0.1:1/' },
    rules: [RULE],
    sideEffects: 'None',
    admissionReviewVersions: ['v1'],
    failurePolicy,
  });
  const path = `${GROUP}/validatingwebhookconfigurations`;
  await plane.admin(`POST ${path}`, { metadata: { name: 'open' }, webhooks: [hook('open.example.com', 'Ignore')] });
  await plane.admin(`POST ${path}`, { metadata: { name: 'shut' }, webhooks: [hook('shut.example.com', 'Fail')] });
  await eventually(
    () => create('any'),
    ({ status }) => status === 500,
  );
  const text = await metrics();
  assert.match(
    text,
    /apiserver_admission_webhook_fail_open_count\{name="open\.example\.com",type="validating"\} [1-9]/,
  );
  assert.match(
    text,
    /apiserver_admission_webhook_rejection_count\{name="shut\.example\.com",type="validating",operation="CREATE",error_type="calling_webhook_error",rejection_code="0"\} [1-9]/,
  );
  assert.match(
    text,
    /apiserver_admission_webhook_request_total\{name="shut\.example\.com",type="validating",operation="CREATE",code="0",rejected="true"\} [1-9]/,
  );
  await plane.admin(`DELETE ${path}/open`);
  await plane.admin(`DELETE ${path}/shut`);
});

// Compat Admission and quota, P2, yes: `authorizer` with field and label selectors
test('a policy asks for a narrowed list and gets the answer for a narrowed list', async () => {
  const NODE = ['system:node:alpha', 'system:nodes'] as const;
  await plane.admin('POST /apis/rbac.authorization.k8s.io/v1/clusterroles', {
    metadata: { name: 'maker' },
    rules: [{ apiGroups: [''], resources: ['configmaps'], verbs: ['create'] }],
  });
  await plane.admin('POST /apis/rbac.authorization.k8s.io/v1/clusterrolebindings', {
    metadata: { name: 'maker' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'maker' },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: NODE[0] }],
  });
  const asked = "authorizer.group('').resource('pods')";
  const narrowed = (node: string): string => `${asked}.fieldSelector('spec.nodeName=${node}').check('list').allowed()`;
  // One expression may cost no more than two questions.
  const expressions = [narrowed('alpha'), `!${narrowed('beta')}`, `!${asked}.check('list').allowed()`];
  const validations = ["object.metadata.name != 'probe'", ...expressions].map((expression) => ({ expression }));
  await policy('asks', { validations }, ['Deny']);
  await eventually(
    () => create('probe', {}, NODE),
    ({ status }) => status === 422,
  );
  const answer = await create('other', {}, NODE);
  assert.equal(answer.status, 201, answer.json?.message);
});

// S-231
// Compat Priority and fairness, audit, health, metrics, P2, yes: metrics of webhooks and policies, durations among them
test('durations are sorted into buckets: of the two steps, of plug-ins, webhooks and policies', async () => {
  await policy('timing', { validations: [{ expression: "object.metadata.name != 'bad'" }] }, ['Deny']);
  let text = '';
  await eventually(
    async () => {
      await create('bad');
      text = await metrics();
    },
    () => text.includes('{policy="timing"'),
  );
  const count = (labels: string): number => {
    const line = text.split('\n').find((one) => one.startsWith(`apiserver_${labels} `));
    return line === undefined ? 0 : Number(line.split(' ').at(-1));
  };
  const step = 'admission_step_admission_duration_seconds';
  assert.ok(count(`${step}_count{operation="CREATE",rejected="false",type="admit"}`) > 0);
  assert.ok(count(`${step}_count{operation="CREATE",rejected="true",type="validate"}`) > 0, 'refused by a policy');
  const plugin = (name: string, rejected: boolean, type: string): number =>
    count(
      `admission_controller_admission_duration_seconds_count{name="${name}",operation="CREATE",rejected="${rejected}",type="${type}"}`,
    );
  assert.ok(plugin('NamespaceLifecycle', false, 'admit') > 0);
  assert.ok(plugin('ValidatingAdmissionPolicy', true, 'validate') > 0);
  assert.equal(plugin('NamespaceLifecycle', true, 'admit'), 0);
  assert.match(
    text,
    /^apiserver_admission_webhook_admission_duration_seconds_bucket\{name="shut\.example\.com",operation="CREATE",rejected="true",type="validating",le="25"\} [1-9]/m,
  );
  assert.match(
    text,
    /^apiserver_validating_admission_policy_check_duration_seconds_bucket\{policy="timing",policy_binding="timing-bound",enforcement_action="deny",error_type="no_error",le="1"\} [1-9]/m,
  );
});
