/** The component dies before each step of an attempt, and begins anew: nothing is orphaned, nothing that Git has is gone. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { CONFIG_MAPS } from '../../src/api/kinds/builtin/resource-types.ts';
import { createDeferred, type Deferred } from '../../src/base/signal/deferred.ts';
import type { AttemptStep } from '../../src/gitops/sync/attempt.ts';
import { createRepository } from '../testkit/git-repository.ts';
import { configMapYaml, type GitOpsCluster, startGitOpsCluster } from '../testkit/gitops-cluster.ts';

let at: GitOpsCluster;
let dies: { readonly before: AttemptStep; readonly died: Deferred<void> } | undefined;
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
