import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fieldErrorBody } from '../../../../apimachinery/src/meta/status.ts';
import { setCrdDefaults } from './crd-strategy.ts';
import { validateCrd } from './crd-validation.ts';

type Json = Record<string, unknown>;

const text = { type: 'string' };
const object = (properties: object, more: object = {}): Json => ({ type: 'object', properties, ...more });

interface Shape {
  readonly schema?: Json;
  readonly version?: Json;
  readonly versions?: readonly Json[];
  readonly spec?: Json;
  readonly metadata?: Json;
  readonly status?: Json;
}

const versionOf = (name: string, schema: Json, more: Json = {}): Json => ({
  name,
  served: true,
  storage: name === 'v1',
  schema: { openAPIV3Schema: schema },
  ...more,
});

function crd(shape: Shape = {}): Json {
  const made: Json = {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'widgets.example.com', ...shape.metadata },
    spec: {
      group: 'example.com',
      scope: 'Namespaced',
      names: { plural: 'widgets', kind: 'Widget' },
      versions: shape.versions ?? [versionOf('v1', shape.schema ?? object({ spec: object({}) }), shape.version)],
      ...shape.spec,
    },
    ...(shape.status && { status: shape.status }),
  };
  setCrdDefaults(made);
  return made;
}

const errorsOf = (made: Json, old?: Json): string[] =>
  validateCrd(made, old).map((error) => `${error.field}: ${fieldErrorBody(error)}`);

const ROOT = 'spec.validation.openAPIV3Schema';
/** The schema of `spec.x`, and where it stands. */
const X = `${ROOT}.properties[spec].properties[x]`;
const x = (schema: Json, more: object = {}): Shape => ({ schema: object({ spec: object({ x: schema }, more) }) });

test('a plain definition is valid, and defaults make its names complete', () => {
  const made = crd();
  assert.deepEqual(errorsOf(made), []);
  assert.deepEqual((made['spec'] as Json)['names'], {
    plural: 'widgets',
    kind: 'Widget',
    singular: 'widget',
    listKind: 'WidgetList',
  });
  assert.deepEqual((made['status'] as Json)['storedVersions'], ['v1']);
});

