/** Order: depends-on in the set and outside of it, definitions before what they define, and the reverse when pruned. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { CONFIG_MAPS } from '../../packages/apimachinery/src/types/resource-types.ts';
import { createRepository, type GitRepository } from '../testkit/git-repository.ts';
import { configMapYaml, type GitOpsCluster, startGitOpsCluster } from '../testkit/gitops-cluster.ts';

const DEPENDS_ON = 'config.kubernetes.io/depends-on';
let at: GitOpsCluster;
const repositories: GitRepository[] = [];
before(async () => {
  at = await startGitOpsCluster();
});
after(async () => {
  await at.stop();
  for (const repository of repositories) repository.remove();
  assert.deepEqual(at.cluster.errors, []);
});
const repositoryOf = async (files: Readonly<Record<string, string | null>>): Promise<[GitRepository, string]> => {
  const repository = await createRepository();
  repositories.push(repository);
  return [repository, await repository.commit(files)];
};
const after_ = (name: string, ...needs: readonly string[]): string =>
  configMapYaml(
    name,
    {},
    { annotations: { [DEPENDS_ON]: needs.map((one) => `/namespaces/default/ConfigMap/${one}`).join(',') } },
  );
const revision = async (name: string): Promise<number> => Number((await at.configMap(name))?.metadata.resourceVersion);

// S-914: Objects are applied after what they depend on and pruned before it, by `config.kubernetes.io/depends-on`,
//   their namespace and the definition of their kind; a cycle or a malformed item holds up those objects alone, and
//   what other sources or nobody declares is waited for.
test('dependents come after what they depend on, and go before it', async () => {
  const [repository, commit] = await repositoryOf({
    '1.yaml': after_('order-a', 'order-b'),
    '2.yaml': after_('order-b', 'order-c'),
    '3.yaml': configMapYaml('order-c', {}),
    '4.yaml': configMapYaml('order-stays', {}),
  });
  await at.rootSync('order', repository.url);
  await at.synced('order', commit);
  const [a, b, c] = await Promise.all(['order-a', 'order-b', 'order-c'].map(revision));
  assert.ok(c! < b! && b! < a!, `${c} ${b} ${a}`);
  const gone: string[] = [];
  const stop = new AbortController();
  const { metadata } = await at.client.list(CONFIG_MAPS, { namespace: 'default' });
  const watching = (async () => {
    for await (const { type, object } of at.client.watch(CONFIG_MAPS, {
      namespace: 'default',
      resourceVersion: metadata.resourceVersion!,
      signal: stop.signal,
    }))
      if (type === 'DELETED') gone.push(object.metadata.name!);
  })();
  const pruned = await repository.commit({ '1.yaml': null, '2.yaml': null, '3.yaml': null });
  await at.synced('order', pruned);
  await at.gone(CONFIG_MAPS, 'order-c', 'default');
  stop.abort();
  await watching;
  assert.deepEqual(gone, ['order-a', 'order-b', 'order-c']);
});

// S-914
test('a cycle, a duplicate and a malformed item hold up those objects alone', async () => {
  const [repository, first] = await repositoryOf({ '1.yaml': configMapYaml('cycle-kept', { k: '1' }) });
  await at.rootSync('cycle', repository.url);
  await at.synced('cycle', first);
  await repository.commit({
    '1.yaml': configMapYaml('cycle-kept', { k: '2' }),
    '2.yaml': after_('cycle-a', 'cycle-b'),
    '3.yaml': after_('cycle-b', 'cycle-a'),
    '4.yaml': after_('cycle-twice', 'cycle-kept', 'cycle-kept'),
    '5.yaml': configMapYaml('cycle-malformed', {}, { annotations: { [DEPENDS_ON]: 'ConfigMap/x' } }),
    '6.yaml': after_('cycle-behind', 'cycle-a'),
  });
  const failing = await at.failing('cycle', ['2009', '2009', '2009', '2009', '2009']);
  const texts = [...(failing.status?.source?.errors ?? []), ...(failing.status?.sync?.errors ?? [])]
    .map(({ errorMessage }) => errorMessage)
    .join('\n');
  for (const text of [
    /cyclic dependency/,
    /duplicate dependency/,
    /neither group\/kind\/name/,
    /cycle-behind: dependency apply actuation skipped/,
  ])
    assert.match(texts, text);
  assert.deepEqual((await at.configMap('cycle-kept'))?.data, { k: '2' });
  assert.equal(await at.configMap('cycle-a'), undefined);
});

// S-914
test('an object of another source, or of nobody, is waited for; too long, and it is reported', async () => {
  const [repository, commit] = await repositoryOf({
    '1.yaml': after_('waits', 'from-outside'),
    '2.yaml': configMapYaml('beside-it', {}),
  });
  await at.rootSync('outside', repository.url, { spec: { override: { reconcileTimeout: '1s' } } });
  const failing = await at.failing('outside', ['2009']);
  assert.match(
    failing.status?.sync?.errors?.[0]?.errorMessage ?? '',
    /skipped apply of ConfigMap, default\/waits: dependency apply reconcile timeout/,
  );
  assert.ok(await at.configMap('beside-it'));
  await at.client.create(CONFIG_MAPS, {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'from-outside', namespace: 'default' },
  });
  await at.synced('outside', commit);
});

// S-914
test('a definition and an object of it in one commit; with the definition its objects go', async () => {
  const definition = {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'widgets.example.org' },
    spec: {
      group: 'example.org',
      names: { kind: 'Widget', plural: 'widgets', singular: 'widget', listKind: 'WidgetList' },
      scope: 'Namespaced',
      versions: [
        {
          name: 'v1',
          served: true,
          storage: true,
          schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
        },
      ],
    },
  };
  const [repository, commit] = await repositoryOf({
    'a-widget.yaml': 'apiVersion: example.org/v1\nkind: Widget\nmetadata:\n  name: w\nspec: {}\n',
    'z-definition.yaml': JSON.stringify(definition),
    'stays.yaml': configMapYaml('beside-widgets', {}),
  });
  await at.rootSync('definitions', repository.url);
  await at.synced('definitions', commit);
  const widgets = { group: 'example.org', version: 'v1', resource: 'widgets', kind: 'Widget', namespaced: true };
  assert.ok(await at.find(widgets, 'w', 'default'));
  const without = await repository.commit({ 'a-widget.yaml': null, 'z-definition.yaml': null });
  await at.synced('definitions', without);
  assert.deepEqual(
    (await at.inventory('definitions'))?.map(({ name }) => name),
    ['beside-widgets'],
  );
});

// S-914
test('what a declared object still needs is not pruned', async () => {
  const [repository, first] = await repositoryOf({
    '1.yaml': configMapYaml('needed', {}),
    '2.yaml': after_('needs', 'needed'),
  });
  await at.rootSync('needed', repository.url);
  await at.synced('needed', first);
  await repository.commit({ '1.yaml': null });
  const failing = await at.failing('needed', ['2009', '2009']);
  const texts = failing.status?.sync?.errors?.map(({ errorMessage }) => errorMessage).join('\n') ?? '';
  assert.match(texts, /dependency scheduled for delete/);
  assert.match(texts, /dependent scheduled for apply/);
  assert.ok((await at.configMap('needed')) && (await at.configMap('needs')));
});
