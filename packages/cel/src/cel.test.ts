/** Compiling, typing, running and budgets of CEL expressions. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Schema } from '../../apimachinery/src/schema/schema.ts';
import {
  BOOL,
  CelBudgetError,
  CelCompileError,
  CelEvaluationError,
  type CelType,
  celBudget,
  celOptional,
  celToJson,
  celTypeOfSchema,
  compileCel,
  DYN,
  mapOf,
  NULL,
  objectOf,
  optionalOf,
  STRING,
} from './cel.ts';
import { formatType, INT } from './types.ts';

const SCHEMA: Schema = {
  type: 'object',
  properties: {
    spec: {
      type: 'object',
      properties: {
        replicas: { type: 'integer' },
        ratio: { type: 'number' },
        port: { 'x-kubernetes-int-or-string': true },
        'a-b': { type: 'string' },
        'a.b/c': { type: 'string' },
        a__b: { type: 'string' },
        namespace: { type: 'string' },
        '1st': { type: 'string' },
        opaque: { 'x-kubernetes-preserve-unknown-fields': true },
        when: { type: 'string', format: 'date-time' },
        timeout: { type: 'string', format: 'duration' },
        secret: { type: 'string', format: 'byte' },
        maybe: { type: 'string', nullable: true },
        nothing: { type: 'string', nullable: true },
        names: { type: 'array', items: { type: 'string' }, 'x-kubernetes-list-type': 'set' },
        ratios: { type: 'array', items: { type: 'number' } },
        timeouts: { type: 'object', additionalProperties: { type: 'string', format: 'duration' } },
        ports: {
          type: 'array',
          'x-kubernetes-list-type': 'map',
          'x-kubernetes-list-map-keys': ['port'],
          items: { type: 'object', properties: { port: { type: 'integer' }, name: { type: 'string' } } },
        },
        template: { type: 'object', 'x-kubernetes-embedded-resource': true, properties: { x: { type: 'string' } } },
      },
    },
  },
};
const OBJECT = {
  apiVersion: 'v1',
  kind: 'Thing',
  metadata: { name: 'n', labels: { a: 'b' } },
  spec: {
    replicas: 3,
    ratio: 2,
    port: 'http',
    'a-b': 'dash',
    'a.b/c': 'dots',
    a__b: 'under',
    namespace: 'ns',
    when: '2021-01-01T00:00:00Z',
    timeout: '1h',
    secret: 'YWI=',
    nothing: null,
    names: ['x', 'y'],
    ratios: [1, 2.5],
    timeouts: { a: '90s' },
    ports: [
      { port: 1, name: 'a' },
      { port: 2, name: 'b' },
    ],
    template: { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p' }, x: 'y' },
  },
};
const self = celTypeOfSchema(SCHEMA, { root: true });

const run = (expression: string, variables: Record<string, CelType>, bindings: Record<string, unknown>): unknown =>
  compileCel(expression, { variables }).json(bindings, celBudget(1e9, 1e6));
const evaluate = (expression: string): unknown => run(expression, { self }, { self: OBJECT });

const RESULTS: readonly (readonly [string, unknown])[] = [
  ['self.spec.replicas <= 5', true],
  ['self.spec.ratio', 2],
  ['type(self.spec.ratio) == double', true],
  ["type(self.spec.port) == string && self.spec.port == 'http'", true],
  ['self.spec.a__dash__b + self.spec.a__dot__b__slash__c + self.spec.a__underscores__b', 'dashdotsunder'],
  ['self.spec.__namespace__ + self.spec.namespace', 'nsns'],
  ['self.apiVersion + self.kind + self.metadata.name', 'v1Thingn'],
  ['self.spec.template.metadata.name + self.spec.template.x', 'py'],
  ['self.spec.when.getFullYear()', 2021],
  ["self.spec.timeout > duration('59m')", true],
  ["self.spec.secret == b'ab'", true],
  ['has(self.spec.maybe)', false],
  ['has(self.spec.nothing) || self.spec.?nothing.hasValue()', false],
  ["self.spec.names == ['y', 'x']", true],
  ["self.spec.names + ['x', 'z']", ['x', 'y', 'z']],
  ['self.spec.ports + [self.spec.ports[1]] == self.spec.ports', true],
  ['self.spec.ports.filter(p, p.port > 1).map(p, p.name)', ['b']],
  ['self.spec.ratios.sum()', 3.5],
  [
    "self.spec.timeouts['a'] == duration('90s') && self.spec.timeouts.all(k, self.spec.timeouts[k] > duration('1s'))",
    true,
  ],
  ['self.?spec.?maybe.orValue("none")', 'none'],
  ['self.spec.?ratio.value()', 2],
  ['false && self.spec.names[9] == "a"', false],
  ['self.spec.names[9] == "a" && false', false],
  ['self.spec.names[9] == "a" || true', true],
  ['self.spec.names.exists(n, n == "y" || self.spec.names[9] == "z")', true],
  ['1 in [1, 2] && "a" in {"a": 1} && !("b" in {"a": 1})', true],
  ['1 < 1.5 && 2u > 1 && dyn(1) == 1.0', true],
  ['9223372036854775806 + 1 == 9223372036854775807', true],
  ['-9223372036854775808 < -9223372036854775807', true],
  ['string(9007199254740993)', '9007199254740993'],
  ['7 / -2 == -3 && 7 % -2 == 1', true],
  ['"😀".size()', 1],
];

for (const [expression, expected] of RESULTS) {
  test(expression, () => assert.deepEqual(evaluate(expression), expected));
}

/** Expression and the report of the compiler, after its prefix. */
const COMPILE_ERRORS: readonly (readonly [string, string])[] = [
  ['self.z == 1', "ERROR: <input>:1:5: undefined field 'z'\n | self.z == 1\n | ....^"],
  ['self.metadata.labels', "ERROR: <input>:1:14: undefined field 'labels'\n | self.metadata.labels\n | .............^"],
  ['self.spec.opaque', "ERROR: <input>:1:10: undefined field 'opaque'\n | self.spec.opaque\n | .........^"],
  ['foo', "ERROR: <input>:1:1: undeclared reference to 'foo' (in container '')\n | foo\n | ^"],
  [
    "self.spec.replicas > 'a'",
    "ERROR: <input>:1:20: found no matching overload for '_>_' applied to '(int, string)'\n | self.spec.replicas > 'a'\n | ...................^",
  ],
  [
    "'a'.startsWith(1)",
    "ERROR: <input>:1:15: found no matching overload for 'startsWith' applied to 'string.(int)'\n | 'a'.startsWith(1)\n | ..............^",
  ],
  ["[1, 'a']", "ERROR: <input>:1:5: expected type 'int' but found 'string'\n | [1, 'a']\n | ....^"],
  [
    '1.all(x, true)',
    "ERROR: <input>:1:1: expression of type 'int' cannot be range of a comprehension (must be list, map, or dynamic)\n | 1.all(x, true)\n | ^",
  ],
  ['a\n  && b', "ERROR: <input>:1:1: undeclared reference to 'a' (in container '')\n | a\n | ^"],
  ["has('a')", "ERROR: <input>:1:5: invalid argument to has() macro\n | has('a')\n | ....^"],
  ["'a'.matches('(')", "ERROR: <input>:1:13: invalid matches argument\n | 'a'.matches('(')\n | ............^"],
  ["duration('1x')", "ERROR: <input>:1:10: invalid duration argument\n | duration('1x')\n | .........^"],
  [
    'self.spec.replicas >=',
    'ERROR: <input>:1:22: Syntax error: unexpected end of expression\n | self.spec.replicas >=\n | .....................^',
  ],
  ["self = 'a'", "ERROR: <input>:1:6: Syntax error: unexpected character '='\n | self = 'a'\n | .....^"],
];

