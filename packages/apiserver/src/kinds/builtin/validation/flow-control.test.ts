import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MANDATORY_LEVELS, MANDATORY_SCHEMAS } from '../flow-control-objects.ts';
import { KINDS } from '../strategies/kinds.ts';

const said = (resource: string, object: object, old?: object): string[] => {
  const errors = KINDS[`flowcontrol.apiserver.k8s.io/${resource}`]!.validate!({ ...object }, old && { ...old });
  return errors.map(({ field, detail = '' }) => `${field}: ${detail}`);
};
const subject = { kind: 'User', user: { name: 'x' } };
const everything = { verbs: ['*'], nonResourceURLs: ['*'] };
const schema = (spec: object, name = 's') => ({
  metadata: { name },
  spec: {
    matchingPrecedence: 9,
    priorityLevelConfiguration: { name: 'l' },
    rules: [{ subjects: [subject], nonResourceRules: [everything] }],
    ...spec,
  },
});
const rule = (more: object) => schema({ rules: [{ subjects: [subject], nonResourceRules: [everything], ...more }] });

// S-343
// Compat Writing, P2, yes: flow schemas and priority levels are validated
test('flow schemas: precedence, level, subjects and rules', () => {
  const schemas = (object: object) => said('flowschemas', object);
  assert.deepEqual(schemas(schema({})), []);
  for (const [object, ...expected] of [
    [schema({ matchingPrecedence: 0 }), 'spec.matchingPrecedence: must be a positive value'],
    [schema({ matchingPrecedence: 10_001 }), 'spec.matchingPrecedence: must not be greater than 10000'],
    [
      schema({ matchingPrecedence: 1 }),
      "spec.matchingPrecedence: only the schema named 'exempt' may have matchingPrecedence 1",
    ],
    [
      schema({ distinguisherMethod: { type: 'x' } }),
      'spec.distinguisherMethod.type: supported values: "ByNamespace", "ByUser"',
    ],
    [
      schema({ priorityLevelConfiguration: { name: '' } }),
      'spec.priorityLevelConfiguration.name: must reference a priority level',
    ],
    [
      schema({ rules: [{}] }),
      'spec.rules[0].subjects: subjects must contain at least one value',
      'spec.rules[0]: at least one of resourceRules and nonResourceRules has to be non-empty',
    ],
    [
      rule({ subjects: [{ kind: 'Group', user: { name: 'x' } }] }),
      "spec.rules[0].subjects[0].group: group is required when subject kind is 'Group'",
      "spec.rules[0].subjects[0].user: user is forbidden when subject kind is not 'User'",
    ],
    [
      rule({ subjects: [{ kind: 'ServiceAccount', serviceAccount: { name: '*' } }] }),
      'spec.rules[0].subjects[0].serviceAccount.namespace: must specify namespace for service account',
    ],
    [
      rule({ resourceRules: [{ verbs: ['get', '*'], apiGroups: [], resources: ['*', 'x'] }] }),
      "spec.rules[0].resourceRules[0].verbs: if '*' is present, must not specify other verbs",
      'spec.rules[0].resourceRules[0].apiGroups: resource rules must supply at least one api group',
      "spec.rules[0].resourceRules[0].resources: if '*' is present, must not specify other resources",
      'spec.rules[0].resourceRules[0].namespaces: resource rules that are not cluster scoped must supply at least one namespace',
    ],
    [
      // What Go writes for a list that is not there.
      rule({ resourceRules: [{ verbs: null, apiGroups: ['*'], resources: ['*'], clusterScope: true }] }),
      'spec.rules[0].resourceRules[0].verbs: verbs must contain at least one value',
    ],
    [
      rule({ nonResourceRules: [{ verbs: ['get'], nonResourceURLs: ['x', '/a//b', '/*/x', '/x/*'] }] }),
      'spec.rules[0].nonResourceRules[0].nonResourceURLs[0]: must start with slash',
      'spec.rules[0].nonResourceRules[0].nonResourceURLs[1]: must not contain double slash',
      'spec.rules[0].nonResourceRules[0].nonResourceURLs[2]: wildcard can only do suffix matching',
    ],
  ] as const) {
    assert.deepEqual(schemas(object), expected);
  }
});

// S-343
test('priority levels: type, shares and queues', () => {
  const level = (spec: object, name = 'l') => said('prioritylevelconfigurations', { metadata: { name }, spec });
  const limited = (more: object) =>
    level({
      type: 'Limited',
      limited: { nominalConcurrencyShares: 1, lendablePercent: 0, limitResponse: { type: 'Reject' }, ...more },
    });
  const queue = (queues: number, handSize: number) =>
    limited({ limitResponse: { type: 'Queue', queuing: { queues, handSize, queueLengthLimit: 1 } } });
  const at = 'spec.limited.limitResponse';
  assert.deepEqual(limited({}), []);
  assert.deepEqual(queue(64, 6), []);
  assert.deepEqual(level({ type: 'Exempt' }), ["spec.type: type must be 'Exempt' if and only if name is 'exempt'"]);
  assert.deepEqual(level({ type: 'Limited' }), ['spec.limited: must not be empty when type is Limited']);
  assert.deepEqual(limited({ lendablePercent: 101 }), [
    'spec.limited.lendablePercent: must be between 0 and 100, inclusive',
  ]);
  assert.deepEqual(limited({ limitResponse: { type: 'Queue' } }), [
    `${at}.queuing: must not be empty if limited.limitResponse.type is Limited`,
  ]);
  assert.deepEqual(limited({ limitResponse: {} }), [`${at}.type: supported values: "Queue", "Reject"`]);
  assert.deepEqual(queue(1, 2), [`${at}.queuing.handSize: should not be greater than queues (1)`]);
  assert.deepEqual(queue(1024, 7), [
    `${at}.queuing.handSize: required entropy bits of deckSize 1024 and handSize 7 should not be greater than 60`,
  ]);
});

// Compat Types, P2, yes: `exempt` and `catch-all` of flow control keep their specs
test('what every cluster has stays as it is', () => {
  for (const [name, spec] of Object.entries(MANDATORY_SCHEMAS)) {
    assert.deepEqual(said('flowschemas', { metadata: { name }, spec }), []);
    const other = { ...spec, priorityLevelConfiguration: { name: 'other' } };
    assert.deepEqual(said('flowschemas', { metadata: { name }, spec: other }), [
      `spec: spec of '${name}' must equal the fixed value`,
    ]);
  }
  const levels = (name: string, spec: object) => said('prioritylevelconfigurations', { metadata: { name }, spec });
  const { exempt, 'catch-all': rest } = MANDATORY_LEVELS;
  assert.deepEqual(levels('exempt', { ...exempt, exempt: { nominalConcurrencyShares: 5 } }), []);
  assert.deepEqual(levels('catch-all', rest!), []);
  const limited = { ...(rest!['limited'] as object), nominalConcurrencyShares: 6 };
  assert.deepEqual(levels('catch-all', { ...rest, limited }), [
    "spec: spec of 'catch-all' except the 'spec.exempt' field must equal the fixed value",
  ]);
});