const INVALID: readonly (readonly [string, Shape, readonly string[]])[] = [
  [
    'name',
    { metadata: { name: 'other' } },
    ['metadata.name: Invalid value: "other": must be spec.names.plural+"."+spec.group'],
  ],
  [
    'group',
    { spec: { group: 'example' }, metadata: { name: 'widgets.example' } },
    ['spec.group: Invalid value: "example": should be a domain with at least one dot'],
  ],
  ['no scope', { spec: { scope: undefined } }, ['spec.scope: Required value']],
  [
    'scope',
    { spec: { scope: 'Galaxy' } },
    ['spec.scope: Unsupported value: "Galaxy": supported values: "Cluster", "Namespaced"'],
  ],
  [
    'same kinds',
    { spec: { names: { plural: 'widgets', kind: 'A', listKind: 'A' } } },
    ['spec.names.listKind: Invalid value: "A": kind and listKind may not be the same'],
  ],
  [
    'no schema',
    { versions: [{ name: 'v1', served: true, storage: true }] },
    ['spec.versions[0].schema.openAPIV3Schema: Required value'],
  ],
  [
    'deprecation',
    { version: { deprecationWarning: 'x' } },
    ['spec.versions[0].deprecationWarning: Invalid value: "x": can only be set for deprecated versions'],
  ],
  [
    'root type',
    { schema: { type: 'array', items: text } },
    [`${ROOT}.type: Invalid value: "array": must be object at the root`],
  ],
  [
    'root additionalProperties',
    { schema: { type: 'object', additionalProperties: text } },
    [`${ROOT}.additionalProperties: Forbidden: must not be used at the root`],
  ],
  [
    'nullable root',
    { schema: object({}, { nullable: true }) },
    [`${ROOT}.nullable: Forbidden: nullable cannot be true at the root`],
  ],
  [
    'metadata',
    { schema: object({ metadata: object({ labels: text }) }) },
    [
      `${ROOT}.properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified`,
    ],
  ],
  ['no type', x({}), [`${X}.type: Required value: must not be empty for specified object fields`]],
  ['no items', x({ type: 'array' }), [`${X}.items: Required value: must be specified`]],
  [
    'unknown type',
    x({ type: 'float' }),
    [
      `${X}.type: Unsupported value: "float": supported values: "array", "boolean", "integer", "number", "object", "string"`,
    ],
  ],
  [
    'pattern',
    x({ type: 'string', pattern: '(' }),
    [
      `${X}.pattern: Invalid value: "(": must be a valid regular expression, but isn't: error parsing regexp: missing closing ): \`(\``,
    ],
  ],
  [
    'uniqueItems',
    x({ type: 'array', items: text, uniqueItems: true }),
    [`${X}.uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic`],
  ],
  ['$ref', x({ type: 'string', $ref: '#/x' }), [`${X}.$ref: Forbidden: $ref is not supported`]],
  [
    'both kinds of properties',
    x({ type: 'object', properties: { a: text }, additionalProperties: text }),
    [`${X}.additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive`],
  ],
  [
    'a type inside',
    x(object({ a: text }, { anyOf: [{ properties: { a: text } }] })),
    [`${X}.anyOf[0].properties[a].type: Forbidden: must be empty to be structural`],
  ],
  [
    'an unknown field inside',
    { schema: object({}, { allOf: [{ properties: { a: { minLength: 1 } } }] }) },
    [`${ROOT}.properties[a]: Required value: because it is defined in ${ROOT}.allOf[0].properties[a]`],
  ],
  [
    'metadata inside',
    { schema: object({ metadata: { type: 'object' } }, { not: { properties: { metadata: {} } } }) },
    [`${ROOT}.not.properties[metadata]: Forbidden: must not be specified in a nested context`],
  ],
  [
    'list type',
    x({ type: 'array', items: text, 'x-kubernetes-list-type': 'bag' }),
    [`${X}.x-kubernetes-list-type: Unsupported value: "bag": supported values: "atomic", "set", "map"`],
  ],
  [
    'map without keys',
    x({ type: 'array', items: object({ k: text }), 'x-kubernetes-list-type': 'map' }),
    [`${X}.x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map`],
  ],
  [
    'optional key',
    x({
      type: 'array',
      items: object({ k: text }),
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['k'],
    }),
    [
      `${X}.items.properties[k].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property`,
    ],
  ],
  [
    'unknown key',
    x({
      type: 'array',
      items: object({ k: text }),
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['z'],
    }),
    [`${X}.x-kubernetes-list-map-keys: Invalid value: ["z"]: entries must all be names of item properties`],
  ],
  [
    'granular set items',
    x({ type: 'array', items: object({ k: text }), 'x-kubernetes-list-type': 'set' }),
    [
      `${X}.items.x-kubernetes-map-type: Invalid value: null: must be atomic as item of a list with x-kubernetes-list-type=set`,
    ],
  ],
  [
    'embedded without type',
    x({ 'x-kubernetes-embedded-resource': true, 'x-kubernetes-preserve-unknown-fields': true }),
    [`${X}.type: Required value: must be object if x-kubernetes-embedded-resource is true`],
  ],
  [
    'preserve false',
    x({ type: 'object', 'x-kubernetes-preserve-unknown-fields': false }),
    [`${X}.x-kubernetes-preserve-unknown-fields: Invalid value: false: must be true or undefined`],
  ],
  [
    'a default of another type',
    x({ type: 'integer', default: 'a' }),
    [`${X}.default: Invalid value: "string":  in body must be of type integer: "string"`],
  ],
  [
    'a default with unknown fields',
    x(object({ a: text }, { default: { b: 'x' } })),
    [`${X}.default: Invalid value: {"b":"x"}: must not have unknown fields`],
  ],
  [
    'a default in metadata',
    { schema: object({ metadata: object({ name: { type: 'string', default: 'x' } }) }) },
    [`${ROOT}.properties[metadata].properties[name].default: Forbidden: must not be set in top-level metadata`],
  ],
  [
    'scale path',
    { version: { subresources: { scale: { specReplicasPath: '.status.x', statusReplicasPath: '.status.x' } } } },
    ['spec.subresources.scale.specReplicasPath: Invalid value: ".status.x": should be a json path under .spec'],
  ],
  [
    'column',
    { version: { additionalPrinterColumns: [{ name: 'A', type: 'text', jsonPath: '.a' }] } },
    ['spec.additionalPrinterColumns[0].type: Invalid value: "text": must be one of boolean,date,integer,number,string'],
  ],
  [
    'selectable field',
    { version: { selectableFields: [{ jsonPath: '.spec.nope' }] } },
    [
      'spec.selectableFields[0].jsonPath: Invalid value: ".spec.nope": is an invalid path: does not refer to a valid field',
    ],
  ],
  [
    'selectable object',
    { version: { selectableFields: [{ jsonPath: '.spec' }] } },
    [
      'spec.selectableFields[0].jsonPath: Invalid value: ".spec": must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.',
    ],
  ],
  [
    'webhook without config',
    { spec: { conversion: { strategy: 'Webhook', webhook: { conversionReviewVersions: ['v1'] } } } },
    ['spec.conversion.webhookClientConfig: Required value: required when strategy is set to Webhook'],
  ],
  [
    'unknown reviews',
    {
      spec: {
        conversion: {
          strategy: 'Webhook',
          webhook: { conversionReviewVersions: ['v9'], clientConfig: { url: 'https://a.b' } },
        },
      },
    },
    ['spec.conversion.conversionReviewVersions: Invalid value: ["v9"]: must include at least one of v1, v1beta1'],
  ],
];
for (const [what, shape, expected] of INVALID) {
  // Compat CustomResourceDefinitions, P0, yes: structural schemas only
  test(`validateCrd() refuses: ${what}`, () => {
    assert.deepEqual(errorsOf(crd(shape)), expected);
  });
}

