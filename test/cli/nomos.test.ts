/** `coracle nomos`: sources checked before they are pushed, by what checks them afterwards. */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { parseAllDocuments } from 'yaml';
import { openWorkspace } from './workspace.ts';

const write = (dir: string, files: Readonly<Record<string, string>>): string => {
  mkdirSync(dir, { recursive: true });
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(dir, name)), { recursive: true });
    writeFileSync(join(dir, name), content);
  }
  return dir;
};
const configMap = (name: string, more: object = {}): string =>
  JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, ...more } });

// S-930: `coracle nomos vet` finds in a directory what a sync would find in a commit of it: every error with its code,
//   its file and its object, with the kinds of a server or without one.
test('nomos vet names each error with its file; kinds come from the server, or not', async (t) => {
  const at = openWorkspace(t);
  const source = write(join(at.dir, 'source'), {
    'a.yaml': configMap('a'),
    'b/unknown.yaml': 'apiVersion: example.org/v1\nkind: Unknown\nmetadata:\n  name: x\n',
    '.github/workflows/x.yaml': 'on: push',
  });
  const vet = (...argv: string[]) =>
    at.run(['nomos', 'vet', '--source-format=unstructured', `--path=${source}`, ...argv]);
  const offline = await vet('--no-api-server-check');
  assert.equal(offline.code, 0);
  assert.match(offline.stderr, /^not checked, .*Unknown\.example\.org\n$/);
  assert.match(offline.stdout, /^✅ /);

  const unreachable = await vet();
  assert.equal(unreachable.code, 1);
  assert.match(unreachable.stderr, /^error: the server cannot be asked .*--no-api-server-check.*\n$/);
  assert.equal((await at.up()).code, 0);
  const asked = await vet('--kubeconfig', at.kubeconfig);
  assert.deepEqual([asked.code, asked.stdout], [1, '']);
  assert.match(
    asked.stderr,
    /^KNV1021: Unknown\.example\.org, .*\n {2}source: b\/unknown\.yaml\nerror: 1 problem found\n$/,
  );

  const version = await at.run(['nomos', 'version', '--kubeconfig', at.kubeconfig]);
  assert.equal(version.code, 0, version.stderr);
  const [head, cluster, own] = version.stdout.trimEnd().split('\n');
  assert.match(head!, /^CURRENT +CLUSTER_CONTEXT_NAME +COMPONENT +VERSION$/);
  assert.match(cluster!, /^\* +\S+ +Config Sync +v\S+\+coracle$/);
  assert.match(own!, /^ +<nomos CLI> +\d/);
  const none = await at.run(['nomos', 'version', '--contexts=', '--kubeconfig', at.kubeconfig]);
  assert.equal(none.stdout.trimEnd().split('\n').length, 2);
  assert.equal((await at.run(['down', '--data-dir', at.data])).code, 0);
  const gone = await at.run(['nomos', 'version', '--kubeconfig', at.kubeconfig]);
  assert.deepEqual([gone.code, /<error: .+>/.test(gone.stdout)], [0, true]);

  write(source, { 'c.yaml': configMap('c', { uid: 'x' }), 'd.yaml': 'a: [' });
  symlinkSync('/etc/hostname', join(source, 'e.yaml'));
  const wrong = await vet('--no-api-server-check');
  assert.equal(wrong.code, 1);
  assert.deepEqual(wrong.stderr.match(/^KNV\d+|source: .*|^error: .*$/gm), [
    'KNV2001',
    'source: e.yaml',
    'KNV1006',
    'source: d.yaml',
    'KNV1045',
    'source: c.yaml',
    'error: 3 problems found',
  ]);
  const ofNamespace = await at.run(['nomos', 'vet', '--path', source, '--namespace=shop', '--no-api-server-check']);
  assert.equal(ofNamespace.code, 1);
  for (const [argv, code, text] of [
    [['nomos'], 1, /takes: .*vet/],
    [['nomos', 'vet', '--source-format=x'], 1, /hierarchy or unstructured/],
    [['nomos', 'vet', '--namespace=a', '--source-format=hierarchy'], 1, /unstructured/],
    [['nomos', 'vet', '--no-api-server-check', '--source-format=unstructured', '--path=/nowhere'], 1, /no directory/],
  ] as const) {
    const refused = await at.run(argv);
    assert.deepEqual([refused.code, refused.stdout], [code, '']);
    assert.match(refused.stderr, text);
    assert.equal(refused.stderr.trimEnd().split('\n').length, 1);
  }
});

