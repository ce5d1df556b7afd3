/** Replica sets and pools of real guests, scaled by kubectl, by their spec and as an autoscaler does. */
// test:full: up to three guests at a time, which are started, killed and replaced.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { ResourceType } from '../../packages/apimachinery/src/meta/gvk.ts';
import type { KubeObject } from '../../packages/apimachinery/src/meta/object.ts';
import { orAbsent } from '../../packages/client/src/api-failure.ts';
import {
  VIRTUAL_MACHINE_INSTANCE_REPLICA_SETS,
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINE_POOLS,
  VIRTUAL_MACHINES,
  type VirtualMachineInstance,
  type VirtualMachineInstanceReplicaSet,
  type VirtualMachinePool,
} from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { findProcesses } from '../../packages/runtime/src/process/identity.ts';
import { findKubectls, runKubectl } from '../compat/kubectl.ts';
import { adminOf, type ControlPlaneProcess, startProcess } from '../testkit/control-plane-process.ts';
import { eventually } from '../testkit/eventually.ts';
import { type Part, partly } from '../testkit/partly.ts';
import { importTinyGuest, whyNoGuests } from '../testkit/tiny-guest.ts';
import { kernelSpec } from './board.ts';

const kubectl = findKubectls().at(-1);
const why = kubectl === undefined ? 'no kubectl on this host' : whyNoGuests();
const options = { timeout: 600_000, ...(why && { skip: why }) };
const data = mkdtempSync(join(tmpdir(), 'coracle-sets-'));
const key = (name: string) => ({ namespace: 'default', name });
let plane: ControlPlaneProcess;
let admin: ReturnType<typeof adminOf>;
before(async () => {
  if (why) return;
  await importTinyGuest(data);
  plane = await startProcess(data, { nodes: 1 });
  admin = adminOf(data);
});
after(async () => {
  for (const [type, name] of [
    [VIRTUAL_MACHINE_INSTANCE_REPLICA_SETS, 'web'],
    [VIRTUAL_MACHINE_POOLS, 'farm'],
    [VIRTUAL_MACHINES, 'farm-0'],
  ] as const)
    await admin?.client.delete(type as ResourceType<KubeObject>, key(name)).catch(() => undefined);
  if (admin) await eventually('the guests end', async () => (await instances()).length === 0);
  await admin?.close();
  await plane?.kill('SIGKILL');
  rmSync(data, { recursive: true, force: true });
});

/** A guest that boots by its kernel and ends at once when it is asked to. */
function guestSpec(guest = '128Mi'): Part<VirtualMachineInstance['spec']> {
  const { domain, ...spec } = kernelSpec({ terminationGracePeriodSeconds: 0 });
  const { kernelBoot } = domain.firmware!;
  const container = { ...kernelBoot!.container, image: 'localhost/coracle/tiny' };
  return { ...spec, domain: { ...domain, memory: { guest }, firmware: { kernelBoot: { ...kernelBoot, container } } } };
}
const selects = (app: string) => ({ matchLabels: { app } });
const labelled = (app: string) => ({ labels: { app } });

const instances = async (app?: string): Promise<VirtualMachineInstance[]> =>
  (
    await admin.client.list(VIRTUAL_MACHINE_INSTANCES, {
      namespace: 'default',
      ...(app && { labelSelector: `app=${app}` }),
    })
  ).items;
/** The running guests of the set, when there are so many and no others, and it says so itself. */
const has = (
  type: ResourceType<VirtualMachineInstanceReplicaSet> | ResourceType<VirtualMachinePool>,
  name: string,
  count: number,
  holds: (all: readonly VirtualMachineInstance[]) => boolean = () => true,
): Promise<VirtualMachineInstance[]> =>
  eventually(`${name} has ${count}`, async () => {
    const { status } = await admin.client.get(type as ResourceType<VirtualMachinePool>, key(name));
    const all = await instances(name);
    const isUp = all.length === count && all.every((vmi) => vmi.status?.phase === 'Running') && holds(all);
    return isUp && status?.replicas === count && status.readyReplicas === count ? all : undefined;
  }) as Promise<VirtualMachineInstance[]>;
const uids = (all: readonly VirtualMachineInstance[]): string[] => all.map(({ metadata }) => metadata.uid ?? '').sort();