for (const [expression, issues] of COMPILE_ERRORS) {
  // Compat Admission and quota, P1, yes: CEL type errors: the first one, with its words, place and snippet as cel-go's
  test(`does not compile: ${expression}`, () => {
    assert.throws(
      () => compileCel(expression, { variables: { self } }),
      (error) => {
        assert.ok(error instanceof CelCompileError);
        assert.ok(error.issues.startsWith(issues), error.issues);
        assert.equal(error.message, `compilation failed: ${error.issues}`);
        return true;
      },
    );
  });
}

const RUN_ERRORS: readonly (readonly [string, string])[] = [
  ['self.spec.nothing.size() > 0', 'no such key: nothing'],
  ["self.spec.nothing + 'a'", 'no such key: nothing'],
  ["(true ? self.spec.nothing : 'a').startsWith('n')", 'no such key: nothing'],
  ['self.spec.maybe', 'no such key: maybe'],
  ["{'a': 1}['b']", 'no such key: b'],
  ['self.spec.names[2]', 'index out of bounds: 2'],
  ['1 / 0', 'division by zero'],
  ['1 % 0', 'modulus by zero'],
  ['9223372036854775807 + 1', 'integer overflow'],
  ['0u - 1u', 'unsigned integer overflow'],
  ["int(['x'][0])", "type conversion error from 'string' to 'int'"],
  ["uint(['-1'][0])", "type conversion error from 'string' to 'uint'"],
  ["double(['x'][0])", "type conversion error from 'string' to 'double'"],
  ["bool(['x'][0])", "type conversion error from 'string' to 'bool'"],
  ["duration(['x'][0])", "type conversion error from 'string' to 'google.protobuf.Duration'"],
  ["timestamp(['x'][0])", 'invalid RFC 3339 timestamp "x"'],
  ["timestamp('9999-12-31T23:59:59Z') + duration('1s')", 'timestamp overflow'],
  ['self.spec.port > 1', 'no such overload'],
  ['dyn(self.spec.nothing).x', 'no such key: nothing'],
  ["dyn(1)['x']", 'no such key: x'],
  ['dyn(null)[0]', 'no such key: 0'],
  ['has(dyn(null).x.y)', 'no such key: x'],
  ['dyn([1]).x', "unsupported index type 'string' in list"],
  ['has(dyn([1]).x)', "unsupported index type 'string' in list"],
  ['dyn([1])[?true].hasValue()', "unsupported index type 'bool' in list"],
  ['dyn(null).all(x, x == 1)', "got 'null_type', expected iterable type"],
];

