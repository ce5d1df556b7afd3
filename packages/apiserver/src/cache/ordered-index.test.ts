import assert from 'node:assert/strict';
import { it } from 'node:test';
import fc from 'fast-check';
import { OrderedIndex } from './ordered-index.ts';

it('OrderedIndex agrees with a sorted array, over many chunks', () => {
  const keys = fc.integer({ min: 0, max: 4000 }).map((n) => `k/${n}`);
  fc.assert(
    fc.property(
      fc.array(fc.record({ key: keys, remove: fc.boolean() }), { maxLength: 300 }),
      fc.integer({ min: 0, max: 3000 }),
      fc.boolean(),
      keys,
      fc.option(keys, { nil: undefined }),
      (steps, filled, rising, from, to) => {
        const index = new OrderedIndex<{ key: string; n: number }>();
        const model = new Map<string, { key: string; n: number }>();
        const add = (key: string, n: number): void => {
          const item = { key, n };
          index.set(item);
          model.set(key, item);
        };
        for (let n = 0; n < filled; n++) add(`k/${rising ? n : 4000 - n}`, n);
        steps.forEach(({ key, remove }, n) => {
          if (remove) {
            index.delete(key);
            model.delete(key);
          } else add(key, 10_000 + n);
        });
        const expected = [...model.values()]
          .filter(({ key }) => key >= from && (to === undefined || key < to))
          .sort((a, b) => (a.key < b.key ? -1 : 1));
        assert.deepEqual([...index.range(from, to)].flat(), expected);
        if (to === undefined || from <= to) assert.equal(index.countRange(from, to), expected.length);
        assert.equal(index.size, model.size);
        assert.equal(index.get(from), model.get(from));
      },
    ),
    { numRuns: 200 },
  );
});
