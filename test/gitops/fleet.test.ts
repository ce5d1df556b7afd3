/** Many syncs beside each other: 50 repositories with 2,000 objects, made, changed and deleted, within bounds of time and memory. */
// test:full: a fleet, for minutes.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { CONFIG_MAPS } from '../../packages/apimachinery/src/types/resource-types.ts';
import { CONFIG_SYNC_NAMESPACE, ROOT_SYNCS } from '../../packages/gitops/src/kinds/kinds.ts';
import { createRepository, type GitRepository } from '../testkit/git-repository.ts';
import { configMapYaml, createNamespace, type GitOpsCluster, startGitOpsCluster } from '../testkit/gitops-cluster.ts';

const REPOSITORIES = 50;
const OBJECTS = 40;
/** Of this process: the server with its objects, the component, and the test. */
const MAX_GROWTH = 600 * 1024 * 1024;
const NAMESPACE = 'fleet';

let at: GitOpsCluster;
const repositories: GitRepository[] = [];
before(async () => {
  at = await startGitOpsCluster();
  await createNamespace(at.client, NAMESPACE);
});
after(async () => {
  await at.stop();
  for (const { remove } of repositories) remove();
});

const nameOf = (repository: number, object: number): string => `map-${repository}-${object}`;
const manifest = (repository: number, object: number, k: string): string =>
  configMapYaml(nameOf(repository, object), { k, text: 'x'.repeat(200) }, { namespace: NAMESPACE });
const maps = async () =>
  new Map(
    (await at.client.list(CONFIG_MAPS, { namespace: NAMESPACE })).items
      .filter(({ metadata }) => metadata.name?.startsWith('map-'))
      .map((one) => [one.metadata.name!, (one as unknown as { data?: Record<string, string> }).data?.['k']]),
  );

// S-957: 50 repositories with 2,000 objects are synced beside each other, follow a change of each and are deleted with
//   their own objects alone, within 600 MiB.
test('50 repositories with 2,000 objects: all are applied, a change of each is, and deletion takes its own alone', {
  timeout: 900_000,
}, async (t) => {
  const from = Date.now();
  const note = (what: string) => t.diagnostic(`${what}: ${Math.round((Date.now() - from) / 100) / 10} s`);
  const began = process.memoryUsage().rss;
  const all = Array.from({ length: REPOSITORIES }, (_, index) => index);
  const commits: string[] = [];
  for (const index of all) {
    const repository = await createRepository();
    repositories.push(repository);
    const files = Array.from({ length: OBJECTS }, (_, object) => [`${object}.yaml`, manifest(index, object, '1')]);
    commits.push(await repository.commit(Object.fromEntries(files)));
  }
  note('repositories are made');
  const untilSynced = async (numbers: readonly number[]): Promise<void> => {
    for (const index of numbers) await at.synced(`fleet-${index}`, commits[index]!);
  };
  await Promise.all(
    all.map((index) =>
      at.rootSync(`fleet-${index}`, repositories[index]!.url, {
        annotations: { 'configsync.gke.io/deletion-propagation-policy': index % 2 === 0 ? 'Foreground' : 'Orphan' },
        git: { period: '5s' },
      }),
    ),
  );
  await untilSynced(all);
  note('all objects are applied');
  assert.equal((await maps()).size, REPOSITORIES * OBJECTS);

  for (const index of all) commits[index] = await repositories[index]!.commit({ '7.yaml': manifest(index, 7, '2') });
  await untilSynced(all);
  note('a change of each is applied');
  const changed = [...(await maps())].filter(([, k]) => k === '2').map(([name]) => name);
  assert.deepEqual(changed.sort(), all.map((index) => nameOf(index, 7)).sort());

  const growth = process.memoryUsage().rss - began;
  assert.ok(growth < MAX_GROWTH, `${Math.round(growth / 1024 / 1024)} MiB more`);

  for (const index of all)
    await at.client.delete(ROOT_SYNCS, { namespace: CONFIG_SYNC_NAMESPACE, name: `fleet-${index}` });
  for (const index of all) await at.gone(ROOT_SYNCS, `fleet-${index}`, CONFIG_SYNC_NAMESPACE);
  note('all are deleted');
  const left = [...(await maps()).keys()];
  assert.equal(left.length, (REPOSITORIES / 2) * OBJECTS);
  assert.ok(left.every((name) => Number(name.split('-')[1]) % 2 === 1));
});
