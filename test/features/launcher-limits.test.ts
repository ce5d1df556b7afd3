/** Limits that the cluster gives launcher Pods of a namespace. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { NAMESPACES, PODS } from '../../packages/apimachinery/src/types/resource-types.ts';
import { KUBEVIRTS } from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { type FakeCluster, startFakeCluster } from '../testkit/fake-cluster.ts';

let cluster: FakeCluster;
before(async () => {
  cluster = await startFakeCluster();
});
after(async () => {
  await cluster.stop();
  assert.deepEqual(cluster.errors, []);
});

// S-1290
// Compat KubeVirt's API, P2, yes: `autoCPULimitNamespaceLabelSelector`
test('a guest in a namespace that is selected gets a limit of processors, and keeps it where it moves', async () => {
  const domain = { devices: { interfaces: [{ name: 'default', masquerade: {} }] }, memory: { guest: '64Mi' } };
  const spec = { domain: { ...domain, cpu: { sockets: 2 } }, networks: [{ name: 'default', pod: {} }] };
  const limits = async (name: string) => {
    const labelSelector = `kubevirt.io/created-by=${(await cluster.vmi(name)).metadata.uid}`;
    const { items } = await cluster.client.list(PODS, { namespace: 'default', labelSelector });
    return items.map(({ spec }) => spec.containers[0]?.resources?.limits?.['cpu']);
  };
  await cluster.run('before', spec);
  assert.deepEqual(await limits('before'), [undefined]);
  await cluster.client.patch(
    KUBEVIRTS,
    { namespace: 'kubevirt', name: 'kubevirt' },
    {
      type: 'merge',
      body: { spec: { configuration: { autoCPULimitNamespaceLabelSelector: { matchLabels: { limited: 'yes' } } } } },
    },
  );
  await cluster.run('elsewhere', spec);
  assert.deepEqual(await limits('elsewhere'), [undefined]);
  await cluster.client.patch(
    NAMESPACES,
    { namespace: '', name: 'default' },
    {
      type: 'merge',
      body: { metadata: { labels: { limited: 'yes' } } },
    },
  );
  await cluster.run('limited', spec);
  assert.deepEqual(await limits('limited'), ['2']);
  await cluster.untilPhase(await cluster.migrate('limited'), 'Succeeded');
  assert.ok((await limits('limited')).every((limit) => limit === '2'));
});
