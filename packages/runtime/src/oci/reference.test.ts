import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { defaultPullPolicy, isLocal, parseReference, referenceText } from './reference.ts';

const HEX = 'a'.repeat(64);

test('parseReference() follows the rules of docker references', () => {
  const cases: [string, string][] = [
    ['alpine', 'docker.io/library/alpine:latest'],
    ['quay.io/kubevirt/x:v1', 'quay.io/kubevirt/x:v1'],
    ['registry:5000/kubevirt/cirros:devel', 'registry:5000/kubevirt/cirros:devel'],
    ['user/x', 'docker.io/user/x:latest'],
    [`localhost:5000/x@sha256:${HEX}`, `localhost:5000/x@sha256:${HEX}`],
    [`quay.io/x:t@sha256:${HEX}`, `quay.io/x:t@sha256:${HEX}`],
    ['localhost/tiny', 'localhost/tiny:latest'],
  ];
  for (const [text, full] of cases) assert.equal(referenceText(parseReference(text)), full, text);
  assert.equal(isLocal(parseReference('localhost/tiny')), true);
  assert.equal(isLocal(parseReference('localhost:5000/tiny')), false);
  assert.equal(defaultPullPolicy(parseReference('a:latest')), 'Always');
  assert.equal(defaultPullPolicy(parseReference('a:v1')), 'IfNotPresent');
});

test('parseReference() refuses what could reach another path or host', () => {
  for (const bad of [
    '',
    '../x',
    'a/../b',
    'A/b c',
    'x@sha256:zz',
    'host/..',
    'x:..',
    'a//b',
    '/abs',
    'user@host/x',
    'x?y',
    'http://h/x',
    'a\nb',
    `x@sha512:${HEX}`,
  ])
    assert.throws(() => parseReference(bad), /invalid image reference/, bad);
});

// S-110: An image reference never becomes a path or another host.
test('what parseReference() accepts never holds a path step upwards, a query or white space', () => {
  fc.assert(
    fc.property(fc.string({ maxLength: 60 }), (text) => {
      let full: string;
      try {
        full = referenceText(parseReference(text));
      } catch {
        return;
      }
      assert.doesNotMatch(full, /\.\.\/|\/\.\.|[\s?#\\%]/);
      assert.equal(referenceText(parseReference(full)), full);
    }),
  );
});
