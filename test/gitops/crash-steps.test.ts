/**
 * The component dies before each step of an attempt and of an end, and begins anew: nothing is orphaned, nothing that Git has
 * is gone, and every end is reached.
 */
// test:full: a kill at each step.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { CONFIG_MAPS, SERVICE_ACCOUNTS } from '../../packages/apimachinery/src/types/resource-types.ts';
import { CONFIG_SYNC_NAMESPACE, ROOT_SYNCS } from '../../packages/gitops/src/kinds/kinds.ts';
import type { AttemptStep } from '../../packages/gitops/src/sync/attempt.ts';
import type { EndStep } from '../../packages/gitops/src/sync/end-sync.ts';
import { createDeferred, type Deferred } from '../../packages/runtime/src/signal/deferred.ts';
import { createRepository } from '../testkit/git-repository.ts';
import { configMapYaml, type GitOpsCluster, startGitOpsCluster } from '../testkit/gitops-cluster.ts';

let at: GitOpsCluster;
let dies: { readonly before: AttemptStep | EndStep; readonly died: Deferred<void> } | undefined;
before(async () => {
  at = await startGitOpsCluster({
    onStep: (step) => {
      if (step !== dies?.before) return;
      dies.died.resolve();
      // Nothing more is done until the component has been stopped.
      throw new Error('died');
    },
  });
});
after(() => at.stop());

const STEPS: readonly AttemptStep[] = ['inventory', 'let-go', 'apply', 'prune', 'inventory-again', 'report'];
for (const [number, step] of STEPS.entries()) {
  // S-909: A component that dies before any step of an attempt leaves every object that it made in the inventory, and
  //   the next one ends where Git says.
  test(`before ${step}`, async (t) => {
    const repository = await createRepository();
    t.after(repository.remove);
    const name = (part: string): string => `${part}-${number}`;
    const first = await repository.commit({
      'a.yaml': configMapYaml(name('stays'), { k: '1' }),
      'b.yaml': configMapYaml(name('goes'), { k: '1' }),
    });
    await at.rootSync(`crash-${number}`, repository.url);
    await at.synced(`crash-${number}`, first);
    dies = { before: step, died: createDeferred() };
    const second = await repository.commit({
      'a.yaml': configMapYaml(name('stays'), { k: '2' }),
      'b.yaml': null,
      'c.yaml': configMapYaml(name('comes'), { k: '1' }),
    });
    await dies.died.promise;
    // Whatever is there and carries our metadata is in the inventory, at that moment too.
    const inventory = new Set((await at.inventory(`crash-${number}`))?.map((ref) => ref.name));
    const { items } = await at.client.list(CONFIG_MAPS, { namespace: 'default' });
    const ours = items.filter(
      ({ metadata }) => metadata.annotations?.['configsync.gke.io/manager'] === `:root_crash-${number}`,
    );
    for (const { metadata } of ours) assert.ok(inventory.has(metadata.name!), `${metadata.name} is orphaned`);
    assert.ok(ours.some(({ metadata }) => metadata.name === name('stays')));
    await at.cluster.restart(async () => {
      dies = undefined;
    });
    await at.synced(`crash-${number}`, second);
    assert.deepEqual((await at.configMap(name('stays')))?.data, { k: '2' });
    assert.equal(await at.configMap(name('goes')), undefined);
    assert.deepEqual((await at.inventory(`crash-${number}`))?.map((ref) => ref.name).sort(), [
      name('comes'),
      name('stays'),
    ]);
  });
}

const END_STEPS: readonly EndStep[] = [
  'finalize',
  'end-objects',
  'shrink-inventory',
  'drop-reconciler-finalizer',
  'remove-account',
  'remove-inventory',
  'drop-manager-finalizer',
];
for (const policy of ['Foreground', 'Orphan'] as const)
  for (const [number, step] of END_STEPS.entries()) {
    // Where objects stay the inventory is not made smaller.
    if (policy === 'Orphan' && step === 'shrink-inventory') continue;
    // S-956: A component that dies before any step of the end of a sync leaves no object without an entry and deletes
    //   nothing that the sync did not make; the next one ends it.
    test(`${policy}, before ${step}`, async (t) => {
      const repository = await createRepository();
      t.after(repository.remove);
      const sync = `${policy.toLowerCase()}-end-${number}`;
      const [needed, needing, foreign] = ['needed', 'needing', 'foreign'].map((part) => `${sync}-${part}`) as [
        string,
        string,
        string,
      ];
      const annotations = { 'config.kubernetes.io/depends-on': `/namespaces/default/ConfigMap/${needed}` };
      const made = await repository.commit({
        'a.yaml': configMapYaml(needed, { k: '1' }),
        'b.yaml': configMapYaml(needing, { k: '1' }, { annotations }),
      });
      await at.client.create(CONFIG_MAPS, {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name: foreign, namespace: 'default' },
      });
      await at.rootSync(sync, repository.url, {
        annotations: { 'configsync.gke.io/deletion-propagation-policy': policy },
      });
      await at.synced(sync, made);
      dies = { before: step, died: createDeferred() };
      await at.client.delete(ROOT_SYNCS, { namespace: CONFIG_SYNC_NAMESPACE, name: sync });
      await dies.died.promise;
      // Whatever still carries our metadata is in the inventory, as long as somebody has to find it.
      const named = new Set((await at.inventory(sync))?.map((ref) => ref.name));
      const { items } = await at.client.list(CONFIG_MAPS, { namespace: 'default' });
      for (const { metadata } of items)
        if (metadata.annotations?.['configsync.gke.io/manager'] === `:root_${sync}`)
          assert.ok(named.has(metadata.name!), `${metadata.name} is orphaned`);
      assert.ok(await at.sync(sync), 'the sync is gone before its end');
      await at.cluster.restart(async () => {
        dies = undefined;
      });
      await at.gone(ROOT_SYNCS, sync, CONFIG_SYNC_NAMESPACE);
      assert.equal(await at.inventory(sync), undefined);
      assert.equal(await at.find(SERVICE_ACCOUNTS, `root-reconciler-${sync}`, CONFIG_SYNC_NAMESPACE), undefined);
      for (const name of [needed, needing]) {
        const left = await at.configMap(name);
        if (policy === 'Foreground') assert.equal(left, undefined);
        else assert.equal(left?.metadata.annotations?.['configsync.gke.io/manager'], undefined);
        assert.equal(left !== undefined, policy === 'Orphan');
      }
      assert.ok(await at.configMap(foreign), 'what nobody declared is gone');
    });
  }
