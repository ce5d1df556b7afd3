import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Schema } from '../../../apimachinery/src/schema/schema.ts';
import { growsLarge, isLargeBody, isLargeObject } from './large-write.ts';
import { LARGE_WRITE } from './write-call.ts';

const JSON_TYPE = 'application/json';
const utf8 = new TextEncoder();
const list = (count: number, item: string): Uint8Array => utf8.encode(`[${Array(count).fill(item).join(',')}]`);

const cases: readonly [string, Uint8Array, string, boolean][] = [
  ['nothing', utf8.encode(''), JSON_TYPE, false],
  ['an ordinary object', list(20, '{"name":"a","image":"b"}'), JSON_TYPE, false],
  ['a long text', utf8.encode(`"${'x'.repeat(LARGE_WRITE - 2)}"`), JSON_TYPE, false],
  ['a longer one', utf8.encode(`"${'x'.repeat(LARGE_WRITE)}"`), JSON_TYPE, true],
  ['a text of 8 kB with commas', utf8.encode(`"${','.repeat(8000)}"`), JSON_TYPE, false],
  ['thirty thousand containers of nothing', list(30_000, '{}'), JSON_TYPE, true],
  ['twenty thousand nulls', list(20_000, 'null'), JSON_TYPE, true],
  ['thirty thousand keys', list(30_000, '"k":1'), '', true],
  ['three thousand lines of YAML', utf8.encode('key: value\n'.repeat(3000)), 'application/yaml', true],
  ['three thousand lines that are none', utf8.encode('key: value\n'.repeat(3000)), JSON_TYPE, false],
  ['a large protobuf body', new Uint8Array(20_000), 'application/vnd.kubernetes.protobuf', true],
  ['a small one', new Uint8Array(10_000), 'application/vnd.kubernetes.protobuf', false],
];

for (const [name, bytes, type, wanted] of cases) {
  // S-257: A write of many bytes or many parts is worked on by another thread, with the result of this one.
  test(`isLargeBody() of ${name}: ${wanted}`, () => assert.equal(isLargeBody(bytes, type), wanted));
}

// S-257
test('isLargeObject() counts the parts of what is stored only above 32 kB', () => {
  assert.equal(isLargeObject(list(5000, '{}')), false);
  assert.equal(isLargeObject(list(15_000, '{}')), true);
  assert.equal(isLargeObject(utf8.encode(`"${'x'.repeat(LARGE_WRITE)}"`)), true);
});

// S-328: Small bodies that defaults make large are worked on by another thread, too.
test('growsLarge() looks at what defaults may add to each list and map of a body', () => {
  const texts = (count: number): Schema => ({
    type: 'object',
    properties: Object.fromEntries(
      Array.from({ length: count }, (_, at) => [`f${at}`, { type: 'string', default: 'v' }]),
    ),
  });
  const kind = (schema: Schema, custom = true): Parameters<typeof growsLarge>[0] =>
    ({ schema: { type: 'object', properties: { spec: schema } }, strategy: { custom } }) as never;
  const small = utf8.encode('{"spec":{}}');
  assert.equal(growsLarge(kind(texts(30_000)), small), true);
  assert.equal(growsLarge(kind(texts(30_000), false), small), false);
  assert.equal(growsLarge(kind(texts(200)), small), false);
  const whole = Object.fromEntries(Array.from({ length: 30_000 }, (_, at) => [`k${at}`, at]));
  assert.equal(growsLarge(kind({ type: 'object', default: whole }), small), true);
  const items: Schema = { type: 'array', items: texts(20) };
  assert.equal(growsLarge(kind(items), list(2000, '{}')), true);
  assert.equal(growsLarge(kind(items), utf8.encode('- {}\n'.repeat(2000))), true);
  assert.equal(growsLarge(kind(items), list(100, '{}')), false);
  const circle: Schema = { type: 'object', properties: { text: { type: 'string', default: 'a' } } };
  Object.assign(circle.properties!, { again: circle });
  assert.equal(growsLarge(kind(circle), list(1000, '{}')), false);
});
