/** What evaluations cost, above all those that fail, and what they fail with. The costs were made with the real library. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AUTHORIZER, authorizerValue, CelEvaluationError, celBudget, compileCel, DYN } from './cel.ts';

const OBJECT = { s: 'a', l: [1, 2], m: { a: 1 }, n: null, i: 3, f: 12345.678 };
const TOTAL = 1e9;

interface Outcome {
  readonly value?: unknown;
  readonly fails?: string;
  readonly cost: number;
}

function evaluate(expression: string): Outcome {
  const budget = celBudget(TOTAL, 1_000_000);
  const program = compileCel(expression, { variables: { object: DYN, authorizer: AUTHORIZER } });
  const authorizer = authorizerValue(({ verb }) => ({ allowed: verb === 'get' }));
  let outcome: Omit<Outcome, 'cost'>;
  try {
    outcome = { value: program.run({ object: OBJECT, authorizer }, budget) };
  } catch (error) {
    assert.ok(error instanceof CelEvaluationError, String(error));
    outcome = { fails: error.message };
  }
  return { ...outcome, cost: TOTAL - budget.remaining };
}

/** Expression, cost, and what is said when it fails. */
type Row = readonly [expression: string, cost: number, fails?: string];

const TABLES: Readonly<Record<string, readonly Row[]>> = {
  'a path is one step, and what it begins with is free where it is a part of another': [
    ['object.s', 2],
    ["{'a': 1}.a", 2],
    ['[1, 2][0]', 2],
    ['object.i > 1 ? object.s : object.l', 4],
    ['(object.i > 1 ? object : object).s', 4],
    ['object.l[object.m.a]', 5],
    ['object.l[object.l[0] - 1]', 7],
    ['has(object.m.a)', 2],
    ['has(object.x.y)', 1, 'no such key: x'],
    ['has(object.?x.y)', 0],
    ['object.?x.y.z', 1],
    ['object.?m.a', 3],
    ['object.l[?0]', 3],
    ['object.l[?9]', 2],
    ['object.l[?0].b', 3],
    ["has({'a': 1}.a)", 1],
  ],
  'what is constant is worked out beforehand': [
    ["{1: 'a', 1: 'b'}", 0],
    ['object.x in []', 0],
    ['object.l.map(x, 1)', 7],
    ['object.l.map(x, [x])', 49],
  ],
  'what surrounds a failure goes on, and costs': [
    ['!object.x', 3, 'no such key: x'],
    ['object.x + object.s', 5, 'no such key: x'],
    ['object.s + object.x', 5, 'no such key: x'],
    ['[object.x, object.s]', 12, 'no such key: x'],
    ['{object.x: 1}', 32, 'no such key: x'],
    ['object.s.substring(object.x, 1)', 4, 'no such key: x'],
    ['object.s.substring(0, object.x)', 5, 'no such key: x'],
    ['object.s.matches(object.x)', 5, 'no such key: x'],
    ["object.x.matches('a')", 2, 'no such key: x'],
    ["object.x.indexOf('a')", 2, 'no such key: x'],
    ['object.l.map(x, x.y)', 31, 'no such key: y'],
    ['object.l.filter(x, x.y)', 7, 'no such key: y'],
    ['object.l.exists_one(x, x.y)', 8, 'no such key: y'],
    ['object.l.transformMap(k, v, v.y)', 9, 'no such key: y'],
    ['object.l.transformMapEntry(k, v, v.y)', 11, 'no such key: y'],
    ['object.l.exists(x, x.y) || true', 15],
    ["url('x').getHost()", 2, 'URL parse error during conversion from string: parse "x": invalid URI for request'],
    ['lists.range(object.x)', 14, 'no such key: x'],
    ['object.l.slice(0, 9)', 14, 'cannot slice(0, 9), list is length 2'],
  ],
  'a function that is found only when the values are there costs what its name says': [
    ["object.s < 'b'", 3],
    ["object.s + 'b'", 3],
    ['bytes(object.s)', 3],
    ['1 in object.l', 3],
    ['object.l.sort()', 3],
    ["object.s.indexOf('a')", 2],
    ["cidr('10.0.0.0/8').containsIP(dyn('10.0.0.1'))", 2],
    ['object.m.sum()', 3, 'no such overload: sum(map)'],
    ['object.l.flatten(3)', 19],
    ['object.l.flatten(object.s)', 17, 'no such overload: flatten(list, string)'],
    ['object.n.distinct()', 13, 'no such overload: distinct(null_type)'],
    ["authorizer.group('').resource('pods').labelSelector('a in (b)').check('get').allowed()", 350215],
  ],
  'words of failures': [
    ['-object.m', 3, 'no such overload'],
    ['object.m < 1', 3, 'no such overload'],
    ['1 < object.m', 3, 'no such overload'],
    ['object.m % 2', 3, 'no such overload'],
    ['object.s * 2', 3, 'no such overload'],
    ['size(object.n)', 3, 'no such overload: size(null_type)'],
    ['object.m.sort()', 3, 'no such overload: sort(map)'],
    ['object.s.sort()', 3, 'no such overload: sort(string)'],
    ['object.l.sortBy(x, object.m)', 34, 'no such overload'],
    ["object.m.findAll('a')", 3, 'no such overload'],
    ['object.m.find(object.s)', 5, 'no such overload: find(map, string)'],
    ['object.l[object.n]', 4, 'invalid qualifier type: null_type'],
    ['object.l[object.m]', 4, 'invalid qualifier type: map'],
    ['object.l[?[1].map(x, x)]', 16, 'invalid qualifier type: list'],
    ['object.s.all(k, v, v)', 2, "got 'string', expected iterable type"],
    ['object.l[?0].all(x, true)', 3, "got 'optional_type', expected iterable type"],
    ["timestamp('9999-12-31T23:59:59Z') - timestamp('0001-01-01T00:00:00Z')", 1, 'integer overflow'],
    ["cidr('10.0.0.0/8').containsIP('x')", 3, 'no such overload'],
    ['object.m.flatten(1)', 14, 'no such overload: flatten(map, int)'],
    ["'a'.substring(5, 2)", 1, 'invalid substring range. start: 5, end: 2'],
    ["'a'.indexOf('b', -1)", 0, 'index out of range: -1'],
    ["'a'.indexOf('b', 9)", 0],
    ["''.lastIndexOf('b')", 0],
    ['object.l.unwrapOpt()', 3, 'no such overload: unwrapOpt(list)'],
    ["quantity('1000m').isInteger()", 2],
    ["quantity('1Ei').asInteger()", 2, 'cannot convert value to integer'],
    ["quantity('500m').add(quantity('500m')).isInteger()", 4],
    ["quantity('1').add(1).asInteger()", 3],
  ],
  versions: [
    ["semver('')", 0, '"" is not a semantic version'],
    ["semver('x-1')", 1, '"x-1" is not a semantic version'],
    ["semver('x.1.2')", 1, '"x.1.2" is not a semantic version'],
    ["semver('01.1.2')", 1, '"01.1.2" is not a semantic version'],
    ["semver('1.x.2')", 1, '"1.x.2" is not a semantic version'],
    ["semver('1.2.x')", 1, '"1.2.x" is not a semantic version'],
    ["semver('1.2.03')", 1, '"1.2.03" is not a semantic version'],
    ["semver('1.2.3-')", 1, '"1.2.3-" is not a semantic version'],
    ["semver('1.2.3-01')", 1, '"1.2.3-01" is not a semantic version'],
    ["semver('1.2.3-é')", 1, '"1.2.3-é" is not a semantic version'],
    ["semver('1.2.3+')", 1, '"1.2.3+" is not a semantic version'],
    ["semver('1.2.3+a_b')", 1, '"1.2.3+a_b" is not a semantic version'],
    ["semver('99999999999999999999.1.1')", 3, '"99999999999999999999.1.1" is not a semantic version'],
    ["semver('1-rc', true)", 1, '"1-rc" is not a semantic version'],
    ["semver('vx', true)", 1, '"vx" is not a semantic version'],
  ],
  'addresses and networks': [
    ["ip('x')", 1, 'IP Address "x" parse error during conversion from string: not an IP address'],
    ["ip('1.2')", 1, 'IP Address "1.2" parse error during conversion from string: not an IP address'],
    ["ip('1.2.3.4.5')", 1, 'IP Address "1.2.3.4.5" parse error during conversion from string: not an IP address'],
    ["ip('1.2.3.256')", 1, 'IP Address "1.2.3.256" parse error during conversion from string: not an IP address'],
    ["ip('01.2.3.4')", 1, 'IP Address "01.2.3.4" parse error during conversion from string: not an IP address'],
    ["ip('1..2.3')", 1, 'IP Address "1..2.3" parse error during conversion from string: not an IP address'],
    ["ip('1.2.3.4x')", 1, 'IP Address "1.2.3.4x" parse error during conversion from string: not an IP address'],
    ["ip('0.1Ki')", 1, 'IP Address "0.1Ki" parse error during conversion from string: not an IP address'],
    ["ip('%a')", 1, 'IP Address "%a" parse error during conversion from string: not an IP address'],
    ["ip('::1%')", 1, 'IP Address "::1%" parse error during conversion from string: not an IP address'],
    ["ip('::1%eth0')", 1, 'IP address "::1%eth0" with zone value is not allowed'],
    ["ip('1:2')", 1, 'IP Address "1:2" parse error during conversion from string: not an IP address'],
    ["ip('12345::')", 1, 'IP Address "12345::" parse error during conversion from string: not an IP address'],
    ["ip('g::')", 1, 'IP Address "g::" parse error during conversion from string: not an IP address'],
    [
      "ip('1:2:3:4:5:6:7:8:9')",
      2,
      'IP Address "1:2:3:4:5:6:7:8:9" parse error during conversion from string: not an IP address',
    ],
    ["ip('1::2::3')", 1, 'IP Address "1::2::3" parse error during conversion from string: not an IP address'],
    ["ip('1:')", 1, 'IP Address "1:" parse error during conversion from string: not an IP address'],
    ["ip('1-2::')", 1, 'IP Address "1-2::" parse error during conversion from string: not an IP address'],
    ["ip('1:2:1.2.3.4')", 2, 'IP Address "1:2:1.2.3.4" parse error during conversion from string: not an IP address'],
    [
      "ip('1:2:3:4:5:6:7::8:9')",
      2,
      'IP Address "1:2:3:4:5:6:7::8:9" parse error during conversion from string: not an IP address',
    ],
    ["ip('::ffff:1.2.3.4')", 2, 'IPv4-mapped IPv6 address "::ffff:1.2.3.4" is not allowed'],
    [
      "ip('1:2:3:4::5:6:7:8')",
      2,
      'IP Address "1:2:3:4::5:6:7:8" parse error during conversion from string: not an IP address',
    ],
    [
      "cidr('x')",
      1,
      'network address parse error during conversion from string: "x" is not an address, a slash and a prefix length',
    ],
    [
      "cidr('x/8')",
      1,
      'network address parse error during conversion from string: "x/8" is not an address, a slash and a prefix length',
    ],
    [
      "cidr('10.0.0.0/33')",
      2,
      'network address parse error during conversion from string: "10.0.0.0/33" is not an address, a slash and a prefix length',
    ],
    [
      "cidr('10.0.0.0/08')",
      2,
      'network address parse error during conversion from string: "10.0.0.0/08" is not an address, a slash and a prefix length',
    ],
    [
      "cidr('10.0.0.0/')",
      1,
      'network address parse error during conversion from string: "10.0.0.0/" is not an address, a slash and a prefix length',
    ],
    [
      "cidr('::1%eth0/8')",
      1,
      'network address parse error during conversion from string: "::1%eth0/8" is not an address, a slash and a prefix length',
    ],
    [
      "cidr('::ffff:1.2.3.4/8')",
      2,
      'network address parse error during conversion from string: IPv4-mapped IPv6 address "::ffff:1.2.3.4/8" is not allowed',
    ],
  ],
  'URLs and resources': [
    ["url('')", 0, 'URL parse error during conversion from string: parse "": invalid URI for request'],
    ["url('x')", 1, 'URL parse error during conversion from string: parse "x": invalid URI for request'],
    ["url(':x')", 1, 'URL parse error during conversion from string: parse ":x": invalid URI for request'],
    [
      "url('http://[::1')",
      2,
      'URL parse error during conversion from string: parse "http://[::1": invalid URI for request',
    ],
    [
      "url('http://a:b/')",
      2,
      'URL parse error during conversion from string: parse "http://a:b/": invalid URI for request',
    ],
    [
      "url('http://a b/')",
      2,
      'URL parse error during conversion from string: parse "http://a b/": invalid URI for request',
    ],
    [
      "url('http://a%41/')",
      2,
      'URL parse error during conversion from string: parse "http://a%41/": invalid URI for request',
    ],
    ["url('/%zz')", 1, 'URL parse error during conversion from string: parse "/%zz": invalid URI for request'],
    [
      "url('http://u^@h/')",
      2,
      'URL parse error during conversion from string: parse "http://u^@h/": invalid URI for request',
    ],
    [
      "url('http://[x]/')",
      2,
      'URL parse error during conversion from string: parse "http://[x]/": invalid URI for request',
    ],
    [
      "url('http://[1.2.3.4]/')",
      2,
      'URL parse error during conversion from string: parse "http://[1.2.3.4]/": invalid URI for request',
    ],
    ["url('/a?b=1#c').getQuery()", 2],
    ["url('/a#c').getEscapedPath()", 2],
    ["authorizer.group('').resource(' ')", 3, 'resource must not be empty'],
  ],
  formatting: [
    ["'%f|%.1f|%.0f'.format([object.f, object.f, object.f])", 18],
    ["'%e|%.20e'.format([object.f, object.f])", 15],
    ["'%e|%e'.format([0.5, 'NaN'])", 1],
    ["'%f'.format(['-Infinity'])", 1],
    [
      "'%s'.format([[dyn('a'), dyn(1.5), dyn(duration('1h')), dyn(timestamp(0)), dyn(b'x'), dyn(null), dyn({'k': true})]])",
      1,
    ],
    ["'%s'.format([{1: 'a'}])", 1],
    [
      "'%d'.format([object.f])",
      13,
      'error during formatting: decimal clause can only be used on integers, was given double',
    ],
    [
      "'%b'.format([object.s])",
      13,
      'error during formatting: only integers and bools can be formatted as binary, was given string',
    ],
    [
      "'%x'.format([object.f])",
      13,
      'error during formatting: only integers, byte buffers, and strings can be formatted as hex, was given double',
    ],
    [
      "'%o'.format([object.s])",
      13,
      'error during formatting: octal clause can only be used on integers, was given string',
    ],
    [
      "'%f'.format([object.i])",
      13,
      'error during formatting: fixed-point clause can only be used on doubles, was given int',
    ],
    [
      "['%.'].map(x, x.format([1]))",
      15,
      'could not parse formatting clause: error while parsing precision: could not find end of precision specifier',
    ],
    [
      "['%.f'].map(x, x.format([1]))",
      15,
      'could not parse formatting clause: error while parsing precision: no digits after the point',
    ],
  ],
};

