/** Kinds of very many fields: their documents are made with others served in between, and say of each field what they would say of it alone. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Pause } from '../../../../apimachinery/src/meta/pause.ts';
import type { Schema } from '../../../../apimachinery/src/schema/schema.ts';
import type { ResourceInfo } from '../../../../apimachinery/src/types/resource.ts';
import { builtinResources } from '../builtin/builtin-resources.ts';
import { rootSchemaOf } from '../custom/crd-schema.ts';
import { openApiV2 } from './openapi-v2.ts';
import { openApiV3, openApiV3Hash } from './openapi-v3.ts';

// biome-ignore lint/suspicious/noExplicitAny: documents are walked as the open JSON they are.
type Doc = any;

const pods = builtinResources().find((info) => info.resource === 'pods')!;
const custom = (spec: Schema, root: object = {}): ResourceInfo => ({
  ...pods,
  group: 'example.com',
  kind: 'Foo',
  listKind: 'FooList',
  resource: 'foos',
  singular: 'foo',
  subresources: [],
  selectableFields: {},
  strategy: { ...pods.strategy, custom: true },
  schema: rootSchemaOf({ type: 'object', properties: { spec }, ...root }),
});

const schema: fc.Arbitrary<Schema> = fc.letrec<{ node: Schema }>((tie) => ({
  node: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    fc.constantFrom<Schema>(
      { type: 'string', description: 'a text', pattern: '^a', default: 'a' },
      { type: 'integer', nullable: true, maximum: 3 },
      { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
      { 'x-kubernetes-int-or-string': true },
      { type: 'string', enum: ['a', 'b'] },
    ),
    fc
      .tuple(fc.boolean(), fc.boolean(), fc.dictionary(fc.string({ maxLength: 3 }), tie('node'), { maxKeys: 4 }))
      .map(([nullable, embedded, properties]) => ({
        type: 'object' as const,
        ...(nullable && { nullable }),
        ...(embedded && { 'x-kubernetes-embedded-resource': true }),
        properties: { ...properties, ...(embedded && { metadata: { type: 'object' as const } }) },
        required: Object.keys(properties),
      })),
    tie('node').map((items) => ({ type: 'array' as const, items, 'x-kubernetes-list-type': 'atomic' as const })),
    tie('node').map((rest) => ({ type: 'object' as const, additionalProperties: rest })),
  ),
})).node;

const object = (properties: Readonly<Record<string, Schema>>): Schema => ({ type: 'object', properties });

/** Counts how often others are let in. */
function counter(): { readonly pause: Pause; count: number } {
  const counted = { count: 0, pause: async (): Promise<void> => void counted.count++ };
  return counted;
}

// S-327: OpenAPI documents of very many fields are made with others served in between.
test('each of very many fields is published as it would be alone, in both dialects', async () => {
  const pauses = counter();
  await fc.assert(
    fc.asyncProperty(fc.array(schema, { minLength: 1, maxLength: 5 }), async (some) => {
      const names = Array.from({ length: 2500 }, (_, at) => `f${at}`);
      const large = custom(object(Object.fromEntries(names.map((name, at) => [name, some[at % some.length]!]))));
      const v3 = await openApiV3([large], pauses.pause);
      const v2 = await openApiV2([large], pauses.pause);
      const of = (document: Doc): Doc => (document.components?.schemas ?? document.definitions)['com.example.v1.Foo'];
      for (const [document, make] of [
        [v3, openApiV3],
        [v2, openApiV2],
      ] as const) {
        const { properties } = of(document).properties.spec;
        assert.deepEqual(Object.keys(properties), names.toSorted());
        for (const [at, one] of some.entries()) {
          const alone = of(await make([custom(object({ one }))])).properties.spec.properties.one;
          for (let n = at; n < names.length; n += some.length) {
            if (n > 40 && n < 2400) continue;
            assert.equal(JSON.stringify(properties[names[n]!]), JSON.stringify(alone), `f${n}`);
          }
        }
      }
    }),
    { numRuns: 20 },
  );
  assert.ok(pauses.count > 40, `${pauses.count} pauses`);
});

test('very many fields at the root, of an embedded object and of a kind that may be anything', async () => {
  const many = Object.fromEntries(Array.from({ length: 1500 }, (_, at) => [`f${at}`, { type: 'string' as const }]));
  const [v3, v2] = [openApiV3, openApiV2].map((make) => async (info: ResourceInfo): Promise<Doc> => {
    const document: Doc = await make([info]);
    return (document.components?.schemas ?? document.definitions)['com.example.v1.Foo'];
  }) as [(info: ResourceInfo) => Promise<Doc>, (info: ResourceInfo) => Promise<Doc>];
  const embedded: Schema = { ...object(many), 'x-kubernetes-embedded-resource': true };
  const sorted = Object.keys(many).sort();
  const whole = [...sorted, 'apiVersion', 'kind', 'metadata'].sort();
  assert.deepEqual(Object.keys((await v3(custom(embedded))).properties.spec.properties), whole);
  assert.deepEqual((await v3(custom(embedded))).properties.spec.required, ['kind', 'apiVersion']);
  const root = custom(
    {},
    { properties: { ...many, kind: { type: 'string', maxLength: 3 }, metadata: { type: 'object' } } },
  );
  assert.deepEqual(Object.keys((await v2(root)).properties), ['apiVersion', 'kind', 'metadata', ...sorted]);
  assert.equal((await v2(root)).properties.kind.maxLength, undefined);
  const open = { ...object({ b: object(many) }), 'x-kubernetes-preserve-unknown-fields': true };
  assert.equal((await v2(custom(open))).properties.spec.properties, undefined);
  assert.equal(Object.keys((await v3(custom(open))).properties.spec.properties.b.properties).length, 1500);
});

// S-327
test('the hash of a large document is the same with others served in between', async () => {
  const nested = Object.fromEntries(
    Array.from({ length: 700 }, (_, at) => [`g${at}`, object({ a: { type: 'string' }, b: { type: 'integer' } })]),
  );
  const kind = custom({
    ...object({ ...nested, list: { type: 'array', items: object(nested) } }),
    required: Object.keys(nested),
    'x-kubernetes-validations': Array.from({ length: 600 }, (_, at) => ({ rule: `self.g${at}.a == ''` })),
  });
  const rest: Schema = { type: 'object', additionalProperties: object(nested) };
  for (const info of [kind, custom(rest), custom({ allOf: Object.values(nested) } as Schema)]) {
    const pauses = counter();
    assert.equal(await openApiV3Hash([info], pauses.pause), await openApiV3Hash([info]));
    assert.ok(pauses.count > 0);
  }
});
