import assert from 'node:assert/strict';
import { test } from 'node:test';
import { versionInfo } from '../../../../apimachinery/src/meta/version-info.ts';
import type { ResourceInfo } from '../../../../apimachinery/src/types/resource.ts';
import { builtinResources } from '../builtin/builtin-resources.ts';
import {
  aggregatedDiscovery,
  apiGroup,
  apiGroupList,
  apiResourceList,
  apiVersionsDocument,
  compareVersions,
} from './discovery.ts';
import { storageVersionHashes, storedKindText } from './storage-version-hash.ts';

const pods = builtinResources().find((info) => info.resource === 'pods')!;
const custom = (version: string, overrides: Partial<ResourceInfo> = {}): ResourceInfo => ({
  ...pods,
  group: 'example.com',
  version,
  resource: 'foos',
  singular: 'foo',
  kind: 'Foo',
  shortNames: [],
  categories: [],
  subresources: [{ name: 'scale', kind: 'Scale', group: 'autoscaling', version: 'v1', verbs: ['update', 'get'] }],
  strategy: { ...pods.strategy, custom: true },
  ...overrides,
});
const infos = [...builtinResources(), custom('v1beta1'), custom('v1')];
const options = { hashes: await storageVersionHashes(infos) };

type Doc = Record<string, unknown>;
const list = (doc: Doc | undefined, key: string): Doc[] => doc?.[key] as Doc[];

// Compat Discovery, version, OpenAPI, P0, yes: storageVersionHash as kube-apiserver computes it
test('storage version hashes are those of kube-apiserver', () => {
  // Published by every cluster: kubectl get --raw /api/v1.
  const known: [string, string, string][] = [
    ['', 'pods', 'xPOwRZ+Yhw8='],
    ['', 'configmaps', 'qFsyl6wFWjQ='],
    ['', 'services', '0/CO1lhkEBI='],
    ['apps', 'deployments', '8aSe+NMegvE='],
  ];
  for (const [group, resource, hash] of known) {
    const info = infos.find((one) => one.group === group && one.resource === resource)!;
    assert.equal(options.hashes.get(storedKindText(info)), hash, resource);
  }
});

test('known hashes are not made again', async () => {
  const known = new Map([[storedKindText(pods), 'kept']]);
  assert.equal((await storageVersionHashes([pods], known)).get(storedKindText(pods)), 'kept');
});

test('/api and /apis', () => {
  assert.deepEqual(apiVersionsDocument('127.0.0.1:6443'), {
    kind: 'APIVersions',
    versions: ['v1'],
    serverAddressByClientCIDRs: [{ clientCIDR: '0.0.0.0/0', serverAddress: '127.0.0.1:6443' }],
  });
  const groups = list(apiGroupList(infos, options), 'groups');
  assert.deepEqual(
    groups.slice(0, 3).map((group) => group['name']),
    ['apiregistration.k8s.io', 'apps', 'events.k8s.io'],
  );
  assert.deepEqual(groups.at(-1), {
    name: 'example.com',
    versions: [
      { groupVersion: 'example.com/v1', version: 'v1' },
      { groupVersion: 'example.com/v1beta1', version: 'v1beta1' },
    ],
    preferredVersion: { groupVersion: 'example.com/v1', version: 'v1' },
  });
  assert.deepEqual(apiGroup(infos, { ...options, group: 'autoscaling' })?.['preferredVersion'], {
    groupVersion: 'autoscaling/v2',
    version: 'v2',
  });
  assert.equal(apiGroup(infos, { ...options, group: 'gone.example.com' }), undefined);
});

// Compat Discovery, version, OpenAPI, P1, yes: ETag and 304, group order by priority, groups that go
test('built-in groups stand in the order that was measured', async () => {
  const table = (await import('../builtin/resources.generated.json', { with: { type: 'json' } })).default;
  const measured = [...new Set(table.groupVersions.map(({ group }) => group))];
  const docs = [true, false].map((core) => aggregatedDiscovery(builtinResources(), { ...options, core }));
  const ours = docs.flatMap((doc) => list(doc, 'items')).map((item) => (item['metadata'] as Doc)['name'] ?? '');
  assert.deepEqual(ours, measured);
});

