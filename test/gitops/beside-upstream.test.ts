/** Beside upstream's own controllers, and what is left on the disk of a sync that is gone. */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { CONFIG_SYNC_NAMESPACE, ROOT_SYNCS } from '../../packages/gitops/src/kinds/kinds.ts';
import { eventually } from '../testkit/eventually.ts';
import { createRepository } from '../testkit/git-repository.ts';
import { configMapYaml, startGitOpsCluster } from '../testkit/gitops-cluster.ts';

const DEPLOYMENTS = { group: 'apps', version: 'v1', resource: 'deployments', kind: 'Deployment', namespaced: true };
const manager = {
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'reconciler-manager', namespace: CONFIG_SYNC_NAMESPACE },
  spec: {
    selector: { matchLabels: { app: 'm' } },
    template: { metadata: { labels: { app: 'm' } }, spec: { containers: [{ name: 'm', image: 'm' }] } },
  },
};

// S-916: Where upstream's `reconciler-manager` is installed the component leaves all syncs to it, and takes them up
//   when it is gone.
test('while upstream’s manager is installed nothing is done, and all of it when it is gone', async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'coracle-mirrors-'));
  mkdirSync(join(directory, 'of-a-sync-that-went'));
  const at = await startGitOpsCluster({ directory });
  const repository = await createRepository();
  t.after(async () => {
    await at.stop();
    repository.remove();
    rmSync(directory, { recursive: true, force: true });
  });
  await at.client.create(DEPLOYMENTS, manager);
  const commit = await repository.commit({ 'a.yaml': configMapYaml('a', { k: '1' }) });
  // The watch of Deployments has seen it when a later write of the same kind has been.
  await eventually('aside', async () => (existsSync(join(directory, 'of-a-sync-that-went')) ? undefined : true));
  await new Promise((resolve) => setTimeout(resolve, 500));
  await at.rootSync('root-sync', repository.url);
  await new Promise((resolve) => setTimeout(resolve, 1000));
  const untouched = await at.sync('root-sync');
  assert.deepEqual([untouched?.metadata.finalizers, untouched?.status], [undefined, undefined]);
  await at.client.delete(DEPLOYMENTS, { namespace: CONFIG_SYNC_NAMESPACE, name: 'reconciler-manager' });
  await at.synced('root-sync', commit);
  assert.equal(readdirSync(directory).length, 1);
  await at.client.delete(ROOT_SYNCS, { namespace: CONFIG_SYNC_NAMESPACE, name: 'root-sync' });
  await eventually('the mirror goes with the sync', async () =>
    readdirSync(directory).length === 0 ? true : undefined,
  );
  assert.ok(await at.configMap('a'));
});
