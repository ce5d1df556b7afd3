import assert from 'node:assert/strict';
import { test } from 'node:test';
import { builtinResource } from '../../kinds/builtin/builtin-resources.ts';
import { requestAuthorizer } from '../matching/request-authorizer.ts';
import type { AdmissionAttributes } from '../plugin.ts';
import { compileValidation } from './compiled-validation.ts';
import type { ValidatingPolicySpec } from './policy-types.ts';

const matched = builtinResource({ group: '', version: 'v1', resource: 'configmaps' })!;
const ATTRIBUTES: AdmissionAttributes = {
  operation: 'CREATE',
  requestVerb: 'create',
  info: matched,
  subresource: '',
  namespace: 'ns',
  name: 'n',
  user: { username: 'alice', groups: [] },
  dryRun: false,
  object: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'n', namespace: 'ns' } },
  oldObject: undefined,
  options: undefined,
  reinvocation: undefined,
  signal: new AbortController().signal,
  warn: () => {},
  annotate: () => {},
};
const evaluate = (spec: Partial<ValidatingPolicySpec>) =>
  compileValidation({ ...spec } as ValidatingPolicySpec).evaluate(ATTRIBUTES, {
    matched,
    shown: { object: ATTRIBUTES.object!, oldObject: null },
    param: null,
    namespaceObject: null,
    authorizer: requestAuthorizer(() => ({ allowed: true, reason: '' })),
  });

test('the value of an audit annotation has 10 KiB at most, counted in bytes', () => {
  const annotated = (text: string) =>
    evaluate({ auditAnnotations: [{ key: 'k', valueExpression: JSON.stringify(text) }] }).annotations[0]!.value;
  assert.equal(annotated('a'.repeat(10_241)), 'a'.repeat(10_240));
  assert.equal(annotated('é'.repeat(5_120)), 'é'.repeat(5_120));
  assert.equal(annotated(`a${'é'.repeat(5_120)}`), `a${'é'.repeat(5_119)}\ufffd`);
});

/** Expressions on what is not there: what the denial says; undefined where the validation holds. */
const CASES: readonly (readonly [string, string | undefined])[] = [
  ['!has(oldObject.data)', undefined],
  ['!oldObject.?data.hasValue()', undefined],
  ['oldObject.data.x == 1', 'no such key: data'],
  ["has(object.metadata.name.x) || oldObject['a'] == 1", 'no such key: a'],
  ["authorizer.serviceAccount('A!', 'b').path('/').check('get').allowed()", 'Invalid service account namespace'],
  ["authorizer.serviceAccount('a', 'B!').path('/').check('get').allowed()", 'Invalid service account name'],
];

for (const [expression, problem] of CASES) {
  // S-280
  // Compat Admission and quota, P1, yes: expressions of policies over null, numbers and texts: `has()`, `.?`, `no such
  //   key`
  test(`${expression}: ${problem ?? 'holds'}`, () => {
    const { denials } = evaluate({ validations: [{ expression }] });
    const message = `expression '${expression}' resulted in error: ${problem}`;
    assert.deepEqual(denials, problem === undefined ? [] : [{ message, reason: '', expressionIndex: 0 }]);
  });
}

// S-280
test('equal errors of match conditions are reported once, without brackets', () => {
  const condition = { name: 'a', expression: 'oldObject.x == 1' };
  const { denials } = evaluate({ matchConditions: [condition, { ...condition, name: 'b' }], validations: [] });
  assert.deepEqual(
    denials.map(({ message }) => message),
    [`expression '${condition.expression}' resulted in error: no such key: x`],
  );
});

// S-280
test('annotations that use up their budget replace the decisions', () => {
  const ten = '[0,1,2,3,4,5,6,7,8,9]';
  const valueExpression = `string(${['a', 'b', 'c', 'd', 'e'].reduceRight((inner, name) => `${ten}.all(${name}, ${inner})`, 'true')})`;
  const auditAnnotations = Array.from({ length: 30 }, (_, i) => ({ key: `k${i}`, valueExpression }));
  const spec = { validations: [{ expression: 'false' }], auditAnnotations };
  const message = 'validation failed due to running out of cost budget, no further validation rules will be run';
  assert.deepEqual(evaluate(spec), {
    denials: [{ message, reason: '', expressionIndex: 0 }],
    annotationErrors: [],
    annotations: [],
  });
  assert.deepEqual(evaluate({ ...spec, failurePolicy: 'Ignore' }).denials, []);
});

// Compat Admission and quota, P2, yes: `messageExpression` of a policy is paid from what the validations left; when
//   that is used up, it replaces every decision
test('messages are made of what the validations left of the budget, those of validations that hold as well', () => {
  const ten = '[0,1,2,3,4,5,6,7,8,9]';
  const dear = ['a', 'b', 'c', 'd', 'e'].reduceRight((inner, name) => `${ten}.all(${name}, ${inner})`, 'true');
  const messageExpression = `string(${dear})`;
  const holding = Array.from({ length: 30 }, () => ({ expression: 'true', messageExpression }));
  const message =
    'failed messageExpression: validation failed due to running out of cost budget, no further validation rules will be run';
  const spec = { validations: [{ expression: 'false', message: 'no' }, ...holding] };
  const { denials } = evaluate(spec);
  assert.equal(denials.length, 31);
  assert.deepEqual(denials[0], { message, reason: '', expressionIndex: 0 });
  assert.deepEqual(evaluate({ ...spec, failurePolicy: 'Ignore' }).denials, []);
  assert.deepEqual(evaluate({ validations: spec.validations.slice(0, 5) }).denials, [
    { message: 'no', reason: 'Invalid', expressionIndex: 0 },
  ]);
});
