import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KINDS } from '../strategies/kinds.ts';

const RULE = { apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], operations: ['*'] };
const BASE = { matchConstraints: { resourceRules: [RULE] }, reinvocationPolicy: 'Never' };
const TRUE = [{ expression: 'true' }];

const errorsOf = (kind: string, spec: object, metadata: object = { name: 'p' }) =>
  KINDS[`admissionregistration.k8s.io/${kind}`]!.validate!({ metadata, spec }).map(({ type, field, value, detail }) => [
    type,
    field,
    ...(value === undefined ? [] : [value]),
    detail,
  ]);

const variable = (expression: string) => [{ name: 'a', expression }];

/** Expressions of a validation, with the text of upstream's compiler; '' where it takes them. */
const EXPRESSIONS: readonly (readonly [expression: string, detail: string, variables?: object[]])[] = [
  ['1', 'must evaluate to bool but got int'],
  ['object', 'must evaluate to bool but got dyn'],
  ['null', 'must evaluate to bool but got null_type'],
  ['true\n|| false', ''],
  [' 1', 'must evaluate to bool but got int'],
  [
    'variables.a',
    "compilation failed: ERROR: <input>:1:1: undeclared reference to 'variables' (in container '')\n | variables.a\n | ^",
  ],
  ["namespaceObject.status.conditions.all(c, c.type == 'a')", ''],
  [
    'authorizer.nosuch',
    "compilation failed: ERROR: <input>:1:11: type 'kubernetes.authorization.Authorizer' does not support field selection\n | authorizer.nosuch\n | ..........^",
  ],
  // Composition keeps scalars, and lists and maps of them.
  ['variables.a.nosuch == 1', '', variable('request')],
  ['variables.a[0].nosuch == 1', '', variable('[request]')],
  ['variables.a == 1', '', variable('optional.of(1)')],
  ['variables.a', 'must evaluate to bool but got dyn', variable("quantity('1')")],
  ['variables.a', 'must evaluate to bool but got list(list(int))', variable('[[1]]')],
  ['variables.a', 'must evaluate to bool but got map(string, dyn)', variable("{'a': request}")],
];

for (const [expression, detail, variables = []] of EXPRESSIONS) {
  // S-280: Policies are refused, evaluated and audited in upstream's words, to the type that an expression got.
  test(`${JSON.stringify([variables, expression])}: ${detail || 'taken'}`, () => {
    const errors = errorsOf('validatingadmissionpolicies', { ...BASE, variables, validations: [{ expression }] });
    const field = 'spec.validations[0].expression';
    assert.deepEqual(errors, detail === '' ? [] : [['FieldValueInvalid', field, expression, detail]]);
  });
}

// S-280
test('a message expression knows no authorizer, and says so once', () => {
  const messageExpression = "authorizer.path('/').check('get').reason()";
  const errors = errorsOf('validatingadmissionpolicies', {
    ...BASE,
    validations: [{ expression: 'true', messageExpression }],
  });
  assert.deepEqual(errors, [
    [
      'FieldValueInvalid',
      'spec.validations[0].messageExpression',
      messageExpression,
      `compilation failed: ERROR: <input>:1:1: undeclared reference to 'authorizer' (in container '')\n | ${messageExpression}\n | ^`,
    ],
  ]);
});

const NO_REASON =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const NO_VERSION =
  "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";

/** apiVersion of a paramKind: the value that is shown, and why it is refused. */
const API_VERSIONS: readonly (readonly [string, ...(readonly [string, string])[]])[] = [
  ['v1'],
  ['/v1'],
  ['a/', ['a/', 'version must be specified']],
  ['/', ['/', 'version must be specified']],
  ['a/b/c', ['a/b/c', 'unexpected GroupVersion string: a/b/c']],
  ['A/V1', ['A', NO_REASON], ['V1', NO_VERSION]],
];

for (const [apiVersion, ...problems] of API_VERSIONS) {
  // S-280
  test(`paramKind of ${apiVersion}`, () => {
    const paramKind = { apiVersion, kind: 'Thing' };
    assert.deepEqual(
      errorsOf('validatingadmissionpolicies', { ...BASE, paramKind, validations: TRUE }),
      problems.map(([value, detail]) => ['FieldValueInvalid', 'spec.paramKind.apiVersion', value, detail]),
    );
  });
}

// S-280
// Compat Admission and quota, P1, yes: policies that cannot be are refused in upstream's words: expressions, paramKind,
//   reasons
test('reasons, keys without a policy, blanks around a value expression, no actions', () => {
  assert.deepEqual(
    errorsOf('validatingadmissionpolicies', {
      ...BASE,
      validations: [{ expression: 'true', reason: 'Unauthorized' }],
    }),
    [
      [
        'FieldValueNotSupported',
        'spec.validations[0].reason',
        'Unauthorized',
        'supported values: "Forbidden", "Invalid", "RequestEntityTooLarge"',
      ],
    ],
  );
  const auditAnnotations = [{ key: 'k', valueExpression: ' 1 ' }];
  assert.deepEqual(errorsOf('validatingadmissionpolicies', { ...BASE, auditAnnotations }, {}), [
    ['FieldValueInvalid', 'spec.auditAnnotations[0].key', 'k', 'requires metadata.name be non-empty'],
    [
      'FieldValueInvalid',
      'spec.auditAnnotations[0].valueExpression',
      ' 1 ',
      'must evaluate to one of [string null_type] but got int',
    ],
  ]);
  assert.deepEqual(errorsOf('validatingadmissionpolicybindings', { policyName: 'p' }), [
    ['FieldValueRequired', 'spec.validationActions', 'at least one validation action is required'],
  ]);
});

// S-280
test('the types of patches are known to mutations, not to variables', () => {
  const mutations = [{ patchType: 'ApplyConfiguration', applyConfiguration: { expression: 'Object{}' } }];
  const expression = 'Object.spec{}';
  assert.deepEqual(errorsOf('mutatingadmissionpolicies', { ...BASE, mutations }), []);
  assert.deepEqual(errorsOf('mutatingadmissionpolicies', { ...BASE, mutations, variables: variable(expression) }), [
    [
      'FieldValueInvalid',
      'spec.variables[0].expression',
      expression,
      `compilation failed: ERROR: <input>:1:12: undeclared reference to 'Object.spec' (in container '')\n | ${expression}\n | ...........^`,
    ],
  ]);
});