test('the group of the aggregator comes before whatever asks to be first', () => {
  const first = { group: 20_000, version: 15 };
  const priorityOf = (group: string) => (group === 'example.com' ? first : undefined);
  const names = list(aggregatedDiscovery(infos, { ...options, core: false, priorityOf }), 'items').map(
    (item) => (item['metadata'] as Doc)['name'],
  );
  assert.deepEqual(names.slice(0, 2), ['apiregistration.k8s.io', 'example.com']);
});

test('definitions in a group of Kubernetes come before its own versions', () => {
  const [v2, fake] = ['v2', 'vfake'].map((version) => custom(version, { group: 'apiextensions.k8s.io' }));
  const groups = list(apiGroupList([...builtinResources(), fake!, v2!], options), 'groups');
  const group = groups.find(({ name }) => name === 'apiextensions.k8s.io');
  assert.deepEqual(
    list(group, 'versions').map(({ version }) => version),
    ['v2', 'vfake', 'v1'],
  );
});

// Compat Discovery, version, OpenAPI, P0, yes: `/api`, `/apis`, group and resource lists with subresources
test('a resource list has each subresource as an entry of its own', () => {
  const core = apiResourceList(infos, { ...options, group: '', version: 'v1' });
  assert.equal(core?.['apiVersion'], undefined);
  assert.equal(core?.['groupVersion'], 'v1');
  const resources = list(core, 'resources');
  assert.deepEqual(
    resources.find((resource) => resource['name'] === 'pods/eviction'),
    {
      name: 'pods/eviction',
      singularName: '',
      namespaced: true,
      group: 'policy',
      version: 'v1',
      kind: 'Eviction',
      verbs: ['create'],
    },
  );
  assert.deepEqual(
    resources.find((resource) => resource['name'] === 'configmaps'),
    {
      name: 'configmaps',
      singularName: 'configmap',
      namespaced: true,
      kind: 'ConfigMap',
      verbs: ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'],
      shortNames: ['cm'],
      storageVersionHash: 'qFsyl6wFWjQ=',
    },
  );
  assert.equal(resources.find((resource) => resource['name'] === 'bindings')?.['storageVersionHash'], undefined);
  assert.equal(apiResourceList(infos, { ...options, group: 'apps', version: 'v2' }), undefined);
});

test('the aggregated form', () => {
  const core = aggregatedDiscovery(infos, { ...options, core: true });
  const items = list(core, 'items');
  assert.equal(items.length, 1);
  assert.deepEqual(items[0]?.['metadata'], {});
  const doc = aggregatedDiscovery(infos, { ...options, core: false, stale: new Set(['example.com/v1beta1']) });
  const foo = list(doc, 'items').find((item) => (item['metadata'] as Doc)['name'] === 'example.com');
  assert.deepEqual(
    list(foo, 'versions').map((version) => [version['version'], version['freshness']]),
    [
      ['v1', 'Current'],
      ['v1beta1', 'Stale'],
    ],
  );
  assert.deepEqual(list(list(foo, 'versions')[0], 'resources')[0], {
    resource: 'foos',
    responseKind: { group: 'example.com', version: 'v1', kind: 'Foo' },
    scope: 'Namespaced',
    singularResource: 'foo',
    verbs: ['delete', 'deletecollection', 'get', 'list', 'patch', 'create', 'update', 'watch'],
    subresources: [
      {
        subresource: 'scale',
        responseKind: { group: 'autoscaling', version: 'v1', kind: 'Scale' },
        verbs: ['get', 'update'],
      },
    ],
  });
});

test('compareVersions() puts stable and new first', () => {
  const versions = ['foo10', 'v1alpha1', 'v1beta2', 'v2', 'v11beta1', 'v1', 'v10', 'foo1', 'v1beta1'];
  assert.deepEqual(versions.sort(compareVersions), [
    'v10',
    'v2',
    'v1',
    'v11beta1',
    'v1beta2',
    'v1beta1',
    'v1alpha1',
    'foo1',
    'foo10',
  ]);
});

test('the version is a semantic one', () => {
  const info = versionInfo({ commit: 'abc', treeState: 'clean', platform: 'linux/arm64' });
  assert.match(info.gitVersion, /^v1\.36\.\d+\+[0-9A-Za-z.-]+$/);
  assert.deepEqual([info.major, info.minor, info.minCompatibilityMinor], ['1', '36', '35']);
  assert.deepEqual([info.gitCommit, info.gitTreeState, info.platform], ['abc', 'clean', 'linux/arm64']);
  assert.equal(versionInfo({ commit: 'abc' }).gitTreeState, '');
});