// S-935: `coracle nomos init` makes a source of format hierarchy; `vet` and `hydrate` say and write what each cluster
//   gets of a source, and files of others are not overwritten.
test('nomos init, vet and hydrate: a source of format hierarchy, and what each cluster gets of it', async (t) => {
  const at = openWorkspace(t);
  const source = join(at.dir, 'fleet');
  const nomos = (...argv: string[]) => at.run(['nomos', ...argv]);
  assert.equal((await nomos('init', '--path', source)).code, 0);
  const again = await nomos('init', '--path', source);
  assert.deepEqual([again.code, again.stdout], [1, '']);
  assert.match(again.stderr, /^error: .* is not empty: .*--force.*\n$/);
  assert.equal((await nomos('init', '--path', source, '--force')).code, 0);
  const vet = (...argv: string[]) => nomos('vet', '--path', source, '--no-api-server-check', ...argv);
  assert.deepEqual([(await vet()).code, (await vet()).stderr], [0, '']);

  const east = { annotations: { 'configsync.gke.io/cluster-name-selector': 'east' } };
  write(source, {
    'namespaces/all.yaml': configMap('all'),
    'namespaces/shop/ns.yaml':
      '{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop","labels":{"kept":"yes"}}}',
    'namespaces/shop/east.yaml': configMap('only-east', east),
    'cluster/role.yaml':
      'apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: a:b\nrules: []\n',
  });
  const output = join(at.dir, 'out');
  const hydrate = (...argv: string[]) =>
    nomos('hydrate', '--path', source, '--no-api-server-check', `--output=${output}`, ...argv);
  const made = await hydrate();
  assert.deepEqual([made.code, made.stderr], [0, '']);
  const files = (): string[] =>
    readdirSync(output, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name).slice(output.length + 1))
      .sort();
  const common = ['clusterrole_a:b.yaml', 'namespace_shop.yaml', 'shop/configmap_all.yaml'];
  assert.deepEqual(files(), [
    ...common.map((name) => `defaultcluster/${name}`),
    ...[...common, 'shop/configmap_only-east.yaml'].map((name) => `east/${name}`),
  ]);
  const read = (path: string) => parseAllDocuments(readFileSync(join(output, path), 'utf8')).map((one) => one.toJS());
  assert.deepEqual(read('east/namespace_shop.yaml')[0].metadata, { name: 'shop', labels: { kept: 'yes' } });
  assert.deepEqual(read('east/shop/configmap_only-east.yaml')[0].metadata, { name: 'only-east', namespace: 'shop' });
  // What an earlier run wrote is replaced; what somebody else wrote is not.
  assert.equal((await hydrate('--clusters=east', '--format=json')).code, 0);
  assert.deepEqual(
    files(),
    [...common, 'shop/configmap_only-east.yaml'].map((name) => name.replace('.yaml', '.json')),
  );
  writeFileSync(join(output, 'precious.txt'), 'x');
  const kept = await hydrate();
  assert.match(kept.stderr, /^error: .*precious\.txt.*\n$/);
  assert.ok(existsSync(join(output, 'shop/configmap_all.json')));
  const flat = join(at.dir, 'flat.yaml');
  assert.equal((await hydrate('--flat', '--clusters=defaultcluster', `--output=${flat}`)).code, 0);
  assert.equal(parseAllDocuments(readFileSync(flat, 'utf8')).length, 3);
  assert.equal((await vet('--keep-output', `--output=${join(at.dir, 'kept')}`)).code, 0);
  assert.ok(existsSync(join(at.dir, 'kept/east/namespace_shop.yaml')));
  assert.match((await hydrate('--clusters=north')).stderr, /names no cluster/);

  const many = await vet('--threshold=3');
  assert.deepEqual([many.code, many.stderr.match(/KNV\d+: \S+/g)], [1, ['KNV1070: east']]);
  assert.equal((await vet('--threshold', '--max-inventory-size=100000')).code, 0);
  assert.match((await vet('--max-inventory-size=10')).stderr, /KNV1071: the inventory of defaultcluster/);
  write(source, {
    'namespaces/empty/x.yaml': configMap('x'),
    'namespaces/shop/y.yaml': configMap('y', { ...east, uid: 'y' }),
  });
  const wrong = await vet();
  assert.equal(wrong.code, 1);
  assert.deepEqual(wrong.stderr.match(/^KNV\d+|(source|clusters): .*|^error: .*$/gm), [
    'KNV1044',
    'source: namespaces/empty/x.yaml',
    'KNV1045',
    'source: namespaces/shop/y.yaml',
    'clusters: east',
    'error: 2 problems found',
  ]);
  write(source, { 'cluster/odd.yaml': 'apiVersion: example.org/v1\nkind: Odd\nmetadata:\n  name: odd\n' });
  assert.match((await vet()).stderr, /not checked.*Odd\.example\.org/);
  assert.match(
    (await hydrate(`--output=${join(at.dir, 'odd')}`)).stderr,
    /error: objects of Odd\.example\.org are left out/,
  );
});