const rules = (...list: Json[]): Json => ({ type: 'string', maxLength: 5, 'x-kubernetes-validations': list });
const ruleText = (rule: string): string => JSON.stringify({ rule });

/** What differed from apiextensions 0.36 when both were given the same definitions. */
const AS_UPSTREAM: readonly (readonly [string, Shape, readonly string[]])[] = [
  [
    'a rule is shown whole',
    x(rules({ rule: 'self == 1' })),
    [
      `${X}.x-kubernetes-validations[0].rule: Invalid value: ${ruleText('self == 1')}: compilation failed: ERROR: <input>:1:6: found no matching overload for '_==_' applied to '(string, int)'\n | self == 1\n | .....^`,
    ],
  ],
  [
    'of a rule that does not compile the message is not looked at',
    x(rules({ rule: 'a', messageExpression: 'b' })),
    [
      `${X}.x-kubernetes-validations[0].rule: Invalid value: {"rule":"a","messageExpression":"b"}: compilation failed: ERROR: <input>:1:1: undeclared reference to 'a' (in container '')\n | a\n | ^`,
    ],
  ],
  [
    'a rule is compiled when what is wrong stands beside it',
    { schema: object({ a: rules({ rule: '1' }), b: { type: 'string', uniqueItems: true } }) },
    [
      `${ROOT}.properties[b].uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic`,
      `${ROOT}.properties[a].x-kubernetes-validations[0].rule: Invalid value: ${ruleText('1')}: cel expression must evaluate to a bool`,
    ],
  ],
  [
    'a message with line breaks',
    x(rules({ rule: 'true', message: 'a\nb', fieldPath: '.a' })),
    [
      `${X}.x-kubernetes-validations[0].message: Invalid value: "a\\nb": must not contain line breaks`,
      `${X}.x-kubernetes-validations[0].fieldPath: Invalid value: ".a": must be a valid path`,
    ],
  ],
  [
    'a default that breaks a rule',
    x({ ...rules({ rule: "self == 'a'" }), default: 'b' }),
    [`${X}.default: Invalid value: "b": failed rule: self == 'a'`],
  ],
  [
    'a default of metadata that no object may have',
    {
      schema: object({
        e: object(
          { kind: { type: 'string', default: '%' }, metadata: object({ labels: { type: 'object' } }) },
          { 'x-kubernetes-embedded-resource': true },
        ),
      }),
    },
    [
      `${ROOT}.properties[e].properties[kind].default: Invalid value: "%": must result in valid metadata: kind: Invalid value: "%": may have mixed case, but should otherwise match: a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')`,
    ],
  ],
  [
    'preserve-unknown-fields that is off',
    { schema: { 'x-kubernetes-preserve-unknown-fields': false } },
    [`${ROOT}.x-kubernetes-preserve-unknown-fields: Invalid value: false: must be true or undefined`],
  ],
  [
    '$schema',
    { schema: object({}, { $schema: 'http://x' }) },
    [`${ROOT}: Invalid value: "": OpenAPIV3Schema 'schema' is not supported`],
  ],
  [
    'what is wrong inside of what is refused itself',
    { schema: object({}, { definitions: { d: { type: 'float' } } }) },
    [
      `${ROOT}.definitions: Forbidden: definitions is not supported`,
      `${ROOT}.definitions[d].type: Unsupported value: "float": supported values: "array", "boolean", "integer", "number", "object", "string"`,
    ],
  ],
  [
    'the first version by its older name',
    { versions: [{ ...versionOf('v1', object({})), name: 'V1' }] },
    ['spec.versions[0].name', 'spec.version'].map(
      (field) =>
        `${field}: Invalid value: "V1": a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')`,
    ),
  ],
  [
    'versions are shown by name',
    { versions: [{ ...versionOf('v1', object({})), storage: false }] },
    [
      'spec.versions: Invalid value: ["v1"]: must have exactly one version marked as storage version',
      'status.storedVersions: Invalid value: null: must have at least one stored version',
    ],
  ],
  [
    'selectable fields of versions that share their schema',
    {
      versions: [
        versionOf('v1', object({ a: text }), { selectableFields: [{ jsonPath: '.a' }] }),
        versionOf('v2', object({ a: text }, { description: '' })),
      ],
    },
    [
      'spec.versions[0].selectableFields: Invalid value: "": may only be set when `version.schema.openAPIV3Schema` is not included',
    ],
  ],
  [
    'a webhook without a service',
    {
      spec: {
        conversion: {
          strategy: 'Webhook',
          webhook: { conversionReviewVersions: ['v1'], clientConfig: { service: { name: '', namespace: 'a' } } },
        },
      },
    },
    ['spec.conversion.webhookClientConfig.service.namespace: Required value'],
  ],
];
for (const [what, shape, expected] of AS_UPSTREAM) {
  // S-270: A definition is validated in the words of apiextensions and may keep in an update what it was accepted with;
  //   a rule that was broken before the update is a warning.
  // Compat CustomResourceDefinitions, P1, yes: mistakes of a definition in the words and order of apiextensions
  test(`validateCrd() says what apiextensions says: ${what}`, () => {
    assert.deepEqual(errorsOf(crd(shape)), expected);
  });
}

