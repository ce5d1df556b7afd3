import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { ResourceType } from '../../../apimachinery/src/meta/gvk.ts';
import type { KubeObject } from '../../../apimachinery/src/meta/object.ts';
import { refText } from '../plan/object-ref.ts';
import type { SyncKind } from '../status/sync-identity.ts';
import { type DeclareOptions, declareSource, parseSource, type SourceSet } from './declare-source.ts';
import { clusterNamesOf } from './select-cluster.ts';

type Files = Readonly<Record<string, object | string>>;
type Options = Partial<Omit<DeclareOptions, 'sync'>> & { readonly kind?: SyncKind };

const KINDS: Readonly<Record<string, ResourceType<KubeObject>>> = {
  'v1/ConfigMap': { group: '', version: 'v1', resource: 'configmaps', kind: 'ConfigMap', namespaced: true },
  'v1/Namespace': { group: '', version: 'v1', resource: 'namespaces', kind: 'Namespace', namespaced: false },
  'rbac/v1/Role': { group: 'rbac', version: 'v1', resource: 'clusterroles', kind: 'Role', namespaced: false },
};

function setOf(files: Files, { kind = 'RootSync', ...options }: Options = {}): SourceSet {
  const { format = 'hierarchy', dir = '' } = options;
  const tree = Object.entries(files).map(([path, content]) => ({
    path: dir === '' ? path : `${dir}/${path}`,
    bytes: Buffer.from(typeof content === 'string' ? content : JSON.stringify(content)),
  }));
  const namespace = kind === 'RootSync' ? 'config-management-system' : 'own';
  return declareSource(parseSource({ files: tree, unread: [] }, { format, dir }), {
    format,
    dir,
    sync: { kind, namespace, name: 'sync' },
    kinds: (apiVersion, name) => KINDS[`${apiVersion}/${name}`],
    clusterName: '',
    liveNamespaces: () => [],
    ...options,
  });
}

const declaredIn = (set: SourceSet): string[] => set.enabled.map(({ ref }) => refText(ref)).sort();
const codesOf = ({ errors, passing }: SourceSet): string => [...errors, ...passing].map(({ code }) => code).join();

const object = (kind: string, name: string, more: { [field: string]: unknown } = {}, spec?: object): object => {
  const { annotations, labels, ...metadata } = more;
  const group = {
    Cluster: 'clusterregistry.k8s.io/v1alpha1',
    ConfigMap: 'v1',
    Namespace: 'v1',
    Odd: 'odd/v1',
    Role: 'rbac/v1',
  }[kind];
  return {
    apiVersion: group ?? 'configmanagement.gke.io/v1',
    kind,
    metadata: {
      name,
      ...metadata,
      ...(annotations !== undefined && { annotations }),
      ...(labels !== undefined && { labels }),
    },
    ...(spec && { spec }),
  };
};
const map = (name: string, more = {}) => object('ConfigMap', name, more);
const ns = (name: string, more = {}) => object('Namespace', name, more);
const by = (name: string) => ({ annotations: { 'configmanagement.gke.io/namespace-selector': name } });
const byCluster = (name: string) => ({ annotations: { 'configmanagement.gke.io/cluster-selector': name } });
const forCluster = (names: string) => ({ annotations: { 'configsync.gke.io/cluster-name-selector': names } });
const labelled = (env: string) => ({ labels: { env } });
const selects = (kind: string, name: string, env: string, spec = {}) =>
  object(kind, name, {}, { selector: { matchLabels: { env } }, ...spec });
const REPO: Files = { 'system/repo.yaml': object('Repo', 'repo', {}, { version: '1.0.0' }) };
const TREE: Files = {
  ...REPO,
  'namespaces/top.yaml': map('top'),
  'namespaces/shop/ns.yaml': ns('shop', labelled('prod')),
  'namespaces/shop/a.yaml': map('a'),
  'namespaces/eng/mid.yaml': map('mid'),
  'namespaces/eng/dev/ns.yaml': ns('dev', labelled('test')),
};
const hierarchyConfig = (resource: object): Files => ({
  'system/h.yaml': object('HierarchyConfig', 'h', {}, { resources: [resource] }),
});

