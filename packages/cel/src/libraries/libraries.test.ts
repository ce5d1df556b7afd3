/** Every function of the Kubernetes libraries, with results and errors as kube-apiserver gives them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  AUTHORIZER,
  authorizerValue,
  type CelAuthorizerAttributes,
  CelEvaluationError,
  celBudget,
  compileCel,
  REQUEST_RESOURCE,
  resourceCheckValue,
} from '../cel.ts';

const json = (expression: string): unknown =>
  compileCel(expression, { variables: {}, libraries: ['mutation'] }).json({}, celBudget(1e7, 1e6));

/** Expression and its result as JSON; an expression alone must be true. */
const RESULTS: readonly (string | readonly [string, unknown])[] = [
  // strings, version 2
  ["'tacocat'.charAt(3)", 'o'],
  ["'tacocat'.charAt(7)", ''],
  ["'😀b'.charAt(1)", 'b'],
  ["'hello mellow'.indexOf('ello', 2)", 7],
  ["'hello mellow'.lastIndexOf('ello')", 7],
  ["'hello mellow'.lastIndexOf('ello', 6)", 1],
  ["['a', 'b'].join('-')", 'a-b'],
  ["['a', 'b'].join()", 'ab'],
  ["'TacoÉ'.lowerAscii()", 'tacoÉ'],
  ["'tacoé'.upperAscii()", 'TACOé'],
  ["'hello hello'.replace('he', 'we', 1)", 'wello hello'],
  ["'ab'.replace('', '_')", '_a_b_'],
  ["'a,b,c'.split(',', 2)", ['a', 'b,c']],
  ["'abc'.split('')", ['a', 'b', 'c']],
  ["'tacocat'.substring(4)", 'cat'],
  ["'tacocat'.substring(0, 4)", 'taco'],
  ["'  \\u00a0x\\n'.trim()", 'x'],
  ["'%s has %d: %.2f %x'.format([dyn('a'), 3, 1.005, 255])", 'a has 3: 1.00 ff'],
  ["strings.quote('a\"\\n')", '"a\\"\\n"'],
  // sets
  'sets.contains([1, 2, 3], [2, 3])',
  '!sets.contains([1], [2])',
  'sets.equivalent([1, 2, 2], [2, 1])',
  'sets.intersects([1], [1, 2])',
  // lists, version 3
  ['[1, 2, 3, 4].slice(1, 3)', [2, 3]],
  ['[[1], [2, 3]].flatten()', [1, 2, 3]],
  ['[dyn(1), dyn([2, 3]), dyn([dyn([4])])].flatten(2)', [1, 2, 3, 4]],
  ['[3, 1, 2].sort()', [1, 2, 3]],
  ["['bb', 'a'].sortBy(x, x.size())", ['a', 'bb']],
  ['lists.range(3)', [0, 1, 2]],
  ['[1, 2, 1].distinct()', [1, 2]],
  ['[1, 2].reverse()', [2, 1]],
  ['[1, 2].first().value() + [1, 2].last().value()', 3],
  // lists of Kubernetes
  '[1, 2, 2].isSorted() && ![2, 1].isSorted()',
  ['[1, 2, 3].sum()', 6],
  ["[duration('1m'), duration('30s')].sum()", '90s'],
  ['[].sum()', 0],
  ['[3, 1].min() + [3, 1].max()', 4],
  ["['b', 'a'].min()", 'a'],
  ['[1, 2, 2].indexOf(2)', 1],
  ['[1, 2, 2].lastIndexOf(2)', 2],
  // regex
  ["'abc 123'.find('[0-9]+')", '123'],
  ["'abc'.find('[0-9]+')", ''],
  ["'1 2 3'.findAll('[0-9]')", ['1', '2', '3']],
  ["'1 2 3'.findAll('[0-9]', 2)", ['1', '2']],
  // url
  "isURL('https://example.com/x') && isURL('/abs') && !isURL('../rel') && !isURL('rel')",
  ["url('https://u:p@example.com:80/').getHost()", 'example.com:80'],
  ["url('https://[::1]:80/').getHost()", '[::1]:80'],
  ["url('https://[::1]:80/').getHostname()", '::1'],
  ["url('https://example.com:80/').getPort()", '80'],
  ["url('https://example.com/').getPort()", ''],
  ["url('HTTPS://example.com').getScheme()", 'https'],
  ["url('https://example.com/with space/').getEscapedPath()", '/with%20space/'],
  ["url('https://e.com/?k1=a&k2=b&k2=c').getQuery()", { k1: ['a'], k2: ['b', 'c'] }],
  "url('/a') == url('/a')",
  // quantity
  "isQuantity('1.3Gi') && !isQuantity('x')",
  "quantity('1Gi').isGreaterThan(quantity('1G')) && quantity('1k').isLessThan(quantity('1Ki'))",
  ["quantity('50k').compareTo(quantity('50000'))", 0],
  ["sign(quantity('-2'))", -1],
  ["int(duration('-1.5s'))", -1_500_000_000],
  "quantity('2k').isInteger() && !quantity('1.5').isInteger()",
  ["quantity('2k').asInteger()", 2000],
  ["quantity('1.5').asApproximateFloat()", 1.5],
  "quantity('50k').add(quantity('20')) == quantity('50020') && quantity('50k').sub(20).asInteger() == 49980",
  // ip and cidr
  "isIP('127.0.0.1') && isIP('::1') && !isIP('127.0.0.256') && !isIP('::ffff:1.2.3.4')",
  "ip('::1').family() == 6 && ip('0.0.0.0').isUnspecified() && ip('127.0.0.1').isLoopback()",
  "ip('224.0.0.1').isLinkLocalMulticast() && ip('169.254.1.1').isLinkLocalUnicast()",
  "ip('192.168.0.1').isGlobalUnicast() && !ip('255.255.255.255').isGlobalUnicast()",
  "ip.isCanonical('2001:db8::abcd') && !ip.isCanonical('2001:DB8::ABCD')",
  ["string(ip('2001:0:0:0:0:0:0:1'))", '2001::1'],
  "isCIDR('192.168.0.0/24') && !isCIDR('192.168.0.0/33')",
  "cidr('192.168.0.0/24').containsIP(ip('192.168.0.1')) && !cidr('192.168.0.0/24').containsIP('192.168.1.1')",
  "cidr('192.168.0.0/24').containsCIDR('192.168.0.0/25') && !cidr('192.168.0.0/24').containsCIDR(cidr('192.168.0.0/23'))",
  "cidr('192.168.0.1/24').masked() == cidr('192.168.0.0/24') && cidr('10.0.0.1/8').ip() == ip('10.0.0.1')",
  ["cidr('::1/128').prefixLength()", 128],
  ["string(cidr('10.0.0.1/8'))", '10.0.0.1/8'],
  // named formats
  '!format.dns1123Label().validate("my-label").hasValue() && format.dns1123Label().validate("My").hasValue()',
  '!format.dns1123Subdomain().validate("a.b").hasValue()',
  '!format.dns1035Label().validate("a1").hasValue() && format.dns1035Label().validate("1a").hasValue()',
  '!format.dns1123LabelPrefix().validate("a-").hasValue() && format.dns1123Label().validate("a-").hasValue()',
  '!format.dns1123SubdomainPrefix().validate("a.b-").hasValue() && !format.dns1035LabelPrefix().validate("a-").hasValue()',
  '!format.qualifiedName().validate("e.com/A").hasValue() && !format.labelValue().validate("").hasValue()',
  '!format.uri().validate("http://e.com").hasValue() && format.uri().validate("x").hasValue()',
  "format.uuid().validate('x').value() == ['does not match the UUID format']",
  "format.byte().validate('*').value() == ['invalid base64'] && !format.byte().validate('YQ==').hasValue()",
  "format.date().validate('x').value() == ['invalid date'] && !format.date().validate('2021-02-28').hasValue()",
  "format.datetime().validate('x').value() == ['invalid datetime']",
  "format.named('dns1123Label').hasValue() && !format.named('nope').hasValue()",
  // semver
  "isSemver('1.0.0') && !isSemver('v1.0') && isSemver('v1.0', true) && !isSemver('01.0.0')",
  ["semver('1.2.3-rc.1').major() + semver('1.2.3').minor() + semver('1.2.3').patch()", 6],
  "semver('1.2.3').isLessThan(semver('1.10.0')) && semver('1.0.0').isGreaterThan(semver('1.0.0-rc.9'))",
  ["semver('1.0.0-rc.1').compareTo(semver('1.0.0-rc.10'))", -1],
  // optionals and two-variable macros
  ['optional.none().orValue(1) + optional.of(2).or(optional.of(3)).value()', 3],
  ["{'a': 1}[?'b'].orValue(7)", 7],
  ['[?optional.of(1), ?optional.none()]', [1]],
  ["{?'a': optional.none()}", {}],
  ['optional.of(1).optMap(x, x + 1).value() + optional.of(1).optFlatMap(x, optional.of(x)).value()', 3],
  ['[1, 2].transformList(i, v, i > 0, v * 10)', [20]],
  ["{'a': 1}.transformMap(k, v, k + string(v))", { a: 'a1' }],
  ["['a'].transformMapEntry(i, v, {v: i})", { a: 0 }],
  ["[['a']].transformMapEntry(i, v, {v: i})", { a: 0 }],
  '[1, 2].all(i, v, v == i + 1) && [5].exists(i, v, i == 0 && v == 5) && [5].existsOne(i, v, v == 5)',
  // mutation
  ["jsonpatch.escapeKey('a/b~c')", 'a~1b~0c'],
  [
    'Object{spec: Object.spec{replicas: 1, template: Object.spec.template{names: ["a"]}}}',
    { spec: { replicas: 1, template: { names: ['a'] } } },
  ],
  ["JSONPatch{op: 'add', path: '/a', value: {'b': 1.5}}", { op: 'add', path: '/a', value: { b: 1.5 } }],
];

