import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Crd, CrdNames, CrdStatus } from '../../api/kinds/custom/crd.ts';
import { definitionStatus, takenNames } from './names-status.ts';

const NOW = '2026-01-01T00:00:00Z';
const names = (plural: string, more: Partial<CrdNames> = {}): CrdNames => ({
  plural,
  singular: plural.slice(0, -1),
  kind: plural.toUpperCase(),
  listKind: `${plural.toUpperCase()}List`,
  ...more,
});
const crd = (wanted: CrdNames, status?: CrdStatus): Crd => ({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `${wanted.plural}.example.com`, generation: 3 },
  spec: { group: 'example.com', scope: 'Cluster', names: wanted, versions: [] },
  ...(status && { status }),
});
const reasons = (status: CrdStatus): string[] => status.conditions!.map(({ type, reason }) => `${type}/${reason}`);
const NOBODY = takenNames([]);

test('definitionStatus() accepts free names and establishes', () => {
  const status = definitionStatus(crd(names('as')), NOBODY, NOW);
  assert.deepEqual(reasons(status), ['NamesAccepted/NoConflicts', 'Established/InitialNamesAccepted']);
  assert.deepEqual(status.acceptedNames, names('as'));
  assert.equal(status.observedGeneration, 3);
});

const CONFLICTS: readonly (readonly [CrdNames, string])[] = [
  [names('as', { kind: 'K', listKind: 'KList' }), 'PluralConflict'],
  [names('bs', { singular: 'as' }), 'SingularConflict'],
  [names('bs', { shortNames: ['x'] }), 'ShortNamesConflict'],
  [names('bs', { kind: 'AS' }), 'KindConflict'],
  [names('bs', { listKind: 'ASList' }), 'ListKindConflict'],
];
for (const [wanted, reason] of CONFLICTS) {
  test(`definitionStatus() reports ${reason} and takes over what is free`, () => {
    const taken = takenNames([{ plural: 'as', kind: 'AS', listKind: 'ASList', shortNames: ['x'] }]);
    const status = definitionStatus(crd(wanted), taken, NOW);
    assert.deepEqual(reasons(status), [`NamesAccepted/${reason}`, 'Established/NotAccepted']);
    assert.match(status.conditions[0]!.message!, /^".*" is already in use$/);
  });
}

test('definitionStatus() leaves an established definition established when a new name is taken', () => {
  const before = definitionStatus(crd(names('bs')), NOBODY, NOW);
  const taken = takenNames([names('as', { shortNames: ['x'] })]);
  const after = definitionStatus(crd(names('bs', { shortNames: ['x'] }), before), taken, '2026-01-02T00:00:00Z');
  assert.deepEqual(reasons(after), ['NamesAccepted/ShortNamesConflict', 'Established/InitialNamesAccepted']);
  assert.deepEqual(after.acceptedNames, names('bs'));
  const times = after.conditions.map(({ lastTransitionTime }) => lastTransitionTime);
  assert.deepEqual(times, ['2026-01-02T00:00:00Z', NOW], 'only what changed has a new time');
});

test('definitionStatus() of an unchanged definition is what it was', () => {
  const first = definitionStatus(crd(names('as', { categories: ['all'] })), NOBODY, NOW);
  const again = definitionStatus(crd(names('as', { categories: ['all'] }), first), NOBODY, '2027-01-01T00:00:00Z');
  assert.deepEqual(again, first);
});