for (const [title, rows] of Object.entries(TABLES)) {
  // S-338: A failure inside of an expression costs what it costs upstream, and the rest of the expression goes on.
  // Compat Admission and quota, P1, yes: CEL at run time: what surrounds a failure goes on, and costs what it costs
  //   upstream
  test(`costs and failures: ${title}`, () => {
    for (const [expression, cost, fails] of rows) {
      const outcome = evaluate(expression);
      assert.deepEqual([expression, outcome.cost, outcome.fails], [expression, cost, fails]);
    }
  });
}

const NETWORK_COSTS: readonly (readonly [string, number])[] = [
  ["cidr('fd00::/8').containsCIDR(dyn('fd00::/16'))", 4],
  ["cidr('fd00::/128').containsIP('fd00::1')", 6],
  ["cidr('0.0.0.0/0').containsIP(ip('1.2.3.4'))", 2],
  ["ip('::1') != ip('::2')", 4],
  ["cidr('::/128') != cidr('::/0')", 2],
];

test('a network costs by the bytes that it fixes', () => {
  for (const [expression, cost] of NETWORK_COSTS)
    assert.deepEqual([expression, evaluate(expression).cost], [expression, cost]);
});

const VALUES: readonly (readonly [expression: string, value: unknown])[] = [
  ["'%f|%.1f|%.0f'.format([object.f, object.f, object.f])", '12,345.678000|12,345.7|12,346'],
  ["'%e|%.20e'.format([object.f, object.f])", '1.234568×10⁰⁴|       1.234568×10⁰⁴'],
  ["'%e|%e'.format([0.5, 'NaN'])", '5.000000×10⁻⁰¹|   NaN'],
  ["'%f'.format(['-Infinity'])", '-∞'],
  [
    "'%s'.format([[dyn('a'), dyn(1.5), dyn(duration('1h')), dyn(timestamp(0)), dyn(b'x'), dyn(null), dyn({'k': true})]])",
    '["a", 1.500000, duration("3600s"), timestamp("1970-01-01T00:00:00Z"), b"x", null, {"k":true}]',
  ],
  ["'%s'.format([{1: 'a'}])", '{1:"a"}'],
  ["url('/a?b=1#c').getQuery()['b'] == ['1'] && url('/a#c').getEscapedPath() == '/a'", true],
  ["quantity('1000m').isInteger() || quantity('500m').add(quantity('500m')).isInteger()", false],
  ["quantity('1k').add(1).asInteger() == 1001 && quantity('1Gi').sub(quantity('1Mi')).isInteger()", true],
  ["'a'.indexOf('b', 9) == -1 && ''.lastIndexOf('b') == -1", true],
  ["format.byte().validate('').value()[0]", 'invalid base64'],
  ["{1: 'a', 1: 'b'}[1]", 'b'],
  ['has(object.?x.y) || object.l[?0].b.hasValue() || object.x in []', false],
  ["!object.m.exists(k, k == 'b' || object.x) || true", true],
];

test('values that upstream makes of these', () => {
  for (const [expression, value] of VALUES)
    assert.deepEqual([expression, evaluate(expression).value], [expression, value]);
});

// S-338
test('a budget that runs out beats what the evaluation fails with', () => {
  const program = compileCel('[1, 2, 3].map(x, object.missing)', { variables: { object: DYN } });
  assert.throws(() => program.run({ object: {} }, celBudget(1000, 20)), {
    message: 'operation cancelled: actual cost limit exceeded',
  });
  const budget = celBudget(1000, 100);
  assert.throws(() => program.run({ object: {} }, budget), { message: 'no such key: missing' });
  assert.equal(budget.remaining, 1000 - 43);
});