test('format hierarchy: a directory with a Namespace has its own objects, and those of the directories above', () => {
  const set = setOf({
    ...TREE,
    'cluster/role.yaml': object('Role', 'r'),
    'other/x.yaml': 'not: [read',
    'z.yaml': 'a: [',
  });
  assert.equal(codesOf(set), '');
  assert.equal(set.isWhole, true);
  assert.deepEqual(declaredIn(set), [
    'ConfigMap, dev/mid',
    'ConfigMap, dev/top',
    'ConfigMap, shop/a',
    'ConfigMap, shop/top',
    'Namespace, /dev',
    'Namespace, /shop',
    'Role.rbac, /r',
  ]);
  const dev = set.enabled.find(({ ref }) => ref.name === 'dev')!.object.metadata;
  assert.deepEqual(dev.labels, { env: 'test', 'eng.tree.hnc.x-k8s.io/depth': '1', 'dev.tree.hnc.x-k8s.io/depth': '0' });
  assert.deepEqual(dev.annotations, { 'hnc.x-k8s.io/managed-by': 'configmanagement.gke.io' });
  // The same below a directory of the repository.
  assert.deepEqual(declaredIn(setOf(TREE, { dir: 'a/b' })).length, 6);
});

/** Beside a source that is as it should be: what is refused is held, with everything of its name; the rest stays. */
const IN_TREE: readonly [
  what: string,
  files: Files,
  codes: string,
  missing?: readonly string[],
  added?: readonly string[],
][] = [
  [
    'metadata.namespace of the directory',
    { 'namespaces/shop/b.yaml': map('b', { namespace: 'shop' }) },
    '',
    [],
    ['ConfigMap, shop/b'],
  ],
  ['metadata.namespace of another one', { 'namespaces/shop/b.yaml': map('b', { namespace: 'dev' }) }, '1009'],
  ['a Namespace in namespaces/', { 'namespaces/ns.yaml': ns('x') }, '1019'],
  ['a Namespace in a directory of another name', { 'namespaces/eng/odd/ns.yaml': ns('x') }, '1020'],
  [
    'a Namespace twice',
    { 'namespaces/shop/again.yaml': ns('shop') },
    '2012,2012',
    ['ConfigMap, shop/a', 'ConfigMap, shop/top', 'Namespace, /shop'],
  ],
  ['a directory of a name that no namespace has', { 'namespaces/Eng/b.yaml': map('b') }, '1028'],
  ['an object of the cluster in namespaces/', { 'namespaces/shop/r.yaml': object('Role', 'r') }, '1039'],
  ['an object of a namespace in cluster/', { 'cluster/b.yaml': map('b') }, '1039'],
  ['a Namespace in cluster/', { 'cluster/x/ns.yaml': ns('x') }, '1039'],
  ['a Repo elsewhere', { 'cluster/h.yaml': object('HierarchyConfig', 'h') }, '1039'],
  ['a Cluster elsewhere', { 'cluster/c.yaml': object('Cluster', 'c') }, '1039'],
  ['an object in clusterregistry/', { 'clusterregistry/b.yaml': map('b') }, '1039'],
  ['an unknown kind in system/', { 'system/b.yaml': object('Odd', 'b') }, '1039'],
  [
    'a directory below a namespace',
    { 'namespaces/shop/deep/b.yaml': map('b'), 'namespaces/shop/deep/er/c.yaml': map('c') },
    '1003,1003',
  ],
  ['objects without a namespace below', { 'namespaces/empty/b.yaml': map('b') }, '1044'],
  [
    'a label of depth',
    { 'namespaces/eng/x/ns.yaml': ns('x', { labels: { 'eng.tree.hnc.x-k8s.io/depth': '1' } }) },
    '1057',
  ],
  [
    'a kind that is not inherited',
    { ...hierarchyConfig({ kinds: ['ConfigMap'], hierarchyMode: 'none' }) },
    '1007,1007',
    ['ConfigMap, dev/mid', 'ConfigMap, dev/top', 'ConfigMap, shop/top'],
  ],
  ['a kind that is inherited by default', hierarchyConfig({ kinds: ['ConfigMap'], hierarchyMode: 'default' }), ''],
  ['an unknown mode', hierarchyConfig({ kinds: ['Secret'], hierarchyMode: 'some' }), '1042'],
  ['a mode for Namespaces', hierarchyConfig({ kinds: ['Namespace'] }), '1041'],
  ['a mode for no kind', hierarchyConfig({ group: 'apps' }), '1041'],
  [
    'a mode for a kind of the cluster',
    { ...hierarchyConfig({ group: 'rbac', kinds: ['Role'] }), 'cluster/r.yaml': object('Role', 'r') },
    '1046',
    [],
    ['Role.rbac, /r'],
  ],
  ['a HierarchyConfig without sense', hierarchyConfig('x' as never), '1006'],
  ['an object declared above and here', { 'namespaces/shop/b.yaml': map('top') }, '1029', ['ConfigMap, shop/top']],
  [
    'a reserved annotation, inherited',
    { 'namespaces/b.yaml': map('b', { annotations: { 'configsync.gke.io/x': 'y' } }) },
    '1010',
  ],
  ['a label that is no text, inherited', { 'namespaces/b.yaml': map('b', { labels: { a: 1 } }) }, '1054'],
  [
    'labels that are no map',
    { 'namespaces/eng/x/ns.yaml': ns('x', { labels: 'a' }) },
    '1054',
    [],
    ['ConfigMap, x/mid', 'ConfigMap, x/top'],
  ],
  ['a kind that is not known', { 'namespaces/shop/b.yaml': object('Odd', 'b') }, '1021'],
  [
    'an inherited object of a NamespaceSelector',
    { 'namespaces/s.yaml': selects('NamespaceSelector', 's', 'prod'), 'namespaces/b.yaml': map('b', by('s')) },
    '',
    [],
    ['ConfigMap, shop/b'],
  ],
  ['an unknown NamespaceSelector', { 'namespaces/b.yaml': map('b', by('s')) }, '1013'],
  [
    'a NamespaceSelector that is not above',
    { 'namespaces/eng/s.yaml': selects('NamespaceSelector', 's', 'prod'), 'namespaces/b.yaml': map('b', by('s')) },
    '1013',
  ],
  [
    'a NamespaceSelector in a namespace',
    { 'namespaces/shop/s.yaml': selects('NamespaceSelector', 's', 'prod') },
    '1038',
  ],
  ['a NamespaceSelector in cluster/', { 'cluster/s.yaml': selects('NamespaceSelector', 's', 'prod') }, '1039'],
  [
    'a NamespaceSelector that is dynamic',
    { 'namespaces/s.yaml': selects('NamespaceSelector', 's', 'prod', { mode: 'dynamic' }) },
    '1014',
  ],
  ['a NamespaceSelector that is empty', { 'namespaces/s.yaml': object('NamespaceSelector', 's', {}, {}) }, '1014'],
  [
    'two NamespaceSelectors of a name',
    {
      'namespaces/s.yaml': selects('NamespaceSelector', 's', 'a'),
      'namespaces/eng/s.yaml': selects('NamespaceSelector', 's', 'b'),
    },
    '1029,1029',
  ],
  [
    'a selector within a namespace',
    { 'namespaces/s.yaml': selects('NamespaceSelector', 's', 'prod'), 'namespaces/shop/b.yaml': map('b', by('s')) },
    '1053',
  ],
  ['a Namespace with a NamespaceSelector', { 'namespaces/x/ns.yaml': ns('x', by('s')) }, '1004'],
  ['an object of the cluster with a NamespaceSelector', { 'cluster/r.yaml': object('Role', 'r', by('s')) }, '1004'],
];
// S-931
for (const [what, files, codes, missing = [], added = []] of IN_TREE)
  test(`format hierarchy: ${what} is ${codes || 'as it should be'}`, () => {
    const set = setOf({ ...TREE, ...files });
    assert.equal(codesOf(set), codes, JSON.stringify(set.errors));
    const expected = [...declaredIn(setOf(TREE)).filter((one) => !missing.includes(one)), ...added].sort();
    assert.deepEqual(declaredIn(set), expected);
    // What is refused stays where it is: its place in the inventory is known, or nothing is pruned.
    if (codes !== '') assert.ok(!set.isWhole || set.held.length > 0);
  });

