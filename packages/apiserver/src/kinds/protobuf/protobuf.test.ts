import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import protobuf from 'protobufjs';
import { ApiError } from '../../../../apimachinery/src/meta/status.ts';
import type { Schema } from '../../../../apimachinery/src/schema/schema.ts';
import { builtinSchema, builtinTypeNames } from '../../../../apimachinery/src/types/builtin-types.ts';
import { keptZeros, tableNameOf } from '../../../../apimachinery/src/types/kept-zeros.ts';
import { builtinResource } from '../builtin/builtin-resources.ts';
import { encodeProtobuf, encodeWatchFrame } from './documents.ts';
import { startsEnvelope, unwrapEnvelope, wrapEnvelope } from './envelope.ts';
import { planOf } from './message-plan.ts';
import { protobufBody } from './request-body.ts';

const decode = (bytes: Uint8Array): Record<string, unknown> =>
  protobufBody(bytes, undefined).value as Record<string, unknown>;

function refusal(bytes: Uint8Array, resource?: Parameters<typeof protobufBody>[1]): ApiError {
  try {
    protobufBody(bytes, resource);
  } catch (error) {
    assert.ok(error instanceof ApiError, `not an ApiError: ${String(error)}`);
    return error;
  }
  return assert.fail('it was accepted');
}

/** Messages as Go would marshal them, written with the full library from a schema of our own: an independent witness. */
const WITNESS = protobuf.parse(`
  syntax = "proto2";
  message Time { optional int64 seconds = 1; optional int32 nanos = 2; }
  message Quantity { optional string string = 1; }
  message IntOrString { optional int64 type = 1; optional int32 intVal = 2; optional string strVal = 3; }
  message Owner { optional string kind = 1; optional string name = 3; optional string uid = 4; optional string apiVersion = 5;
    optional bool controller = 6; optional bool blockOwnerDeletion = 7; }
  message Fields { optional bytes Raw = 1; }
  message Managed { optional string manager = 1; optional string operation = 2; optional string apiVersion = 3;
    optional Time time = 4; optional string fieldsType = 6; optional Fields fieldsV1 = 7; optional string subresource = 8; }
  message Meta { optional string name = 1; optional string generateName = 2; optional string namespace = 3;
    optional string selfLink = 4; optional string uid = 5; optional string resourceVersion = 6; optional int64 generation = 7;
    optional Time creationTimestamp = 8; optional int64 deletionGracePeriodSeconds = 10; map<string, string> labels = 11;
    map<string, string> annotations = 12; repeated Owner ownerReferences = 13; repeated string finalizers = 14;
    repeated Managed managedFields = 17; }
  message Secret { optional Meta metadata = 1; map<string, bytes> data = 2; optional string type = 3;
    map<string, string> stringData = 4; optional bool immutable = 5; }
  message KeyToPath { optional string key = 1; optional string path = 2; optional int32 mode = 3; }
  message SecretSource { optional string secretName = 1; repeated KeyToPath items = 2; optional int32 defaultMode = 3;
    optional bool optional = 4; }
  message EmptyDir { optional string medium = 1; optional Quantity sizeLimit = 2; }
  message VolumeSource { optional EmptyDir emptyDir = 2; optional SecretSource secret = 6; }
  message Volume { optional string name = 1; optional VolumeSource volumeSource = 2; }
  message HttpGet { optional string path = 1; optional IntOrString port = 2; optional string host = 3; optional string scheme = 4; }
  message Handler { optional HttpGet httpGet = 2; }
  message Probe { optional Handler handler = 1; optional int32 initialDelaySeconds = 2; optional int32 timeoutSeconds = 3; }
  message Resources { map<string, Quantity> limits = 1; map<string, Quantity> requests = 2; }
  message Container { optional string name = 1; optional string image = 2; repeated string command = 3; optional string workingDir = 5;
    optional Resources resources = 8; optional Probe livenessProbe = 10; optional string terminationMessagePath = 13;
    optional bool stdin = 16; }
  message SecurityContext { optional int64 runAsUser = 2; optional bool runAsNonRoot = 3; repeated int64 supplementalGroups = 4; }
  message PodSpec { repeated Volume volumes = 1; repeated Container containers = 2; optional string restartPolicy = 3;
    optional int64 terminationGracePeriodSeconds = 4; optional string nodeName = 10; optional bool hostNetwork = 11;
    optional SecurityContext securityContext = 14; optional bool automountServiceAccountToken = 21; }
  message PodStatus { optional string phase = 1; }
  message Pod { optional Meta metadata = 1; optional PodSpec spec = 2; optional PodStatus status = 3; }
  message TypeMeta { optional string apiVersion = 1; optional string kind = 2; }
  message Unknown { optional TypeMeta typeMeta = 1; optional bytes raw = 2; optional string contentEncoding = 3; optional string contentType = 4; }
  message RawExtension { optional bytes raw = 1; }
  message WatchEvent { optional string type = 1; optional RawExtension object = 2; }
  message ListMeta { optional string selfLink = 1; optional string resourceVersion = 2; optional string continue = 3; optional int64 remainingItemCount = 4; }
  message SecretList { optional ListMeta metadata = 1; repeated Secret items = 2; }
  message PartialList { optional ListMeta metadata = 1; repeated Partial items = 2; }
  message Partial { optional Meta metadata = 1; }
  message Props { optional string description = 4; optional string type = 5; optional Json default = 8; optional double maximum = 9;
    repeated Json enum = 20; optional OrArray items = 24; map<string, Props> properties = 29; optional OrBool additionalProperties = 30;
    map<string, OrStrings> dependencies = 32; optional bool nullable = 37; optional bool preserve = 38; }
  message Json { optional bytes raw = 1; }
  message OrArray { optional Props schema = 1; repeated Props jSONSchemas = 2; }
  message OrBool { optional bool allows = 1; optional Props schema = 2; }
  message OrStrings { optional Props schema = 1; repeated string property = 2; }
  message Validation { optional Props openAPIV3Schema = 1; }
  message Version { optional string name = 1; optional bool served = 2; optional bool storage = 3; optional Validation schema = 4; }
  message Names { optional string plural = 1; optional string singular = 2; optional string kind = 4; }
  message CrdSpec { optional string group = 1; optional Names names = 3; optional string scope = 4; repeated Version versions = 7; optional bool preserveUnknownFields = 10; }
  message Crd { optional Meta metadata = 1; optional CrdSpec spec = 2; }
  message ExtraValue { repeated string items = 1; }
  message AccessSpec { optional string user = 3; repeated string groups = 4; map<string, ExtraValue> extra = 5; }
  message AccessReview { optional Meta metadata = 1; optional AccessSpec spec = 2; }
`).root;

