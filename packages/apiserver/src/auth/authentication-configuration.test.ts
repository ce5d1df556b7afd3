import assert from 'node:assert/strict';
import { test } from 'node:test';
import { refuses } from '../../../../test/testkit/refuses.ts';
import type { JsonObject } from '../../../apimachinery/src/meta/own-property.ts';
import { readAuthenticationConfiguration } from './authentication-configuration.ts';
import { ClaimsRefused } from './jwt-claims.ts';

// biome-ignore lint/suspicious/noExplicitAny: configurations, wrong ones among them.
type Json = any;

const OPTIONS = {
  disallowedIssuers: ['https://own.test'],
  caProblem: (pem: string) =>
    pem === 'good' ? undefined : 'data does not contain any valid RSA or ECDSA certificates',
};
const ISSUER = { url: 'https://a.test', audiences: ['one'] };
const NAMED = { username: { claim: 'sub', prefix: '' } };
const jwt = (more: object = {}): Json => ({ issuer: ISSUER, claimMappings: NAMED, ...more });
const configuration = (more: object): Json => ({
  apiVersion: 'apiserver.config.k8s.io/v1',
  kind: 'AuthenticationConfiguration',
  ...more,
});
const read = (document: Json) => readAuthenticationConfiguration(JSON.stringify(document), OPTIONS);
/** The user that one issuer's rules make of claims. */
const userOf = (rules: object, claims: object) => {
  const [issuer] = read(configuration({ jwt: [jwt(rules)] })).issuers;
  return issuer!.userOf(claims as JsonObject);
};

test('nothing is an issuer less, and says nothing of those without a credential', () => {
  assert.deepEqual(read(configuration({})), { issuers: [] });
  assert.deepEqual(read(configuration({ anonymous: { enabled: false } })).anonymous, { enabled: false });
  const anonymous = { enabled: true, conditions: [{ path: '/livez' }] };
  assert.deepEqual(read(configuration({ anonymous })).anonymous, { enabled: true, paths: ['/livez'] });
});

test('an issuer as it is described', () => {
  const issuer = {
    url: 'https://a.test/',
    discoveryURL: 'https://b.test/doc',
    certificateAuthority: 'good',
    audiences: ['one', 'two'],
    audienceMatchPolicy: 'MatchAny',
  };
  const [{ userOf: _made, signingAlgorithms, ...rest }] = read(configuration({ jwt: [jwt({ issuer })] })).issuers as [
    Json,
  ];
  assert.deepEqual(rest, {
    issuerUrl: 'https://a.test/',
    discoveryUrl: 'https://b.test/doc',
    ca: 'good',
    audiences: ['one', 'two'],
  });
  assert.ok(signingAlgorithms.includes('ES512') && !signingAlgorithms.includes('HS256'));
});

test('claims with prefixes make a user', () => {
  const claimMappings = {
    username: { claim: 'email', prefix: 'u:' },
    groups: { claim: 'roles', prefix: 'g:' },
    uid: { claim: 'id' },
  };
  const user = userOf({ claimMappings }, { email: 'j@x', roles: ['a', 'b'], id: '7' });
  assert.deepEqual(user, { username: 'u:j@x', groups: ['g:a', 'g:b'], uid: '7' });
  assert.throws(() => userOf({ claimMappings }, { email: 'j@x', email_verified: false, id: '7' }), ClaimsRefused);
  assert.throws(() => userOf({ claimMappings }, { email: 'j@x' }), /oidc: parse uid claim "id": claim not present$/);
});

// S-288: Several issuers of tokens, with expressions for who their users are, and a rule for those without a
//   credential.
test('expressions make a user', () => {
  const claimMappings = {
    username: { expression: `claims.name + '@' + claims.realm` },
    // What a claim is, is not known before: a loop over it takes dyn().
    groups: { expression: `dyn(claims.roles).filter(r, r != 'hidden')` },
    uid: { expression: 'string(claims.number)' },
    extra: [
      { key: 'a.test/one', valueExpression: 'claims.realm' },
      { key: 'a.test/none', valueExpression: `''` },
      { key: 'a.test/null', valueExpression: 'null' },
      { key: 'a.test/some', valueExpression: `['x', '']` },
    ],
  };
  const claims = { name: 'jane', realm: 'r', roles: ['a', 'hidden', ''], number: 7 };
  assert.deepEqual(userOf({ claimMappings }, claims), {
    username: 'jane@r',
    groups: ['a'],
    uid: '7',
    extra: { 'a.test/one': ['r'], 'a.test/some': ['x'] },
  });
  assert.throws(
    () => userOf({ claimMappings }, { ...claims, roles: [1] }),
    /must return a string or a list of strings/,
  );
  assert.throws(() => userOf({ claimMappings }, { ...claims, name: 1 }), /resulted in error: no such overload/);
  assert.throws(() => userOf({ claimMappings: { username: { expression: `''` } } }, {}), /gives an empty name/);
  assert.throws(() => userOf({ claimMappings: { username: { expression: '7' } } }, {}), /must return a string$/);
});

