import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { StateIndex } from './state-index.ts';

const place = { namespace: 'ns', name: 'vm' };
const made = () =>
  new StateIndex<readonly string[]>((keys) => (keys.length === 0 ? undefined : new Map(keys.map((key) => [key, '']))));
const found = (index: StateIndex<readonly string[]>, key: string): string =>
  [...index.withKey(key)].map(({ name, pending }) => `${name}${pending ? ' pending' : ''}`).join();

test('a key counts from the decision on, and goes only when what takes it away is durable', () => {
  const index = made();
  index.decided(place, { revision: 1, object: ['a'] });
  assert.equal(found(index, 'a'), 'vm pending');
  index.settled(place, 1, true);
  assert.equal(found(index, 'a'), 'vm');
  index.decided(place, { revision: 2, object: ['b'] });
  assert.equal(found(index, 'a'), 'vm');
  assert.equal(found(index, 'b'), 'vm pending');
  index.settled(place, 2, false);
  assert.equal(found(index, 'b'), '');
  index.decided(place, { revision: 3, object: [] });
  assert.equal(found(index, 'a'), 'vm');
  index.settled(place, 3, true);
  assert.equal(found(index, 'a'), '');
  assert.equal(index.withKey('a').size, 0);
});

test('what is deleted goes when that is durable', () => {
  const index = made();
  index.set(place, { revision: 1, object: ['a'] });
  index.settled(place, 2, true);
  assert.equal(found(index, 'a'), '');
});

/** One step of a history of one object: a decided state, or the end of the oldest that waits. */
type Step = { readonly keys: readonly string[] } | { readonly durable: boolean };
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ keys: fc.subarray(['a', 'b', 'c']) }),
  fc.record({ durable: fc.boolean() }),
);
const history = fc.array(fc.tuple(fc.constantFrom('one', 'two', 'three'), step), { maxLength: 60 });

// S-705
test('an object has a key while any state has it that is stored or may still be', () => {
  fc.assert(
    fc.property(history, (steps) => {
      const index = made();
      let revision = 0;
      const states = new Map<string, { revision: number; keys: readonly string[]; durable: boolean }[]>();
      for (const [name, each] of steps) {
        const at = { namespace: 'ns', name };
        const known = states.get(name) ?? [];
        if ('keys' in each) {
          revision++;
          index.decided(at, { revision, object: each.keys });
          states.set(name, [...known, { revision, keys: each.keys, durable: false }]);
        } else {
          const oldest = known.find(({ durable }) => !durable);
          if (!oldest) continue;
          index.settled(at, oldest.revision, each.durable);
          oldest.durable = true;
          states.set(
            name,
            known.filter((state) => (each.durable ? state.revision >= oldest.revision : state !== oldest)),
          );
        }
        for (const key of ['a', 'b', 'c']) {
          const expected = [...states]
            .filter(([, all]) => all.some(({ keys }) => keys.includes(key)))
            .map(([one, all]) => `${one}${all.some((s) => s.durable && s.keys.includes(key)) ? '' : ' pending'}`);
          assert.deepEqual(found(index, key).split(',').filter(Boolean).sort(), expected.sort());
          assert.equal(index.withKey(key).size, expected.length);
        }
      }
    }),
  );
});