function goBytes(type: { apiVersion: string; kind: string }, message: string, value: object): Uint8Array {
  const Message = WITNESS.lookupType(message);
  const raw = Message.encode(Message.fromObject(value)).finish();
  const Unknown = WITNESS.lookupType('Unknown');
  const body = Unknown.encode({ typeMeta: type, raw, contentEncoding: '', contentType: '' }).finish();
  return Uint8Array.of(0x6b, 0x38, 0x73, 0, ...body);
}

const witness = (message: string, bytes: Uint8Array): Record<string, unknown> => {
  const Message = WITNESS.lookupType(message);
  return Message.toObject(Message.decode(bytes), { longs: Number, bytes: String }) as Record<string, unknown>;
};

/** What Go writes for metadata nobody set: every plain scalar, and an empty message for the zero time. */
const GO_META = {
  generateName: '',
  namespace: '',
  selfLink: '',
  uid: '',
  resourceVersion: '',
  generation: 0,
  creationTimestamp: {},
};
const base64 = (text: string): string => btoa(text);

// S-126
test('a Pod as a Go client marshals it becomes the JSON that it would write', () => {
  const bytes = goBytes({ apiVersion: 'v1', kind: 'Pod' }, 'Pod', {
    metadata: { ...GO_META, name: 'p', labels: { a: 'b', __proto__x: '' }, finalizers: ['x/y', ''] },
    spec: {
      volumes: [
        { name: 'a', volumeSource: { emptyDir: { medium: '', sizeLimit: { string: '1Gi' } } } },
        {
          name: 'b',
          volumeSource: { secret: { secretName: 's', defaultMode: 0, items: [{ key: 'k', path: 'p', mode: 0 }] } },
        },
      ],
      containers: [
        {
          name: '',
          image: 'i',
          command: ['', 'x'],
          workingDir: '',
          resources: { limits: { cpu: { string: '500m' } } },
          livenessProbe: {
            handler: { httpGet: { path: '/', port: { type: 1, intVal: 0, strVal: 'web' }, host: '', scheme: '' } },
            initialDelaySeconds: 0,
            timeoutSeconds: 3,
          },
          stdin: false,
        },
      ],
      restartPolicy: '',
      terminationGracePeriodSeconds: 0,
      nodeName: '',
      hostNetwork: false,
      securityContext: { runAsUser: 0, runAsNonRoot: false, supplementalGroups: [1, 0, 4294967296] },
      automountServiceAccountToken: false,
    },
    status: { phase: '' },
  });
  assert.deepEqual(decode(bytes), {
    kind: 'Pod',
    apiVersion: 'v1',
    metadata: { name: 'p', labels: { a: 'b', __proto__x: '' }, finalizers: ['x/y', ''] },
    spec: {
      volumes: [
        { name: 'a', emptyDir: { sizeLimit: '1Gi' } },
        { name: 'b', secret: { secretName: 's', defaultMode: 0, items: [{ key: 'k', path: 'p', mode: 0 }] } },
      ],
      containers: [
        {
          name: '',
          image: 'i',
          command: ['', 'x'],
          resources: { limits: { cpu: '500m' } },
          livenessProbe: { httpGet: { path: '/', port: 'web' }, timeoutSeconds: 3 },
        },
      ],
      terminationGracePeriodSeconds: 0,
      securityContext: { runAsUser: 0, runAsNonRoot: false, supplementalGroups: [1, 0, 4294967296] },
      automountServiceAccountToken: false,
    },
    status: {},
  });
});

