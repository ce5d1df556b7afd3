import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as resourceTypes from '../../../../apimachinery/src/types/resource-types.ts';
import { builtinResource, builtinResources } from './builtin-resources.ts';

const core = (resource: string) => builtinResource({ group: '', version: 'v1', resource }) ?? assert.fail(resource);
const of = (group: string, resource: string, version = 'v1') =>
  builtinResource({ group, version, resource }) ?? assert.fail(resource);

// S-021: All v1 groups of the built-in kinds are served from derived tables; the committed tables are what the tool
//   derives (checked where the facts are at hand).
test('every resource has a schema of its own kind and at most one entry', () => {
  const seen = new Set<string>();
  for (const info of builtinResources()) {
    const key = `${info.group}/${info.version}/${info.resource}`;
    assert.ok(!seen.has(key), key);
    seen.add(key);
    assert.ok(info.schema['x-coracle-name']?.endsWith(`.${info.kind}`), key);
    assert.equal(info.listKind, `${info.kind}List`);
  }
  assert.equal(builtinResources(), builtinResources());
});

test('each typed resource constant is a resource of the table', () => {
  for (const [name, type] of Object.entries(resourceTypes)) {
    const info = builtinResource(type);
    assert.equal(info?.kind, type.kind, name);
    assert.equal(info?.namespaced, type.namespaced, name);
  }
});

// Compat Discovery, version, OpenAPI, P0, yes: short names, singular names, categories
test('pods as discovery knows them', () => {
  const pods = core('pods');
  assert.deepEqual(pods.shortNames, ['po']);
  assert.deepEqual(pods.categories, ['all']);
  assert.deepEqual(pods.verbs, ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch']);
  assert.deepEqual(
    pods.subresources.find((sub) => sub.name === 'eviction'),
    { name: 'eviction', kind: 'Eviction', group: 'policy', version: 'v1', verbs: ['create'] },
  );
  assert.deepEqual(
    pods.columns.map((column) => `${column.name}${column.priority > 0 ? '*' : ''}`),
    ['Ready', 'Status', 'Restarts', 'Age', 'IP*', 'Node*', 'Nominated Node*', 'Readiness Gates*'],
  );
});

test('strategies', () => {
  assert.equal(core('pods').strategy.generation, 'spec');
  assert.equal(core('configmaps').strategy.generation, 'none');
  assert.equal(of('discovery.k8s.io', 'endpointslices').strategy.generation, 'except-status');
  assert.equal(core('pods').strategy.deleteReturnsObject, true);
  assert.equal(core('configmaps').strategy.deleteReturnsObject, false);
  assert.equal(of('coordination.k8s.io', 'leases').strategy.allowCreateOnUpdate, true);
  assert.equal(of('coordination.k8s.io', 'leases').strategy.allowUnconditionalUpdate, false);
  assert.equal(core('pods').strategy.allowUnconditionalUpdate, true);
  assert.equal(core('namespaces').strategy.names, 'label');
  assert.equal(of('rbac.authorization.k8s.io', 'roles').strategy.names, 'path-segment');
  assert.equal(core('pods').strategy.statusSubresource, true);
  assert.equal(core('secrets').strategy.statusSubresource, false);
  assert.equal(of('networking.k8s.io', 'servicecidrs').strategy.statusMetadata, 'reset');
  assert.equal(of('events.k8s.io', 'events').storageVersion, 'v1');
});

// Compat Reading, P0, yes: field selectors of each kind, and of custom kinds
test('field selectors read what they name', () => {
  const pod = {
    spec: { nodeName: 'n1', hostNetwork: true },
    status: { phase: 'Running', podIPs: [{ ip: 'a' }, { ip: 'b' }] },
  };
  const fields = core('pods').selectableFields;
  assert.equal(fields['spec.nodeName']?.(pod), 'n1');
  assert.equal(fields['spec.hostNetwork']?.(pod), 'true');
  assert.equal(fields['status.podIPs']?.(pod), 'a,b');
  assert.equal(fields['status.podIP']?.(pod), '');
  assert.equal(core('nodes').selectableFields['spec.unschedulable']?.({}), 'false');
  assert.equal(core('events').selectableFields['involvedObject.uid']?.({ regarding: { uid: 'u' } }), 'u');
  assert.equal(
    of('events.k8s.io', 'events').selectableFields['regarding.uid']?.({ involvedObject: { uid: 'u' } }),
    'u',
  );
  assert.equal(core('events').selectableFields['source']?.({ reportingComponent: 'c' }), 'c');
});

test('kinds without columns of their own leave them to the general Created At', () => {
  assert.deepEqual(of('rbac.authorization.k8s.io', 'roles').columns, []);
  assert.deepEqual(of('apiextensions.k8s.io', 'customresourcedefinitions').columns, []);
  assert.equal(core('events').columns.at(-1)?.name, 'Name');
});
