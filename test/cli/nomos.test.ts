/** `coracle nomos`: sources checked before they are pushed, by what checks them afterwards. */
import assert from 'node:assert/strict';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
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
  assert.deepEqual([offline.code, offline.stderr], [0, '']);
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
    [['nomos'], 2, /takes: .*vet/],
    [['nomos', 'vet', '--source-format=x'], 2, /hierarchy or unstructured/],
    [['nomos', 'vet', '--namespace=a', '--source-format=hierarchy'], 2, /unstructured/],
    [['nomos', 'vet', '--no-api-server-check', '--source-format=unstructured', '--path=/nowhere'], 1, /no directory/],
  ] as const) {
    const refused = await at.run(argv);
    assert.deepEqual([refused.code, refused.stdout], [code, '']);
    assert.match(refused.stderr, text);
    assert.equal(refused.stderr.trimEnd().split('\n').length, 1);
  }
});
