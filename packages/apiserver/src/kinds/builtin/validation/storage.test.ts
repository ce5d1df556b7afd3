import assert from 'node:assert/strict';
import { test } from 'node:test';
import { validationErrors } from '../strategies/strategy.fixture.ts';

type Json = Record<string, unknown>;

const errors = (resource: string, object: Json, old?: Json): string[] =>
  validationErrors('storage.k8s.io/v1', resource, object, old);

test('a StorageClass: who makes its volumes, how, and where they may lie', () => {
  const of = (more: Json, old?: Json): string[] => errors('storageclasses', { provisioner: 'p.io/x', ...more }, old);
  const topology = (...matchLabelExpressions: Json[]): Json => ({ matchLabelExpressions });
  const zone = { key: 'zone', values: ['a', 'b'] };
  assert.deepEqual(of({ parameters: { a: 'b' }, allowedTopologies: [topology(zone)] }), []);
  assert.deepEqual(of({ provisioner: '' }), ['provisioner: Required value']);
  assert.match(of({ provisioner: 'a b' })[0] ?? '', /^provisioner: Invalid value: "a b": name part must consist/);
  assert.deepEqual(of({ parameters: { '': 'x' } }), ['parameters: Invalid value: "": field can not be empty.']);
  assert.deepEqual(of({ parameters: { a: 'x'.repeat(256 * 1024) } }), [
    'parameters: Too long: may not be more than 262144 bytes',
  ]);
  const many = Object.fromEntries(Array.from({ length: 513 }, (_, i) => [`k${i}`, 'v']));
  assert.deepEqual(of({ parameters: many }), ['parameters: Too long: may not be more than 512 bytes']);
  assert.deepEqual(
    of({ allowedTopologies: [topology({ key: 'z', values: [] }), topology({ key: 'z', values: ['a', 'a'] })] }),
    [
      'allowedTopologies[0].matchLabelExpressions[0].values: Required value',
      'allowedTopologies[1].matchLabelExpressions[0].values[1]: Duplicate value: "a"',
    ],
  );
  assert.deepEqual(of({ allowedTopologies: [topology(zone, zone)] }), [
    'allowedTopologies[0].matchLabelExpressions[1].key: Duplicate value: "zone"',
  ]);
  assert.deepEqual(of({ allowedTopologies: [topology(zone), topology({ key: 'zone', values: ['b', 'a'] })] }), [
    'allowedTopologies[1].matchLabelExpressions: Duplicate value: ""',
  ]);
  assert.deepEqual(of({ parameters: { a: 'c' } }, { provisioner: 'p.io/x', parameters: { a: 'b' } }), [
    'parameters: Forbidden: updates to parameters are forbidden.',
  ]);
});