for (const [expression, message] of RUN_ERRORS) {
  test(`${expression} fails: ${message}`, () => {
    assert.throws(
      () => evaluate(expression),
      (error) => error instanceof CelEvaluationError && error.message === message,
    );
  });
}

test('the result type must be exactly one of those asked for', () => {
  const compile = (expression: string, ...resultTypes: CelType[]) =>
    compileCel(expression, { variables: { self, object: DYN }, resultTypes });
  assert.equal(formatType(compile('true', BOOL).resultType), 'bool');
  assert.throws(() => compile('1', BOOL), { message: 'must evaluate to bool but got int' });
  assert.throws(() => compile("[duration('1s')]", BOOL), {
    message: 'must evaluate to bool but got list(google.protobuf.Duration)',
  });
  assert.throws(() => compile('object.x', BOOL), { message: 'must evaluate to bool but got dyn' });
  assert.throws(() => compile('1', STRING, NULL), {
    message: 'must evaluate to one of [string null_type] but got int',
  });
});

// S-149
test('budgets: one for a call, one shared over calls', () => {
  const program = compileCel('[1,2,3,4,5,6,7,8,9,10].all(x, x > 0)', { variables: {} });
  const budget = celBudget(150, 100);
  assert.equal(program.run({}, budget), true);
  assert.equal(budget.remaining, 150 - 51);
  assert.equal(program.run({}, budget), true);
  assert.throws(
    () => program.run({}, budget),
    (error) => error instanceof CelBudgetError && error.scope === 'total',
  );
  assert.equal(budget.remaining, 0);
  assert.throws(
    () => program.run({}, celBudget(1000, 20)),
    (error) =>
      error instanceof CelBudgetError &&
      error.scope === 'call' &&
      error.message === 'operation cancelled: actual cost limit exceeded',
  );
  // An exhausted budget is not an error that `||` may swallow.
  const swallowing = compileCel('[1,2,3,4,5,6,7,8,9,10].all(x, x > 0) || true', { variables: {} });
  assert.throws(() => swallowing.run({}, celBudget(1000, 20)), CelBudgetError);
});

