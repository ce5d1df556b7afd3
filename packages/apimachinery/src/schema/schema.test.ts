import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { cloneJson } from '../meta/deep-clone.ts';
import { fieldErrorBody } from '../meta/status.ts';
import { canonicalizeScalars } from './canonical-scalars.ts';
import { decodeErrors } from './decode-errors.ts';
import { applyDefaults, dropNulls } from './defaults.ts';
import { formatCheck } from './formats.ts';
import { OBJECT_META_SCHEMA } from './object-meta-schema.ts';
import { pruneUnknown } from './prune.ts';
import { resolveDefinitions } from './resolve-definitions.fixture.ts';
import type { Schema } from './schema.ts';
import { validateSchema } from './validate.ts';

const definitions = resolveDefinitions({
  'io.k8s.api.core.v1.Pod': {
    type: 'object',
    properties: {
      apiVersion: { type: 'string' },
      kind: { type: 'string' },
      metadata: { $ref: '#/definitions/meta.v1.ObjectMeta', protobuf: 1 },
      spec: { $ref: '#/definitions/io.k8s.api.core.v1.PodSpec', protobuf: 2 },
    },
  },
  'meta.v1.ObjectMeta': {
    type: 'object',
    properties: {
      name: { type: 'string' },
      labels: { type: 'object', additionalProperties: { type: 'string' } },
      creationTimestamp: { $ref: '#/definitions/meta.v1.Time' },
    },
  },
  'meta.v1.Time': { type: 'string', format: 'date-time' },
  'meta.v1.MicroTime': { type: 'string', format: 'date-time' },
  'resource.Quantity': { type: 'string' },
  'intstr.IntOrString': { type: 'string', format: 'int-or-string' },
  'runtime.RawExtension': { type: 'object' },
  'io.k8s.api.core.v1.PodSpec': {
    type: 'object',
    properties: {
      containers: { type: 'array', items: { $ref: '#/definitions/io.k8s.api.core.v1.Container' } },
      replicas: { type: 'integer', format: 'int32', default: 1 },
      port: { $ref: '#/definitions/intstr.IntOrString' },
      at: { $ref: '#/definitions/meta.v1.MicroTime' },
      raw: { $ref: '#/definitions/runtime.RawExtension' },
      data: { type: 'object', additionalProperties: { type: 'string', format: 'byte' } },
      nested: { $ref: '#/definitions/io.k8s.api.core.v1.PodSpec' },
      first: { allOf: [{ $ref: '#/definitions/io.k8s.api.core.v1.Container' }], default: {} },
      on: { type: 'boolean' },
    },
  },
  'io.k8s.api.core.v1.Container': {
    type: 'object',
    properties: {
      name: { type: 'string' },
      image: { type: 'string' },
      requests: { type: 'object', additionalProperties: { $ref: '#/definitions/resource.Quantity' } },
      self: { $ref: '#/definitions/io.k8s.api.core.v1.Container', 'x-kubernetes-map-type': 'atomic' },
    },
  },
});
const pod = definitions.get('io.k8s.api.core.v1.Pod')!;
const gvk = { group: '', version: 'v1', kind: 'Pod' };

test('references become shared nodes, overrides become nodes of their own', () => {
  const container = definitions.get('io.k8s.api.core.v1.Container')!;
  assert.equal(pod.properties!['spec']!.properties!['containers']!.items, container);
  const self = container.properties!['self']!;
  assert.notEqual(self, container);
  assert.equal(self['x-kubernetes-map-type'], 'atomic');
  assert.equal(self['x-coracle-name'], 'io.k8s.api.core.v1.Container');
  assert.equal(self.properties, container.properties);
  assert.equal(container['x-kubernetes-map-type'], undefined);
  assert.deepEqual(pod['x-coracle-proto'], { metadata: 1, spec: 2 });
  const first = pod.properties!['spec']!.properties!['first']!;
  assert.deepEqual(first.default, {});
  assert.equal(first.allOf, undefined);
  assert.equal(first.properties, container.properties);
  const broken = resolveDefinitions({ A: { properties: { b: { $ref: '#/definitions/Nope' } } } });
  assert.throws(() => broken.get('A')!.properties, /Nope does not exist/);
});

