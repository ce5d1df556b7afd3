/** What an eviction of a launcher does: by strategy, through the API as `kubectl drain` asks it. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type Answer, type InProcessControlPlane, startInProcess } from '../testkit/in-process-control-plane.ts';

let board: InProcessControlPlane;
before(async () => {
  board = await startInProcess();
  // No controller does it here, and Pods wait for it.
  const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default' } };
  await board.send('POST', '/api/v1/namespaces/default/serviceaccounts', account);
});
after(() => board.stop());

const VMIS = '/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstances';
const PODS = '/api/v1/namespaces/default/pods';

/** An instance that runs on node-1, and its launcher; `on` is where the launcher runs. */
async function running(
  name: string,
  facts: { strategy?: string; migratable?: boolean; annotations?: object; on?: string },
): Promise<void> {
  const made = await board.send('POST', VMIS, {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: { name, ...(facts.annotations && { annotations: facts.annotations }) },
    spec: {
      ...(facts.strategy && { evictionStrategy: facts.strategy }),
      domain: { devices: {}, memory: { guest: '64Mi' } },
    },
  });
  assert.equal(made.status, 201, JSON.stringify(made.json));
  const conditions = [{ type: 'LiveMigratable', status: facts.migratable ? 'True' : 'False' }];
  const status = { phase: 'Running', nodeName: 'node-1', conditions };
  const written = await board.report('PATCH', `${VMIS}/${name}`, { status }, 'application/merge-patch+json');
  assert.equal(written.status, 200, JSON.stringify(written.json));
  const pod = await board.send('POST', PODS, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: `virt-launcher-${name}`,
      labels: { 'kubevirt.io': 'virt-launcher' },
      annotations: { 'kubevirt.io/domain': name },
    },
    spec: { nodeName: facts.on ?? 'node-1', containers: [{ name: 'compute', image: 'launcher' }] },
  });
  assert.equal(pod.status, 201, JSON.stringify(pod.json));
}

const evict = (name: string, more: object = {}, query = '', version = 'policy/v1'): Promise<Answer> =>
  board.send('POST', `${PODS}/virt-launcher-${name}/eviction${query}`, {
    apiVersion: version,
    kind: 'Eviction',
    ...more,
    metadata: { name: `virt-launcher-${name}`, ...(more as { metadata?: object }).metadata },
  });
// biome-ignore lint/suspicious/noExplicitAny: read field by field.
const vmi = async (name: string): Promise<any> => (await board.send('GET', `${VMIS}/${name}`)).json;
const exists = async (name: string): Promise<boolean> =>
  (await board.send('GET', `${PODS}/virt-launcher-${name}`)).status === 200;

const BY = 'admission webhook "virt-launcher-eviction-interceptor.kubevirt.io" denied the request: ';
const TRIGGERED = (name: string) => `${BY}Eviction triggered evacuation of VMI "default/${name}"`;

