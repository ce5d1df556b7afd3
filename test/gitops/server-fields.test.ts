/** Machines that Git declares, beside the controllers that fill them in: what the server owns is no drift. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { GUARD_CONFIGURATIONS } from '../../packages/gitops/src/sync/guard-configuration.ts';
import { VIRTUAL_MACHINES, type VirtualMachine } from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { eventually } from '../testkit/eventually.ts';
import { createRepository, type GitRepository } from '../testkit/git-repository.ts';
import { configMapYaml, type GitOpsCluster, startGitOpsCluster } from '../testkit/gitops-cluster.ts';

let at: GitOpsCluster;
let repository: GitRepository;
before(async () => {
  at = await startGitOpsCluster({
    components: 'gitops,namespace-controller,garbage-collector-controller,vm,vmi,scheduler',
    nodes: ['node-1'],
  });
  repository = await createRepository();
});
after(async () => {
  await at.stop();
  repository.remove();
  assert.deepEqual(at.cluster.errors, []);
});

const key = { namespace: 'default', name: 'db' };
const machine = () => at.client.get(VIRTUAL_MACHINES, key);
const claim = (name: string, hotpluggable = false) => ({
  name,
  persistentVolumeClaim: { claimName: name, ...(hotpluggable && { hotpluggable: true }) },
});
const disk = (name: string, bus = 'virtio') => ({ name, disk: { bus } });
const vmYaml = (more: { volumes?: object[]; disks?: object[]; labels?: object } = {}): string =>
  JSON.stringify({
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name: 'db', namespace: 'default', labels: more.labels ?? { tier: 'one' } },
    spec: {
      runStrategy: 'Always',
      template: {
        spec: {
          domain: {
            memory: { guest: '1Gi' },
            cpu: { sockets: 1 },
            devices: { disks: more.disks ?? [disk('extra')], interfaces: [{ name: 'default', masquerade: {} }] },
          },
          networks: [{ name: 'default', pod: {} }],
          volumes: more.volumes ?? [{ name: 'extra', cloudInitNoCloud: { userData: '#cloud-config\n' } }],
        },
      },
    },
  });
const EXTRA = { name: 'extra', cloudInitNoCloud: { userData: '#cloud-config\n' } };
const specOf = ({ spec }: VirtualMachine) => spec.template.spec!;
const volumesOf = (vm: VirtualMachine) => (specOf(vm).volumes ?? []).map(({ name }) => name);
const disksOf = (vm: VirtualMachine) => (specOf(vm).domain.devices?.disks ?? []).map(({ name }) => name);
const macOf = (vm: VirtualMachine) => specOf(vm).domain.devices?.interfaces?.[0]?.macAddress;

/** Drift of a field that is declared is put back: when that has happened, all before it has been looked at. */
async function lookedAt(): Promise<VirtualMachine> {
  await at.client.patch(VIRTUAL_MACHINES, key, { type: 'merge', body: { metadata: { labels: { tier: 'other' } } } });
  return eventually('the declared label is back', async () => {
    const vm = await machine();
    return vm.metadata.labels?.['tier'] === 'one' ? vm : undefined;
  });
}