test('unknown fields of built-in kinds go, in document order', () => {
  const value = {
    apiVersion: 'v1',
    zzz: 1,
    metadata: { name: 'a', foo: {}, labels: { any: 'x' } },
    spec: {
      raw: { any: { thing: 1 } },
      containers: [{ name: 'a' }, { bar: 1, name: 'b', self: { deep: [] } }],
      foo: 2,
    },
  };
  assert.deepEqual(pruneUnknown(pod, value, { custom: false }), [
    'zzz',
    'metadata.foo',
    'spec.containers[1].bar',
    'spec.containers[1].self.deep',
    'spec.foo',
  ]);
  assert.deepEqual(value, {
    apiVersion: 'v1',
    metadata: { name: 'a', labels: { any: 'x' } },
    spec: { raw: { any: { thing: 1 } }, containers: [{ name: 'a' }, { name: 'b', self: {} }] },
  });
});

const custom: Schema = {
  type: 'object',
  properties: {
    spec: {
      type: 'object',
      properties: {
        open: {
          type: 'object',
          'x-kubernetes-preserve-unknown-fields': true,
          properties: { closed: { type: 'object', properties: { a: { type: 'string' } } } },
        },
        empty: { type: 'object' },
        map: { type: 'object', additionalProperties: { type: 'object', properties: { a: { type: 'integer' } } } },
        template: {
          type: 'object',
          'x-kubernetes-embedded-resource': true,
          properties: { spec: { type: 'object', properties: { x: { type: 'string' } } } },
        },
      },
    },
  },
};

test('unknown fields of custom kinds follow the structural rules', () => {
  const value = {
    apiVersion: 'x/v1',
    kind: 'X',
    metadata: { name: 'a', bogus: 1, managedFields: [{ manager: 'm', fieldsV1: { 'f:spec': {} } }] },
    spec: {
      open: { anything: { goes: 1 }, closed: { a: 'x', b: 1 } },
      empty: { gone: 1 },
      map: { k: { a: 1, b: 2 } },
      template: { apiVersion: 'v1', kind: 'P', metadata: { name: 'n', foo: 1 }, spec: { x: '1', y: 2 }, z: 1 },
      unknown: true,
    },
  };
  const metadata = cloneJson(value.metadata.managedFields);
  assert.deepEqual(pruneUnknown(custom, value, { custom: true }), [
    'metadata.bogus',
    'spec.empty.gone',
    'spec.map.k.b',
    'spec.open.closed.b',
    'spec.template.spec.y',
    'spec.template.z',
    'spec.unknown',
    // As upstream: the metadata of what is embedded is read after all the rest.
    'spec.template.metadata.foo',
  ]);
  assert.deepEqual(value.metadata.managedFields, metadata);
  assert.deepEqual(value.spec.open, { anything: { goes: 1 }, closed: { a: 'x' } });
  assert.deepEqual(pruneUnknown(custom, value, { custom: true }), []);
});

test('pruning twice finds nothing and odd keys do no harm', () => {
  const anything = fc.jsonValue({ maxDepth: 4 });
  fc.assert(
    fc.property(fc.record({ spec: anything, metadata: anything }, { requiredKeys: [] }), (raw) => {
      const value = JSON.parse(JSON.stringify(raw)) as unknown;
      pruneUnknown(custom, value, { custom: true });
      assert.deepEqual(pruneUnknown(custom, value, { custom: true }), []);
    }),
  );
  const value = JSON.parse('{"__proto__":{"a":1},"constructor":1,"spec":{"toString":1}}') as object;
  assert.deepEqual(pruneUnknown(custom, value, { custom: true }), ['__proto__', 'constructor', 'spec.toString']);
});

const defaulted: Schema = {
  type: 'object',
  properties: {
    a: {
      type: 'object',
      default: { b: 1 },
      properties: { b: { type: 'integer' }, c: { type: 'string', default: 'x' } },
    },
    n: { type: 'string', default: 'n', nullable: true },
    m: { type: 'string', default: 'm' },
    p: { type: 'string' },
    list: { type: 'array', items: { type: 'object', properties: { d: { type: 'integer', default: 7 } } } },
    map: {
      type: 'object',
      additionalProperties: { type: 'object', properties: { d: { type: 'boolean', default: false } } },
    },
  },
};