test('times, bytes, owners and managed fields', () => {
  const seconds = Date.parse('2024-05-06T07:08:09Z') / 1000;
  const bytes = goBytes({ apiVersion: 'v1', kind: 'Secret' }, 'Secret', {
    metadata: {
      ...GO_META,
      name: 's',
      creationTimestamp: { seconds, nanos: 999 },
      deletionGracePeriodSeconds: 0,
      ownerReferences: [{ kind: 'K', name: 'o', uid: 'u', apiVersion: 'v1', controller: false }],
      managedFields: [
        {
          manager: 'm',
          operation: 'Update',
          apiVersion: 'v1',
          time: { seconds: 0, nanos: 0 },
          fieldsType: 'FieldsV1',
          fieldsV1: { Raw: base64('{"f:data":{}}') },
          subresource: '',
        },
      ],
    },
    data: { a: base64('\u0000\u00ff'), empty: '', constructor: base64('c') },
    type: 'Opaque',
    immutable: false,
  });
  assert.deepEqual(decode(bytes), {
    kind: 'Secret',
    apiVersion: 'v1',
    metadata: {
      name: 's',
      creationTimestamp: '2024-05-06T07:08:09Z',
      deletionGracePeriodSeconds: 0,
      ownerReferences: [{ apiVersion: 'v1', kind: 'K', name: 'o', uid: 'u', controller: false }],
      managedFields: [
        {
          manager: 'm',
          operation: 'Update',
          apiVersion: 'v1',
          time: '1970-01-01T00:00:00Z',
          fieldsType: 'FieldsV1',
          fieldsV1: { 'f:data': {} },
        },
      ],
    },
    data: { a: base64('\u0000\u00ff'), empty: '', constructor: base64('c') },
    type: 'Opaque',
    immutable: false,
  });
});

