/** `--cluster-name`: what selectors of clusters go by, of `coracle up` and of a plan. */
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { eventually } from '../testkit/eventually.ts';
import { createRepository } from '../testkit/git-repository.ts';
import { openWorkspace } from './workspace.ts';

const map = (name: string, annotations: object): string =>
  JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: 'default', annotations } });
const FILES = {
  'cluster.yaml':
    'apiVersion: clusterregistry.k8s.io/v1alpha1\nkind: Cluster\nmetadata: {name: east, labels: {region: one}}\n',
  'selector.yaml':
    'apiVersion: configmanagement.gke.io/v1\nkind: ClusterSelector\nmetadata: {name: region-one}\nspec: {selector: {matchLabels: {region: one}}}\n',
  'everywhere.yaml': map('everywhere', {}),
  'by-name.yaml': map('by-name', { 'configsync.gke.io/cluster-name-selector': 'east,north' }),
  'by-selector.yaml': map('by-selector', { 'configmanagement.gke.io/cluster-selector': 'region-one' }),
  'elsewhere.yaml': map('elsewhere', { 'configsync.gke.io/cluster-name-selector': 'west' }),
};

// S-982: `--cluster-name` of `coracle up` and `coracle sync plan` is what selectors of clusters go by.
test('up --cluster-name: objects of this cluster are applied and say its name, those of others are not; a plan may take another', async (t) => {
  const at = openWorkspace(t);
  const repository = await createRepository();
  t.after(() => repository.remove());
  await repository.commit(FILES);
  const up = await at.up('--cluster-name', 'east');
  assert.equal(up.code, 0, up.stderr);
  const sync = {
    apiVersion: 'configsync.gke.io/v1beta1',
    kind: 'RootSync',
    metadata: { name: 'root-sync', namespace: 'config-management-system' },
    spec: { sourceFormat: 'unstructured', git: { repo: repository.url, branch: 'main', auth: 'none', period: '1s' } },
  };
  const made = await at.kubectl(['apply', '-f', '-'], JSON.stringify(sync));
  assert.equal(made.code, 0, made.stderr);
  const managed = async (): Promise<string> =>
    (
      await at.kubectl([
        'get',
        'configmaps',
        '-l',
        'app.kubernetes.io/managed-by=configmanagement.gke.io',
        '-o',
        'jsonpath={range .items[*]}{.metadata.name}={.metadata.annotations.configmanagement\\.gke\\.io/cluster-name} {end}',
      ])
    ).stdout.trim();
  await eventually('the sync is through', async () => {
    const { stdout } = await at.kubectl([
      'get',
      'rootsync',
      'root-sync',
      '-n',
      'config-management-system',
      '-o',
      'jsonpath={.status.lastSyncedCommit}',
    ]);
    return stdout === '' ? undefined : stdout;
  });
  assert.equal(await managed(), 'by-name=east by-selector=east everywhere=east');

  const source = join(at.dir, 'source');
  mkdirSync(source);
  for (const [name, content] of Object.entries(FILES)) writeFileSync(join(source, name), content);
  const plan = await at.run(['sync', 'plan', '--path', source, '--cluster-name', 'west', '--data-dir', at.data]);
  assert.equal(plan.code, 0, plan.stderr);
  assert.match(plan.stdout, /\ncreate +default\/configmap\/elsewhere\n/);
  for (const name of ['by-name', 'by-selector'])
    assert.match(plan.stdout, new RegExp(`\\nprune +default/configmap/${name}\\n`));
});
