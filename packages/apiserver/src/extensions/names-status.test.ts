import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Crd, CrdNames, CrdStatus } from '../kinds/custom/crd.ts';
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

// Compat CustomResourceDefinitions, P0, yes: conditions NamesAccepted, Established, NonStructuralSchema, Terminating
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

/** A definition of its own names, changed: a name that it has in another place is in use, as anybody else's is. */
const MOVED: readonly (readonly [Partial<CrdNames>, Partial<CrdNames>, string])[] = [
  [{ shortNames: ['x'] }, { singular: 'x' }, 'SingularConflict: "x" is already in use'],
  [{}, { shortNames: ['as', 'a', 'b'] }, 'ShortNamesConflict: ["as" is already in use, "a" is already in use]'],
  [{}, { kind: 'ASList', listKind: 'K' }, 'KindConflict: "ASList" is already in use'],
  [{}, { listKind: 'AS' }, 'ListKindConflict: "AS" is already in use'],
  [{ shortNames: ['x'] }, { shortNames: ['y', 'x'] }, 'NoConflicts: no conflicts found'],
];
for (const [before, after, said] of MOVED) {
  // S-307
  test(`definitionStatus() of ${JSON.stringify(before)} changed to ${JSON.stringify(after)}: ${said}`, () => {
    const first = definitionStatus(crd(names('as', before)), NOBODY, NOW);
    const { reason, message } = definitionStatus(crd(names('as', after), first), NOBODY, NOW).conditions[0]!;
    assert.equal(`${reason}: ${message}`, said);
  });
}

test('definitionStatus() says nothing new of a definition that has all the names it wants', () => {
  const first = definitionStatus(crd(names('as')), NOBODY, NOW);
  const conflict = definitionStatus(crd(names('as', { singular: 'b' }), first), takenNames([names('bs')]), NOW);
  assert.equal(conflict.conditions[0]!.reason, 'SingularConflict');
  assert.deepEqual(definitionStatus(crd(names('as'), conflict), NOBODY, NOW).conditions, conflict.conditions);
});

// S-307: A definition whose converter cannot be trusted is not established; a name that a definition has in another
//   place is in use.
// Compat CustomResourceDefinitions, P1, yes: Established/InvalidCABundle; a name that a definition has in another place
//   is in use
test('definitionStatus() does not establish a definition whose converter cannot be trusted', () => {
  const wanted = crd(names('as'));
  const bundled = (caBundle: string): Crd => ({
    ...wanted,
    spec: {
      ...wanted.spec,
      conversion: { strategy: 'Webhook', webhook: { clientConfig: { url: 'https://c', caBundle } } },
    },
  });
  const status = definitionStatus(bundled(btoa('none')), NOBODY, NOW);
  const { status: established, reason, message } = status.conditions[1]!;
  assert.deepEqual(
    [established, reason, message],
    ['False', 'InvalidCABundle', 'The conversion webhook CABundle is invalid'],
  );
  assert.deepEqual(reasons(definitionStatus(crd(names('as'), status), NOBODY, NOW)), [
    'NamesAccepted/NoConflicts',
    'Established/InitialNamesAccepted',
  ]);
});

test('definitionStatus() of an unchanged definition is what it was', () => {
  const first = definitionStatus(crd(names('as', { categories: ['all'] })), NOBODY, NOW);
  const again = definitionStatus(crd(names('as', { categories: ['all'] }), first), NOBODY, '2027-01-01T00:00:00Z');
  assert.deepEqual(again, first);
});