// S-931
for (const [what, repo, code] of [
  ['no Repo', {}, '1017'],
  ['two', { ...REPO, 'system/again.yaml': object('Repo', 'again', {}, { version: '1.0.0' }) }, '2012'],
  ['a Repo of another version', { 'system/repo.yaml': object('Repo', 'repo', {}, { version: '2.0.0' }) }, '1027'],
] as const)
  test(`format hierarchy: with ${what} nothing is done`, () => {
    const { 'system/repo.yaml': _repo, ...rest } = TREE;
    assert.throws(() => setOf({ ...rest, ...repo }), new RegExp(`^SyncFailure: KNV${code}: `));
  });

const REGISTRY: Files = {
  'clusterregistry/c.yaml': object('Cluster', 'east', labelled('prod')),
  'clusterregistry/s.yaml': selects('ClusterSelector', 'prod', 'prod'),
};
const PLAIN: Files = {
  'a.yaml': map('a'),
  'b.yaml': map('b', { namespace: 'shop' }),
  'shop.yaml': ns('shop', labelled('prod')),
};
const CLUSTERS: readonly [what: string, files: Files, cluster: string, expected: readonly string[], codes?: string][] =
  [
    ['a name in the list', { 'x.yaml': map('x', forCluster('west, EAST')) }, 'east', ['ConfigMap, default/x']],
    ['a name that is not in the list', { 'x.yaml': map('x', forCluster('west')) }, 'east', []],
    ['no name', { 'x.yaml': map('x', forCluster('west,')) }, '', []],
    [
      'a selector that means it',
      { ...REGISTRY, 'x.yaml': map('x', byCluster('prod')) },
      'east',
      ['ConfigMap, default/x'],
    ],
    ['a selector that does not', { ...REGISTRY, 'x.yaml': map('x', byCluster('prod')) }, 'west', []],
    [
      'a Namespace that is for others',
      { 'n.yaml': ns('n', forCluster('west')), 'x.yaml': map('x', { namespace: 'n' }) },
      'east',
      [],
    ],
    [
      'a Namespace that is declared for each',
      {
        'n.yaml': ns('n', forCluster('west')),
        'm.yaml': ns('n', forCluster('east')),
        'x.yaml': map('x', { namespace: 'n' }),
      },
      'east',
      ['ConfigMap, n/x', 'Namespace, /n'],
    ],
    ['an unknown selector', { 'x.yaml': map('x', byCluster('odd')) }, 'east', [], '1013'],
    [
      'an empty selector',
      { 's.yaml': object('ClusterSelector', 'odd'), 'x.yaml': map('x', byCluster('odd')) },
      'east',
      [],
      '1014,1013',
    ],
    [
      'a selector without sense',
      {
        's.yaml': object(
          'ClusterSelector',
          'odd',
          {},
          { selector: { matchExpressions: [{ key: 'a', operator: 'Is' }] } },
        ),
      },
      'east',
      [],
      '1014',
    ],
    [
      'two selectors of a name',
      { ...REGISTRY, 's.yaml': selects('ClusterSelector', 'prod', 'x') },
      'east',
      [],
      '1029,1029',
    ],
    [
      'both annotations',
      {
        ...REGISTRY,
        'x.yaml': map('x', { annotations: { ...byCluster('prod').annotations, ...forCluster('east').annotations } }),
      },
      'east',
      [],
      '1066',
    ],
    [
      'a selector that is selected',
      { 's.yaml': object('ClusterSelector', 's', forCluster('east'), { selector: { matchLabels: { a: 'b' } } }) },
      'east',
      [],
      '1004',
    ],
  ];