// S-270
// Compat CustomResourceDefinitions, P1, yes: a definition whose certificate cannot be read may keep it when it is updated
test('a certificate that is read is not replaced by one that is not', () => {
  const bundle = (text: string): Json => ({
    conversion: {
      strategy: 'Webhook',
      webhook: { conversionReviewVersions: ['v1'], clientConfig: { url: 'https://a.b', caBundle: btoa(text) } },
    },
  });
  const good = '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n';
  const established = { conditions: [{ type: 'Established', status: 'True' }], storedVersions: ['v1'] };
  const made = (text: string, status?: Json): Json => crd({ spec: bundle(text), ...(status && { status }) });
  assert.deepEqual(errorsOf(made('no')), []);
  assert.deepEqual(errorsOf(made('no', established), made('not', established)), []);
  assert.deepEqual(errorsOf(made('no', established), made(good, established)), [
    `spec.conversion.webhookClientConfig.caBundle: Invalid value: "${btoa('no')}": unable to load root certificates: unable to parse bytes as PEM block`,
  ]);
});

test('validateCrd() names the version when versions differ', () => {
  const versions = [versionOf('v1', object({ spec: {} })), versionOf('v2', object({ spec: text }))];
  assert.deepEqual(errorsOf(crd({ versions })), [
    'spec.versions[0].schema.openAPIV3Schema.properties[spec].type: Required value: must not be empty for specified object fields',
  ]);
});

