/** Namespaces that are used and not declared: scenarios of upstream's namespace_strategy_test.go. */
// test:full: every case of it, for a minute or more.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { NAMESPACES } from '../../packages/apimachinery/src/types/resource-types.ts';
import { CONFIG_SYNC_NAMESPACE, ROOT_SYNCS } from '../../packages/gitops/src/kinds/kinds.ts';
import { eventually } from '../testkit/eventually.ts';
import { configMapYaml, type GitOpsCluster, startGitOpsCluster } from '../testkit/gitops-cluster.ts';
import { createSources } from '../testkit/gitops-sources.ts';

const MANAGER = 'configsync.gke.io/manager';
const DETACH = 'client.lifecycle.config.k8s.io/deletion';
const sources = createSources();
let at: GitOpsCluster;
before(async () => {
  at = await startGitOpsCluster();
});
after(async () => {
  await at.stop();
  await sources.removeAll();
  assert.deepEqual(at.cluster.errors, []);
});
/** Who has a namespace, and whether it says that it is not deleted with its declaration; undefined when it is not there. */
const stateOf = async (name: string) => {
  const found = await at.find(NAMESPACES, name);
  return found && [found.metadata.annotations?.[MANAGER], found.metadata.annotations?.[DETACH]];
};
const strategy = (name: string, namespaceStrategy: string) =>
  at.client.patch(
    ROOT_SYNCS,
    { namespace: CONFIG_SYNC_NAMESPACE, name },
    { type: 'merge', body: { spec: { override: { namespaceStrategy } } } },
  );
const namespaceYaml = (name: string): string =>
  JSON.stringify({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });

// S-976: Namespaces that are used and not declared are made or waited for, and let go, never deleted.
test('TestNamespaceStrategy: implicit makes it, explicit lets it go and waits for others, declared it is an object like any other', async () => {
  const { repository, url, commit } = await sources.of({ 'a.yaml': configMapYaml('a', {}, { namespace: 'used' }) });
  await at.rootSync('strategy', url, { spec: { override: { namespaceStrategy: 'explicit', reconcileTimeout: '1s' } } });
  const waiting = await at.failing('strategy', ['2009']);
  assert.match(waiting.status?.sync?.errors?.[0]?.errorMessage ?? '', /namespaces "used" not found/);
  await strategy('strategy', 'implicit');
  await at.synced('strategy', commit);
  assert.deepEqual(await stateOf('used'), [':root_strategy', 'detach']);
  await strategy('strategy', 'explicit');
  await eventually('it is let go', async () => ((await stateOf('used'))?.[0] === undefined ? true : undefined));
  assert.deepEqual(await stateOf('used'), [undefined, 'detach']);
  await at.synced('strategy', commit);
  assert.ok(await at.configMap('a', 'used'));

  await at.synced('strategy', await repository.commit({ 'ns.yaml': namespaceYaml('used') }));
  assert.equal((await stateOf('used'))?.[0], ':root_strategy');
  await at.synced(
    'strategy',
    await repository.commit({
      'ns.yaml': null,
      'a.yaml': null,
      'b.yaml': configMapYaml('strategy-stays', {}),
    }),
  );
  assert.equal(await at.configMap('a', 'used'), undefined);
});

// S-976
test('TestNamespaceStrategyMultipleRootSyncs: two use one namespace: it is the first one’s, and nobody deletes it while the other uses it', async () => {
  const first = await sources.of({
    'a.yaml': configMapYaml('of-first', {}, { namespace: 'shared' }),
    'b.yaml': configMapYaml('first-stays', {}),
  });
  const second = await sources.of({ 'a.yaml': configMapYaml('of-second', {}, { namespace: 'shared' }) });
  await at.rootSync('first', first.url);
  await at.synced('first', first.commit);
  await at.rootSync('second', second.url);
  await at.synced('second', second.commit);
  assert.equal((await stateOf('shared'))?.[0], ':root_first');
  await at.synced('first', await first.repository.commit({ 'a.yaml': null }));
  assert.deepEqual(await stateOf('shared'), [undefined, 'detach']);
  assert.ok(await at.configMap('of-second', 'shared'));
  // Whoever declares it has it from then on, beside the one that only uses it.
  await at.synced('first', await first.repository.commit({ 'ns.yaml': namespaceYaml('shared') }));
  assert.equal((await stateOf('shared'))?.[0], ':root_first');
  await at.synced(
    'second',
    await second.repository.commit({ 'c.yaml': configMapYaml('c', {}, { namespace: 'shared' }) }),
  );
  assert.equal((await stateOf('shared'))?.[0], ':root_first');
});