for (const [what, files, clusterName, expected, codes = ''] of CLUSTERS)
  for (const kind of ['RootSync', 'RepoSync'] as const) {
    if (kind === 'RepoSync' && JSON.stringify(files).includes('Namespace"')) continue;
    // S-932: Objects that name clusters, by their names or by a ClusterSelector, are applied to those alone, in both
    //   formats and by both kinds of syncs.
    test(`${kind}, a cluster and ${what}: ${codes || (expected.length > 0 ? 'in' : 'out')}`, () => {
      const own = kind === 'RootSync' ? PLAIN : { 'a.yaml': map('a') };
      const options = { format: 'unstructured', kind, clusterName } as const;
      const set = setOf({ ...own, ...files }, options);
      assert.equal(codesOf(set), codes);
      const inOwn = expected.map((one) => (kind === 'RepoSync' ? one.replace('default/', 'own/') : one));
      assert.deepEqual(declaredIn(set), [...declaredIn(setOf(own, options)), ...inOwn].sort());
      if (codes !== '') assert.equal(set.isWhole, false);
    });
  }

// S-932
test('format hierarchy: a namespace that is for other clusters goes with its objects, and no directory is at fault', () => {
  const files = { ...TREE, 'namespaces/eng/dev/ns.yaml': ns('dev', forCluster('east')) };
  assert.deepEqual(
    [codesOf(setOf(files)), declaredIn(setOf(files))],
    ['', ['ConfigMap, shop/a', 'ConfigMap, shop/top', 'Namespace, /shop']],
  );
  assert.deepEqual(declaredIn(setOf(files, { clusterName: 'east' })), declaredIn(setOf(TREE)));
  const twice = { ...files, 'namespaces/eng/dev/for-west.yaml': ns('dev', forCluster('west')) };
  assert.deepEqual(declaredIn(setOf(twice, { clusterName: 'west' })), declaredIn(setOf(TREE)));
});