test('the unions of CustomResourceDefinition schemas', () => {
  const props = {
    type: 'object',
    description: '',
    nullable: false,
    default: { raw: base64('{"a":null}') },
    enum: [{ raw: base64('1') }, { raw: base64('"x"') }, { raw: base64('null') }],
    maximum: 1.5,
    properties: {
      list: { type: 'array', items: { schema: { type: 'string' } } },
      pair: { items: { jSONSchemas: [{ type: 'string' }, { type: 'integer' }] } },
      open: { additionalProperties: { allows: true } },
      closed: { additionalProperties: { allows: false } },
      map: { additionalProperties: { allows: true, schema: { type: 'boolean' } }, preserve: true },
    },
    dependencies: { a: { property: ['b', 'c'] }, d: { schema: { type: 'object' } } },
  };
  const bytes = goBytes({ apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition' }, 'Crd', {
    metadata: { name: 'x' },
    spec: { versions: [{ name: 'v1', served: false, storage: true, schema: { openAPIV3Schema: props } }] },
  });
  const decoded = decode(bytes);
  const spec = decoded['spec'] as { versions: { schema: { openAPIV3Schema: unknown } }[] };
  const wanted = {
    type: 'object',
    default: { a: null },
    enum: [1, 'x', null],
    maximum: 1.5,
    properties: {
      list: { type: 'array', items: { type: 'string' } },
      pair: { items: [{ type: 'string' }, { type: 'integer' }] },
      open: { additionalProperties: true },
      closed: { additionalProperties: false },
      map: { additionalProperties: { type: 'boolean' }, 'x-kubernetes-preserve-unknown-fields': true },
    },
    dependencies: { a: ['b', 'c'], d: { type: 'object' } },
  };
  assert.deepEqual(spec.versions[0]!.schema.openAPIV3Schema, wanted);
  assert.deepEqual(decode(encodeProtobuf(decoded)!), decoded);
});

test('maps of lists are wrapped, and fields of later releases are skipped', () => {
  const review = { apiVersion: 'authorization.k8s.io/v1', kind: 'SubjectAccessReview' };
  const value = { metadata: {}, spec: { user: 'u', groups: ['g'], extra: { k: { items: ['a', 'b'] }, none: {} } } };
  const bytes = goBytes(review, 'AccessReview', value);
  const later = wrapEnvelope({
    ...review,
    message: Uint8Array.of(
      ...unwrapEnvelope(bytes).message,
      0xf8,
      0x7f,
      1,
      0xf9,
      0x7f,
      1,
      2,
      3,
      4,
      5,
      6,
      7,
      8,
      0xfa,
      0x7f,
      1,
      9,
    ),
  });
  for (const body of [bytes, later]) {
    assert.deepEqual(decode(body)['spec'], { user: 'u', groups: ['g'], extra: { k: ['a', 'b'], none: [] } });
  }
});

test('numbers may be packed, messages come in parts, the last scalar wins', () => {
  const pod = (...message: number[]): Record<string, unknown> =>
    decode(wrapEnvelope({ apiVersion: 'v1', kind: 'Pod', message: Uint8Array.from(message) }));
  // spec(2).securityContext(14).supplementalGroups(4) packed [1, 2], then spec again with hostname... and one more group.
  assert.deepEqual(pod(0x12, 6, 0x72, 4, 0x22, 2, 1, 2, 0x12, 4, 0x72, 2, 0x20, 3)['spec'], {
    securityContext: { supplementalGroups: [1, 2, 3] },
  });
  // metadata.name twice; metadata.generation set, then zero again.
  assert.deepEqual(pod(0x0a, 6, 0x0a, 1, 0x61, 0x0a, 1, 0x62)['metadata'], { name: 'b' });
  assert.deepEqual(pod(0x0a, 4, 0x38, 1, 0x38, 0)['metadata'], {});
});

test('negative numbers take ten bytes', () => {
  const scale = goBytes({ apiVersion: 'v1', kind: 'Pod' }, 'Pod', { spec: { securityContext: { runAsUser: -1 } } });
  assert.deepEqual(decode(scale)['spec'], { securityContext: { runAsUser: -1 } });
  const toleration = { apiVersion: 'scheduling.k8s.io/v1', kind: 'PriorityClass', metadata: {}, value: -2147483648 };
  assert.deepEqual(decode(encodeProtobuf(toleration)!), toleration);
});

