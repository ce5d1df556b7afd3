import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { filterProblems, removedKeys } from './key-filters.ts';

// S-592: A clone keeps the labels and annotations that its filters let through, and gets its own UUID, serial and MAC
//   addresses.
describe('removedKeys()', () => {
  const keys = ['prefix1/a', 'prefix1/b', 'prefix2/a', 'key', 'key1', 'my-key', 'a.b'];
  const cases: [name: string, filters: string[] | undefined, kept: string[]][] = [
    ['no filters keep all', undefined, keys],
    ['an empty list keeps none', [], []],
    ['a star keeps all', ['*'], keys],
    ['a whole key, not what begins or ends like it', ['key'], ['key']],
    ['a beginning', ['prefix*'], ['prefix1/a', 'prefix1/b', 'prefix2/a']],
    ['all but one', ['*', '!key'], keys.filter((key) => key !== 'key')],
    ['all but a beginning', ['*', '!prefix1/*'], ['prefix2/a', 'key', 'key1', 'my-key', 'a.b']],
    ['exclusion wins, whatever the order', ['!prefix1/b', 'prefix1/*'], ['prefix1/a']],
    ['exclusions alone keep none', ['!key'], []],
    ['all excluded', ['*', '!*'], []],
    ['a dot is a dot', ['a.b'], ['a.b']],
    ['no expression', ['k.y', '.*'], []],
    ['an empty filter is no key', [''], []],
  ];
  for (const [name, filters, kept] of cases) {
    it(name, () => {
      const removed = removedKeys(keys, filters);
      assert.deepEqual(
        keys.filter((key) => !removed.includes(key)),
        kept,
      );
    });
  }
});

describe('filterProblems()', () => {
  const negation =
    'spec.labels filter %s is invalid: cannot contain a negation character (!); FilterRules: NegationChar can be only used at the beginning of the filter';
  const wildcard =
    'spec.labels filter %s is invalid: cannot contain a wildcard character (*); FilterRules: WildcardChar can be only at the end of the filter';
  const cases: [filter: string, problems: string[]][] = [
    ['*', []],
    ['!', ['a negation character is not a valid filter']],
    ['a', []],
    ['some/key*', []],
    ['!some/key*', []],
    ['!*', []],
    ['', []],
    ['some!key', [negation]],
    ['!!key', [negation]],
    ['key!', [negation]],
    ['*key', [wildcard]],
    ['so*me', [wildcard]],
    ['**', [wildcard]],
    ['a!*b', [negation, wildcard]],
  ];
  for (const [filter, problems] of cases) {
    it(JSON.stringify(filter), () =>
      assert.deepEqual(
        filterProblems([filter], 'spec.labels'),
        problems.map((problem) => problem.replace('%s', filter)),
      ),
    );
  }
  it('says nothing of filters that are not there', () => assert.deepEqual(filterProblems(undefined, 'x'), []));
});
