/** What a commit costs: objects that it does not change are not written, and are kept as they are declared all the same. */
// test:full: every case of it, for a minute or more.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { CONFIG_MAPS } from '../../packages/apimachinery/src/types/resource-types.ts';
import { CONFIG_SYNC_NAMESPACE, RESOURCE_GROUPS, ROOT_SYNCS } from '../../packages/gitops/src/kinds/kinds.ts';
import { eventually } from '../testkit/eventually.ts';
import { createRepository } from '../testkit/git-repository.ts';
import { configMapYaml, type GitOpsCluster, startGitOpsCluster } from '../testkit/gitops-cluster.ts';

const TOKEN = 'configmanagement.gke.io/token';
let at: GitOpsCluster;
before(async () => {
  at = await startGitOpsCluster();
});
after(() => at.stop());

const patchSync = (name: string, body: object) =>
  at.client.patch(ROOT_SYNCS, { namespace: CONFIG_SYNC_NAMESPACE, name }, { type: 'merge', body });

// S-953: A new commit writes what it changes and what has drifted, and nothing else; a new spec writes every object
//   anew.
test('a commit that changes one object of many writes that one, and not the others', async (t) => {
  const repository = await createRepository();
  t.after(repository.remove);
  const names = Array.from({ length: 20 }, (_, index) => `many-${index}`);
  const first = await repository.commit(
    Object.fromEntries(names.map((name) => [`${name}.yaml`, configMapYaml(name, { k: '1' })])),
  );
  await at.rootSync('many', repository.url);
  await at.synced('many', first);
  const versions = async () =>
    new Map(
      (await at.client.list(CONFIG_MAPS, { namespace: 'default' })).items.map(({ metadata }) => [
        metadata.name!,
        metadata.resourceVersion,
      ]),
    );
  // Until the watch is there everything is written.
  let commit = await repository.commit({ 'many-0.yaml': configMapYaml('many-0', { k: '2' }) });
  await at.synced('many', commit);
  await eventually('one commit writes one object', async () => {
    const beforeIt = await versions();
    commit = await repository.commit({ 'many-7.yaml': configMapYaml('many-7', { k: commit }) });
    await at.synced('many', commit);
    const now = await versions();
    const written = names.filter((name) => now.get(name) !== beforeIt.get(name));
    assert.ok(written.includes('many-7'));
    return written.length === 1 ? true : undefined;
  });
  assert.equal((await at.configMap('many-7'))?.metadata.annotations?.[TOKEN], commit);
  assert.notEqual((await at.configMap('many-5'))?.metadata.annotations?.[TOKEN], commit);
  const statuses = (await at.find(RESOURCE_GROUPS, 'many', CONFIG_SYNC_NAMESPACE))?.status?.resourceStatuses ?? [];
  assert.deepEqual(
    statuses.filter(({ sourceHash }) => sourceHash === commit.slice(0, 7)).map(({ name }) => name),
    ['many-7'],
  );
  assert.equal(statuses.length, names.length);
});

// S-953
test('what drifted while a commit is applied is put back, and a new spec writes every object', async (t) => {
  const repository = await createRepository();
  t.after(repository.remove);
  const first = await repository.commit({
    'a.yaml': configMapYaml('drifts', { k: '1' }),
    'b.yaml': configMapYaml('moves', { k: '1' }),
    'c.yaml': configMapYaml('goes-by-hand', { k: '1' }),
  });
  await at.rootSync('keeps', repository.url);
  await at.synced('keeps', first);
  const patch = (name: string, body: object) =>
    at.client.patch(CONFIG_MAPS, { namespace: 'default', name }, { type: 'merge', body });
  for (let round = 0; round < 5; round++) {
    const [commit] = await Promise.all([
      repository.commit({ 'b.yaml': configMapYaml('moves', { k: String(round) }) }),
      patch('drifts', { data: { k: 'drifted' } }),
      at.client.delete(CONFIG_MAPS, { namespace: 'default', name: 'goes-by-hand' }).catch(() => {}),
    ]);
    await at.synced('keeps', commit);
    await eventually('put back', async () => {
      const [drifts, gone] = [await at.configMap('drifts'), await at.configMap('goes-by-hand')];
      return drifts?.data?.['k'] === '1' && gone?.data?.['k'] === '1' ? true : undefined;
    });
  }
  const last = await repository.commit({ 'b.yaml': configMapYaml('moves', { k: 'last' }) });
  await at.synced('keeps', last);
  await patchSync('keeps', { spec: { override: { reconcileTimeout: '1m' } } });
  await eventually('every object is of the last commit', async () => {
    const all = await Promise.all(['drifts', 'moves', 'goes-by-hand'].map((name) => at.configMap(name)));
    return all.every((one) => one?.metadata.annotations?.[TOKEN] === last) ? true : undefined;
  });
});
