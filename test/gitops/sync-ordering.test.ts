/** Order: scenarios of upstream's sync_ordering_test.go, with what is better here said in their names. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { CONFIG_MAPS } from '../../packages/apimachinery/src/types/resource-types.ts';
import { CONFIG_SYNC_NAMESPACE, ROOT_SYNCS } from '../../packages/gitops/src/kinds/kinds.ts';
import { configMapYaml, type GitOpsCluster, startGitOpsCluster } from '../testkit/gitops-cluster.ts';
import { createSources, DEPLOYMENTS, deploymentYaml, setReady } from '../testkit/gitops-sources.ts';

const DEPENDS_ON = 'config.kubernetes.io/depends-on';
const POLICY = 'configsync.gke.io/deletion-propagation-policy';
const HOLD = 'example.org/hold';
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
const map = (name: string, needs: readonly string[] = [], more: Record<string, string> = {}): string =>
  configMapYaml(
    name,
    {},
    {
      annotations: {
        ...more,
        ...(needs.length > 0 && {
          [DEPENDS_ON]: needs.map((one) => `/namespaces/default/ConfigMap/${one}`).join(','),
        }),
      },
    },
  );
const onDeployment = (name: string, need: string): string =>
  configMapYaml(name, {}, { annotations: { [DEPENDS_ON]: `apps/namespaces/default/Deployment/${need}` } });
const uidOf = async (name: string): Promise<string | undefined> => (await at.configMap(name))?.metadata.uid;
const revisionOf = async (name: string): Promise<number> =>
  Number((await at.configMap(name))?.metadata.resourceVersion);
const hold = (name: string, isHeld: boolean) =>
  at.client.patch(
    CONFIG_MAPS,
    { namespace: 'default', name },
    { type: 'merge', body: { metadata: { finalizers: isHeld ? [HOLD] : null } } },
  );
const messagesOf = (sync: { status?: { sync?: { errors?: readonly { errorMessage: string }[] } } }): string =>
  (sync.status?.sync?.errors ?? []).map(({ errorMessage }) => errorMessage).join('\n');

// S-971: Objects are made, kept and pruned in the order of depends-on as upstream’s scenarios of ordering have it; a
//   cycle or a missing dependency holds up those objects alone, and one outside of the source is waited for.
test('TestMultiDependencies: made in order, also beside what is there; a cycle holds up its own; removed and let go', async () => {
  const { repository, url, commit } = await sources.of({
    'foo.yaml': map('multi-foo'),
    'bar.yaml': map('multi-bar', ['multi-foo']),
    'stays.yaml': map('multi-stays'),
  });
  const push = async (files: Readonly<Record<string, string | null>>) =>
    at.synced('multi', await repository.commit(files));
  await at.rootSync('multi', url);
  await at.synced('multi', commit);
  assert.ok((await revisionOf('multi-foo')) < (await revisionOf('multi-bar')));

  const before = await uidOf('multi-bar');
  await push({
    'baz.yaml': map('multi-baz', ['multi-bar']),
    'first.yaml': map('multi-first', ['multi-foo', 'multi-bar']),
  });
  assert.equal(await uidOf('multi-bar'), before);

  await repository.commit({ 'foo.yaml': map('multi-foo', ['multi-baz']), 'late.yaml': map('multi-late') });
  const cyclic = await at.failing('multi', ['2009', '2009', '2009', '2009']);
  assert.match(messagesOf(cyclic), /cyclic dependency/);
  assert.ok(await uidOf('multi-late'), 'the cycle held up what has no part in it');
  assert.equal(await uidOf('multi-bar'), before, 'what is in the cycle was made anew');

  await push({ 'foo.yaml': map('multi-foo'), 'late.yaml': null });
  assert.equal(await uidOf('multi-late'), undefined);
  await push({ 'baz.yaml': null, 'first.yaml': null });
  assert.equal(await uidOf('multi-baz'), undefined);
  assert.ok(await uidOf('multi-foo'));
  // Both ends of an edge in one commit.
  await push({ 'bar.yaml': map('multi-bar', [], { 'configmanagement.gke.io/managed': 'disabled' }) });
  assert.equal(await uidOf('multi-bar'), before, 'what was let go is gone');
  await push({ 'bar.yaml': null, 'foo.yaml': null });
  assert.deepEqual([await uidOf('multi-foo'), await uidOf('multi-bar')], [undefined, before]);
});

// S-971
test('TestExternalDependencyError: one that is pruned is refused; one that is only on the cluster, let go or of another sync is waited for', async () => {
  const { repository, url, commit } = await sources.of({
    'foo.yaml': map('ext-foo'),
    'bar.yaml': map('ext-bar', ['ext-foo']),
  });
  await at.rootSync('external', url, { spec: { override: { reconcileTimeout: '1s' } } });
  await at.synced('external', commit);

  await repository.commit({ 'foo.yaml': null });
  const removed = await at.failing('external', ['2009', '2009']);
  assert.match(messagesOf(removed), /dependency scheduled for delete/);
  assert.match(messagesOf(removed), /dependent scheduled for apply/);
  assert.ok((await uidOf('ext-foo')) && (await uidOf('ext-bar')));

  const disabled = await repository.commit({
    'foo.yaml': map('ext-foo', [], { 'configmanagement.gke.io/managed': 'disabled' }),
  });
  await at.synced('external', disabled);

  await repository.commit({ 'baz.yaml': map('ext-baz', ['ext-never']) });
  assert.match(
    messagesOf(await at.failing('external', ['2009'])),
    /skipped apply of ConfigMap, default\/ext-baz: dependency apply reconcile timeout/,
  );
  assert.equal(await uidOf('ext-baz'), undefined);
  await at.client.create(CONFIG_MAPS, {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'ext-never', namespace: 'default' },
  });
  await at.synced('external', await repository.git('rev-parse', 'main'));
  assert.ok(await uidOf('ext-baz'));
});

// S-971
test('TestDependencyWithReconciliation: a dependent waits until it is ready, others do not; too long, and it is skipped', async () => {
  const { repository, url, commit } = await sources.of({
    'slow.yaml': deploymentYaml('rec-slow'),
    'waits.yaml': onDeployment('rec-waits', 'rec-slow'),
    'beside.yaml': map('rec-beside'),
  });
  await at.rootSync('reconciled', url, { spec: { override: { reconcileTimeout: '1s' } } });
  const late = await at.failing('reconciled', ['2009']);
  assert.match(messagesOf(late), /rec-waits: dependency apply reconcile timeout: apps\/Deployment\/default\/rec-slow/);
  assert.ok((await uidOf('rec-beside')) && !(await uidOf('rec-waits')));
  await setReady(at.client, 'rec-slow');
  await at.synced('reconciled', commit);
  assert.ok(await uidOf('rec-waits'));

  // Pruned in the reverse order: what is held keeps what it needs.
  await hold('rec-waits', true);
  const pruned = await repository.commit({ 'slow.yaml': null, 'waits.yaml': null });
  await at.failing('reconciled', ['2009']);
  assert.ok(await at.find(DEPLOYMENTS, 'rec-slow', 'default'), 'what a dependent needs was pruned before it');
  await hold('rec-waits', false);
  await at.synced('reconciled', pruned);
  await at.gone(DEPLOYMENTS, 'rec-slow', 'default');
});

// S-971
test('TestSplitRSyncsWithDeletion: an object moves to a new source while the old sync goes, and is the same object after it', async () => {
  const both = await sources.of({ 'a.yaml': map('split-a'), 'b.yaml': map('split-b') });
  await at.rootSync('split-old', both.url, { annotations: { [POLICY]: 'Orphan' } });
  await at.synced('split-old', both.commit);
  const uids = [await uidOf('split-a'), await uidOf('split-b')];
  await at.client.delete(ROOT_SYNCS, { namespace: CONFIG_SYNC_NAMESPACE, name: 'split-old' });
  await at.gone(ROOT_SYNCS, 'split-old', CONFIG_SYNC_NAMESPACE);
  const one = await sources.of({ 'a.yaml': map('split-a') });
  const two = await sources.of({ 'b.yaml': map('split-b', ['split-a']) });
  await at.rootSync('split-two', two.url, { annotations: { [POLICY]: 'Foreground' } });
  await at.rootSync('split-one', one.url, { annotations: { [POLICY]: 'Foreground' } });
  await at.synced('split-one', one.commit);
  await at.synced('split-two', two.commit);
  assert.deepEqual([await uidOf('split-a'), await uidOf('split-b')], uids);
  assert.equal((await at.configMap('split-b'))?.metadata.annotations?.['configsync.gke.io/manager'], ':root_split-two');
  for (const name of ['split-one', 'split-two'])
    await at.client.delete(ROOT_SYNCS, { namespace: CONFIG_SYNC_NAMESPACE, name });
  for (const name of ['split-one', 'split-two']) await at.gone(ROOT_SYNCS, name, CONFIG_SYNC_NAMESPACE);
  assert.deepEqual([await uidOf('split-a'), await uidOf('split-b')], [undefined, undefined]);
});