async function scaledByKubectl(target: string, replicas: number): Promise<void> {
  const env = { PATH: process.env['PATH'] ?? '', HOME: data, KUBECONFIG: join(data, 'kubeconfig') };
  const { code, stdout, stderr } = await runKubectl(kubectl!, ['scale', target, `--replicas=${replicas}`], {
    env,
    cwd: data,
  });
  assert.equal(code, 0, stderr);
  assert.match(stdout, / scaled$/m);
}
/** As the HorizontalPodAutoscaler: the scale is read, changed and put back. */
async function scaledByAutoscaler(path: string, replicas: number): Promise<void> {
  const scale = (await admin.client.raw('GET', `/apis/${path}/scale`)) as { spec: { replicas: number } };
  await admin.client.raw('PUT', `/apis/${path}/scale`, { body: { ...scale, spec: { replicas } } });
}
async function qemuOf(vmi: VirtualMachineInstance): Promise<number> {
  const ours = (word: string): boolean => word.includes(data) && word.includes(vmi.metadata.uid ?? '-');
  const found = await findProcesses((argv) => argv[0]?.includes('qemu-system') === true && argv.some(ours));
  assert.equal(found.length, 1, `${found.length} processes of ${vmi.metadata.name}`);
  return found[0]!;
}

// S-1406: A VirtualMachineInstanceReplicaSet of real guests is scaled by `kubectl scale` and as an autoscaler does it, replaces a
//   guest that is killed, and leaves the others alone meanwhile.
test('a replica set of guests is scaled, and a killed guest replaced', options, async () => {
  await admin.client.create(
    VIRTUAL_MACHINE_INSTANCE_REPLICA_SETS,
    partly<VirtualMachineInstanceReplicaSet>({
      apiVersion: 'kubevirt.io/v1',
      kind: 'VirtualMachineInstanceReplicaSet',
      metadata: { name: 'web', namespace: 'default' },
      spec: { replicas: 2, selector: selects('web'), template: { metadata: labelled('web'), spec: guestSpec() } },
    }),
  );
  const two = uids(await has(VIRTUAL_MACHINE_INSTANCE_REPLICA_SETS, 'web', 2));
  await scaledByKubectl('vmirs/web', 3);
  const three = await has(VIRTUAL_MACHINE_INSTANCE_REPLICA_SETS, 'web', 3);
  assert.ok(two.every((uid) => uids(three).includes(uid)));

  const killed = three[0]!;
  process.kill(await qemuOf(killed), 'SIGKILL');
  const now = await has(VIRTUAL_MACHINE_INSTANCE_REPLICA_SETS, 'web', 3, (all) =>
    all.every(({ metadata }) => metadata.uid !== killed.metadata.uid),
  );
  assert.deepEqual(
    uids(now).filter((uid) => uids(three).includes(uid)),
    uids(three.slice(1)),
  );

  await scaledByAutoscaler('kubevirt.io/v1/namespaces/default/virtualmachineinstancereplicasets/web', 1);
  const [left] = await has(VIRTUAL_MACHINE_INSTANCE_REPLICA_SETS, 'web', 1);
  assert.ok(uids(now).includes(left?.metadata.uid ?? ''));
  await qemuOf(left!);
  await admin.client.delete(VIRTUAL_MACHINE_INSTANCE_REPLICA_SETS, key('web'));
  await eventually('its guests go with it', async () => (await instances('web')).length === 0);
});

