import assert from 'node:assert/strict';
import { test } from 'node:test';
import { originPatternProblem } from './origin-pattern.ts';

// S-483: Patterns of `--cors-allowed-origins` are tied to both ends of the host, as upstream asks.
test('a pattern of origins has to be tied to both ends of the host', () => {
  for (const good of ['^http://foo.com$', '^http://foo.com', '://foo.com$', '//foo.com(:|$)', '(^foo.com$)']) {
    assert.equal(originPatternProblem(good), undefined, good);
  }
  for (const bad of ['foo.com', '^foo.com', '//foo.com', 'foo.com$', 'foo.com(:|$)', '.*']) {
    assert.match(originPatternProblem(bad) ?? '', /does not pin to start\/end of host in the origin header/, bad);
  }
  assert.match(originPatternProblem('') ?? '', /^empty value in --cors-allowed-origins/);
  assert.match(originPatternProblem('(') ?? '', /takes regular expressions/);
});
