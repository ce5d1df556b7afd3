/** An owner reference counts in the namespace of its object only: nobody reaches a VM of another namespace by naming its uid. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { notFound } from '../../packages/apimachinery/src/meta/status.ts';
import type { ReadonlyPod } from '../../packages/apimachinery/src/types/types.ts';
import { type ReadonlyVmi, VIRTUAL_MACHINE_INSTANCES } from '../../packages/kubevirt/src/kinds/kinds.ts';
import type { AgentEnvironment } from '../../packages/node-agent/src/agent/environment.ts';
import { Launcher } from '../../packages/node-agent/src/agent/launcher/launcher.ts';
import { writeNamespace } from '../../packages/node-agent/src/agent/launcher/vm-namespace.ts';
import { systemClock } from '../../packages/runtime/src/clock/clock.ts';
import { NEVER } from '../../packages/runtime/src/http/seam.ts';
import { silentLogger } from '../../packages/runtime/src/log/log.ts';
import { startPlane, type TestPlane } from '../testkit/control-plane.ts';
import { eventually } from '../testkit/eventually.ts';

const VICTIM = '00000000-0000-4000-8000-000000000001';
const POD = '00000000-0000-4000-8000-000000000002';
const owner = {
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachineInstance',
  name: 'vm',
  uid: VICTIM,
  controller: true,
};

/** A Pod made by hand in `namespace` that says it is a launcher of the VMI of namespace `victim`, as the agent meets it. */
async function meet(namespace: string, { status = {}, vmi }: { status?: object; vmi?: object } = {}): Promise<boolean> {
  const vmsDirectory = await mkdtemp(join(tmpdir(), 'coracle-owners-'));
  const stop = new AbortController();
  try {
    const directory = join(vmsDirectory, VICTIM);
    // The files are being prepared: there is no record yet.
    await mkdir(directory);
    await writeNamespace(directory, 'victim');
    await writeFile(join(directory, 'disk-0.qcow2'), 'of the victim');
    const pod = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'fake', namespace, uid: POD, resourceVersion: '1', ownerReferences: [owner] },
      spec: { containers: [{ name: 'compute', image: 'l' }] },
      status,
    } as unknown as ReadonlyPod;
    const reported: string[] = [];
    const environment = {
      signal: stop.signal,
      clock: systemClock,
      log: silentLogger,
      events: { event: () => {} },
      hostIP: '127.0.0.1',
      pool: { releaseAll: () => {} },
      nodeName: 'n',
      bootId: 'b',
      vmsDirectory,
      addressesDirectory: vmsDirectory,
      tombstones: { has: async () => undefined, add: async () => {} },
      validateResize: async () => ({ type: 'fits' }),
      client: {
        get: async (type: unknown, key: { namespace: string; name: string }) => {
          if (type === VIRTUAL_MACHINE_INSTANCES && vmi && key.namespace === 'victim') return vmi;
          throw notFound({ group: 'kubevirt.io', resource: 'virtualmachineinstances' }, key.name);
        },
        patch: async (_: unknown, key: { name: string }, { body }: { body: { status: { phase?: string } } }) => {
          reported.push(`${key.name} ${body.status.phase}`);
          return { ...pod, status: body.status };
        },
        delete: async () => {},
      },
    } as unknown as AgentEnvironment;
    const launcher = new Launcher(environment, { pod, others: () => [] });
    // The informers of the agent show it every instance of the node.
    launcher.observeVmi({
      metadata: { name: 'vm', namespace: 'victim', uid: VICTIM, resourceVersion: '1' },
      spec: {},
      status: { phase: 'Scheduled', nodeName: 'n' },
    } as unknown as ReadonlyVmi);
    const running = launcher.run();
    await systemClock.sleep(50, NEVER);
    launcher.observePod(undefined);
    await running;
    return existsSync(join(directory, 'disk-0.qcow2'));
  } finally {
    stop.abort();
    await rm(vmsDirectory, { recursive: true, force: true });
  }
}

// S-458: An owner counts in the namespace of its object only: the agent removes files of a VM that it has seen in the
//   Pod's own namespace, launchers are those of the instance's namespace, and no foreign dependent holds a deletion.
for (const [what, status] of [
  ['that waits', {}],
  ['that has ended', { phase: 'Failed' }],
] as const)
  test(`a Pod of another namespace ${what} removes no file of the VM whose uid it names`, async () => {
    assert.equal(await meet('attacker', { status }), true);
  });

// S-458
test('the same from the VM’s own namespace, when the VM is gone, clears up', async () => {
  assert.equal(await meet('victim', { status: { phase: 'Failed' } }), false);
});

let plane: TestPlane;
before(async () => {
  plane = await startPlane();
  for (const name of ['victim', 'attacker']) {
    await plane.admin('POST /api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
    await plane.admin(`POST /api/v1/namespaces/${name}/serviceaccounts`, {
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      metadata: { name: 'default' },
    });
  }
});
after(() => plane.stop());

const INSTANCES = '/apis/kubevirt.io/v1/namespaces/victim/virtualmachineinstances';
const podsOf = async (namespace: string) => (await plane.admin(`GET /api/v1/namespaces/${namespace}/pods`)).items;

// S-458
test('a Pod of another namespace is no launcher of the instance: the instance gets its own', async () => {
  const vmi = await plane.admin(`POST ${INSTANCES}`, {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: { name: 'vm' },
    spec: { domain: { devices: {}, memory: { guest: '64Mi' } } },
  });
  await plane.admin('POST /api/v1/namespaces/attacker/pods', {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: 'fake',
      labels: { 'kubevirt.io': 'virt-launcher', 'kubevirt.io/created-by': vmi.metadata.uid },
      ownerReferences: [{ ...owner, uid: vmi.metadata.uid }],
    },
    spec: { nodeName: 'n1', containers: [{ name: 'compute', image: 'i' }] },
  });
  await plane.run(['vmi'], { rootCa: '' });
  await eventually(async () => (await podsOf('victim')).length === 1);
  await eventually(async () => (await plane.admin(`GET ${INSTANCES}/vm`)).status?.phase === 'Scheduling');
  const { status } = await plane.admin(`GET ${INSTANCES}/vm`);
  assert.deepEqual(Object.keys(status.activePods ?? {}), [(await podsOf('victim'))[0].metadata.uid]);
});

// S-458
test('a dependent of another namespace holds no foreground deletion', async () => {
  await plane.run(['garbage-collector-controller'], { rootCa: '' });
  const configMaps = '/api/v1/namespaces/victim/configmaps';
  const map = (name: string, metadata = {}) => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name, ...metadata },
  });
  const { metadata } = await plane.admin(`POST ${configMaps}`, map('owner'));
  const foreign = { apiVersion: 'v1', kind: 'ConfigMap', name: 'owner', uid: metadata.uid, blockOwnerDeletion: true };
  await plane.admin(
    'POST /api/v1/namespaces/attacker/configmaps',
    map('dependent', { ownerReferences: [foreign], finalizers: ['example.com/stays'] }),
  );
  await plane.admin(`DELETE ${configMaps}/owner`, { propagationPolicy: 'Foreground' });
  await eventually(
    async () => (await plane.ask(`GET ${configMaps}/owner`, { as: ['a', 'system:masters'] })).status === 404,
  );
});
