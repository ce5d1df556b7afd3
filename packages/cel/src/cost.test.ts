/** Static estimates against the numbers that kube-apiserver 1.36 computes for the same schema and rule. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Schema } from '../../apimachinery/src/schema/schema.ts';
import { AUTHORIZER, CelEvaluationError, celBudget, celTypeOfSchema, compileCel, DYN, optionalOf } from './cel.ts';

type Make = (max: number | undefined) => Schema;

const bound = (keyword: 'maxItems' | 'maxLength' | 'maxProperties', max: number | undefined): Schema =>
  max === undefined ? {} : { [keyword]: max };

const SCALARS: Readonly<Record<string, Schema>> = {
  number: { type: 'number' },
  integer: { type: 'integer' },
  string: { type: 'string' },
  boolean: { type: 'boolean' },
  'int-or-string': { 'x-kubernetes-int-or-string': true },
  duration: { type: 'string', format: 'duration' },
  date: { type: 'string', format: 'date' },
  'date-time': { type: 'string', format: 'date-time' },
  'number array': { type: 'array', items: { type: 'number' } },
  'number map': { type: 'object', additionalProperties: { type: 'number' } },
  object: {
    type: 'object',
    required: ['required'],
    properties: { required: { type: 'string' }, optional: { type: 'string' } },
  },
};

const array =
  (item: string): Make =>
  (max) => ({ type: 'array', items: SCALARS[item]!, ...bound('maxItems', max) });
const map =
  (item: string): Make =>
  (max) => ({ type: 'object', additionalProperties: SCALARS[item]!, ...bound('maxProperties', max) });
const text: Make = (max) => ({ type: 'string', ...bound('maxLength', max) });
const bytes: Make = (max) => ({ type: 'string', format: 'byte', ...bound('maxLength', max) });
const texts: Make = (max) => ({ type: 'array', items: text(max), ...bound('maxItems', max) });
const mapOfTexts: Make = (max) => ({ type: 'object', additionalProperties: text(max), ...bound('maxProperties', max) });
const nested =
  (both: boolean): Make =>
  (max) => ({
    type: 'array',
    items: { type: 'object', additionalProperties: SCALARS['object']!, ...bound('maxProperties', max) },
    ...(both ? bound('maxItems', max) : {}),
  });
const object =
  (...fields: readonly (readonly [string, number | 'max'])[]): Make =>
  (max) => ({
    type: 'object',
    properties: Object.fromEntries(fields.map(([name, own]) => [name, text(own === 'max' ? max : own)])),
  });

/** Schema, rule, estimate without a bound, the bound, estimate with it. */
const CASES: readonly (readonly [Make, string, number, number, number])[] = [
  [array('number'), 'self.all(x, true)', 4718591, 10, 32],
  [array('string'), 'self.all(x, true)', 3145727, 20, 62],
  [array('boolean'), 'self.all(x, true)', 1887437, 5, 17],
  [array('number array'), 'self.all(x, true)', 3145727, 100, 302],
  [map('number'), 'self.all(x, true)', 1348169, 10, 32],
  [map('string'), 'self.all(x, true)', 1179647, 3, 11],
  [map('boolean'), 'self.all(x, true)', 943718, 100, 302],
  [text, "self.contains('test')", 314574, 10, 5],
  [text, "self.startsWith('test')", 2, 15, 2],
  [text, "self.endsWith('test')", 2, 30, 2],
  [text, 'size(self + "hello") > size("hello")', 314578, 4, 7],
  [array('number'), 'self[1] == 0.0', 2, 5000, 2],
  [array('string'), 'self[1] == self[1]', 314577, 8, 314577],
  [text, 'self.matches("x")', 314574, 50, 22],
  [text, '"".matches("(((((((((())))))))))[0-9]")', 7, 10, 7],
  [text, 'self.matches("")', 1, 100, 1],
  [mapOfTexts, 'self.all(x, x.contains(self[x]))', 2752507, 10, 72],
  [array('number'), 'self[3] == 0.0', 2, 0, 2],
  [map('number'), 'self["x"] == 0.0', 2, 0, 2],
  [text, 'self == "x"', 2, 0, 1],
  [bytes, 'self == b"x"', 2, 0, 1],
  [array('number'), 'self.all(x, x == 0.0)', 6291454, 3 * 1024 * 2048, 25165826],
  [nested(true), 'self.all(x, x["y"].required == "z")', 7340027, 10, 72],
  [nested(false), 'self.all(x, x["y"].required == "z")', 7340027, 10, 7340027],
  [array('int-or-string'), 'self.all(x, true)', 4718591, 10, 32],
  [array('int-or-string'), 'self[0] == 5', 3, 10, 3],
  [array('boolean'), 'self[0] == false', 2, 25, 2],
  [array('object'), 'self[0] == null', 2, 422, 2],
  [array('number array'), 'self[0][0] == -1.0', 3, 51, 3],
  [array('number map'), 'self.all(x, x.y == 25.2)', 6291452, 12, 74],
  [array('number map'), 'self[0].x > 2.0', 4, 3000, 4],
  [array('duration'), 'self.all(x, true)', 2359295, 5, 17],
  [array('duration'), 'self[0].getHours() == 2', 4, 525, 4],
  [array('date'), 'self.all(x, true)', 725936, 15, 47],
  [array('date'), 'self[2].getDayOfMonth() == 13', 4, 42, 4],
  [array('date-time'), 'self.all(x, true)', 428963, 25, 77],
  [array('date-time'), 'self[2].getMinutes() == 45', 4, 99, 4],
  [map('int-or-string'), 'self.all(x, true)', 1348169, 15, 47],
  [map('object'), 'self.all(x, true)', 428963, 20, 62],
  [map('number map'), 'self.all(x, true)', 1179647, 10, 32],
  [map('number array'), 'self.all(x, true)', 1179647, 25, 77],
  [map('duration'), 'self.all(x, true)', 1048577, 5, 17],
  [map('date'), 'self.all(x, true)', 524288, 10, 32],
  [map('date-time'), 'self.all(x, true)', 349526, 25, 77],
  [text, "self.find('[0-9]+') == ''", 629147, 10, 11],
  [texts, "self.join(' ') == 'aa bb'", 329853068905, 10, 43],
  [texts, 'self.isSorted() == true', 329854432052, 10, 52],
  [
    object(['str', 'max'], ['before', 2], ['after', 4]),
    "self.str.replace(self.before, self.after) == 'does not matter'",
    629154,
    4,
    12,
  ],
  [object(['str', 'max'], ['separator', 'max']), 'self.str.split(self.separator) == []', 629160, 10, 22],
  [text, "self.lowerAscii() == 'lower!'", 314575, 10, 6],
  [map('integer'), 'oldSelf.size() == self.size()', 5, 10, 5],
  [map('date-time'), 'self["a"] == self["b"]', 8, 7, 8],
  [map('duration'), 'self["c"] == self["d"]', 8, 42, 8],
  [(max) => ({ ...text(max), enum: ['A', 'B', 'C', 'LongValue'] }), "self.contains('A')", 2, 1000, 401],
];