test('costs count as the tracker of cel-go does', () => {
  const cost = (expression: string): number => {
    const budget = celBudget(1e9, 1e6);
    compileCel(expression, { variables: { self } }).run({ self: OBJECT }, budget);
    return 1e9 - budget.remaining;
  };
  const costs: readonly (readonly [string, number])[] = [
    ['self.spec.replicas', 3],
    // `has` is free, the path before its field is not.
    ['has(self.spec)', 1],
    ['has(self.spec.replicas)', 2],
    ['true || self.spec.replicas > 1', 0],
    // What is made of literals is made once, when the program is.
    ['[1, 2]', 0],
    ["{'a': 1}", 0],
    ['[self.spec.replicas]', 13],
    ['double(5) < 10.0', 1],
    ['self.spec.replicas in [1, 2]', 3],
    ['type(self.spec.replicas) == int', 5],
    // No more of a text is looked at than the prefix is long.
    ["'0123456789abcdef0123'.startsWith('0')", 1],
    ["'0123456789abcdef'.contains('0123456789abcdef')", 4],
    ["'aaaaaaaaaa'.matches('[0-9]+')", 4],
    // The empty accumulator costs nothing, nor does an element that is left out.
    ['[1, 2, 3].filter(x, x > 2).size() == 1', 22],
    ['[1, 2].map(x, x).size() == 2', 29],
    ['[1, 2, 3].exists_one(x, x == 3)', 10],
    // That it is decided shows before the next turn.
    ['[1, 2, 3].exists(x, x == 1)', 10],
    ['[1, 2, 3].all(x, x > 1)', 8],
    ['sets.contains([1, 2], [1])', 3],
    ['sets.equivalent([1, 2], [2, 1])', 9],
    ['[3, 1, 2].reverse() == [2, 1, 3]', 15],
    ['[3, 1, 2].sort() == [1, 2, 3]', 30],
    ['lists.range(2) == [0, 1]', 14],
    ["optional.of('a').or(optional.of('b')).hasValue()", 2],
    ["optional.of('a').optMap(v, v == 'b').hasValue()", 9],
    ["format.uuid().validate('a').hasValue()", 20],
    ["ip('192.168.0.1').family() == 4", 4],
  ];
  for (const [expression, wanted] of costs) assert.equal(cost(expression), wanted, expression);
});

test('a getter is evaluated when it is read, and its failure is a CEL error', () => {
  let reads = 0;
  const variables = { variables: objectOf('kubernetes.variables', { a: INT, bad: INT }) };
  const bindings = {
    variables: {
      get a() {
        reads++;
        return 1;
      },
      get bad(): number {
        throw new CelEvaluationError('composited variable "bad" fails to evaluate');
      },
    },
  };
  assert.equal(run('true || variables.a == 1', variables, bindings), true);
  assert.equal(reads, 0);
  assert.equal(run('variables.a + 1', variables, bindings), 2);
  assert.equal(run('variables.bad == 1 || true', variables, bindings), true);
  assert.throws(() => run('variables.bad', variables, bindings), { message: /fails to evaluate/ });
});

