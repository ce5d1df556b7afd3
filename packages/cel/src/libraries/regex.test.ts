import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { compileRegex, compileTest } from './regex.ts';

const letter = fc.constantFrom('a', 'b', '-', '_', ' ', '/', '\n', '\r', 'é');
const word = fc.string({ unit: fc.constantFrom('a', 'b', '-', '_'), minLength: 1, maxLength: 3 });
const set = fc
  .array(fc.constantFrom('a', 'b', '_', '\\n', '\\r'), { minLength: 1, maxLength: 3 })
  .map((members) => `[${members.join('')}]`);
const choice = fc.array(word, { minLength: 1, maxLength: 3 }).map((words) => `(${words.join('|')})`);
const pattern = fc
  .tuple(
    fc.constantFrom('', '^'),
    fc.array(fc.oneof(word, set), { maxLength: 2 }),
    fc.option(choice, { nil: '' }),
    fc.constantFrom('', '$'),
  )
  .map(([begin, parts, choice, end]) => begin + parts.join('') + choice + end);

test('patterns that the engine matches mean what they mean in RE2', () => {
  fc.assert(
    fc.property(pattern, fc.string({ unit: letter, maxLength: 6 }), (source, text) => {
      const regex = compileTest(source);
      assert.ok(regex instanceof RegExp, source);
      assert.equal(regex.test(text), compileRegex(source).test(text));
    }),
  );
});

test('patterns with a repetition, an escape or a group in a group are left to RE2', () => {
  for (const source of [
    'a+',
    'a*',
    'a?',
    'a{2}',
    '(a|b)(a|b)',
    '((a))',
    '()',
    '\\d',
    '.',
    '[^a]',
    '[a-b]',
    '(?i)a',
    'a|b',
  ])
    assert.ok(!(compileTest(source) instanceof RegExp), source);
  assert.throws(() => compileTest('(a'), /missing/);
});
