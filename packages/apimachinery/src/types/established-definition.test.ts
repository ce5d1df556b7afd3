import assert from 'node:assert/strict';
import { test } from 'node:test';
import { establishedDefinition, rootSchema } from './established-definition.ts';

const NOW = Date.UTC(2026, 0, 2, 3, 4, 5);

test('establishedDefinition() accepts the names and stores the first version', () => {
  const { metadata, spec, status } = establishedDefinition(
    { group: 'a.example', kind: 'Lamp', versions: [{ name: 'v1' }, { name: 'v1beta1', deprecated: true }] },
    NOW,
  );
  assert.deepEqual(metadata, { name: 'lamps.a.example' });
  assert.equal(spec.scope, 'Namespaced');
  assert.deepEqual(spec.versions, [
    { name: 'v1', served: true, storage: true },
    { name: 'v1beta1', deprecated: true, served: true, storage: false },
  ]);
  assert.deepEqual(status?.acceptedNames, spec.names);
  assert.deepEqual(spec.names, { plural: 'lamps', singular: 'lamp', kind: 'Lamp', listKind: 'LampList' });
  assert.deepEqual(
    status?.conditions?.map(({ type, status, lastTransitionTime }) => [type, status, lastTransitionTime]),
    ['NamesAccepted', 'Established'].map((type) => [type, 'True', '2026-01-02T03:04:05Z']),
  );
  assert.deepEqual(status?.storedVersions, ['v1']);
});

test('establishedDefinition() takes a plural, a scope and a version to store', () => {
  const { metadata, spec, status } = establishedDefinition(
    {
      ...{ group: 'a.example', kind: 'Policy', plural: 'policies', scope: 'Cluster', storage: 'v1' },
      ...{ shortNames: ['pol'], categories: ['all'], approval: 'https://a.example/1', labels: { c: 'd' } },
      versions: [{ name: 'v1alpha1' }, { name: 'v1', schema: rootSchema('A policy.', {}, ['spec']) }],
    },
    NOW,
  );
  const annotations = { 'api-approved.kubernetes.io': 'https://a.example/1' };
  assert.deepEqual(metadata, { name: 'policies.a.example', labels: { c: 'd' }, annotations });
  assert.equal(status?.conditions?.at(-1)?.message, 'approved in https://a.example/1');
  assert.deepEqual([spec.scope, spec.names.shortNames, spec.names.categories], ['Cluster', ['pol'], ['all']]);
  assert.deepEqual(
    spec.versions.map(({ storage }) => storage),
    [false, true],
  );
  assert.deepEqual(status?.storedVersions, ['v1']);
  assert.deepEqual(spec.versions[1]?.schema?.openAPIV3Schema?.['required'], ['spec']);
});