test('an optional old value', () => {
  const variables = { self, oldSelf: optionalOf(self) };
  const rule = 'oldSelf.hasValue() ? oldSelf.value().spec.replicas <= self.spec.replicas : true';
  assert.equal(run(rule, variables, { self: OBJECT, oldSelf: celOptional(undefined) }), true);
  assert.equal(run(rule, variables, { self: OBJECT, oldSelf: celOptional(OBJECT) }), true);
  assert.deepEqual([...compileCel(rule, { variables }).references].sort(), ['oldSelf', 'self']);
});

test('names of Object.prototype are no fields of data', () => {
  const object = { object: DYN };
  for (const name of ['constructor', 'toString', '__proto__']) {
    assert.equal(run(`has(object.${name})`, object, { object: {} }), false);
    assert.equal(run(`'${name}' in object`, object, { object: {} }), false);
    assert.throws(() => run(`object.${name}`, object, { object: {} }), { message: `no such key: ${name}` });
  }
});

test('what is bound comes back as it is', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const back = run('object', { object: DYN }, { object: value });
      assert.deepEqual(JSON.parse(JSON.stringify(back)), JSON.parse(JSON.stringify(value)));
      assert.equal(run('object == object', { object: DYN }, { object: value }), true);
    }),
  );
});

test('int arithmetic is exact in 64 bits and never wraps', () => {
  const int64 = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });
  const fits = (value: bigint): boolean => BigInt.asIntN(64, value) === value;
  fc.assert(
    fc.property(int64, int64, fc.constantFrom('+', '-', '*', '/', '%'), (a, b, operator) => {
      const program = compileCel(`string(a ${operator} b)`, { variables: { a: INT, b: INT } });
      const bindings = { a: asInt(a), b: asInt(b) };
      const exact = compute(a, b, operator);
      if (exact === undefined || !fits(exact) || (operator === '%' && !fits(a / b))) {
        assert.throws(() => program.run(bindings, celBudget(1e6, 1e6)), CelEvaluationError);
      } else {
        assert.equal(program.run(bindings, celBudget(1e6, 1e6)), String(exact));
      }
    }),
  );
});

const asInt = (value: bigint): number | bigint => (Number.isSafeInteger(Number(value)) ? Number(value) : value);

function compute(a: bigint, b: bigint, operator: string): bigint | undefined {
  if (operator === '+') return a + b;
  if (operator === '-') return a - b;
  if (operator === '*') return a * b;
  if (b === 0n) return undefined;
  return operator === '/' ? a / b : a % b;
}

test('any text either compiles or is refused with a report', () => {
  const token = fc.constantFrom(
    ...'a b 1 1.5 "s" ( ) [ ] { } . , : ? ! - + * / % < == && || in true null has( .all(x, x) Object{ 0x \\ \' ` @'.split(
      ' ',
    ),
  );
  fc.assert(
    fc.property(fc.array(token, { maxLength: 12 }), (tokens) => {
      const source = tokens.join(' ');
      try {
        compileCel(source, { variables: { a: DYN, b: INT } });
      } catch (error) {
        assert.ok(error instanceof CelCompileError, source);
        assert.match(error.message, /^compilation failed: ERROR: <input>:\d+:\d+: /, source);
      }
    }),
    { numRuns: 500 },
  );
});

// S-149
test('an expression that is too deep, or a chain that would double, is no danger', () => {
  const chain = `1${' + 1'.repeat(300)}`;
  assert.throws(() => compileCel(chain, { variables: {} }), {
    message: 'compilation failed: ERROR: <input>:-1:0: max recursion depth exceeded',
  });
  assert.throws(() => compileCel(`${'('.repeat(300)}1${')'.repeat(300)}`, { variables: {} }), CelCompileError);
  assert.equal(run(`optional.of(0)${'.optMap(x, x + 1)'.repeat(60)}.value()`, {}, {}), 60);
});

