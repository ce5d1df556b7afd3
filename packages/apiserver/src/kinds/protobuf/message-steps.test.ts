/** What is written in steps is byte for byte what is written in one go, for objects that are large in any of their parts. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { joinBytes } from '../../../../apimachinery/src/meta/join-bytes.ts';
import type { Steps } from '../../../../apimachinery/src/meta/steps.ts';
import { encodeProtobuf, encodeWatchFrame, protobufInParts, protobufSteps } from './documents.ts';

type Json = Record<string, unknown>;

/** The bytes, and how often the work stopped. */
function counted(work: Steps<Uint8Array[] | undefined>): { bytes: Uint8Array; stops: number } {
  for (let stops = 0; ; stops++) {
    const step = work.next();
    if (step.done) return { bytes: joinBytes(step.value ?? assert.fail('no protobuf form')), stops };
  }
}

/** Few, or more than are written in one go. */
const size = fc.oneof(fc.nat({ max: 3 }), fc.integer({ min: 490, max: 2600 }));
const list = (count: number, item: (at: number) => unknown): unknown[] =>
  Array.from({ length: count }, (_, at) => item(at));
const map = (count: number, value: (at: number) => unknown): Json =>
  Object.fromEntries(
    list(count, (at) => [at % 97 === 3 ? `schlüssel-${at}` : `k${at}`, value(at)]) as [string, unknown][],
  );

const metadata = fc
  .record({ labels: size, fields: size, owners: size, deep: fc.boolean() })
  .map(({ labels, fields, owners, deep }) => ({
    name: 'large',
    creationTimestamp: '2026-01-02T03:04:05Z',
    labels: map(labels, (at) => `v${at}`),
    finalizers: list(owners, (at) => `example.com/f${at}`),
    ownerReferences: list(owners, (at) => ({ apiVersion: 'v1', kind: 'Pod', name: `p${at}`, uid: `${at}` })),
    managedFields: [
      {
        manager: 'm',
        operation: 'Update',
        fieldsType: 'FieldsV1',
        fieldsV1: map(fields, (at) => (deep ? { 'f:a': { 'f:b': {} }, at } : {})),
      },
    ],
  }));

const configMap = fc.record({ metadata, data: size, binary: size }).map(({ data, binary, ...rest }) => ({
  kind: 'ConfigMap',
  apiVersion: 'v1',
  ...rest,
  data: map(data, (at) => `täxt ${at}`),
  binaryData: map(binary, () => 'AAECAw=='),
}));

const pod = fc
  .record({ metadata, containers: size, limits: size, volumes: size, ports: size })
  .map(({ containers, limits, volumes, ports, ...rest }) => ({
    kind: 'Pod',
    apiVersion: 'v1',
    ...rest,
    spec: {
      // Not first in the message, and large in one of its items.
      restartPolicy: 'Always',
      containers: list(containers, (at) => ({
        name: `c${at}`,
        image: 'a',
        livenessProbe: { httpGet: { port: at % 2 ? at : 'web', path: '/' }, periodSeconds: at },
        resources: { limits: at === 1 ? map(limits, (n) => `${n}Mi`) : { cpu: '1' }, requests: null },
        ports: at === 2 ? list(ports, (n) => ({ containerPort: n, protocol: 'TCP' })) : [],
      })),
      volumes: list(volumes, (at) =>
        at % 2 ? { name: `v${at}`, emptyDir: {} } : { name: `v${at}`, secret: { optional: true } },
      ),
      terminationGracePeriodSeconds: Number.MAX_SAFE_INTEGER,
    },
  }));

const schema: fc.Arbitrary<Json> = fc.letrec<{ node: Json }>((tie) => ({
  node: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    fc.record(
      { type: fc.constant('string'), enum: size.map((n) => list(n, (at) => `e${at}`)) },
      { requiredKeys: ['type'] },
    ),
    fc.record({ type: fc.constant('object'), default: size.map((n) => map(n, (at) => [at, 9007199254740993n])) }),
    fc.tuple(size, tie('node')).map(([n, one]) => ({
      type: 'object',
      properties: map(n, (at) => (at === 1 ? one : { type: 'integer', maximum: at / 3 })),
    })),
    fc
      .tuple(fc.boolean(), tie('node'))
      .map(([isList, one]) => ({ type: 'array', items: isList ? [one, { type: 'string' }] : one })),
    tie('node').map((one) => ({ type: 'object', additionalProperties: one, not: one })),
    fc.boolean().map((allowed) => ({ type: 'object', additionalProperties: allowed })),
    fc.tuple(size, tie('node')).map(([n, one]) => ({ allOf: [one, ...list(n, (at) => ({ minLength: at }))] })),
  ),
})).node;

const definition = fc.record({ metadata, schema }).map(({ schema: openAPIV3Schema, ...rest }) => ({
  kind: 'CustomResourceDefinition',
  apiVersion: 'apiextensions.k8s.io/v1',
  ...rest,
  spec: {
    group: 'a.b',
    scope: 'Namespaced',
    versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema } }],
  },
}));

/** Lists that Go makes messages of their own, and an object inside an object. */
const others = size.map((n) => ({
  kind: 'SubjectAccessReview',
  apiVersion: 'authorization.k8s.io/v1',
  spec: { user: 'u', extra: { many: list(n, (at) => `x${at}`), few: ['a'], none: [] }, groups: list(n, String) },
}));
const revision = size.map((n) => ({
  kind: 'ControllerRevision',
  apiVersion: 'apps/v1',
  metadata: {},
  data: map(n, (at) => ({ at, list: [at] })),
  revision: 3,
}));

// S-324
test('large objects in steps are what they are in one go', () => {
  let stops = 0;
  fc.assert(
    fc.property(fc.oneof(configMap, pod, definition, others, revision), (object: Json) => {
      const stepped = counted(protobufSteps(object));
      stops += stepped.stops;
      assert.ok(Buffer.from(encodeProtobuf(object)!).equals(stepped.bytes));
    }),
    { numRuns: 120 },
  );
  assert.ok(stops > 100, `${stops} stops`);
});

// S-324
test('no part of a large object is written for long', () => {
  const data = map(60_000, () => 'v');
  const object = {
    kind: 'ConfigMap',
    apiVersion: 'v1',
    metadata: { managedFields: [{ fieldsV1: { 'f:data': map(60_000, () => ({})) } }] },
    data,
  };
  const { bytes, stops } = counted(protobufSteps(object));
  assert.ok(stops > 50, `${stops} stops`);
  assert.ok(Buffer.from(encodeProtobuf(object)!).equals(bytes));
});

test('items of a list in steps, and a watch frame in parts, are what they are in one go', () => {
  const type = { kind: 'ConfigMapList', apiVersion: 'v1' };
  const item = { metadata: { name: 'a' }, data: map(3000, (at) => `${at}`) };
  const message = protobufInParts(type)!;
  const parts = counted(message.partSteps({ items: [item, item] })).bytes;
  assert.ok(Buffer.from(message.part({ items: [item, item] })).equals(parts));
  const whole = joinBytes(message.whole([parts]));
  assert.ok(Buffer.from(encodeProtobuf({ ...type, items: [item, item] })!).equals(whole));
  const cut = [whole.subarray(0, 7), whole.subarray(7, 7), whole.subarray(7)];
  assert.deepEqual(encodeWatchFrame('MODIFIED', ...cut), encodeWatchFrame('MODIFIED', whole));
});

test('what has no protobuf form has none in steps', () => {
  assert.deepEqual(protobufSteps({ kind: 'Table', apiVersion: 'meta.k8s.io/v1' }).next(), {
    done: true,
    value: undefined,
  });
});