// S-1407: A VirtualMachinePool of real guests is scaled by `kubectl scale` and as an autoscaler does it, brings a new template to
//   its guests as its update strategy says, and lets a machine go that loses its owner: that runs on, and another takes its place.
test('a pool of guests is scaled, updated by its strategy, and lets a machine go', options, async () => {
  const byNumber = { proactive: { selectionPolicy: { sortPolicy: 'DescendingOrder' as const } } };
  const template = (guest: string) => ({
    metadata: labelled('farm'),
    spec: { runStrategy: 'Always' as const, template: { metadata: labelled('farm'), spec: guestSpec(guest) } },
  });
  await admin.client.create(
    VIRTUAL_MACHINE_POOLS,
    partly<VirtualMachinePool>({
      apiVersion: 'pool.kubevirt.io/v1beta1',
      kind: 'VirtualMachinePool',
      metadata: { name: 'farm', namespace: 'default' },
      spec: {
        replicas: 2,
        selector: selects('farm'),
        scaleInStrategy: byNumber,
        virtualMachineTemplate: template('128Mi'),
      },
    }),
  );
  const change = (spec: object) =>
    admin.client.patch(VIRTUAL_MACHINE_POOLS, key('farm'), { type: 'merge', body: { spec } });
  const memory = (guest: string) => (all: readonly VirtualMachineInstance[]) =>
    all.every(({ spec }) => spec.domain.memory?.guest === guest);
  const machines = async () =>
    (await admin.client.list(VIRTUAL_MACHINES, { namespace: 'default', labelSelector: 'app=farm' })).items;
  await has(VIRTUAL_MACHINE_POOLS, 'farm', 2);
  await scaledByKubectl('vmpool/farm', 3);
  await has(VIRTUAL_MACHINE_POOLS, 'farm', 3);
  await scaledByAutoscaler('pool.kubevirt.io/v1beta1/namespaces/default/virtualmachinepools/farm', 2);
  const first = await has(VIRTUAL_MACHINE_POOLS, 'farm', 2);
  assert.deepEqual(first.map(({ metadata }) => metadata.name).sort(), ['farm-0', 'farm-1']);

  // Proactive, which is the default: guests are started again.
  await change({ virtualMachineTemplate: template('144Mi') });
  const updated = await has(VIRTUAL_MACHINE_POOLS, 'farm', 2, memory('144Mi'));
  assert.ok(uids(updated).every((uid) => !uids(first).includes(uid)));
  // Opportunistic: the machines are changed, their guests are when somebody starts them again.
  await change({ updateStrategy: { proactive: null, opportunistic: {} }, virtualMachineTemplate: template('160Mi') });
  await eventually('the machines are changed', async () =>
    (await machines()).every(({ spec }) => spec.template.spec?.domain.memory?.guest === '160Mi'),
  );
  assert.deepEqual(uids(await has(VIRTUAL_MACHINE_POOLS, 'farm', 2, memory('144Mi'))), uids(updated));
  const restart = '/apis/subresources.kubevirt.io/v1/namespaces/default/virtualmachines/farm-1/restart';
  await admin.client.raw('PUT', restart, { body: {} });
  const one = (all: readonly VirtualMachineInstance[]): boolean =>
    all.find(({ metadata }) => metadata.name === 'farm-1')?.spec.domain.memory?.guest === '160Mi';
  const restarted = await has(VIRTUAL_MACHINE_POOLS, 'farm', 2, one);
  const kept = restarted.find(({ metadata }) => metadata.name === 'farm-0');
  assert.equal(kept?.spec.domain.memory?.guest, '144Mi');

  // A machine without its owner is nobody's: its guest runs on.
  const body = { metadata: { ownerReferences: null, labels: { app: null } } };
  await admin.client.patch(VIRTUAL_MACHINES, key('farm-0'), { type: 'merge', body });
  await eventually('another takes its place', async () => {
    const all = (await machines()).map(({ metadata }) => metadata.name).sort();
    return all.join() === 'farm-1,farm-2';
  });
  await eventually('it runs', async () => {
    const vmi = await orAbsent(admin.client.get(VIRTUAL_MACHINE_INSTANCES, key('farm-2')));
    return vmi?.status?.phase === 'Running';
  });
  const freed = await admin.client.get(VIRTUAL_MACHINE_INSTANCES, key('farm-0'));
  assert.deepEqual([freed.metadata.uid, freed.status?.phase], [kept?.metadata.uid, 'Running']);

  await admin.client.delete(VIRTUAL_MACHINE_POOLS, key('farm'));
  await eventually('its machines go with it', async () => (await machines()).length === 0);
  assert.equal((await admin.client.get(VIRTUAL_MACHINE_INSTANCES, key('farm-0'))).status?.phase, 'Running');
  await admin.client.delete(VIRTUAL_MACHINES, key('farm-0'));
  await eventually(
    'the one that was let go, too',
    async () => !(await orAbsent(admin.client.get(VIRTUAL_MACHINES, key('farm-0')))),
  );
});
