import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fieldErrorBody } from '../../meta/status.ts';
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
    ['spec.versions[0].schema.openAPIV3Schema: Required value: schemas are required'],
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
    'a stranger inside',
    x(object({}, { allOf: [{ properties: { a: { minLength: 1 } } }] })),
    [`${X}.properties[a]: Required value: because it is defined in ${X}.allOf[0].properties[a]`],
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
    [`${X}.default: Invalid value: "string": ${X}.default in body must be of type integer: "string"`],
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
  test(`validateCrd() refuses: ${what}`, () => {
    assert.deepEqual(errorsOf(crd(shape)), expected);
  });
}

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
  assert.match(errorsOf(old, old)[0]!, /^status.storedVersions\[0\]: Invalid value: "v0": missing from spec.versions/);
});

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