// S-288
test('conditions on claims, and on the user that came out', () => {
  const rules = {
    claimMappings: { username: { claim: 'sub', prefix: 'p:' }, groups: { expression: 'claims.roles' } },
    claimValidationRules: [
      { claim: 'hd', requiredValue: 'x' },
      { expression: 'claims.age >= 18', message: 'too young' },
      { expression: `claims.?level.orValue('none') != 'low'` },
    ],
    userValidationRules: [
      { expression: `!user.username.startsWith('p:system:')`, message: 'reserved' },
      { expression: `user.groups.all(g, !g.startsWith('system:')) && user.uid == '' && user.extra.size() == 0` },
    ],
  };
  const claims = { sub: 'jane', hd: 'x', age: 20, roles: ['a'] };
  assert.deepEqual(userOf(rules, claims), { username: 'p:jane', groups: ['a'] });
  const refusals: [object, RegExp][] = [
    [{ hd: 'y' }, /^oidc: required claim hd value does not match. Got = y, want = x$/],
    [
      { age: 7 },
      /^oidc: error evaluating claim validation expression: validation expression 'claims\.age >= 18' failed: too young$/,
    ],
    [{ age: 'old' }, /resulted in error: no such overload/],
    [{ level: 'low' }, / failed: $/],
    [{ sub: 'system:admin' }, /failed: reserved$/],
    [{ roles: ['system:masters'] }, /failed: $/],
  ];
  for (const [more, message] of refusals) {
    assert.throws(
      () => userOf(rules, { ...claims, ...more }),
      (error) => error instanceof ClaimsRefused && message.test(error.message),
    );
  }
});