const cases: { strategy: string; migratable: boolean; outcome: 'gone' | 'marked' | 'refused' }[] = [
  { strategy: 'None', migratable: true, outcome: 'gone' },
  { strategy: 'None', migratable: false, outcome: 'gone' },
  { strategy: 'LiveMigrate', migratable: true, outcome: 'marked' },
  { strategy: 'LiveMigrate', migratable: false, outcome: 'refused' },
  { strategy: 'LiveMigrateIfPossible', migratable: true, outcome: 'marked' },
  { strategy: 'LiveMigrateIfPossible', migratable: false, outcome: 'gone' },
  { strategy: 'External', migratable: true, outcome: 'marked' },
  { strategy: 'External', migratable: false, outcome: 'marked' },
];
for (const [at, { strategy, migratable, outcome }] of cases.entries()) {
  // S-174
  // Compat KubeVirt's API, P0, yes: evictions of launchers by strategy: codes and words
  test(`${strategy}, ${migratable ? 'migratable' : 'not migratable'}: ${outcome}`, async () => {
    const name = `case-${at}`;
    await running(name, { strategy, migratable });
    const rehearsed = await evict(name, {}, '?dryRun=All');
    const rehearsedInBody = await evict(name, { deleteOptions: { dryRun: ['All'] } }, '?dryRun=All');
    assert.equal((await vmi(name)).status.evacuationNodeName, undefined, 'a dry run marks nothing');
    assert.ok(await exists(name), 'a dry run deletes nothing');
    const answer = await evict(name);
    assert.deepEqual([rehearsed.status, rehearsedInBody.status], [answer.status, answer.status]);
    assert.equal(rehearsed.json.message, answer.json.message);
    switch (outcome) {
      case 'gone':
        assert.deepEqual([answer.status, answer.json.status], [201, 'Success']);
        assert.equal((await vmi(name)).status.evacuationNodeName, undefined);
        return;
      case 'refused':
        assert.equal(answer.status, 429);
        assert.equal(
          answer.json.message,
          `${BY}VMI ${name} is configured with an eviction strategy but is not live-migratable`,
        );
        assert.equal((await vmi(name)).status.evacuationNodeName, undefined);
        assert.ok(await exists(name));
        return;
      case 'marked': {
        // The descheduler reads the words, drain tools the code; there is no DisruptionBudget cause.
        assert.deepEqual([answer.status, answer.json.message], [429, TRIGGERED(name)]);
        assert.equal(answer.json.details?.causes, undefined);
        assert.equal((await vmi(name)).status.evacuationNodeName, 'node-1');
        const again = await evict(name, {}, '', 'policy/v1beta1');
        assert.equal(again.status, 429);
        assert.equal(again.json.message, TRIGGERED(name).replace(BY, `${BY}Evacuation in progress: `));
        assert.ok(await exists(name));
      }
    }
  });
}

// S-174
test('the launcher that a migration goes to is neither marked nor let go', async () => {
  await running('target', { strategy: 'LiveMigrate', migratable: true, on: 'node-2' });
  const answer = await evict('target');
  assert.deepEqual([answer.status, answer.json.message], [429, `${BY}Eviction request for target Pod`]);
  assert.equal((await vmi('target')).status.evacuationNodeName, undefined);
});

test('an eviction by the descheduler is written down as one, with and without annotations', async () => {
  const byDescheduler = { metadata: { annotations: { 'requested-by': 'sigs.k8s.io/descheduler' } } };
  await running('bare', { strategy: 'External' });
  await running('noted', { strategy: 'External', annotations: { note: 'kept' } });
  for (const name of ['bare', 'noted']) assert.equal((await evict(name, byDescheduler)).status, 429);
  assert.equal((await vmi('bare')).metadata.annotations['kubevirt.io/eviction-source'], 'descheduler');
  const { annotations } = (await vmi('noted')).metadata;
  assert.deepEqual([annotations['kubevirt.io/eviction-source'], annotations.note], ['descheduler', 'kept']);
});

// S-174
test('the mark is taken back by evacuate/cancel, and comes back with the next eviction', async () => {
  await running('back', { strategy: 'External' });
  await evict('back');
  const cancel = `/apis/subresources.kubevirt.io/v1/namespaces/default/virtualmachineinstances/back/evacuate/cancel`;
  assert.equal((await board.send('PUT', cancel, {})).status, 200);
  assert.equal((await vmi('back')).status.evacuationNodeName, undefined);
  assert.equal((await evict('back')).json.message, TRIGGERED('back'));
});

test('a launcher whose instance is gone is held; Pods of others are not asked about', async () => {
  await running('orphan', { strategy: 'LiveMigrate', migratable: true });
  await board.send('DELETE', `${VMIS}/orphan`);
  await board.send('PATCH', `${VMIS}/orphan`, { metadata: { finalizers: null } }, 'application/merge-patch+json');
  const held = await evict('orphan');
  assert.equal(held.status, 429);
  assert.match(held.json.message, /kubevirt failed getting the vmi: .*"orphan" not found/);

  await board.send('POST', PODS, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'virt-launcher-like' },
    spec: { containers: [{ name: 'c', image: 'c' }] },
  });
  assert.equal((await evict('like')).status, 201);
});