// S-149
test('what is too dear is not begun', () => {
  const object = { object: DYN };
  const text = 'a'.repeat(3_000_000);
  const items = Array.from({ length: 200_000 }, () => ({}));
  const cases: [string, unknown][] = [
    [`object.matches('${'(a|b)*'.repeat(2000)}c')`, text],
    ['object.distinct().size() > 0', items],
    ['sets.contains(object, object)', items],
  ];
  for (const [expression, value] of cases) {
    assert.throws(() => run(expression, object, { object: value }), CelBudgetError, expression.slice(0, 30));
  }
  const long = '1'.repeat(3_000_000);
  for (const expression of ['int(object) > 0', 'duration(object) > duration("1s")', 'double(object + "x") > 1.0']) {
    assert.throws(() => run(expression, object, { object: long }), CelEvaluationError, expression);
  }
});

test('a cyclic schema is typed as far as an expression goes', () => {
  const properties: Record<string, Schema> = { name: { type: 'string' } };
  const node: Schema = { type: 'object', properties };
  properties['child'] = node;
  const root = celTypeOfSchema(node);
  assert.equal(run('self.child.child.name', { self: root }, { self: { child: { child: { name: 'x' } } } }), 'x');
});

test('celToJson', () => {
  assert.deepEqual(celToJson([1n, null, { a: 1 }]), [1, null, { a: 1 }]);
  assert.throws(() => run('type(1)', {}, {}), CelEvaluationError);
});

// S-280
test('data that an integer cannot be is reported with its type', () => {
  const self = celTypeOfSchema({
    type: 'object',
    properties: { n: { type: 'integer' }, all: { type: 'array', items: { type: 'integer' } } },
  });
  const cases: readonly (readonly [string, unknown, string])[] = [
    ['self.n + 1 == 2', { n: 1.5 }, 'double'],
    ['self.n + 1 == 2', { n: 1e30 }, 'double'],
    ['self.n == 1', { n: 'a' }, 'string'],
    ['self.n == 1', { n: true }, 'bool'],
    ['self.n == 1', { n: [] }, 'list'],
    ['self.n == 1', { n: {} }, 'map'],
    ['self.all[0] + 1 == 2', { all: [1.5] }, 'double'],
    ['self.all.exists(x, x + 1 == 2)', { all: ['a'] }, 'string'],
  ];
  for (const [expression, value, got] of cases) {
    const program = compileCel(expression, { variables: { self } });
    assert.throws(() => program.run({ self: value }, celBudget(1000, 1000)), {
      message: `invalid data, expected int, got ${got}`,
    });
  }
});

test('selects() is whether a field of a variable is named', () => {
  const selects = (expression: string): boolean =>
    compileCel(expression, { variables: { claims: mapOf(STRING, DYN), other: mapOf(STRING, DYN) } }).selects(
      'claims',
      'email',
    );
  for (const expression of [
    'claims.email',
    'has(claims.email)',
    `claims.?email.orValue('')`,
    `['a'].exists(x, x == claims.email)`,
    `{'a': [claims.email.lowerAscii()]}`,
    'true ? 1 : claims.email.size()',
  ]) {
    assert.equal(selects(expression), true, expression);
  }
  for (const expression of [`claims['email']`, 'claims.name', 'other.email', 'claims.name.email', `'claims.email'`]) {
    assert.equal(selects(expression), false, expression);
  }
});

