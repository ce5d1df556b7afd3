import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { ObjectRef } from '../kinds/kinds.ts';
import { refId } from '../plan/object-ref.ts';
import { entryBytes, layOut } from './inventory-layout.ts';

const ref = (number: number): ObjectRef => ({
  group: '',
  kind: 'ConfigMap',
  namespace: 'n',
  name: `m${String(number).padStart(3, '0')}`,
});
const ENTRY = entryBytes(ref(0));
const sizes = (parts: readonly (readonly ObjectRef[])[]): number[] => parts.map(({ length }) => length);
const range = (from: number, to: number): ObjectRef[] =>
  Array.from({ length: to - from }, (_, index) => ref(from + index));

test('entries fill one part after the other, stay where they are, and move only to make parts fewer', () => {
  const three = layOut([], range(0, 25), 10 * ENTRY);
  assert.deepEqual(sizes(three), [10, 10, 5]);
  const grown = layOut(three, [...range(3, 25), ...range(30, 40)], 10 * ENTRY);
  assert.deepEqual(sizes(grown), [10, 10, 10, 2]);
  assert.deepEqual(grown[0]!.slice(0, 7), three[0]!.slice(3));
  const shrunk = layOut(grown, [...range(3, 12), ...range(20, 23)], 10 * ENTRY);
  assert.deepEqual(sizes(shrunk), [10, 2]);
  assert.deepEqual(layOut(shrunk, [], 10 * ENTRY), [[]]);
  assert.deepEqual(sizes(layOut([range(0, 15)], range(0, 16), 10 * ENTRY)), [15, 1], 'too full as it is');
});

// S-952: The inventory of a sync is in several objects before it grows past what one may hold: the first has upstream's
//   name and label, a kill at any write loses no entry, it shrinks again, and all of it goes at the end.
test('whatever was there: exactly what is wanted, once each, within the bound, and nothing but the last part is moved', () => {
  const set = fc.uniqueArray(fc.integer({ min: 0, max: 60 }), { maxLength: 40 });
  fc.assert(
    fc.property(fc.array(set, { maxLength: 6 }), fc.integer({ min: 1, max: 9 }), (steps, room) => {
      let parts: ObjectRef[][] = [];
      for (const numbers of steps) {
        const before = parts;
        const wanted = numbers.map(ref);
        parts = layOut(before, wanted, room * ENTRY);
        assert.deepEqual(parts.flat().map(refId).sort(), wanted.map(refId).sort());
        for (const part of parts) assert.ok(part.length <= room, `${part.length} of ${room}`);
        const where = new Map(parts.flatMap((part, at) => part.map((one) => [refId(one), at] as const)));
        for (const [at, part] of before.entries())
          for (const one of part) {
            const now = where.get(refId(one));
            assert.ok(now === undefined || now === at || (now < at && at >= parts.length), `${at} to ${now}`);
          }
      }
    }),
  );
});