// Compat What is easily got wrong, P0, yes: 8, nulls, pruning, defaults
test('defaults apply from the top down; nulls follow nullability', () => {
  const run = (value: unknown): unknown => {
    dropNulls(defaulted, value, { custom: true });
    applyDefaults(defaulted, value);
    return value;
  };
  assert.deepEqual(run({}), { a: { b: 1, c: 'x' }, n: 'n', m: 'm' });
  assert.deepEqual(run({ a: {}, n: null, m: null, p: null }), { a: { c: 'x' }, n: null, m: 'm' });
  assert.deepEqual(run({ a: null, list: [{}, { d: 1 }], map: { k: {} } }), {
    a: { b: 1, c: 'x' },
    list: [{ d: 7 }, { d: 1 }],
    map: { k: { d: false } },
    n: 'n',
    m: 'm',
  });
  const first = run({}) as { a: { b: number } };
  first.a.b = 99;
  assert.deepEqual(run({}), { a: { b: 1, c: 'x' }, n: 'n', m: 'm' });
});

test('a cyclic schema defaults along the value only', () => {
  const value = { spec: { nested: { nested: {} } } };
  applyDefaults(pod, value);
  assert.deepEqual(value.spec, {
    first: {},
    replicas: 1,
    nested: { first: {}, replicas: 1, nested: { first: {}, replicas: 1 } },
  });
  assert.deepEqual(pruneUnknown(pod, value, { custom: false }), []);
});

// Compat Writing, P0, yes: integers stay integers, null is unset, empty lists as Go prints them
test('nulls of built-in kinds are unset, zero inside lists and maps', () => {
  const value = {
    metadata: { name: null, labels: { a: null, b: 'x' } },
    spec: { containers: [null, { name: 'a', image: null, requests: { cpu: null } }], raw: { x: null }, data: null },
  };
  dropNulls(pod, value, { custom: false });
  assert.deepEqual(value, {
    metadata: { labels: { a: '', b: 'x' } },
    spec: { containers: [{}, { name: 'a', requests: { cpu: '0' } }], raw: { x: null } },
  });
});

test('decode errors name the field, what is expected and what was sent', () => {
  const cases: [unknown, string | undefined][] = [
    [{ spec: { containers: [{ name: 'a', requests: { cpu: 1, memory: '1Gi' } }], port: 'http' } }, undefined],
    [{ spec: { containers: 'x' } }, 'spec.containers: expected array, got string'],
    [{ spec: { containers: [{ image: 5 }] } }, 'spec.containers[0].image: expected string, got number 5'],
    [{ spec: { replicas: '3' } }, 'spec.replicas: expected int32, got string'],
    [{ spec: { replicas: 1.5 } }, 'spec.replicas: expected int32, got number 1.5'],
    [{ spec: { replicas: 4294967296 } }, 'spec.replicas: expected int32, got number 4294967296'],
    [{ spec: { on: 'yes' } }, 'spec.on: expected bool, got string'],
    [{ spec: [] }, 'spec: expected object, got array'],
    [{ metadata: { labels: { a: 1 } } }, 'metadata.labels.a: expected string, got number 1'],
    [{ spec: { data: { k: 'a*==' } } }, 'illegal base64 data'],
    [{ spec: { data: { k: 'aGk=' } } }, undefined],
    [
      { metadata: { creationTimestamp: 'soon' } },
      'parsing time "soon" as "2006-01-02T15:04:05Z07:00": cannot parse it',
    ],
    [{ metadata: { creationTimestamp: null } }, undefined],
    [{ spec: { port: true } }, 'spec.port: expected int32, got bool'],
    [[], 'expected object, got array'],
  ];
  for (const [value, want] of cases) {
    const text = want === undefined ? undefined : `Pod in version "v1" cannot be handled as a Pod: ${want}`;
    assert.equal(decodeErrors(pod, value, gvk), text, JSON.stringify(value));
  }
  assert.match(
    decodeErrors(pod, { spec: { containers: [{ requests: { cpu: '1 Gi' } }] } }, gvk)!,
    /quantities must match/,
  );
});