const estimate = (schema: Schema, rule: string): number => {
  const self = celTypeOfSchema(schema);
  return compileCel(rule, { variables: { self, oldSelf: self } }).estimatedCost;
};

for (const [make, rule, unbounded, max, bounded] of CASES) {
  // S-149: An expression has a price: the estimate equals upstream's and is never below what is spent; a call and
  //   several calls together have a budget.
  test(`estimate of ${rule} over ${JSON.stringify(make(undefined))}`, () => {
    assert.equal(estimate(make(undefined), rule), unbounded, 'without a bound');
    assert.equal(estimate(make(max), rule), bounded, `with a bound of ${max}`);
  });
}

test('nested loops over unbounded data go beyond every budget', () => {
  const rule = 'self.all(x, self.all(y, true))';
  assert.ok(estimate(array('number')(undefined), rule) > 100_000_000);
  assert.equal(estimate(array('number')(10), rule), 352);
  assert.equal(estimate(array('number')(10), 'self.all(x, self.all(y, self.all(z, true)))'), 3552);
});

const BOUNDED: Schema = {
  type: 'object',
  properties: {
    names: { type: 'array', maxItems: 5, items: { type: 'string', maxLength: 20 } },
    label: { type: 'string', maxLength: 30 },
    counts: { type: 'object', maxProperties: 4, additionalProperties: { type: 'integer' } },
    ports: {
      type: 'array',
      maxItems: 4,
      items: { type: 'object', properties: { port: { type: 'integer' }, name: { type: 'string', maxLength: 10 } } },
    },
  },
};
const short = (maxLength: number) => fc.string({ maxLength });
const VALUES = fc.record({
  names: fc.array(short(20), { maxLength: 5 }),
  label: short(30),
  counts: fc.dictionary(short(5), fc.integer(), { maxKeys: 4 }),
  ports: fc.array(fc.record({ port: fc.integer(), name: short(10) }), { maxLength: 4 }),
});
const RULES = [
  'self.names.all(n, n != self.label)',
  "self.names.exists(n, n.contains(self.label) || n.startsWith('a'))",
  "self.names.map(n, n + self.label).join(',').size() < 10",
  "self.names.filter(n, n.matches('^[a-z]+$')).size() == 1",
  'self.names.exists_one(n, n == self.label) ? self.names.isSorted() : self.label in self.names',
  'self.counts.all(k, self.counts[k] > 0)',
  'self.counts.transformList(k, v, v > 0, v * 2).size() > 0',
  'self.counts.transformMap(k, v, v + 1).size() > 0',
  'self.ports.all(p, self.ports.exists(q, q.port == p.port && q.name == p.name))',
  "self.label.replace('a', 'bb').lowerAscii().split('b').size() > 1",
  "has(self.label) && self.label.find('[a-z]+') == self.label.trim()",
  'self.?label.optMap(l, l.size()).orValue(0) > 3',
  'self.ports.map(p, p.port).max() > 1 || true',
  'sets.contains(self.names, [self.label]) || self.names.distinct().size() > 2',
];

