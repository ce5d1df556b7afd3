/** `--controllers`, and the controllers in a process of their own: over HTTPS, each with a token of its own. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { EVENTS, PODS } from '../../packages/apimachinery/src/types/resource-types.ts';
import type { Client } from '../../packages/client/src/client.ts';
import {
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINES,
  type VirtualMachine,
} from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { adminOf } from '../testkit/control-plane-process.ts';
import { eventually } from '../testkit/eventually.ts';
import { openWorkspace, type Workspace } from './workspace.ts';

const namespace = 'default';
const machine = (name: string): VirtualMachine => ({
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachine',
  metadata: { name, namespace },
  spec: {
    runStrategy: 'Always',
    template: {
      spec: {
        domain: {
          devices: { disks: [{ name: 'root', disk: { bus: 'virtio' } }] },
          resources: { requests: { memory: '64Mi' } },
        },
        volumes: [{ name: 'root', containerDisk: { image: 'localhost/coracle/tiny' } }],
      },
    },
  },
});

/** A running control plane and its admin; stopped with the test. */
async function controlPlane(t: TestContext, controllers: string): Promise<{ at: Workspace; client: Client }> {
  const at = openWorkspace(t);
  const up = await at.up('--controllers', controllers);
  assert.equal(up.code, 0, up.stderr);
  const admin = adminOf(at.data);
  t.after(() => admin.close());
  return { at, client: admin.client };
}
const launchers = async (client: Client, name: string) =>
  (await client.list(PODS, { namespace })).items.filter((pod) => pod.metadata.labels?.['vm.kubevirt.io/name'] === name);
const has = async (client: Client, name: string) =>
  (await client.list(VIRTUAL_MACHINE_INSTANCES, { namespace })).items.some((vmi) => vmi.metadata.name === name);

// S-089: `--controllers` takes `*`, `name` and `-name`; an outside process takes a job over.
test("--controllers '*,-vm': no instance is made of a machine, all else goes on", async (t) => {
  const { at, client } = await controlPlane(t, '*,-vm');
  await client.create(VIRTUAL_MACHINES, machine('left-alone'));
  const { template } = machine('by-hand').spec;
  await client.create(VIRTUAL_MACHINE_INSTANCES, {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: { name: 'by-hand', namespace },
    spec: template!.spec!,
  });
  // Made after the machine and by another controller: when its Pod is there, the machine had its chance.
  await eventually(async () => (await launchers(client, 'by-hand')).length === 1);
  assert.equal(await has(client, 'left-alone'), false);
  // Other controllers write the status too (what may be saved of its volumes); the rest is there by default.
  const { status } = await client.get(VIRTUAL_MACHINES, { namespace, name: 'left-alone' });
  assert.deepEqual([status?.created, status?.ready, status?.desiredGeneration], [undefined, undefined, undefined]);

  // S-089
  await t.test('the controller left out takes the job over in another process', async () => {
    const outside = at.start(['controllers', '--data-dir', at.data, '--controllers', 'vm']);
    assert.match(await outside.line(/^running /), /^running vm against https:\/\/127\.0\.0\.1:\d+$/);
    await eventually(() => has(client, 'left-alone'));
    outside.child.kill('SIGTERM');
    assert.equal((await outside.ended).code, 0);
  });
});

// S-053: The controllers work the same over HTTPS, in another process, with their own tokens.
test("coracle controllers drives a machine to its Pod on a control plane that has none of its own (--controllers '')", async (t) => {
  const { at, client } = await controlPlane(t, '');
  await client.create(VIRTUAL_MACHINES, machine('tiny'));
  const outside = at.start(['controllers', '--kubeconfig', at.kubeconfig]);
  await outside.line(/^running .*\bvm\b.*\bvmi\b/);
  await eventually(async () => (await launchers(client, 'tiny')).length === 1);
  const [pod] = await launchers(client, 'tiny');
  assert.match(pod!.metadata.name!, /^virt-launcher-tiny-/);
  const makers = pod!.metadata.managedFields?.filter(({ subresource }) => !subresource).map(({ manager }) => manager);
  assert.deepEqual(makers, ['coracle-vmi'], 'made under an identity of its own');
  await eventually(async () =>
    (await client.list(EVENTS, { namespace })).items.some((event) => event.reason === 'SuccessfulCreate'),
  );
  await eventually(
    async () => (await client.get(VIRTUAL_MACHINES, { namespace, name: 'tiny' })).status?.created === true,
  );

  await t.test('a machine that is deleted goes, with its instance and its Pod', async () => {
    await client.delete(VIRTUAL_MACHINES, { namespace, name: 'tiny' });
    // No node will ever end the Pod: only what was never bound can be deleted at once.
    await eventually(async () => !(await has(client, 'tiny')) && (await launchers(client, 'tiny')).length === 0);
  });

  outside.child.kill('SIGINT');
  const ended = await outside.ended;
  assert.deepEqual([ended.code, ended.stderr], [0, '']);
});

test('coracle controllers with a kubeconfig that may not mint tokens says so in one line', async (t) => {
  const { at, client } = await controlPlane(t, '');
  const minted = (await client.create(
    { group: '', version: 'v1', resource: 'serviceaccounts', kind: 'TokenRequest', namespaced: true },
    {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      metadata: { name: 'coracle-vm', namespace: 'kubevirt' },
      spec: { expirationSeconds: 3600 },
    },
    { subresource: 'token' },
  )) as unknown as { status: { token: string } };
  const made = await at.kubectl(['config', 'set-credentials', 'weak', `--token=${minted.status.token}`]);
  assert.equal(made.code, 0, made.stderr);
  await at.kubectl(['config', 'set-context', 'coracle', '--user=weak']);
  const outcome = await at.run(['controllers', '--kubeconfig', at.kubeconfig, '--controllers', 'vmi']);
  assert.deepEqual([outcome.code, outcome.stdout], [1, '']);
  assert.match(
    outcome.stderr,
    /^error: this kubeconfig may not create tokens for kubevirt\/coracle-vmi: .*forbidden.*\n$/,
  );
});