for (const entry of RESULTS) {
  const [expression, expected] = typeof entry === 'string' ? [entry, true] : entry;
  test(expression, () => {
    assert.deepEqual(json(expression), expected);
  });
}

const ERRORS: readonly (readonly [string, string])[] = [
  ["'a'.charAt(2)", 'index out of range: 2'],
  ["'abc'.substring(2, 1)", 'invalid substring range. start: 2, end: 1'],
  ['[].min()', 'min called on empty list'],
  ['[1].slice(0, 2)', 'cannot slice(0, 2), list is length 1'],
  ["quantity('1.5').asInteger()", 'cannot convert value to integer'],
  ["quantity('x')", "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"],
  ["ip('::ffff:1.2.3.4')", 'IPv4-mapped IPv6 address "::ffff:1.2.3.4" is not allowed'],
  ["url('rel')", 'URL parse error during conversion from string: parse "rel": invalid URI for request'],
  ['optional.none().value()', 'optional.none() dereference'],
  ["dyn(1).startsWith('a')", 'no such overload: startsWith(int, string)'],
  ["dyn(1) + 'a'", 'no such overload'],
  [
    'Object{spec: Object.other{a: 1}}',
    'unexpected type name "Object.other", expected "Object.spec", which matches field name path from root Object type',
  ],
];

