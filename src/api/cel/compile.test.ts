/** What evaluations cost, above all those that fail, and in which words they fail. The tables were made with the real library. */
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
  'a function that is found only when the values are there costs what its name tells': [
    ["object.s < 'b'", 3],
    ["object.s + 'b'", 3],
    ['bytes(object.s)', 3],
    ['1 in object.l', 3],
    ['object.l.sort()', 3],
    ["object.s.indexOf('a')", 2],
    ["cidr('10.0.0.0/8').containsIP(dyn('10.0.0.1'))", 2],
    ['object.m.sum()', 3, 'no such overload: sum(map)'],
    ['object.l.flatten(3)', 19],
    [
      'object.l.flatten(object.s) == [] || true',
      4,
      'internal error: interface conversion: ref.Val is types.String, not types.Int',
    ],
    [
      'object.n.distinct() == [] || true',
      2,
      'internal error: interface conversion: types.Null is not traits.Lister: missing method Add',
    ],
    ["authorizer.group('').resource('pods').labelSelector('a in (b)').check('get').allowed()", 350215],
  ],
  'words of failures': [
    ['-object.m', 3, 'no such overload: -_'],
    ['object.m < 1', 3, 'no such overload: _<_'],
    ['1 < object.m', 3, 'no such overload'],
    ['object.m % 2', 3, 'no such overload: _%_'],
    ['object.s * 2', 3, 'no such overload'],
    ['size(object.n)', 3, 'no such overload: size'],
    ['object.m.sort()', 3, 'no such overload: sort'],
    ['object.s.sort()', 3, 'no such overload'],
    ['object.l.sortBy(x, object.m)', 34, 'list elements must be comparable'],
    ["object.m.findAll('a')", 3, 'no such overload'],
    ['object.m.find(object.s)', 5, 'no such overload: find(map, string)'],
    ['object.l[object.n]', 4, 'invalid qualifier type: <nil>'],
    ['object.l[object.m]', 4, 'invalid qualifier type: map[string]interface {}'],
    ['object.l[?[1].map(x, x)]', 16, 'invalid qualifier type: *types.baseList'],
    ['object.s.all(k, v, v)', 2, 'unsupported comprehension range type: types.String'],
    ['object.l[?0].all(x, true)', 3, "got '*types.Optional', expected iterable type"],
    ["timestamp('9999-12-31T23:59:59Z') - timestamp('0001-01-01T00:00:00Z')", 1, 'integer overflow'],
    ["cidr('10.0.0.0/8').containsIP('x')", 3, 'no such overload'],
    ['object.m.flatten(1)', 14, 'no such overload: map(dyn, dyn).flatten(int)'],
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
    ["semver('')", 0, 'Version string empty'],
    ["semver('x-1')", 1, 'No Major.Minor.Patch elements found'],
    ["semver('x.1.2')", 1, 'Invalid character(s) found in major number "x"'],
    ["semver('01.1.2')", 1, 'Major number must not contain leading zeroes "01"'],
    ["semver('1.x.2')", 1, 'Invalid character(s) found in minor number "x"'],
    ["semver('1.2.x')", 1, 'Invalid character(s) found in patch number "x"'],
    ["semver('1.2.03')", 1, 'Patch number must not contain leading zeroes "03"'],
    ["semver('1.2.3-')", 1, 'Prerelease is empty'],
    ["semver('1.2.3-01')", 1, 'Numeric PreRelease version must not contain leading zeroes "01"'],
    ["semver('1.2.3-é')", 1, 'Invalid character(s) found in prerelease "é"'],
    ["semver('1.2.3+')", 1, 'Build meta data is empty'],
    ["semver('1.2.3+a_b')", 1, 'Invalid character(s) found in build meta data "a_b"'],
    ["semver('99999999999999999999.1.1')", 3, 'strconv.ParseUint: parsing "99999999999999999999": value out of range'],
    ["semver('1-rc', true)", 1, 'short version cannot contain PreRelease/Build meta data'],
    ["semver('vx', true)", 1, 'Invalid character(s) found in major number "x"'],
  ],
  'addresses and networks': [
    ["ip('x')", 1, 'IP Address "x" parse error during conversion from string: ParseAddr("x"): unable to parse IP'],
    [
      "ip('1.2')",
      1,
      'IP Address "1.2" parse error during conversion from string: ParseAddr("1.2"): IPv4 address too short',
    ],
    [
      "ip('1.2.3.4.5')",
      1,
      'IP Address "1.2.3.4.5" parse error during conversion from string: ParseAddr("1.2.3.4.5"): IPv4 address too long',
    ],
    [
      "ip('1.2.3.256')",
      1,
      'IP Address "1.2.3.256" parse error during conversion from string: ParseAddr("1.2.3.256"): IPv4 field has value >255',
    ],
    [
      "ip('01.2.3.4')",
      1,
      'IP Address "01.2.3.4" parse error during conversion from string: ParseAddr("01.2.3.4"): IPv4 field has octet with leading zero',
    ],
    [
      "ip('1..2.3')",
      1,
      'IP Address "1..2.3" parse error during conversion from string: ParseAddr("1..2.3"): IPv4 field must have at least one digit (at ".2.3")',
    ],
    [
      "ip('1.2.3.4x')",
      1,
      'IP Address "1.2.3.4x" parse error during conversion from string: ParseAddr("1.2.3.4x"): unexpected character (at "x")',
    ],
    [
      "ip('0.1Ki')",
      1,
      'IP Address "0.1Ki" parse error during conversion from string: ParseAddr("0.1Ki"): unexpected character (at "Ki")',
    ],
    ["ip('%a')", 1, 'IP Address "%a" parse error during conversion from string: ParseAddr("%a"): missing IPv6 address'],
    [
      "ip('::1%')",
      1,
      'IP Address "::1%" parse error during conversion from string: ParseAddr("::1%"): zone must be a non-empty string',
    ],
    ["ip('::1%eth0')", 1, 'IP address "::1%eth0" with zone value is not allowed'],
    [
      "ip('1:2')",
      1,
      'IP Address "1:2" parse error during conversion from string: ParseAddr("1:2"): address string too short',
    ],
    [
      "ip('12345::')",
      1,
      'IP Address "12345::" parse error during conversion from string: ParseAddr("12345::"): each group must have 4 or less digits (at "12345::")',
    ],
    [
      "ip('g::')",
      1,
      'IP Address "g::" parse error during conversion from string: ParseAddr("g::"): each colon-separated field must have at least one digit (at "g::")',
    ],
    [
      "ip('1:2:3:4:5:6:7:8:9')",
      2,
      'IP Address "1:2:3:4:5:6:7:8:9" parse error during conversion from string: ParseAddr("1:2:3:4:5:6:7:8:9"): trailing garbage after address (at "9")',
    ],
    [
      "ip('1::2::3')",
      1,
      'IP Address "1::2::3" parse error during conversion from string: ParseAddr("1::2::3"): multiple :: in address (at ":3")',
    ],
    [
      "ip('1:')",
      1,
      'IP Address "1:" parse error during conversion from string: ParseAddr("1:"): colon must be followed by more characters (at ":")',
    ],
    [
      "ip('1-2::')",
      1,
      'IP Address "1-2::" parse error during conversion from string: ParseAddr("1-2::"): unexpected character, want colon (at "-2::")',
    ],
    [
      "ip('1:2:1.2.3.4')",
      2,
      'IP Address "1:2:1.2.3.4" parse error during conversion from string: ParseAddr("1:2:1.2.3.4"): embedded IPv4 address must replace the final 2 fields of the address (at "1.2.3.4")',
    ],
    [
      "ip('1:2:3:4:5:6:7::8:9')",
      2,
      'IP Address "1:2:3:4:5:6:7::8:9" parse error during conversion from string: ParseAddr("1:2:3:4:5:6:7::8:9"): trailing garbage after address (at "9")',
    ],
    ["ip('::ffff:1.2.3.4')", 2, 'IPv4-mapped IPv6 address "::ffff:1.2.3.4" is not allowed'],
    [
      "ip('1:2:3:4::5:6:7:8')",
      2,
      'IP Address "1:2:3:4::5:6:7:8" parse error during conversion from string: ParseAddr("1:2:3:4::5:6:7:8"): the :: must expand to at least one field of zeros',
    ],
    [
      "cidr('x')",
      1,
      `network address parse error during conversion from string: network address parse error during conversion from string: netip.ParsePrefix("x"): no '/'`,
    ],
    [
      "cidr('x/8')",
      1,
      'network address parse error during conversion from string: network address parse error during conversion from string: netip.ParsePrefix("x/8"): ParseAddr("x"): unable to parse IP',
    ],
    [
      "cidr('10.0.0.0/33')",
      2,
      'network address parse error during conversion from string: network address parse error during conversion from string: netip.ParsePrefix("10.0.0.0/33"): prefix length out of range',
    ],
    [
      "cidr('10.0.0.0/08')",
      2,
      'network address parse error during conversion from string: network address parse error during conversion from string: netip.ParsePrefix("10.0.0.0/08"): bad bits after slash: "08"',
    ],
    [
      "cidr('10.0.0.0/')",
      1,
      'network address parse error during conversion from string: network address parse error during conversion from string: netip.ParsePrefix("10.0.0.0/"): bad bits after slash: ""',
    ],
    [
      "cidr('::1%eth0/8')",
      1,
      'network address parse error during conversion from string: network address parse error during conversion from string: netip.ParsePrefix("::1%eth0/8"): IPv6 zones cannot be present in a prefix',
    ],
    [
      "cidr('::ffff:1.2.3.4/8')",
      2,
      'network address parse error during conversion from string: IPv4-mapped IPv6 address "::ffff:1.2.3.4/8" is not allowed',
    ],
  ],
  'URLs and resources': [
    ["url('')", 0, 'URL parse error during conversion from string: parse "": empty url'],
    ["url('x')", 1, 'URL parse error during conversion from string: parse "x": invalid URI for request'],
    ["url(':x')", 1, 'URL parse error during conversion from string: parse ":x": missing protocol scheme'],
    [
      "url('http://[::1')",
      2,
      `URL parse error during conversion from string: parse "http://[::1": missing ']' in host`,
    ],
    [
      "url('http://a:b/')",
      2,
      'URL parse error during conversion from string: parse "http://a:b/": invalid port ":b" after host',
    ],
    [
      "url('http://a b/')",
      2,
      'URL parse error during conversion from string: parse "http://a b/": invalid character " " in host name',
    ],
    [
      "url('http://a%41/')",
      2,
      'URL parse error during conversion from string: parse "http://a%41/": invalid URL escape "%41"',
    ],
    ["url('/%zz')", 1, 'URL parse error during conversion from string: parse "/%zz": invalid URL escape "%zz"'],
    [
      "url('http://u^@h/')",
      2,
      'URL parse error during conversion from string: parse "http://u^@h/": net/url: invalid userinfo',
    ],
    [
      "url('http://[x]/')",
      2,
      'URL parse error during conversion from string: parse "http://[x]/": invalid host: ParseAddr("x"): unable to parse IP',
    ],
    [
      "url('http://[1.2.3.4]/')",
      2,
      'URL parse error during conversion from string: parse "http://[1.2.3.4]/": invalid IP-literal',
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
      'could not parse formatting clause: error while parsing precision: error while converting precision to integer: strconv.Atoi: parsing "": invalid syntax',
    ],
  ],
};

for (const [title, rows] of Object.entries(TABLES)) {
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

test('a budget that runs out beats what the evaluation fails with', () => {
  const program = compileCel('[1, 2, 3].map(x, object.missing)', { variables: { object: DYN } });
  assert.throws(() => program.run({ object: {} }, celBudget(1000, 20)), {
    message: 'operation cancelled: actual cost limit exceeded',
  });
  const budget = celBudget(1000, 100);
  assert.throws(() => program.run({ object: {} }, budget), { message: 'no such key: missing' });
  assert.equal(budget.remaining, 1000 - 43);
});