test('the clusters of a source are those of its registry and its annotations', () => {
  const files = { ...REGISTRY, 'a.yaml': map('a', forCluster(' west,east, north')), 'b.yaml': map('b') };
  const tree = Object.entries(files).map(([path, content]) => ({ path, bytes: Buffer.from(JSON.stringify(content)) }));
  const { objects } = parseSource({ files: tree, unread: [] }, { format: 'unstructured', dir: '' });
  assert.deepEqual(clusterNamesOf(objects), ['east', 'north', 'west']);
});

const LIVE = [
  { name: 'live', labels: { env: 'prod' } },
  { name: 'shop', labels: { env: 'prod' } },
  { name: 'other', labels: {} },
];
const prod = (mode?: string) => ({
  's.yaml': selects('NamespaceSelector', 's', 'prod', mode === undefined ? {} : { mode }),
});
const NAMESPACES: readonly [what: string, files: Files, expected: readonly string[], codes?: string][] = [
  ['static', { ...prod(), 'x.yaml': map('x', by('s')) }, ['ConfigMap, shop/x']],
  ['static by name', { ...prod('static'), 'x.yaml': map('x', by('s')) }, ['ConfigMap, shop/x']],
  ['dynamic', { ...prod('dynamic'), 'x.yaml': map('x', by('s')) }, ['ConfigMap, live/x', 'ConfigMap, shop/x']],
  ['that means nobody', { 's.yaml': selects('NamespaceSelector', 's', 'odd'), 'x.yaml': map('x', by('s')) }, []],
  ['of an unknown mode', { ...prod('odd'), 'x.yaml': map('x', by('s')) }, [], '1014'],
  ['that is empty', { 's.yaml': object('NamespaceSelector', 's'), 'x.yaml': map('x', by('s')) }, [], '1014'],
  ['that is not there', { 'x.yaml': map('x', by('s')) }, [], '1013'],
  ['beside a namespace', { ...prod(), 'x.yaml': map('x', { ...by('s'), namespace: 'shop' }) }, [], '1053'],
  ['for an object of the cluster', { ...prod(), 'x.yaml': object('Role', 'x', by('s')) }, [], '1004'],
  [
    'for a cluster',
    { 's.yaml': object('NamespaceSelector', 's', forCluster('east'), { selector: { matchLabels: { a: 'b' } } }) },
    [],
    '1004',
  ],
  [
    'of a name of another',
    { ...prod(), 't.yaml': selects('NamespaceSelector', 's', 'x'), 'x.yaml': map('x', by('s')) },
    [],
    '1029,1029',
  ],
];
// S-933
for (const [what, files, expected, codes = ''] of NAMESPACES)
  test(`format unstructured: a NamespaceSelector ${what}: ${codes || expected.length}`, () => {
    const options = { format: 'unstructured', liveNamespaces: () => LIVE } as const;
    const set = setOf({ ...PLAIN, ...files }, options);
    assert.equal(codesOf(set), codes);
    assert.deepEqual(declaredIn(set), [...declaredIn(setOf(PLAIN, options)), ...expected].sort());
    const free = set.enabled.filter((one) => one.needsNoNamespace).map(({ ref }) => ref.namespace);
    assert.deepEqual(free, what === 'dynamic' ? ['live'] : []);
    assert.equal(set.dynamic.length, what === 'dynamic' ? 1 : 0);
  });

