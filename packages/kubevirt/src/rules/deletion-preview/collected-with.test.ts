/** The garbage collector's rule, over listed objects. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { collectedWith, type Dependent } from './collected-with.ts';

const object = (uid: string, owners: string[] = [], kind = 'Secret'): Dependent => ({
  group: '',
  kind,
  metadata: {
    uid,
    name: uid,
    ownerReferences: owners.map((owner) => ({
      apiVersion: 'v1',
      kind: owner.split('-')[1] ?? 'Secret',
      name: owner,
      uid: owner,
    })),
  },
});

// S-794
describe('collectedWith()', () => {
  const rows: [what: string, objects: Dependent[], expected: string, held?: string[]][] = [
    ['nothing without owners', [object('a')], ''],
    [
      'dependents, theirs, and those listed before them',
      [object('c', ['b']), object('b', ['a']), object('a', ['root'])],
      'c b a',
    ],
    ['not while another owner is there', [object('a', ['root', 'other']), object('other')], ''],
    ['an owner of a listed kind that is gone counts for nothing', [object('a', ['root', 'gone'])], 'a'],
    ['an owner of a kind that was not listed is taken to be there', [object('a', ['root', 'x-Node'])], ''],
    ['both owners go', [object('a', ['root', 'b']), object('b', ['root'])], 'a b'],
    ['owners that are gone, and no part of the root, are none of its business', [object('a', ['gone'])], ''],
    [
      'what is held stays, and what depends on it',
      [object('a', ['root']), object('b', ['a']), object('c', ['root'])],
      'c',
      ['a'],
    ],
    ['what is held and would not go is not reported', [object('a')], '', []],
  ];
  for (const [what, objects, expected, held = []] of rows)
    it(what, () => {
      const names = (found: readonly Dependent[]) => found.map(({ metadata }) => metadata.name).join(' ');
      const result = collectedWith('root', objects, ({ metadata }) => metadata.name === 'a' && what.includes('held'));
      assert.equal(names(result.collected), expected);
      assert.deepEqual(
        result.held.map(({ metadata }) => metadata.name),
        held,
      );
    });
});
