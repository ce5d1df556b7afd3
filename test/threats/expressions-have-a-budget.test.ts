/** Threat 21: an expression that could cost too much is refused when it is written, or stopped when it runs. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { DEFINITIONS, definition, establish } from '../testkit/custom-definitions.ts';
import { type InProcessServer, startServer } from '../testkit/in-process-server.ts';

let server: InProcessServer;
before(async () => {
  server = await startServer();
});
after(() => server.stop());

const list = (more: object = {}) => ({ type: 'array', items: { type: 'string', ...more } });
const ruled = (rule: string, l: object) => ({
  type: 'object',
  properties: { l },
  'x-kubernetes-validations': [{ rule }],
});
const nested = (depth: number): string =>
  `${Array.from({ length: depth }, (_, at) => `self.l.all(x${at}, `).join('')}x0 != 'a'${')'.repeat(depth)}`;

test('loops over lists without a bound are refused with the definition', async () => {
  for (const [at, depth] of [2, 3, 5, 9].entries()) {
    const spec = ruled(nested(depth), list());
    const { status, json } = await server.request('POST', DEFINITIONS, {
      body: definition({ name: `loop${at}`, spec }),
    });
    assert.equal(status, 422, `${depth} loops: ${JSON.stringify(json)}`);
    assert.match(json.message, /estimated rule cost exceeds budget/);
  }
});

test('so is a pattern over text without a bound, and one over bounded text is taken', async () => {
  const unbounded = await server.request('POST', DEFINITIONS, {
    body: definition({ name: 'grep', spec: ruled("self.l.all(x, self.l.all(y, x.matches('^(a+)+$')))", list()) }),
  });
  assert.equal(unbounded.status, 422, unbounded.text);
  const l = { ...list({ maxLength: 10 }), maxItems: 10 };
  const bounded = await server.request('POST', DEFINITIONS, {
    body: definition({ name: 'bounded', spec: ruled("self.l.all(x, x.matches('^(a+)+$'))", l) }),
  });
  assert.equal(bounded.status, 201, bounded.text);
});

test('a policy that costs more than its budget is stopped, and fails as its failurePolicy says', async () => {
  const group = '/apis/admissionregistration.k8s.io/v1';
  const apiVersion = 'admissionregistration.k8s.io/v1';
  const range = `[${Array.from({ length: 100 }, (_, at) => at).join(',')}]`;
  const expression = `${range}.all(a, ${range}.all(b, ${range}.all(c, ${range}.all(d, a + b + c + d >= 0))))`;
  await server.create(`${group}/validatingadmissionpolicies`, {
    apiVersion,
    kind: 'ValidatingAdmissionPolicy',
    metadata: { name: 'dear' },
    spec: {
      failurePolicy: 'Fail',
      matchConstraints: {
        resourceRules: [{ apiGroups: [''], apiVersions: ['v1'], resources: ['configmaps'], operations: ['*'] }],
      },
      validations: [{ expression }],
    },
  });
  await server.create(`${group}/validatingadmissionpolicybindings`, {
    apiVersion,
    kind: 'ValidatingAdmissionPolicyBinding',
    metadata: { name: 'dear' },
    spec: { policyName: 'dear', validationActions: ['Deny'] },
  });
  const { status, json } = await server.request('POST', '/api/v1/namespaces/default/configmaps', {
    body: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'm' } },
  });
  assert.equal(status, 422, JSON.stringify(json));
  assert.match(json.message, /cost limit exceeded|call cost exceeds limit|budget/i);
  await server.request('DELETE', `${group}/validatingadmissionpolicybindings/dear`);
});

test('a transition rule of a custom resource is stopped at its budget too', async () => {
  const l = { ...list({ maxLength: 100 }), maxItems: 100 };
  await establish(server, definition({ name: 'gauge', spec: ruled('self.l.all(x, self.l.exists(y, x == y))', l) }));
  const many = Array.from({ length: 100 }, (_, at) => `${at}${'x'.repeat(90)}`);
  const { status, json } = await server.request('POST', '/apis/example.com/v1/namespaces/default/gauges', {
    body: { apiVersion: 'example.com/v1', kind: 'Gauge', metadata: { name: 'g' }, spec: { l: many } },
  });
  assert.equal(status, 201, JSON.stringify(json));
});