const at = (more: object) => configuration({ jwt: [jwt(more)] });
const issuer = (more: object) => at({ issuer: { ...ISSUER, ...more } });
const mapped = (more: object) => at({ claimMappings: { ...NAMED, ...more } });
const REFUSED: readonly (readonly [name: string, document: Json, message: string | RegExp])[] = [
  ['no URL', issuer({ url: '' }), 'jwt[0].issuer.url: Required value'],
  [
    'an open URL',
    issuer({ url: 'http://a.test' }),
    'jwt[0].issuer.url: Invalid value: "http://a.test": URL scheme must be https',
  ],
  ['no scheme', issuer({ url: 'a.test' }), 'jwt[0].issuer.url: Invalid value: "a.test": URL scheme must be https'],
  [
    'more than a URL',
    issuer({ url: 'https://me:you@a.test/?q#f' }),
    /: URL must not contain a username or password, .*: URL must not contain a query, .*: URL must not contain a fragment\]$/,
  ],
  [
    'this very server',
    issuer({ url: 'https://own.test' }),
    'jwt[0].issuer.url: Invalid value: "https://own.test": URL must not overlap with disallowed issuers: [https://own.test]',
  ],
  [
    'the same URL for discovery',
    issuer({ discoveryURL: 'https://a.test/' }),
    'jwt[0].issuer.discoveryURL: Invalid value: "https://a.test/": discoveryURL must be different from URL',
  ],
  [
    'no audience',
    issuer({ audiences: [] }),
    'jwt[0].issuer.audiences: Required value: at least one jwt[0].issuer.audiences is required',
  ],
  [
    'two audiences',
    issuer({ audiences: ['a', 'b'] }),
    'jwt[0].issuer.audienceMatchPolicy: Invalid value: "": audienceMatchPolicy must be MatchAny for multiple audiences',
  ],
  [
    'an audience twice',
    issuer({ audiences: ['a', 'a'], audienceMatchPolicy: 'MatchAny' }),
    'jwt[0].issuer.audiences[1]: Duplicate value: "a"',
  ],
  [
    'no certificate',
    issuer({ certificateAuthority: 'bad' }),
    'jwt[0].issuer.certificateAuthority: Invalid value: "<omitted>": data does not contain any valid RSA or ECDSA certificates',
  ],
  ['an issuer twice', configuration({ jwt: [jwt(), jwt()] }), 'jwt[1].issuer.url: Duplicate value: "https://a.test"'],
  [
    'no name',
    mapped({ username: {} }),
    'jwt[0].claimMappings.username: Required value: claim or expression is required',
  ],
  [
    'a claim without a prefix',
    mapped({ username: { claim: 'sub' } }),
    'jwt[0].claimMappings.username.prefix: Required value: prefix is required when claim is set. It can be set to an empty string to disable prefixing',
  ],
  [
    'both',
    mapped({ groups: { claim: 'a', expression: 'b' } }),
    `jwt[0].claimMappings.groups: Invalid value: "": claim and expression can't both be set`,
  ],
  [
    'an expression with a prefix',
    mapped({ groups: { prefix: 'a', expression: 'claims.b' } }),
    'jwt[0].claimMappings.groups.prefix: Invalid value: "a": may not be specified when expression is set',
  ],
  [
    'an expression about nothing',
    mapped({ uid: { expression: 'user.uid' } }),
    /^jwt\[0\]\.claimMappings\.uid\.expression: Invalid value: "user\.uid": compilation failed: ERROR: <input>:1:1: undeclared reference to 'user'/,
  ],
  [
    'an address that nobody has looked at',
    mapped({ username: { expression: 'claims.email' } }),
    /^jwt\[0\]\.claimMappings\.username\.expression: Invalid value: "claims\.email": claims\.email_verified must be used in /,
  ],
  [
    'extra of a plain name',
    mapped({ extra: [{ key: 'a', valueExpression: 'claims.a' }] }),
    'jwt[0].claimMappings.extra[0].key: Invalid value: "a": must be a domain-prefixed path (such as "acme.io/foo")',
  ],
  [
    'extra that is not its own',
    mapped({ extra: [{ key: 'b.k8s.io/A', valueExpression: '' }] }),
    '[jwt[0].claimMappings.extra[0].key: Invalid value: "b.k8s.io/A": must be lowercase, jwt[0].claimMappings.extra[0].key: Invalid value: "b.k8s.io/A": k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use, jwt[0].claimMappings.extra[0].valueExpression: Required value]',
  ],
  [
    'a rule of nothing',
    at({ claimValidationRules: [{}] }),
    'jwt[0].claimValidationRules[0]: Required value: claim or expression is required',
  ],
  [
    'a rule that is none',
    at({ claimValidationRules: [{ expression: `'a'` }] }),
    `jwt[0].claimValidationRules[0].expression: Invalid value: "'a'": must evaluate to bool`,
  ],
  [
    'a rule about what there is not',
    at({ userValidationRules: [{ expression: 'user.name == "a"' }] }),
    /compilation failed: ERROR: <input>:1:5: undefined field 'name'/,
  ],
  [
    'conditions on nobody',
    configuration({ anonymous: { enabled: false, conditions: [{ path: '/a' }] } }),
    'anonymous.conditions: Invalid value: [{"path":"/a"}]: enabled should be set to true when conditions are defined',
  ],
  ['a field nobody knows', at({ claims: {} }), 'strict decoding error: unknown field "jwt[0].claims"'],
];
for (const [name, document, message] of REFUSED) {
  // S-289
  test(`refused: ${name}`, () => {
    refuses(() => read(document), message);
  });
}

test('an address that was looked at is a name', () => {
  const username = { expression: `claims.?email_verified.orValue(true) ? claims.email : ''` };
  assert.equal(userOf({ claimMappings: { username } }, { email: 'j@x' }).username, 'j@x');
});

test('the rule about those without a credential stays as it was', () => {
  const initial = read(configuration({ anonymous: { enabled: true } }));
  const next = JSON.stringify(configuration({ anonymous: { enabled: false } }));
  assert.throws(
    () => readAuthenticationConfiguration(next, { ...OPTIONS, initial }),
    /^Error: anonymous: Forbidden: changed from initial configuration file$/,
  );
});
