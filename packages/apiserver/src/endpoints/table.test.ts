import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PrinterColumn } from '../../../apimachinery/src/types/resource.ts';
import { tableOf } from './table.ts';

const NOW = Date.parse('2020-01-02T00:00:00Z');
const cellOf = (type: string, v: unknown, path = '.v'): unknown => {
  const column = { name: 'C', type, path, priority: 0 } as PrinterColumn;
  const object = { apiVersion: 'x/v1', kind: 'X', metadata: { name: 'n' }, v };
  const options = { version: 'v1', includeObject: 'None', now: NOW, definitions: false, metadata: {} } as const;
  const { rows } = tableOf({ columns: [column] }, { ...options, objects: [object] });
  return (rows as { cells: unknown[] }[])[0]!.cells[1];
};

/** Of each value what a column shows: string, integer, number, boolean, date. */
const CASES: readonly (readonly [unknown, ...(readonly unknown[])])[] = [
  ['a', 'a', null, null, null, '<invalid>'],
  ['', '', null, null, null, '<unknown>'],
  ['5', '5', null, null, null, '<invalid>'],
  ['2020-01-01T00:00:00Z', '2020-01-01T00:00:00Z', null, null, null, '24h'],
  ['2020-01-01', '2020-01-01', null, null, null, '<invalid>'],
  [1, '1', 1, 1, null, null],
  [1.5, '1.5', 1, 1.5, null, null],
  [true, 'true', null, null, true, null],
  [null, '<no value>', null, null, null, null],
  [1e21, '1e+21', -(2n ** 63n), 1e21, null, null],
  [[1, 2], '[1,2]', null, null, null, null],
  [[], '[]', null, null, null, null],
  [{ b: '<', a: 1 }, '{"a":1,"b":"\\u003c"}', null, null, null, null],
];

for (const [value, ...shown] of CASES) {
  // Compat Reading, P2, yes: values of custom columns: text shows anything, the others their own type, dates
  //   `<unknown>` or `<invalid>`
  test(`columns of ${JSON.stringify(value)}`, () => {
    const types = ['string', 'integer', 'number', 'boolean', 'date'];
    assert.deepEqual(
      types.map((type) => cellOf(type, value)),
      shown,
    );
  });
}

// Compat Reading, P2, yes: paths of columns take `..name` and `['a','b']`; a column called Name stands beside the name
test('a column that is called Name does not replace the name', () => {
  const column: PrinterColumn = { name: 'Name', type: 'string', path: '.v', priority: 0 };
  const object = { apiVersion: 'x/v1', kind: 'X', metadata: { name: 'n' }, v: 'other' };
  const options = { version: 'v1', includeObject: 'None', now: NOW, definitions: true, metadata: {} } as const;
  const table = tableOf({ columns: [column] }, { ...options, objects: [object] });
  assert.deepEqual(
    (table['columnDefinitions'] as { name: string }[]).map(({ name }) => name),
    ['Name', 'Name'],
  );
  assert.deepEqual((table['rows'] as { cells: unknown[] }[])[0]!.cells, ['n', 'other']);
});
