import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isLargeBody, isLargeObject } from './large-write.ts';
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
  test(`isLargeBody() of ${name}: ${wanted}`, () => assert.equal(isLargeBody(bytes, type), wanted));
}

test('isLargeObject() counts the parts of what is stored only above 32 kB', () => {
  assert.equal(isLargeObject(list(5000, '{}')), false);
  assert.equal(isLargeObject(list(15_000, '{}')), true);
  assert.equal(isLargeObject(utf8.encode(`"${'x'.repeat(LARGE_WRITE)}"`)), true);
});
