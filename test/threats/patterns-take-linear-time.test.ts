/**
 * Threat 22: no pattern of a tenant makes the server think for long. With a backtracking engine each of these would take
 * longer than the universe; the test ends, or its time is up.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { definition, establish } from '../testkit/custom-definitions.ts';
import { type InProcessServer, startServer } from '../testkit/in-process-server.ts';

let server: InProcessServer;
before(async () => {
  server = await startServer();
});
after(() => server.stop());

const EVIL = ['^(a+)+$', '^(a|aa)+$', '^(a|a)*$', '^([a-zA-Z]+)*$', '(a*)*b', '^(([a-z])+.)+[A-Z]([a-z])+$'];
const LONG = `${'a'.repeat(5000)}!`;

test('the pattern of a schema', { timeout: 600_000 }, async () => {
  const properties = Object.fromEntries(EVIL.map((pattern, at) => [`p${at}`, { type: 'string', pattern }]));
  await establish(server, definition({ name: 'evil', spec: { type: 'object', properties } }));
  const spec = Object.fromEntries(EVIL.map((_, at) => [`p${at}`, LONG]));
  const { status, json } = await server.request('POST', '/apis/example.com/v1/namespaces/default/evils', {
    body: { apiVersion: 'example.com/v1', kind: 'Evil', metadata: { name: 'e' }, spec },
  });
  assert.equal(status, 422, JSON.stringify(json).slice(0, 300));
  assert.equal(json.details.causes.length, EVIL.length);
});

// S-217
test('matches() in a policy', { timeout: 600_000 }, async () => {
  const apiVersion = 'admissionregistration.k8s.io/v1';
  const group = `/apis/${apiVersion}`;
  await server.create(`${group}/validatingadmissionpolicies`, {
    apiVersion,
    kind: 'ValidatingAdmissionPolicy',
    metadata: { name: 'evil' },
    spec: {
      matchConstraints: {
        resourceRules: [{ apiGroups: [''], apiVersions: ['v1'], resources: ['configmaps'], operations: ['*'] }],
      },
      validations: EVIL.map((pattern) => ({ expression: `object.data.a.matches('${pattern}')` })),
    },
  });
  await server.create(`${group}/validatingadmissionpolicybindings`, {
    apiVersion,
    kind: 'ValidatingAdmissionPolicyBinding',
    metadata: { name: 'evil' },
    spec: { policyName: 'evil', validationActions: ['Deny'] },
  });
  const { status } = await server.request('POST', '/api/v1/namespaces/default/configmaps', {
    body: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'm' }, data: { a: LONG } },
  });
  assert.equal(status, 422);
});

// S-217
test('names, labels, selectors, quantities, times and durations that are nearly right for long', {
  timeout: 600_000,
}, async () => {
  const nearly = [
    'a-'.repeat(100_000),
    'a.'.repeat(100_000),
    '1'.repeat(200_000),
    `${'1'.repeat(100_000)}.${'0'.repeat(100_000)}x`,
    '2026-'.repeat(40_000),
    '1h'.repeat(100_000),
    `${'a,'.repeat(100_000)}`,
    `${'('.repeat(100_000)}`,
    `${' '.repeat(200_000)}x`,
  ];
  for (const text of nearly) {
    const bodies = [
      { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: text } },
      {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name: 'x', labels: { [text]: text }, annotations: { [text]: text } },
      },
      { apiVersion: 'v1', kind: 'ResourceQuota', metadata: { name: 'x' }, spec: { hard: { cpu: text } } },
      { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'x', creationTimestamp: text, finalizers: [text] } },
      { apiVersion: 'batch/v1', kind: 'CronJob', metadata: { name: 'x' }, spec: { schedule: text, timeZone: text } },
    ];
    for (const body of bodies) {
      const root = body.apiVersion === 'v1' ? '/api/v1' : `/apis/${body.apiVersion}`;
      const resource = `${body.kind.toLowerCase()}s`;
      const { status } = await server.request('POST', `${root}/namespaces/default/${resource}?dryRun=All`, { body });
      assert.ok(status < 500, `${body.kind} ${text.slice(0, 20)}: ${status}`);
    }
    for (const parameter of [
      'labelSelector',
      'fieldSelector',
      'continue',
      'resourceVersion',
      'timeout',
      'fieldManager',
    ]) {
      const query = `${parameter}=${encodeURIComponent(text)}`;
      const { status } = await server.request('GET', `/api/v1/namespaces/default/configmaps?${query}`);
      assert.ok(status < 500, `${parameter}=${text.slice(0, 20)}: ${status}`);
    }
  }
});
