/** Limits that the cluster gives launcher Pods of a namespace. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { quantityToBytes } from '../../packages/apimachinery/src/quantity/quantity.ts';
import {
  NAMESPACES,
  PODS,
  RESOURCE_QUOTAS,
  RUNTIME_CLASSES,
} from '../../packages/apimachinery/src/types/resource-types.ts';
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

/** Runs a guest under these settings and gives its launcher Pods; the settings go again. */
async function launchersUnder(name: string, configuration: object, spec: object) {
  const kubevirt = { namespace: 'kubevirt', name: 'kubevirt' };
  const set = (body: object) => cluster.client.patch(KUBEVIRTS, kubevirt, { type: 'merge', body: { spec: body } });
  const { spec: before } = await cluster.client.get(KUBEVIRTS, kubevirt);
  await set({ configuration });
  await cluster.run(name, spec);
  await set({
    configuration: Object.fromEntries(
      Object.keys(configuration).map((key) => [key, (before.configuration as Record<string, unknown>)?.[key] ?? null]),
    ),
  });
  const labelSelector = `kubevirt.io/created-by=${(await cluster.vmi(name)).metadata.uid}`;
  return (await cluster.client.list(PODS, { namespace: 'default', labelSelector })).items;
}
const SPEC = {
  domain: {
    devices: { interfaces: [{ name: 'default', masquerade: {} }] },
    memory: { guest: '1Gi' },
    cpu: { sockets: 2 },
  },
  networks: [{ name: 'default', pod: {} }],
};
const mebibytes = (text: unknown): number => Number(quantityToBytes(String(text))) / 1024 ** 2;

// S-1543: Runtime class, seccomp profile and emulation of the KubeVirt object are written into launcher Pods.
test('a launcher Pod is made as the KubeVirt object says', async () => {
  const metadata = { name: 'for-guests' };
  await cluster.client.create(RUNTIME_CLASSES, {
    apiVersion: 'node.k8s.io/v1',
    kind: 'RuntimeClass',
    metadata,
    handler: 'x',
  });
  const [pod] = await launchersUnder(
    'as-set',
    {
      defaultRuntimeClass: 'for-guests',
      developerConfiguration: { memoryOvercommit: 200, useEmulation: true },
      seccompConfiguration: { virtualMachineInstanceProfile: { customProfile: { localhostProfile: 'a/b.json' } } },
    },
    SPEC,
  );
  assert.equal(pod?.spec.runtimeClassName, 'for-guests');
  assert.deepEqual(pod?.spec.securityContext?.seccompProfile, { type: 'Localhost', localhostProfile: 'a/b.json' });
  const [compute] = pod?.spec.containers ?? [];
  assert.ok(compute?.command?.includes('--allow-emulation'));
  const overhead = mebibytes(pod?.metadata.annotations?.['kubevirt.io/memory-overhead-bytes']);
  assert.equal(mebibytes(compute?.resources?.requests?.['memory']), 512 + overhead);
});

// S-1542
test('a guest in a namespace with a quota of limits gets limits, keeps them where it moves, and is counted', async () => {
  const hard = { 'limits.memory': '16Gi', 'limits.cpu': '16' };
  await cluster.client.create(RESOURCE_QUOTAS, {
    apiVersion: 'v1',
    kind: 'ResourceQuota',
    metadata: { name: 'limits', namespace: 'default' },
    spec: { hard },
  });
  const [pod] = await launchersUnder('counted', { autoCPULimitNamespaceLabelSelector: null }, SPEC);
  const of = (one: typeof pod) => one?.spec.containers.find(({ name }) => name === 'compute')?.resources;
  assert.equal(of(pod)?.limits?.['cpu'], '2');
  assert.equal(mebibytes(of(pod)?.limits?.['memory']), 2 * mebibytes(of(pod)?.requests?.['memory']));
  await cluster.untilPhase(await cluster.migrate('counted'), 'Succeeded');
  const { items } = await cluster.client.list(PODS, {
    namespace: 'default',
    labelSelector: `kubevirt.io/created-by=${(await cluster.vmi('counted')).metadata.uid}`,
  });
  assert.equal(items.length, 2);
  for (const one of items) assert.deepEqual(of(one)?.limits, of(pod)?.limits);
});

const QUALITIES: readonly (readonly [qosClass: string, resources: object])[] = [
  ['Guaranteed', { requests: { cpu: '1', memory: '64M' }, limits: { cpu: '1', memory: '64M' } }],
  ['Guaranteed', { limits: { cpu: '1', memory: '64M' } }],
  ['Burstable', { requests: { cpu: '500m', memory: '64M' }, limits: { cpu: '1', memory: '128M' } }],
];
for (const [index, [qosClass, resources]] of QUALITIES.entries()) {
  // S-1547: A guest whose limits are its requests, or that names limits alone, has a Pod of class Guaranteed, with its disks
  //   and the log of its serial line.
  test(`a guest of ${JSON.stringify(resources)} is ${qosClass}`, async () => {
    const name = `quality-${index}`;
    const volumes = [{ name: 'root', containerDisk: { image: 'example.com/disk:1' } }];
    await cluster.run(name, { domain: { devices: {}, resources }, volumes });
    assert.equal((await cluster.vmi(name)).status?.qosClass, qosClass);
  });
}
