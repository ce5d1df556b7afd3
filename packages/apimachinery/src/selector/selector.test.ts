import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { ApiError } from '../meta/status.ts';
import { parseFieldSelector } from './field-selector.ts';
import { formatLabelSelector, fromLabelSelectorObject, matchesLabels, parseLabelSelector } from './label-selector.ts';

// S-005
// Compat Reading, P0, yes: label selectors
test('label selectors match', () => {
  const labels = { app: 'web', tier: '', n: '7', in: 'in' };
  const cases: [string, boolean][] = [
    ['', true],
    ['app', true],
    ['!app', false],
    ['missing', false],
    ['!missing', true],
    ['app=web', true],
    ['app==web', true],
    ['app = web , n', true],
    ['app!=web', false],
    ['missing!=x', true],
    ['tier=', true],
    ['tier', true],
    ['app in (web,db)', true],
    ['app in (db)', false],
    ['app notin (db)', true],
    ['missing notin (a)', true],
    ['tier in ()', true],
    ['tier in (,x)', true],
    ['app in (,x)', false],
    ['n>5', true],
    ['n>7', false],
    ['n<8', true],
    ['app>5', false],
    ['missing>5', false],
    ['in in (in)', true],
    ['in=in', true],
    ['notin', false],
    ['toString', false],
    ['constructor!=x', true],
  ];
  for (const [text, want] of cases) assert.equal(matchesLabels(parseLabelSelector(text), labels), want, text);
});

test('malformed label selectors are 400 with upstream words', () => {
  const cases: [string, RegExp][] = [
    ['a,', /found '', expected: identifier after ','/],
    ['a b', /unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt/],
    ['a in b', /unable to parse requirement: found 'b' expected: '\('/],
    ['a in (==)', /found '==', expected: ',', '\)' or identifier$/],
    ['a in (b,==)', /found '==', expected: ',', or identifier$/],
    ['a in (b==)', /found '==', expected: ',' or '\)'$/],
    ['a in (/,/)', /requirement: values\[0\]\[a\]: Invalid value: "\/"/],
    ['a in (b', /unable to parse requirement: found '', expected/],
    ['a=b=c', /found '=', expected: ',' or 'end of string'/],
    ['=a', /found '=', expected: !, identifier, or 'end of string'/],
    ['!', /unable to parse requirement: found '', expected: identifier/],
    ['-a=b', /unable to parse requirement: <nil>: Invalid value: "-a": name part/],
    ['a=-b', /unable to parse requirement: values\[0\]\[a\]: Invalid value: "-b"/],
    ['a>x', /the value must be an integer/],
  ];
  for (const [text, message] of cases) {
    assert.throws(
      () => parseLabelSelector(text),
      (e: ApiError) => e.code === 400 && message.test(e.message),
      text,
    );
  }
});

const word = fc.stringMatching(/^[a-z]([a-z0-9]{0,6}[a-z0-9])?$/);
const requirement = fc.oneof(
  word,
  word.map((k) => `!${k}`),
  fc.tuple(word, fc.constantFrom('=', '==', '!='), word).map(([k, o, v]) => `${k}${o}${v}`),
  fc
    .tuple(word, fc.constantFrom('in', 'notin'), fc.array(word, { minLength: 1, maxLength: 3 }))
    .map(([k, o, v]) => `${k} ${o} (${v.join(',')})`),
  fc.tuple(word, fc.constantFrom('<', '>'), fc.nat()).map(([k, o, v]) => `${k}${o}${v}`),
);

test('format and parse are inverse', () => {
  fc.assert(
    fc.property(fc.array(requirement, { maxLength: 4 }), (list) => {
      const selector = parseLabelSelector(list.join(','));
      assert.deepEqual(parseLabelSelector(formatLabelSelector(selector)), selector);
    }),
  );
});

test('no text breaks the parser', () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom(...'abc=!(),<> in'.split('')), maxLength: 20 }), (text) => {
      try {
        parseLabelSelector(text);
      } catch (error) {
        assert.equal((error as ApiError).code, 400);
      }
    }),
    { numRuns: 500 },
  );
});

test('selector objects', () => {
  assert.equal(matchesLabels(fromLabelSelectorObject(undefined), {}), false);
  assert.equal(matchesLabels(fromLabelSelectorObject({}), undefined), true);
  const selector = fromLabelSelectorObject({
    matchLabels: { app: 'web' },
    matchExpressions: [
      { key: 'tier', operator: 'In', values: ['b', 'a'] },
      { key: 'x', operator: 'DoesNotExist' },
    ],
  });
  assert.equal(formatLabelSelector(selector), 'app=web,tier in (a,b),!x');
  assert.equal(matchesLabels(selector, { app: 'web', tier: 'a' }), true);
  assert.equal(matchesLabels(selector, { app: 'web', tier: 'a', x: '' }), false);
  for (const expression of [
    { key: 'a', operator: 'Foo' },
    { key: 'a', operator: 'In', values: [] },
    { key: 'a', operator: 'Exists', values: ['x'] },
    { key: '', operator: 'Exists' },
  ]) {
    assert.throws(
      () => fromLabelSelectorObject({ matchExpressions: [expression] }),
      (e: ApiError) => e.code === 400,
    );
  }
});

// S-005
test('field selectors', () => {
  assert.deepEqual(parseFieldSelector(''), []);
  assert.deepEqual(parseFieldSelector('status.phase!=Running,metadata.name=x'), [
    { field: 'metadata.name', op: '=', value: 'x' },
    { field: 'status.phase', op: '!=', value: 'Running' },
  ]);
  assert.deepEqual(parseFieldSelector('a==b'), [{ field: 'a', op: '=', value: 'b' }]);
  assert.deepEqual(parseFieldSelector('a=x\\,y\\=z\\\\'), [{ field: 'a', op: '=', value: 'x,y=z\\' }]);
  assert.deepEqual(parseFieldSelector('a='), [{ field: 'a', op: '=', value: '' }]);
  for (const [text, message] of [
    ['a', /can't understand 'a'/],
    ['a=b=c', /unescaped character in value: 61/],
    ['a=\\x', /invalid escape sequence/],
  ] as const) {
    assert.throws(() => parseFieldSelector(text), message);
  }
  fc.assert(
    fc.property(fc.string(), (value) => {
      assert.deepEqual(parseFieldSelector(`f=${value.replace(/[\\,=]/g, (c) => `\\${c}`)}`), [
        { field: 'f', op: '=', value },
      ]);
    }),
  );
});

test('a requirement and its opposite part the objects; more requirements never match more', () => {
  const labels = fc.dictionary(word, word, { maxKeys: 4 });
  const is = (text: string, of: Record<string, string>): boolean => matchesLabels(parseLabelSelector(text), of);
  fc.assert(
    fc.property(labels, word, fc.array(word, { minLength: 1, maxLength: 3 }), requirement, (of, key, values, more) => {
      const list = values.join(',');
      assert.notEqual(is(`${key} in (${list})`, of), is(`${key} notin (${list})`, of));
      assert.notEqual(is(key, of), is(`!${key}`, of));
      assert.notEqual(is(`${key}=${values[0]}`, of), is(`${key}!=${values[0]}`, of));
      assert.equal(
        is(`${key} in (${list})`, of),
        values.some((value) => is(`${key}=${value}`, of)),
      );
      const both = `${key} in (${list}),${more}`;
      assert.equal(is(both, of), is(`${key} in (${list})`, of) && is(more, of));
      assert.ok(is('', of));
    }),
    { numRuns: 300 },
  );
});