/** What must be refused when it is written, and with which words. */
const REFUSED: readonly (readonly [string, string])[] = [
  ["'%d'.format([['a']])", 'decimal clause can only be used on integers, was given list'],
  ["'%d'.format([timestamp(0)])", 'decimal clause can only be used on integers, was given google.protobuf.Timestamp'],
  ["'%x'.format([1.5])", 'only integers, byte buffers, and strings can be formatted as hex, was given double'],
  ["'%b'.format(['a'])", 'only integers and bools can be formatted as binary, was given string'],
  ["'%f'.format([1])", 'fixed-point clause can only be used on doubles, was given int'],
  ["'%e'.format([1])", 'scientific clause can only be used on doubles, was given int'],
  ["'%o'.format([1.5])", 'octal clause can only be used on integers, was given double'],
  ["'%s'.format([[optional.of(1)]])", 'timestamps, was given optional_type'],
  ["'%s'.format([{'a': optional.of(1)}])", 'timestamps, was given optional_type'],
  ["[1].map(x, '%z'.format([x]))", 'could not parse formatting clause: unrecognized formatting clause "z"'],
  ["'%é'.format([1])", 'unrecognized formatting clause "é"'],
  ["'%s %s'.format([1])", 'index 1 out of range'],
  ["'%'.format([1])", 'unexpected end of string'],
  ["'%.2'.format([1.5])", 'error while parsing precision: could not find end of precision specifier'],
  ["'%.f'.format([1.5])", 'error while parsing precision: no digits after the point'],
  ["'a%%'.format([1])", 'too many arguments supplied to string.format (expected 0, got 1)'],
  ["[d, 'a']", "expected type 'dyn' but found 'string'"],
  ["{'a': d, 'b': 1}", "expected type 'dyn' but found 'int'"],
  ["{d: 1, 'b': 1}", "expected type 'dyn' but found 'string'"],
  ['[[], d]', "expected type 'list(dyn)' but found 'dyn'"],
  ['has(d.?a)', 'invalid argument to has() macro'],
  ['-!true', "Syntax error: unexpected '!'"],
  ['!-d', "Syntax error: unexpected '-'"],
  ['--9223372036854775808', 'invalid int literal'],
  ['[1].existsOne(x, x == 1)', "undeclared reference to 'existsOne'"],
  ["quantity('1').sign()", "found no matching overload for 'sign' applied to 'kubernetes.Quantity.()'"],
  ['timestamp(253402300800)', 'invalid timestamp argument'],
  ["true || int('a') == 1", "program instantiation failed: type conversion error from 'string' to 'int'"],
  ['uint(-1)', 'program instantiation failed: unsigned integer overflow'],
  ['d[null]', 'program instantiation failed: invalid qualifier type: null_type'],
  ['d[?list]', 'program instantiation failed: invalid qualifier type: type'],
  ['d[net.IP]', 'program instantiation failed: invalid qualifier type: type'],
  ['d[[1]]', 'program instantiation failed: invalid qualifier type: list'],
  ['d[{}]', 'program instantiation failed: invalid qualifier type: map'],
  ["d[duration('1h')]", 'program instantiation failed: invalid qualifier type: google.protobuf.Duration'],
  ["d[b'x']", 'program instantiation failed: invalid qualifier type: bytes'],
];
for (const [text, problem] of REFUSED) {
  // S-305: What cannot work in an expression is refused when it is written: calls of `format()`, mixed literals,
  //   constants that fail.
  // Compat Admission and quota, P1, yes: calls of `format()` and literals of lists and maps are checked when an
  //   expression is written
  test(`${text} is refused: ${problem}`, () => {
    const compiled = (): unknown => compileCel(text, { variables: { d: DYN } });
    assert.throws(compiled, (error: Error) => error.message.includes(problem));
  });
}

/** What may be written although it looks like one of those. */
const LET_PASS = [
  "'%s %d'.format([d, d])",
  "'%s'.format([[d, 'a', {d: 1, 'b': 'c'}]])",
  "'%.2f%%'.format(['NaN'])",
  "d.x.format([1, 'a'])",
  "'%d'.format(d)",
  "[dyn('a'), d]",
  '[?optional.of(1), 2]',
  'has(has(d.a))',
  '- 9223372036854775808',
  '--9223372036854775807',
  '[1].exists_one(x, x == 1) && [1].existsOne(i, x, x == 1)',
  'timestamp(253402300799)',
  "int('1') == int(d)",
  'd[1.5] == d[[d]]',
];
for (const text of LET_PASS) test(`${text} may be written`, () => void compileCel(text, { variables: { d: DYN } }));
