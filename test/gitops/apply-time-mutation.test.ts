/** Annotation `config.kubernetes.io/apply-time-mutation`: fields that are filled in from objects that are there and ready. */
// test:full: every case of it, for a minute or more.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { CONFIG_MAPS } from '../../packages/apimachinery/src/types/resource-types.ts';
import { ROOT_SYNCS } from '../../packages/gitops/src/kinds/kinds.ts';
import { eventually } from '../testkit/eventually.ts';
import { createRepository, type GitRepository } from '../testkit/git-repository.ts';
import { configMapYaml, type GitOpsCluster, startGitOpsCluster } from '../testkit/gitops-cluster.ts';

let at: GitOpsCluster;
let repository: GitRepository;
before(async () => {
  at = await startGitOpsCluster();
  repository = await createRepository();
});
after(async () => {
  await at.stop();
  repository.remove();
  assert.deepEqual(at.cluster.errors, []);
});
const filled = (name: string, source: string, path: string, data: Record<string, string>): string =>
  configMapYaml(name, data, {
    annotations: {
      'config.kubernetes.io/apply-time-mutation': JSON.stringify([
        {
          sourceRef: { kind: 'ConfigMap', name: source },
          sourcePath: path,
          targetPath: '$.data.url',
          token: '%host%',
        },
      ]),
    },
  });
const untilUrl = (name: string, url: string) =>
  eventually(`${name} has ${url}`, async () => ((await at.configMap(name))?.data?.['url'] === url ? true : undefined));

// S-962: Fields are filled in by `config.kubernetes.io/apply-time-mutation` once their sources are there and ready, in
//   this source or outside; drift goes back to what was filled in, the object is pruned before its sources, and what
//   cannot be filled in holds up that object alone.
test('it is filled in once its source is there, drift goes back to that, and a commit follows the source', async () => {
  const commit = await repository.commit({
    '1.yaml': filled('filled', 'source', '$.data.host', { url: 'http://%host%/', k: 'declared' }),
    '2.yaml': configMapYaml('source', { host: 'one' }),
  });
  await at.rootSync('root-sync', repository.url);
  await at.synced('root-sync', commit);
  const { metadata, data } = (await at.configMap('filled'))!;
  assert.deepEqual(data, { url: 'http://one/', k: 'declared' });
  const source = (await at.configMap('source'))!;
  assert.ok(Number(source.metadata.resourceVersion) < Number(metadata.resourceVersion), 'it came before its source');
  await at.client.patch(
    CONFIG_MAPS,
    { namespace: 'default', name: 'filled' },
    { type: 'merge', body: { data: { url: 'http://%host%/' } } },
  );
  await untilUrl('filled', 'http://one/');
  const next = await repository.commit({ '2.yaml': configMapYaml('source', { host: 'two' }) });
  await at.synced('root-sync', next);
  await untilUrl('filled', 'http://two/');
});

// S-962
test('a field that is not there, and an annotation that cannot be read, hold up those objects alone', async () => {
  await repository.commit({
    '3.yaml': filled('lacking', 'source', '$.data.nothing', { url: '%host%' }),
    '4.yaml': filled('unread', 'source', 'data.host', { url: '%host%' }),
    '5.yaml': configMapYaml('beside', {}),
  });
  const failing = await at.failing('root-sync', ['2009', '2009']);
  const texts = [...(failing.status?.source?.errors ?? []), ...(failing.status?.sync?.errors ?? [])]
    .map(({ errorMessage }) => errorMessage)
    .join('\n');
  assert.match(
    texts,
    /failed to apply ConfigMap, default\/lacking: source field \(\$.data.nothing\) not present in source object \(ConfigMap, default\/source\)/,
  );
  assert.match(texts, /default\/unread: invalid apply-time-mutation: path "data.host" does not begin with \$/);
  assert.ok(await at.configMap('beside'));
  assert.equal(await at.configMap('lacking'), undefined);
  assert.ok(!(await at.inventory('root-sync'))?.some(({ name }) => name === 'lacking'));
});

// S-962
test('a source that nobody declares is waited for and reported; with what it fills in, it is pruned last', async () => {
  await repository.commit({
    '3.yaml': filled('waits', 'from-outside', '$.data.host', { url: '%host%' }),
    '4.yaml': null,
  });
  await at.client.patch(
    ROOT_SYNCS,
    { namespace: 'config-management-system', name: 'root-sync' },
    { type: 'merge', body: { spec: { override: { reconcileTimeout: '1s' } } } },
  );
  await at.until('root-sync', 'waiting', ({ status }) =>
    (status?.sync?.errors ?? []).some(({ errorMessage }) =>
      /skipped apply of ConfigMap, default\/waits: dependency apply reconcile timeout/.test(errorMessage),
    ),
  );
  await at.client.create(CONFIG_MAPS, {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'from-outside', namespace: 'default' },
    data: { host: 'outside' },
  });
  await untilUrl('waits', 'outside');
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
  const pruned = await repository.commit({ '1.yaml': null, '2.yaml': null });
  await at.synced('root-sync', pruned);
  await at.gone(CONFIG_MAPS, 'source', 'default');
  stop.abort();
  await watching;
  assert.deepEqual(gone, ['filled', 'source']);
});