// Compat Types, P0, yes: quantities, IntOrString, times in their printed form
test('scalars of built-in kinds get their printed form', () => {
  const value = {
    metadata: { creationTimestamp: '2024-01-01T02:00:00.5+02:00' },
    spec: {
      containers: [{ requests: { cpu: 1, memory: '1024Mi', x: 'bad' } }],
      at: '2024-01-01T01:00:00.500000+01:00',
    },
  };
  canonicalizeScalars(pod, value);
  assert.deepEqual(value, {
    metadata: { creationTimestamp: '2024-01-01T00:00:00Z' },
    spec: { containers: [{ requests: { cpu: '1', memory: '1Gi', x: 'bad' } }], at: '2024-01-01T00:00:00.500000Z' },
  });
});

// Compat CustomResourceDefinitions, P0, yes: validation by schema: keywords, formats, lists, messages
test('validation speaks like kube-openapi', () => {
  const at = (property: Schema): Schema => ({
    type: 'object',
    properties: { spec: { type: 'object', properties: { x: property } } },
  });
  const cases: [Schema, unknown, string[]][] = [
    [{ type: 'integer' }, 'a', ['spec.x: Invalid value: "string": spec.x in body must be of type integer: "string"']],
    [
      { type: 'integer' },
      1.5,
      [
        'spec.x: Invalid value: "number": spec.x in body must be of type integer: "number"',
        '<nil>: Invalid value: "": Checked value must be of type integer (default format) in spec.x',
      ],
    ],
    // Bounds are cut to integers for integers, and reported when they do not fit the type.
    [
      { type: 'number', maximum: 2.5 },
      3,
      ['spec.x: Invalid value: 3: spec.x in body should be less than or equal to 2'],
    ],
    [
      { type: 'integer', maximum: 2.5 },
      3,
      [
        '<nil>: Invalid value: "": Maximum boundary value must be of type integer (default format) in spec.x',
        'spec.x: Invalid value: 3: spec.x in body should be less than or equal to 2.5',
      ],
    ],
    [
      { type: 'number', multipleOf: 0.5 },
      3,
      ['spec.x: Invalid value: 0: factor MultipleOf declared for spec.x must be positive: 0'],
    ],
    [
      { type: 'number', format: 'float' },
      1e39,
      ['<nil>: Invalid value: "": Checked value must be of type number with format float in spec.x'],
    ],
    // Of the length and the pattern only the first that fails is reported; a format of another type says nothing.
    [{ type: 'string', maxLength: 1, pattern: '^b' }, 'aa', ['spec.x: Too long: may not be more than 1 byte']],
    [{ type: 'boolean', format: 'ipv4' }, true, []],
    [{ type: 'string', nullable: true, enum: ['a'] }, null, ['spec.x: Unsupported value: null: supported values: "a"']],
    [{ type: 'number', enum: [1] }, 1.5, []],
    [
      { type: 'object', properties: { a: {} }, additionalProperties: false },
      { a: 1, b: 1 },
      ['spec.x: Invalid value: "b": spec.x.b in body is a forbidden property'],
    ],
    [
      { type: 'object', minProperties: 1, required: ['a'] },
      {},
      ['spec.x: Invalid value: 0: spec.x in body should have at least 1 properties', 'spec.x.a: Required value'],
    ],
    [
      { type: 'string' },
      { a: 1 },
      ['spec.x: Invalid value: "object": spec.x in body must be of type string: "object"'],
    ],
    [{ type: 'string' }, null, ['spec.x: Invalid value: "null": spec.x in body must be of type string: "null"']],
    [{ type: 'string', nullable: true }, null, []],
    [{ type: 'number' }, 3, []],
    [
      { 'x-kubernetes-int-or-string': true },
      true,
      ['spec.x: Invalid value: "boolean": spec.x in body must be of type integer,string: "boolean"'],
    ],
    [{ 'x-kubernetes-int-or-string': true }, '5', []],
    [{ type: 'string', enum: ['a', 'b'] }, 'c', ['spec.x: Unsupported value: "c": supported values: "a", "b"']],
    [{ type: 'integer', enum: [1, 2] }, 3, ['spec.x: Unsupported value: 3: supported values: "1", "2"']],
    [{ type: 'string', pattern: '^a+$' }, 'b', [`spec.x: Invalid value: "b": spec.x in body should match '^a+$'`]],
    [{ type: 'string', pattern: 'a' }, 'bab', []],
    [
      { type: 'string', minLength: 2 },
      'é',
      ['spec.x: Invalid value: "é": spec.x in body should be at least 2 chars long'],
    ],
    [{ type: 'string', maxLength: 2 }, 'abc', ['spec.x: Too long: may not be more than 2 bytes']],
    [{ type: 'string', maxLength: 2 }, '😀😀', []],
    [
      { type: 'integer', minimum: 1 },
      0,
      ['spec.x: Invalid value: 0: spec.x in body should be greater than or equal to 1'],
    ],
    [
      { type: 'integer', minimum: 1, exclusiveMinimum: true },
      1,
      ['spec.x: Invalid value: 1: spec.x in body should be greater than 1'],
    ],
    [
      { type: 'integer', maximum: 5 },
      6,
      ['spec.x: Invalid value: 6: spec.x in body should be less than or equal to 5'],
    ],
    [{ type: 'number', multipleOf: 0.1 }, 0.3, []],
    [{ type: 'integer', multipleOf: 5 }, 7, ['spec.x: Invalid value: 7: spec.x in body should be a multiple of 5']],
    [
      { type: 'integer', format: 'int32' },
      2147483648,
      ['<nil>: Invalid value: "": Checked value must be of type integer with format int32 in spec.x'],
    ],
    [
      { type: 'string', format: 'ipv4' },
      '1.2.3',
      ['spec.x: Invalid value: "1.2.3": spec.x in body must be of type ipv4: "1.2.3"'],
    ],
    [{ type: 'string', format: 'made-up' }, 'x', []],
    [
      { type: 'array', items: { type: 'string' }, minItems: 2 },
      ['a'],
      ['spec.x: Invalid value: 1: spec.x in body should have at least 2 items'],
    ],
    [
      { type: 'array', items: { type: 'string' }, maxItems: 1 },
      ['a', 'b'],
      ['spec.x: Too many: 2: must have at most 1 item'],
    ],
    [{ type: 'array', items: { type: 'object', required: ['n'] } }, [{ n: 1 }, {}], ['spec.x[1].n: Required value']],
    [
      { type: 'object', minProperties: 1, additionalProperties: { type: 'string' } },
      {},
      ['spec.x: Invalid value: 0: spec.x in body should have at least 1 properties'],
    ],
    [
      { type: 'object', additionalProperties: { type: 'string' } },
      { k: 1 },
      ['spec.x.k: Invalid value: "integer": spec.x.k in body must be of type string: "integer"'],
    ],
    [
      { type: 'object', oneOf: [{ required: ['a'] }, { required: ['b'] }] },
      {},
      [
        '<nil>: Invalid value: "": "spec.x" must validate one and only one schema (oneOf). Found none valid',
        'spec.x.a: Required value',
      ],
    ],
    [
      { type: 'object', oneOf: [{ required: ['a'] }, { required: ['b'] }] },
      { a: 1, b: 1 },
      ['<nil>: Invalid value: "": "spec.x" must validate one and only one schema (oneOf). Found 2 valid alternatives'],
    ],
    [
      { type: 'object', anyOf: [{ required: ['a'] }, { required: ['b'] }] },
      {},
      ['<nil>: Invalid value: "": "spec.x" must validate at least one schema (anyOf)', 'spec.x.a: Required value'],
    ],
    [
      { type: 'object', not: { required: ['a'] } },
      { a: 1 },
      ['<nil>: Invalid value: "": "spec.x" must not validate the schema (not)'],
    ],
    [
      { type: 'object', allOf: [{ required: ['a'] }, { required: ['b'] }] },
      { a: 1 },
      ['spec.x.b: Required value', '<nil>: Invalid value: "": "spec.x" must validate all the schemas (allOf)'],
    ],
    [
      { type: 'array', items: { type: 'string' }, 'x-kubernetes-list-type': 'set' },
      ['a', 'b', 'a', 'a'],
      ['spec.x[2]: Duplicate value: "a"'],
    ],
    [
      {
        type: 'array',
        items: { type: 'object', properties: { n: { type: 'string' }, p: { type: 'integer' } } },
        'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['n', 'p'],
      },
      [
        { n: 'a', p: 1 },
        { n: 'a', p: 2 },
        { p: 1, n: 'a' },
      ],
      ['spec.x[2]: Duplicate value: {"n":"a","p":1}'],
    ],
  ];
  for (const [property, value, want] of cases) {
    const errors = validateSchema(at(property), { spec: { x: value } }, { custom: true });
    assert.deepEqual(
      errors.map((e) => `${e.field}: ${fieldErrorBody(e)}`),
      want,
      JSON.stringify(property),
    );
  }
  assert.deepEqual(
    validateSchema({ type: 'object', required: ['spec'] }, {}, { custom: true }).map((e) => e.field),
    ['spec'],
  );
  assert.deepEqual(
    validateSchema({ type: 'object', required: ['a'] }, {}, { custom: true, root: 'spec.template' }).map(
      (e) => e.field,
    ),
    ['spec.template.a'],
  );
});

