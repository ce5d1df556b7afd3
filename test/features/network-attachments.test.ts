/** Networks beside that of Pods: their definitions, and what launcher Pods say of them. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { PODS } from '../../packages/apimachinery/src/types/resource-types.ts';
import { VIRTUAL_MACHINES, type VirtualMachine } from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { eventually } from '../testkit/eventually.ts';
import { type FakeCluster, startFakeCluster } from '../testkit/fake-cluster.ts';
import { partly } from '../testkit/partly.ts';

let cluster: FakeCluster;
before(async () => {
  cluster = await startFakeCluster({ nodes: ['node-1'], components: 'vm,vmi,scheduler' });
});
after(async () => {
  await cluster?.stop();
  assert.deepEqual(cluster?.errors, []);
});

const GROUP = '/apis/k8s.cni.cncf.io/v1';
const ALL = `${GROUP}/namespaces/default/network-attachment-definitions`;
const key = (name: string) => ({ namespace: 'default', name });
const pod = { name: 'default', pod: {} };
const first = { name: 'default', masquerade: {} };
const multus = (name: string, networkName = name) => ({ name, multus: { networkName } });
const networksOf = async (name: string): Promise<unknown> => {
  const { items } = await cluster.client.list(PODS, { namespace: 'default' });
  const launcher = items.find(({ metadata }) => metadata.annotations?.['kubevirt.io/domain'] === name);
  return JSON.parse(launcher?.metadata.annotations?.['k8s.v1.cni.cncf.io/networks'] ?? 'null');
};
async function run(name: string, interfaces: object[], networks: object[]): Promise<void> {
  const spec = { domain: { memory: { guest: '64Mi' }, devices: { interfaces } }, networks };
  await cluster.client.create(
    VIRTUAL_MACHINES,
    partly<VirtualMachine>({
      apiVersion: 'kubevirt.io/v1',
      kind: 'VirtualMachine',
      metadata: { name, namespace: 'default' },
      spec: { runStrategy: 'Always', template: { spec } },
    }),
  );
  await eventually(`${name} runs`, async () => {
    const vmi = await cluster.vmi(name).catch(() => undefined);
    return vmi?.status?.phase === 'Running';
  });
}

// S-1363: NetworkAttachmentDefinitions are served under the names and with the schema of the Network Plumbing Working Group.
// Compat KubeVirt's API, P2, partly: NetworkAttachmentDefinition (k8s.cni.cncf.io/v1): types bridge and cnv-bridge;
//   multus networks of guests
//   Note: Missing: other plug-ins, SR-IOV and `default: true`, which need root or devices of the host: an event or a warning says so
test('definitions of networks are served as the working group defines them', async () => {
  const { json: group } = await cluster.board.send('GET', GROUP);
  assert.deepEqual(
    (
      group as unknown as { resources: { name: string; kind: string; shortNames?: string[]; namespaced: boolean }[] }
    ).resources
      .filter(({ name }) => !name.includes('/'))
      .map(({ name, kind, shortNames, namespaced }) => [name, kind, shortNames, namespaced]),
    [['network-attachment-definitions', 'NetworkAttachmentDefinition', ['net-attach-def'], true]],
  );
  const body = (config: unknown) => ({
    apiVersion: 'k8s.cni.cncf.io/v1',
    kind: 'NetworkAttachmentDefinition',
    metadata: { name: 'wire' },
    spec: { config, other: 1 },
  });
  assert.equal((await cluster.board.send('POST', ALL, body({ type: 'bridge' }))).status, 422, 'a text is wanted');
  const { status, json } = await cluster.board.send('POST', ALL, body('{"type":"bridge"}'));
  assert.equal(status, 201);
  assert.deepEqual((json as unknown as { spec: unknown }).spec, { config: '{"type":"bridge"}' });
});

// S-1361
test('the launcher Pod names the networks of its guest', async () => {
  const mac = '02:00:00:00:00:07';
  await run(
    'two-cards',
    [first, { name: 'blue', bridge: {}, macAddress: mac }, { name: 'far', bridge: {} }],
    [pod, multus('blue'), multus('far', 'other/wire')],
  );
  const [blue, far] = (await networksOf('two-cards')) as Readonly<Record<string, string>>[];
  assert.deepEqual(blue, { name: 'blue', namespace: 'default', mac, interface: 'pod16477688c0e' });
  assert.deepEqual([far?.['namespace'], far?.['name']], ['other', 'wire']);
  const { metadata } = await cluster.client.get(VIRTUAL_MACHINES, key('two-cards'));
  assert.ok(metadata.uid);
  await run('one-card', [first], [pod]);
  assert.equal(await networksOf('one-card'), null);
});
