/** Drift: what is declared is put back, what nobody declared is left alone, and a fight is reported. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { CONFIG_MAPS } from '../../packages/apimachinery/src/types/resource-types.ts';
import { eventually } from '../testkit/eventually.ts';
import { createRepository, type GitRepository, serveRepository } from '../testkit/git-repository.ts';
import { configMapYaml, type GitOpsCluster, startGitOpsCluster } from '../testkit/gitops-cluster.ts';

let at: GitOpsCluster;
let repository: GitRepository;
before(async () => {
  at = await startGitOpsCluster();
  repository = await createRepository();
  const commit = await repository.commit({
    'a.yaml': configMapYaml('kept', { k: 'declared' }),
    'b.yaml': configMapYaml(
      'ignored',
      { k: 'declared' },
      { annotations: { 'client.lifecycle.config.k8s.io/mutation': 'ignore' } },
    ),
    'c.yaml': configMapYaml('fought', { k: 'declared' }),
    'd.yaml': configMapYaml(
      'let-go',
      { k: 'declared' },
      { annotations: { 'configmanagement.gke.io/managed': 'disabled' } },
    ),
  });
  await at.rootSync('root-sync', repository.url);
  await at.synced('root-sync', commit);
});
after(async () => {
  await at.stop();
  repository.remove();
  assert.deepEqual(at.cluster.errors, []);
});
const patch = (name: string, body: object) =>
  at.client.patch(CONFIG_MAPS, { namespace: 'default', name }, { type: 'merge', body });
const untilData = (name: string, data: object | undefined) =>
  eventually(`${name} is ${JSON.stringify(data)}`, async () =>
    JSON.stringify((await at.configMap(name))?.data) === JSON.stringify(data) ? true : undefined,
  );

// S-908: What is declared is put back when it is changed, deleted or stripped of its metadata, also while the source is
//   down; fields that nobody declared stay, and so do objects that carry a copy of the metadata. `mutation: ignore` and
//   `managed: disabled` mean what they mean upstream; a fight is KNV2005.
test('a declared field is put back, one that nobody declared stays', async () => {
  await patch('kept', { data: { k: 'changed', theirs: 'x' } });
  await untilData('kept', { k: 'declared', theirs: 'x' });
  await patch('kept', { data: { theirs: null } });
});

// S-908
test('a deleted object is made anew, and metadata that was taken off comes back', async () => {
  await at.client.delete(CONFIG_MAPS, { namespace: 'default', name: 'kept' });
  await untilData('kept', { k: 'declared' });
  await patch('kept', {
    metadata: {
      labels: { 'applyset.kubernetes.io/part-of': null },
      annotations: { 'configmanagement.gke.io/managed': null },
    },
  });
  const back = await eventually('metadata is back', async () => {
    const { metadata } = (await at.configMap('kept'))!;
    return metadata.labels?.['applyset.kubernetes.io/part-of'] &&
      metadata.annotations?.['configmanagement.gke.io/managed']
      ? metadata
      : undefined;
  });
  assert.equal(back.annotations?.['configmanagement.gke.io/managed'], 'enabled');
});

// S-908
test('an object that carries the metadata of the sync and is not declared is deleted; a copy of it is not', async () => {
  const { labels, annotations } = (await at.configMap('kept'))!.metadata;
  const make = (name: string, more: Record<string, string>) =>
    at.client.create(CONFIG_MAPS, {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name, namespace: 'default', labels: labels!, annotations: { ...annotations, ...more } },
    });
  await make('copy', {});
  await make('stray', { 'configsync.gke.io/resource-id': '_configmap_default_stray' });
  await make('owned-by-other', {
    'configsync.gke.io/resource-id': '_configmap_default_owned-by-other',
    'configsync.gke.io/manager': ':root_other',
  });
  await at.gone(CONFIG_MAPS, 'stray', 'default');
  assert.ok((await at.configMap('copy')) && (await at.configMap('owned-by-other')));
});

// S-908
test('mutation: ignore: changes stay, a deletion does not', async () => {
  await patch('ignored', {
    data: { k: 'changed' },
    metadata: { annotations: { 'configmanagement.gke.io/token': null } },
  });
  await eventually(
    'the token is back',
    async () => (await at.configMap('ignored'))?.metadata.annotations?.['configmanagement.gke.io/token'],
  );
  assert.deepEqual((await at.configMap('ignored'))?.data, { k: 'changed' });
  const commit = await repository.commit({
    'b.yaml': configMapYaml(
      'ignored',
      { k: 'other' },
      { annotations: { 'client.lifecycle.config.k8s.io/mutation': 'ignore' } },
    ),
  });
  await at.synced('root-sync', commit);
  assert.deepEqual((await at.configMap('ignored'))?.data, { k: 'changed' });
  await at.client.delete(CONFIG_MAPS, { namespace: 'default', name: 'ignored' });
  await untilData('ignored', { k: 'other' });
});

// S-908
test('managed: disabled: never made, and let go where it was', async () => {
  assert.equal(await at.configMap('let-go'), undefined);
  const managed = await repository.commit({ 'd.yaml': configMapYaml('let-go', { k: 'declared' }) });
  await at.synced('root-sync', managed);
  const disabled = await repository.commit({
    'd.yaml': configMapYaml(
      'let-go',
      { k: 'declared' },
      { annotations: { 'configmanagement.gke.io/managed': 'disabled' } },
    ),
  });
  await at.synced('root-sync', disabled);
  const left = await at.configMap('let-go');
  assert.deepEqual([left?.metadata.annotations ?? {}, left?.metadata.labels ?? {}], [{}, {}]);
  assert.ok(!(await at.inventory('root-sync'))?.some(({ name }) => name === 'let-go'));
  await patch('let-go', { data: { k: 'mine' } });
  await patch('kept', { data: { k: 'changed' } });
  await untilData('kept', { k: 'declared' });
  assert.deepEqual((await at.configMap('let-go'))?.data, { k: 'mine' });
});

// S-908
test('a fight is KNV2005', async () => {
  for (let round = 0; round < 6; round++) {
    await patch('fought', { data: { k: `round ${round}` } });
    await untilData('fought', { k: 'declared' });
  }
  const fighting = await at.until(
    'root-sync',
    'a fight',
    ({ status }) => status?.sync?.errors?.some(({ code }) => code === '2005') === true,
  );
  assert.match(
    fighting.status?.sync?.errors?.find(({ code }) => code === '2005')?.errorMessage ?? '',
    /default\/fought/,
  );
  assert.deepEqual(fighting.status?.conditions?.find(({ type }) => type === 'Syncing')?.errorSourceRefs, [
    'status.sync.errors',
  ]);
});

// S-908
test('drift is put back while the source is down', async (t) => {
  const other = await createRepository();
  t.after(() => other.remove());
  const commit = await other.commit({ 'a.yaml': configMapYaml('of-http', { k: 'declared' }) });
  const server = await serveRepository(other);
  t.after(() => server.stop());
  await at.rootSync('by-http', server.url);
  await at.synced('by-http', commit);
  server.down = 503;
  await at.failing('by-http', ['2004']);
  await patch('of-http', { data: { k: 'changed' } });
  await untilData('of-http', { k: 'declared' });
  server.down = undefined;
  const next = await other.commit({ 'a.yaml': configMapYaml('of-http', { k: 'next' }) });
  await at.synced('by-http', next);
});