// S-115: Patterns of users take linear time.
test('a hostile pattern costs linear time', () => {
  const schema: Schema = { type: 'string', pattern: '^(a+)+$' };
  assert.equal(validateSchema(schema, `${'a'.repeat(5000)}!`, { custom: true }).length, 1);
});

test('formats', () => {
  const cases: [string, string[], string[]][] = [
    ['ipv4', ['1.2.3.4', '255.255.255.255'], ['1.2.3', '256.1.1.1', '01.2.3.4', '']],
    [
      'ipv6',
      ['::', '::1', 'fe80::1', '1:2:3:4:5:6:7:8', '::ffff:1.2.3.4'],
      ['1::2::3', '1:2:3', ':::', 'g::', '1.2.3.4'],
    ],
    ['cidr', ['10.0.0.0/8', '::/0'], ['10.0.0.0', '10.0.0.0/33', '::/129']],
    ['mac', ['02:00:00:00:00:01', '02-00-00-00-00-01', '0200.0000.0001'], ['02:00', '02:00:00:00:00:0g']],
    ['date', ['2024-02-29'], ['2023-02-29', '2024-13-01', '24-1-1']],
    ['date-time', ['2024-01-01T00:00:00Z', '2024-01-01T00:00:00.5+02:00'], ['2024-01-01', '2024-01-01T25:00:00Z']],
    ['duration', ['1h30m', '5s', '1.5h', '0'], ['5', 'h', '']],
    ['uuid', ['2f9f7d4a-5d3c-4a53-9d53-0e8b3a1f2c11'], ['2f9f7d4a']],
    ['byte', ['', 'aGk=', 'AAAA'], ['a', 'aGk', 'a*==']],
    ['hostname', ['a', 'a.b-c'], ['-a', 'a..b', 'a_b']],
    ['uri', ['http://x/y', 'urn:a'], ['a b', 'x']],
    ['email', ['a@b'], ['a', '@b']],
    ['bsonobjectid', ['507f1f77bcf86cd799439011'], ['x']],
    ['k8s-short-name', ['a-b'], ['a.b', 'A']],
    ['k8s-long-name', ['a.b'], ['a..b']],
    ['isbn10', ['0-306-40615-2'], ['0306406153']],
    ['isbn13', ['978-0-306-40615-7'], ['9780306406158']],
    ['creditcard', ['4111111111111111'], ['4111111111111112']],
  ];
  for (const [format, good, bad] of cases) {
    const check = formatCheck(format)!;
    for (const text of good) assert.equal(check(text), true, `${format} ${text}`);
    for (const text of bad) assert.equal(check(text), false, `${format} ${text}`);
  }
  assert.equal(formatCheck('toString'), undefined);
});

test('metadata of custom kinds is checked like Go structs', () => {
  assert.equal(decodeErrors(OBJECT_META_SCHEMA, { name: 'a', generation: 1 }, gvk), undefined);
  assert.match(decodeErrors(OBJECT_META_SCHEMA, { finalizers: 'x' }, gvk)!, /finalizers: expected array, got string$/);
});