for (const [expression, message] of ERRORS) {
  // S-148
  test(`${expression} fails: ${message}`, () => {
    assert.throws(
      () => json(expression),
      (error) => error instanceof CelEvaluationError && error instanceof Error && error.message === message,
    );
  });
}

test('authorizer asks the injected function, at the price of upstream', () => {
  const asked: CelAuthorizerAttributes[] = [];
  const decide = (attributes: CelAuthorizerAttributes) => {
    asked.push(attributes);
    return attributes.verb === 'get' ? { allowed: true, reason: 'yes' } : { allowed: false, error: 'boom' };
  };
  const run = (expression: string) => {
    const budget = celBudget(1e7, 1e6);
    const program = compileCel(expression, {
      variables: { authorizer: AUTHORIZER, 'authorizer.requestResource': REQUEST_RESOURCE },
    });
    const value = program.run(
      {
        authorizer: authorizerValue(decide),
        'authorizer.requestResource': resourceCheckValue(decide, { group: 'apps', resource: 'deployments' }),
      },
      budget,
    );
    return { value, cost: 1e7 - budget.remaining };
  };
  assert.deepEqual(run("authorizer.group('').resource('pods').namespace('n').name('p').check('get').allowed()"), {
    value: true,
    cost: 350_006,
  });
  assert.equal(run("authorizer.path('/healthz').check('get').reason()").value, 'yes');
  assert.equal(run("authorizer.requestResource.check('x').errored()").value, true);
  assert.equal(run("authorizer.requestResource.subresource('s').check('x').error()").value, 'boom');
  run("authorizer.serviceAccount('a', 'b').group('').resource('x').labelSelector('a=b').check('get').allowed()");
  assert.deepEqual(asked, [
    { group: '', resource: 'pods', namespace: 'n', name: 'p', verb: 'get' },
    { path: '/healthz', verb: 'get' },
    { group: 'apps', resource: 'deployments', verb: 'x' },
    { group: 'apps', resource: 'deployments', subresource: 's', verb: 'x' },
    { serviceAccount: { namespace: 'a', name: 'b' }, group: '', resource: 'x', labelSelector: 'a=b', verb: 'get' },
  ]);
});