test('validateCrd() accepts the two ways to write int-or-string', () => {
  const either = [{ type: 'integer' }, { type: 'string' }];
  assert.deepEqual(errorsOf(crd(x({ 'x-kubernetes-int-or-string': true, anyOf: either }))), []);
  assert.deepEqual(errorsOf(crd(x({ 'x-kubernetes-int-or-string': true, allOf: [{ anyOf: either }] }))), []);
});

test('validateCrd() keeps what is served as it is', () => {
  const established = [{ type: 'Established', status: 'True' }];
  const old = crd({ status: { conditions: established, storedVersions: ['v1'] } });
  const next = structuredClone(old);
  Object.assign(next['spec'] as Json, { scope: 'Cluster', group: 'other.com' });
  assert.deepEqual(errorsOf(next, old), [
    'spec.scope: Invalid value: "Cluster": field is immutable',
    'spec.group: Invalid value: "other.com": field is immutable',
  ]);
});

test('validateCrd() forgets no version that objects may lie in', () => {
  const old = crd({ status: { storedVersions: ['v0', 'v1'] } });
  const next = crd({
    status: { storedVersions: ['v0', 'v1'] },
    spec: { preserveUnknownFields: false, group: 'example.com' },
  });
  Object.assign((next['spec'] as Json)['names'] as Json, { shortNames: ['w'] });
  assert.match(errorsOf(next, old)[0]!, /^status.storedVersions\[0\]: Invalid value: "v0": missing from spec.versions/);
  // Through /status the list is changed by whoever has migrated the objects.
  assert.deepEqual(errorsOf(old, old), []);
});

// Compat CustomResourceDefinitions, P0, yes: rules for the object: name, scope, versions, approval of protected groups
test('validateCrd() asks protected groups for a word of approval', () => {
  const made = (annotation?: string): Json =>
    crd({
      spec: { group: 'x.k8s.io' },
      metadata: {
        name: 'widgets.x.k8s.io',
        ...(annotation && { annotations: { 'api-approved.kubernetes.io': annotation } }),
      },
    });
  assert.match(errorsOf(made())[0]!, /Required value: protected groups must have approval annotation/);
  assert.match(errorsOf(made('soon'))[0]!, /with either a URL or a reason starting with "unapproved"/);
  assert.deepEqual(errorsOf(made('https://github.com/kubernetes/enhancements/pull/1')), []);
  assert.deepEqual(errorsOf(made('unapproved, experimental')), []);
  assert.deepEqual(errorsOf(made(), made()), [], 'what was so may stay so');
});

test('validateCrd() survives anything below items, which the API does not type', () => {
  const wild: readonly Json[] = [
    { type: 5 },
    { type: 'string', pattern: 5, enum: 'x', minLength: 'a', required: 'b' },
    { type: 'object', properties: [], 'x-kubernetes-validations': 'x' },
    { type: 'object', 'x-kubernetes-validations': [{ rule: 'true', messageExpression: 5 }] },
    { type: 'object', properties: { a: 5 }, anyOf: 'x', not: [], default: 5 },
    { type: 'array', items: [1], 'x-kubernetes-list-map-keys': 'x' },
  ];
  for (const items of wild) assert.ok(Array.isArray(errorsOf(crd(x({ type: 'array', items })))));
});