test('an int64 that nobody counts with keeps its digits, both ways', () => {
  const pod = {
    kind: 'Pod',
    apiVersion: 'v1',
    metadata: { name: 'p', generation: 9007199254740993n },
    spec: { containers: [], tolerations: [{ tolerationSeconds: -9007199254740993n }, { tolerationSeconds: 5 }] },
  };
  const { value } = protobufBody(encodeProtobuf(pod) as Uint8Array, undefined);
  const read = value as typeof pod;
  assert.equal(read.metadata.generation, 9007199254740993n);
  assert.deepEqual(read.spec.tolerations, pod.spec.tolerations);
});

test('what is no message of its kind is a 400, whatever it is', () => {
  const pod = (...message: number[]): Uint8Array =>
    wrapEnvelope({ apiVersion: 'v1', kind: 'Pod', message: Uint8Array.from(message) });
  const cases: [string, Uint8Array, RegExp][] = [
    ['nothing', new Uint8Array(0), /expected prefix \[107 56 115 0\]/],
    ['JSON', new TextEncoder().encode('{"kind":"Pod"}'), /expected prefix/],
    [
      'an unknown kind',
      wrapEnvelope({ apiVersion: 'v1', kind: 'Nope', message: new Uint8Array(0) }),
      /no kind "Nope" is registered for version "v1"/,
    ],
    ['no kind', wrapEnvelope({ apiVersion: '', kind: '', message: new Uint8Array(0) }), /'Kind' is missing/],
    ['a length beyond the end', pod(0x0a, 100, 1), /unexpected end: 100 bytes announced, 1 left/],
    ['a huge length', pod(0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f), /unexpected end/],
    ['a field beyond its message', pod(0x0a, 2, 0x0a, 5, 1, 2, 3, 4, 5), /unexpected end/],
    ['a cut varint', pod(0x0a, 1, 0x38), /./],
    ['tag 0', pod(0), /illegal tag 0/],
    ['a wrong wire type', pod(0x08, 1), /wrong wire type 0, expected 2/],
    ['a group', pod(0xfb, 0x7f), /wire type 3 is not supported/],
    [
      'an integer beyond JSON that is counted with (spec.terminationGracePeriodSeconds)',
      pod(0x12, 9, 0x20, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f),
      /beyond ±9007199254740991/,
    ],
    [
      'a time beyond year 9999',
      pod(0x0a, 10, 0x42, 8, 0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0),
      /out of range|illegal tag/,
    ],
    [
      'data that is no JSON (0x7b is a brace)',
      wrapEnvelope({
        apiVersion: 'apps/v1',
        kind: 'ControllerRevision',
        message: Uint8Array.from([0x12, 3, 0x0a, 1, 0x7b]),
      }),
      /unexpected end of JSON input/,
    ],
  ];
  for (const [name, bytes, message] of cases) {
    const error = refusal(bytes);
    assert.equal(error.code, 400, name);
    assert.match(error.message, message, name);
  }
});

test('a set of owned fields that is no JSON is a text, for nobody to read', () => {
  const managedFields = [{ fieldsV1: { Raw: base64('{"f:data":{}} {}') } }];
  const bytes = goBytes({ apiVersion: 'v1', kind: 'Secret' }, 'Secret', { metadata: { managedFields } });
  const { metadata } = protobufBody(bytes, undefined).value as { metadata: { managedFields: object[] } };
  assert.deepEqual(metadata.managedFields, [{ fieldsV1: '{"f:data":{}} {}' }]);
});