test('a RepoSync selects no namespaces, and format unstructured has no Repo', () => {
  assert.equal(codesOf(setOf(prod(), { format: 'unstructured', kind: 'RepoSync' })), '1058');
  assert.equal(codesOf(setOf({ 'x.yaml': map('x', by('s')) }, { format: 'unstructured', kind: 'RepoSync' })), '');
  assert.equal(codesOf(setOf({ ...REPO, ...hierarchyConfig({}) }, { format: 'unstructured' })), '1032,1032');
});

// S-934: What inheritance and selectors make of a source is bounded.
test('what inheritance and selectors make is bounded', () => {
  const list = (kind: string, count: number) => ({
    apiVersion: 'v1',
    kind: 'List',
    items: Array.from({ length: count }, (_, at) =>
      object(kind, `o${at}`, kind === 'Namespace' ? labelled('prod') : by('s')),
    ),
  });
  const many = { ...prod(), 'n.yaml': list('Namespace', 150), 'm.yaml': list('ConfigMap', 150) };
  assert.throws(() => setOf(many, { format: 'unstructured' }), /KNV2009.*20000/);
  const dirs = Object.fromEntries(
    Array.from({ length: 150 }, (_, at) => [`namespaces/n${at}/ns.yaml`, ns(`n${at}`, labelled('prod'))]),
  );
  const tree = { ...REPO, 'namespaces/s.yaml': prod()['s.yaml'], 'namespaces/m.yaml': list('ConfigMap', 150), ...dirs };
  assert.throws(() => setOf(tree), /KNV2009.*20000/);
});

// S-931
test('in any tree every object has its namespace, or an error names its file', () => {
  const name = fc.constantFrom('a', 'b', 'c', 'B');
  const path = fc
    .tuple(fc.constantFrom('namespaces', 'cluster', 'system', 'else'), fc.array(name, { maxLength: 4 }))
    .map(([top, names]) => [top, ...names].join('/'));
  const one = fc.record({ path, kind: fc.constantFrom('ConfigMap', 'Namespace', 'Role', 'Odd'), name });
  fc.assert(
    fc.property(fc.array(one, { maxLength: 12 }), (objects) => {
      const files = Object.fromEntries(
        objects.map(({ path, kind, name }, at) => [`${path}/${at}.yaml`, object(kind, name)]),
      );
      const set = setOf({ ...REPO, ...files });
      const known = new Set([
        ...set.enabled.map((declared) => declared.path),
        ...[...set.errors, ...set.passing].flatMap(({ errorResources = [] }) =>
          errorResources.map(({ sourcePath }) => sourcePath),
        ),
      ]);
      for (const { ref, path = '' } of set.enabled) {
        if (ref.kind === 'ConfigMap') {
          const at = path.split('/').slice(0, -1);
          const holder = set.enabled.find(
            (declared) => declared.ref.kind === 'Namespace' && declared.ref.name === ref.namespace,
          );
          assert.ok(holder?.path?.startsWith(at.join('/')), `${path} in ${ref.namespace}`);
        }
      }
      for (const file of Object.keys(files)) {
        // A Namespace that is refused takes what inherits for it alone along.
        const isLost = !known.has(file) && !file.startsWith('else/');
        if (isLost) assert.equal(set.isWhole, false, file);
      }
    }),
  );
});
