import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { stringify } from 'yaml';
import { finish } from '../../../apimachinery/src/meta/steps.ts';
import { YAML_STYLE, yamlSteps } from './yaml-steps.ts';

const decoder = new TextDecoder();
const inSteps = (value: unknown): string =>
  finish(yamlSteps(value))
    .map((part) => decoder.decode(part))
    .join('');

const text = fc.oneof(
  fc.string({ maxLength: 12 }),
  fc.constantFrom(
    '',
    ' ',
    'a\nb',
    'a\n\n  b\n',
    '\n',
    '--- a',
    'a: b',
    '- a',
    '#',
    'yes',
    '1',
    '0x1',
    '1e3',
    '~',
    'null',
  ),
  fc.constantFrom(
    '...\nx',
    '---\nx',
    ' lead\nx',
    'x\n ',
    'tab\tx',
    '2001-01-01',
    '=',
    '<<',
    '*a',
    '&a',
    '!a',
    '%a',
    '@a',
    '`a',
  ),
  fc.string({ minLength: 70, maxLength: 200 }),
  fc.string({ minLength: 1100, maxLength: 1200 }),
);
const leaf = fc.oneof(
  text,
  fc.integer(),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.boolean(),
  fc.constant(null),
);
const tree = fc.letrec((tie) => ({
  node: fc.oneof(
    { maxDepth: 4 },
    leaf,
    fc.array(tie('node'), { maxLength: 8 }),
    fc.dictionary(text, tie('node'), { maxKeys: 8 }),
  ),
})).node;
/** Enough of it that it is cut. */
const large = fc
  .tuple(
    fc.array(tree, { minLength: 3, maxLength: 20 }),
    fc.integer({ min: 150, max: 260 }),
    fc.dictionary(text, tree, { maxKeys: 6 }),
  )
  .map(([some, count, more]) => {
    const many = Array.from({ length: count }, (_, at) => some[at % some.length]);
    return {
      list: many,
      map: Object.fromEntries(many.map((value, at) => [`k${at}`, value])),
      ...more,
      deep: [[many, { a: { b: many } }], [], {}, [[[many]]]],
      'a: b': { '- x': many },
      7: many,
    };
  });

test('YAML in steps is what the library writes in one go', () => {
  fc.assert(
    fc.property(large, (value) => {
      const plain = JSON.parse(JSON.stringify(value));
      assert.equal(inSteps(plain), stringify(plain, YAML_STYLE));
    }),
    { numRuns: 6 },
  );
});

test('wide integers are written as numbers', () => {
  const value = { spec: Array.from({ length: 500 }, (_, at) => ({ at: 2n ** 60n + BigInt(at) })) };
  assert.equal(inSteps(value), stringify(value, YAML_STYLE));
});

test('YAML of a large document takes many steps', () => {
  let steps = 0;
  for (const work = yamlSteps(Array.from({ length: 20_000 }, (_, at) => ({ name: `n${at}` }))); !work.next().done; )
    steps++;
  assert.ok(steps > 100, `${steps} steps`);
});