test('nesting is bounded, also through enveloped objects', () => {
  let message = new Uint8Array(0);
  for (let i = 0; i < 2000; i++) {
    const writer = protobuf.Writer.create();
    message = writer
      .uint32((28 << 3) | 2)
      .bytes(message)
      .finish() as Uint8Array<ArrayBuffer>;
  }
  const wrap = (number: number, bytes: Uint8Array): Uint8Array =>
    protobuf.Writer.create()
      .uint32((number << 3) | 2)
      .bytes(bytes)
      .finish();
  const spec = wrap(2, wrap(7, wrap(4, wrap(1, message))));
  assert.match(
    refusal(wrapEnvelope({ apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition', message: spec }))
      .message,
    /nest deeper than/,
  );

  let event: Uint8Array = encodeProtobuf({ kind: 'Status', apiVersion: 'v1' })!;
  for (let i = 0; i < 1000; i++) {
    event = wrapEnvelope({ apiVersion: 'v1', kind: 'WatchEvent', message: wrap(2, wrap(1, event)) });
  }
  assert.match(refusal(event).message, /nest deeper than/);
});

test('custom resources have no protobuf form, but their options do', () => {
  const options = encodeProtobuf({
    kind: 'DeleteOptions',
    apiVersion: 'policy/v1',
    gracePeriodSeconds: 0,
    propagationPolicy: 'Orphan',
  })!;
  const pods = builtinResource({ group: '', version: 'v1', resource: 'pods' })!;
  const custom = { ...pods, strategy: { ...pods.strategy, custom: true } };
  assert.equal(refusal(options, custom).code, 415);
  assert.deepEqual(decode(options), {
    kind: 'DeleteOptions',
    apiVersion: 'policy/v1',
    gracePeriodSeconds: 0,
    propagationPolicy: 'Orphan',
  });
  // Without a type in the envelope, the resource says what it is.
  const bare = wrapEnvelope({ apiVersion: '', kind: '', message: Uint8Array.of(0x0a, 3, 0x0a, 1, 0x61) });
  assert.deepEqual(protobufBody(bare, pods).value, { kind: 'Pod', apiVersion: 'v1', metadata: { name: 'a' } });
});

// S-126
test('random bytes are decoded or refused with 400, never anything else', () => {
  const kinds = [
    ['v1', 'Pod'],
    ['apiextensions.k8s.io/v1', 'CustomResourceDefinition'],
    ['v1', 'WatchEvent'],
    ['apps/v1', 'ControllerRevision'],
  ] as const;
  fc.assert(
    fc.property(fc.constantFrom(...kinds), fc.uint8Array({ maxLength: 60 }), ([apiVersion, kind], message) => {
      const bytes = wrapEnvelope({ apiVersion, kind, message });
      for (const body of [message, bytes, bytes.subarray(0, bytes.length - 3)]) {
        try {
          JSON.stringify(protobufBody(body, undefined).value);
        } catch (error) {
          assert.ok(error instanceof ApiError && error.code === 400, String(error));
        }
      }
    }),
    { numRuns: 500 },
  );
});

/** A random value of a schema in the form in which the server keeps it. */
function sample(schema: Schema, random: () => number, depth: number): unknown {
  const name = (schema['x-coracle-name'] ?? '').split('.').pop()!;
  const pick = <T>(...options: T[]): T => options[Math.floor(random() * options.length)]!;
  switch (name) {
    case 'Quantity':
      return pick('0', '1500m', '2Gi', '1e3');
    case 'Time':
      return pick('1999-12-31T23:59:59Z', '2024-02-29T00:00:00Z');
    case 'MicroTime':
      return pick('2024-02-29T00:00:00.000001Z', '1969-12-31T23:59:59.999999Z');
    case 'IntOrString':
      return pick<string | number>(0, -1, 8080, '', 'http');
    case 'JSON':
      return pick<unknown>(0, 'x', [1, { a: null }], { b: [] });
    case 'FieldsV1':
    case 'RawExtension':
      return { 'f:x': { '.': {} } };
    case 'JSONSchemaPropsOrBool':
      return pick<unknown>(true, false, { type: 'string' });
    case 'JSONSchemaPropsOrArray':
      return pick<unknown>({ type: 'string' }, [{ type: 'string' }, { type: 'integer' }]);
    case 'JSONSchemaPropsOrStringArray':
      return pick<unknown>({ type: 'string' }, ['a', 'b']);
  }
  switch (schema.type) {
    case 'string':
      return schema.format === 'byte' ? pick('AP8=', 'YWJj') : pick('a', 'ü€😀', 'long '.repeat(30));
    case 'boolean':
      return true;
    case 'integer':
      return schema.format === 'int64'
        ? pick(1, -1, 2 ** 53 - 1, -(2 ** 53) + 1)
        : pick(1, -1, 2 ** 31 - 1, -(2 ** 31));
    case 'number':
      return pick(0.1, -1e300);
    case 'array':
      return Array.from({ length: 1 + Math.floor(random() * 2) }, () => sample(schema.items!, random, depth - 1));
    default: {
      if (typeof schema.additionalProperties === 'object') {
        return {
          k: sample(schema.additionalProperties, random, depth - 1),
          '': sample(schema.additionalProperties, random, depth - 1),
        };
      }
      const object: Record<string, unknown> = {};
      if (depth <= 0) return object;
      const wire = { ...schema['x-coracle-proto'], ...schema['x-coracle-proto-inline'] };
      for (const key of Object.keys(wire)) {
        if (random() < 0.6) object[key] = sample(schema.properties![key]!, random, depth - 1);
      }
      return object;
    }
  }
}

// S-126
// Compat Types, P0, yes: protobuf numbers of every built-in type
test('every built-in kind survives the way out and back', () => {
  const kinds = builtinTypeNames()
    .map((name) => builtinSchema(name))
    .filter((schema) => Object.hasOwn(schema.properties ?? {}, 'kind') && schema['x-coracle-proto'] !== undefined);
  assert.ok(kinds.length > 100, `only ${kinds.length}`);
  let seed = 1;
  const random = (): number => {
    seed = (seed * 16807) % 2147483647;
    return seed / 2147483647;
  };
  for (let round = 0; round < 3; round++) {
    for (const info of [
      ['', 'v1', 'pods'],
      ['', 'v1', 'services'],
      ['', 'v1', 'persistentvolumes'],
      ['', 'v1', 'nodes'],
      ['', 'v1', 'events'],
      ['apps', 'v1', 'deployments'],
      ['batch', 'v1', 'cronjobs'],
      ['coordination.k8s.io', 'v1', 'leases'],
      ['networking.k8s.io', 'v1', 'ingresses'],
      ['resource.k8s.io', 'v1', 'resourceslices'],
      ['apiextensions.k8s.io', 'v1', 'customresourcedefinitions'],
      ['admissionregistration.k8s.io', 'v1', 'validatingadmissionpolicies'],
      ['autoscaling', 'v2', 'horizontalpodautoscalers'],
      ['flowcontrol.apiserver.k8s.io', 'v1', 'prioritylevelconfigurations'],
    ] as const) {
      const resource = builtinResource({ group: info[0], version: info[1], resource: info[2] })!;
      const apiVersion = info[0] === '' ? info[1] : `${info[0]}/${info[1]}`;
      const object = { ...(sample(resource.schema, random, 9) as object), kind: resource.kind, apiVersion };
      const bytes = encodeProtobuf(object)!;
      assert.deepEqual(protobufBody(bytes, resource).value, object, `${resource.kind} seed ${seed}`);
    }
  }
  // Every type compiles, whoever uses it.
  for (const name of builtinTypeNames()) {
    const schema = builtinSchema(name);
    if (schema['x-coracle-proto'] !== undefined) assert.ok(planOf(schema) instanceof Map, name);
  }
});

test('encoded documents are what the wire format says', () => {
  const secret = {
    kind: 'Secret',
    apiVersion: 'v1',
    metadata: { name: 's', creationTimestamp: '2024-05-06T07:08:09Z' },
    data: { a: base64('x') },
  };
  const bytes = encodeProtobuf(secret)!;
  assert.ok(startsEnvelope(bytes));
  const unknown = witness('Unknown', bytes.subarray(4));
  assert.deepEqual(unknown['typeMeta'], { apiVersion: 'v1', kind: 'Secret' });
  const { message } = unwrapEnvelope(bytes);
  assert.deepEqual(witness('Secret', message), {
    metadata: { name: 's', creationTimestamp: { seconds: Date.parse('2024-05-06T07:08:09Z') / 1000, nanos: 0 } },
    data: { a: base64('x') },
  });
  const list = encodeProtobuf({
    kind: 'SecretList',
    apiVersion: 'v1',
    metadata: { resourceVersion: '7', remainingItemCount: 0 },
    items: [secret, secret],
  })!;
  assert.deepEqual(witness('SecretList', unwrapEnvelope(list).message)['metadata'], {
    resourceVersion: '7',
    remainingItemCount: 0,
  });
  assert.equal((witness('SecretList', unwrapEnvelope(list).message)['items'] as unknown[]).length, 2);
  const frame = encodeWatchFrame('ADDED', bytes);
  assert.equal(new DataView(frame.buffer).getUint32(0), frame.length - 4);
  const event = witness('WatchEvent', frame.subarray(4)) as { type: string; object: { raw: string } };
  assert.equal(event.type, 'ADDED');
  assert.equal(event.object.raw, btoa(String.fromCharCode(...bytes)));
});

test('metadata alone has a protobuf form for every kind, Table and custom resources have none', () => {
  const partial = {
    kind: 'PartialObjectMetadata',
    apiVersion: 'meta.k8s.io/v1',
    metadata: { name: 'vm', labels: { a: 'b' } },
  };
  assert.deepEqual(decode(encodeProtobuf(partial)!), partial);
  const list = encodeProtobuf({
    kind: 'PartialObjectMetadataList',
    apiVersion: 'meta.k8s.io/v1',
    metadata: {},
    items: [partial],
  })!;
  assert.deepEqual(witness('PartialList', unwrapEnvelope(list).message)['items'], [
    { metadata: { name: 'vm', labels: { a: 'b' } } },
  ]);
  assert.equal(encodeProtobuf({ kind: 'Table', apiVersion: 'meta.k8s.io/v1' }), undefined);
  assert.equal(encodeProtobuf({ kind: 'VirtualMachine', apiVersion: 'kubevirt.io/v1' }), undefined);
});

test('the verbs of a resource are a message of their own, as Go has it', () => {
  const list = { kind: 'APIResourceList', apiVersion: 'v1', groupVersion: 'v1' };
  const resource = { name: 'pods', singularName: '', namespaced: true, kind: 'Pod', verbs: ['get', 'list'] };
  const bytes = encodeProtobuf({ ...list, resources: [resource] }) ?? assert.fail('no protobuf form');
  const verbs = Buffer.from('\x22\x0b\x0a\x03get\x0a\x04list', 'latin1');
  assert.ok(Buffer.from(bytes).includes(verbs), Buffer.from(bytes).toString('latin1'));
  assert.deepEqual(decode(bytes), { ...list, resources: [resource] });
});

test('zeros that Go leaves out of JSON though they are required, and that it writes though they are optional', () => {
  const rule = { action: '', exitCodes: { operator: '', values: [1] } };
  const container = { name: 'c', image: 'i', restartPolicyRules: [rule] };
  const pod = {
    kind: 'Pod',
    apiVersion: 'v1',
    spec: { containers: [container], schedulingGroup: { podGroupName: '' } },
  };
  const read = decode(encodeProtobuf(pod)!)['spec'] as typeof pod.spec;
  const { restartPolicyRules } = read.containers[0]!;
  assert.deepEqual(restartPolicyRules, [{ exitCodes: { values: [1] } }]);
  assert.deepEqual(read.schedulingGroup, { podGroupName: '' });
});

test('the table of fields whose zero is written names optional scalars of known types', () => {
  const types = new Map(builtinTypeNames().map((name) => [tableNameOf(name), builtinSchema(name)]));
  for (const [type, fields] of keptZeros()) {
    const schema = types.get(type) ?? assert.fail(`no type ${type}`);
    for (const entry of fields) {
      const dropped = entry.startsWith('-');
      const field = dropped ? entry.slice(1) : entry;
      const member = schema.properties?.[field] ?? assert.fail(`${type} has no ${field}`);
      assert.ok(['string', 'integer', 'boolean', 'number'].includes(member.type ?? ''), `${type}.${field}`);
      assert.equal(schema.required?.includes(field) ?? false, dropped, `${type}.${entry} says nothing new`);
    }
  }
});