for (const rule of RULES) {
  // S-149
  test(`the estimate is never below what is spent: ${rule}`, () => {
    const program = compileCel(rule, { variables: { self: celTypeOfSchema(BOUNDED) } });
    fc.assert(
      fc.property(VALUES, (self) => {
        const budget = celBudget(1e7, 1e6);
        try {
          program.run({ self }, budget);
        } catch (error) {
          // What fails has been paid for as well.
          assert.ok(error instanceof CelEvaluationError, String(error));
        }
        assert.ok(1e7 - budget.remaining <= program.estimatedCost);
      }),
    );
  });
}

/** Where no schema says anything, and an unbounded size is 2^64. */
const UNTYPED: readonly (readonly [string, number])[] = [
  ['lists.range(5)', 16],
  ['lists.range(object.i)', 2 ** 64],
  ['[1, 2, 3].slice(0, 2)', 23],
  ['[[1], [2]].flatten(3)', 47],
  ["['b', 'a'].sort()", 30],
  ['[1, 2].distinct()', 29],
  ["'a,b'.split(',', 3).join()", 2 ** 64 / 10],
  ["size(strings.quote('ab'))", 2],
  ['isQuantity(strings.quote(object.s))', 2 ** 64 / 10],
  ["isQuantity('%s'.format([1]))", 2 ** 64 / 10],
  ["{'a': 1}.transformMapEntry(k, v, {v: k})", 95],
  ["authorizer.group('').resource('pods').labelSelector('a=b').check('get').allowed()", 350115],
  ['[1, 2].map(x, x).sortBy(x, -x)', 117],
];

test('estimates without a schema', () => {
  for (const [expression, estimate] of UNTYPED) {
    const program = compileCel(expression, { variables: { object: DYN, authorizer: AUTHORIZER } });
    assert.ok(
      Math.abs(program.estimatedCost - estimate) <= estimate * 1e-12,
      `${expression}: ${program.estimatedCost}`,
    );
  }
});

test('a bare name counts as the whole object, an old value that may be missing as what it may be', () => {
  const estimate = (schema: Schema, rule: string, optional = false): number => {
    const self = celTypeOfSchema(schema);
    return compileCel(rule, { variables: { self, oldSelf: optional ? optionalOf(self) : self } }).estimatedCost;
  };
  assert.equal(estimate({ 'x-kubernetes-int-or-string': true }, 'type(self) == int'), 314576);
  assert.equal(estimate({ type: 'string', maxLength: 63 }, 'oldSelf == optional.of(self)', true), 29);
  // What a literal list holds has no bound that is known.
  assert.ok(estimate({ type: 'string', maxLength: 5 }, "[self, 'a'].join('-').size() > 1") > 2 ** 60);
  assert.equal(celTypeOfSchema({ type: 'object', properties: { a: { type: 'string' } } }).minSize, 2);
});