// S-940: What the server fills into a machine (firmware UUID and serial, machine type, architecture), gives it (MAC
//   addresses) or what is plugged into it is no drift of a sync and survives every commit that says nothing of it; what
//   Git declared itself goes when Git declares it no longer.
test('what the server fills in, gives and plugs in stays, whatever Git changes beside it', async () => {
  await at.rootSync('root-sync', repository.url);
  await at.synced('root-sync', await repository.commit({ 'vm.yaml': vmYaml() }));
  const made = await eventually('it runs', async () => {
    const vm = await machine();
    return vm.status?.printableStatus === 'Running' ? vm : undefined;
  });
  const { uuid, serial } = specOf(made).domain.firmware!;
  assert.ok(uuid && serial && specOf(made).domain.machine?.type && specOf(made).architecture);

  // Given by a pool of addresses, and plugged in as virtctl does it.
  await at.client.patch(VIRTUAL_MACHINES, key, {
    type: 'json',
    body: [
      { op: 'add', path: '/spec/template/spec/domain/devices/interfaces/0/macAddress', value: '02:00:00:00:00:01' },
    ],
  });
  await at.client.raw('PUT', '/apis/subresources.kubevirt.io/v1/namespaces/default/virtualmachines/db/addvolume', {
    body: {
      name: 'plugged',
      disk: { disk: { bus: 'scsi' } },
      volumeSource: { persistentVolumeClaim: { claimName: 'p' } },
    },
  });
  const check = (vm: VirtualMachine, volumes: readonly string[]): void => {
    const { domain, architecture } = specOf(vm);
    assert.deepEqual([domain.firmware?.uuid, domain.firmware?.serial], [uuid, serial]);
    assert.deepEqual([domain.machine, architecture], [specOf(made).domain.machine, specOf(made).architecture]);
    assert.equal(macOf(vm), '02:00:00:00:00:01');
    assert.deepEqual([volumesOf(vm), disksOf(vm)], [volumes, volumes]);
  };
  check(await lookedAt(), ['extra', 'plugged']);

  // Another commit, that says nothing of them either.
  const changed = vmYaml({ volumes: [EXTRA, claim('mine', true)], disks: [disk('extra'), disk('mine', 'scsi')] });
  await at.synced('root-sync', await repository.commit({ 'vm.yaml': changed }));
  check(await machine(), ['extra', 'mine', 'plugged']);

  // What Git declared itself and declares no longer goes; what was plugged in does not.
  await at.synced('root-sync', await repository.commit({ 'vm.yaml': vmYaml() }));
  check(await machine(), ['extra', 'plugged']);

  // Unplugged again, and it does not come back.
  await at.client.raw('PUT', '/apis/subresources.kubevirt.io/v1/namespaces/default/virtualmachines/db/removevolume', {
    body: { name: 'plugged' },
  });
  check(await lookedAt(), ['extra']);

  // Declared fields of the same lists are Git's all the same.
  await at.client.patch(VIRTUAL_MACHINES, key, {
    type: 'json',
    body: [{ op: 'replace', path: '/spec/template/spec/volumes/0/cloudInitNoCloud/userData', value: 'changed' }],
  });
  await eventually('the declared volume is back', async () => {
    const [extra] = specOf(await machine()).volumes ?? [];
    return extra?.cloudInitNoCloud?.userData === EXTRA.cloudInitNoCloud.userData ? true : undefined;
  });
});

// S-940
test('an attempt that finds a machine as it is declared, but for what is the server’s, writes none of its spec', async () => {
  const before = await machine();
  await at.synced('root-sync', await repository.commit({ 'other.yaml': configMapYaml('other', {}) }));
  assert.equal((await machine()).metadata.generation, before.metadata.generation);
});

// S-980: While declared fields are guarded volumes of a declared machine are plugged in and out as before.
test('while declared fields are guarded volumes are plugged in and out as before, and what Git declares beside them is refused', async (t) => {
  const guard = 'admission-webhook.configsync.gke.io';
  await at.client.create(GUARD_CONFIGURATIONS, {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingWebhookConfiguration',
    metadata: { name: guard },
  });
  t.after(() => at.client.delete(GUARD_CONFIGURATIONS, { namespace: '', name: guard }));
  await eventually(
    'declared fields are named',
    async () => (await machine()).metadata.annotations?.['configsync.gke.io/declared-fields'],
  );
  const path = '/apis/subresources.kubevirt.io/v1/namespaces/default/virtualmachines/db';
  await at.client.raw('PUT', `${path}/addvolume`, {
    body: {
      name: 'guarded',
      disk: { disk: { bus: 'scsi' } },
      volumeSource: { persistentVolumeClaim: { claimName: 'p' } },
    },
  });
  assert.deepEqual(volumesOf(await machine()), ['extra', 'guarded']);
  for (const [what, op] of [
    [
      'a declared volume',
      { op: 'replace', path: '/spec/template/spec/volumes/0/cloudInitNoCloud/userData', value: 'x' },
    ],
    ['the machine', undefined],
  ] as const)
    await assert.rejects(
      op
        ? at.client.patch(VIRTUAL_MACHINES, key, { type: 'json', body: [op] })
        : at.client.delete(VIRTUAL_MACHINES, key),
      /admission webhook "kubevirt\.io\.v1\.admission-webhook\.configsync\.gke\.io" denied the request/,
      what,
    );
  await at.client.raw('PUT', `${path}/removevolume`, { body: { name: 'guarded' } });
  assert.deepEqual(volumesOf(await machine()), ['extra']);
  await at.synced('root-sync', await repository.commit({ 'another.yaml': configMapYaml('another', {}) }));
});
