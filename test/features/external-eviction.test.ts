/** examples/external-eviction as it is, in a process of its own, against a server: the other side is played by the test. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { test } from 'node:test';
import { NODES, PODS } from '../../packages/apimachinery/src/types/resource-types.ts';
import type { Pod } from '../../packages/apimachinery/src/types/types.ts';
import { VIRTUAL_MACHINE_INSTANCES, type VirtualMachineInstance } from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { openWorkspace } from '../cli/workspace.ts';
import { adminOf } from '../testkit/control-plane-process.ts';
import { eventually } from '../testkit/eventually.ts';

const root = resolve(import.meta.dirname, '../..');
const namespace = 'default';
const GRACE = 'example.coracle.dev/vmi-deletion-grace-time';

// S-198
test('an External machine: marked by an eviction, emptied, deleted, and uncordoned when it is back', {
  timeout: 600_000,
}, async (t) => {
  const at = openWorkspace(t);
  // The instances are the test's own; garbage collection finishes what is deleted in the foreground.
  const up = await at.up('--controllers', 'garbage-collector-controller,serviceaccount-controller');
  assert.equal(up.code, 0, up.stderr);
  const { client, reporter, close } = adminOf(at.data);
  t.after(close);
  const controller = spawn(process.execPath, [resolve(root, 'examples/external-eviction/external-eviction.ts')], {
    env: { PATH: process.env['PATH'], HOME: at.home, KUBECONFIG: at.kubeconfig },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let said = '';
  for (const stream of [controller.stdout, controller.stderr])
    stream.on('data', (chunk: Buffer) => {
      said += chunk.toString();
    });
  t.after(async () => {
    const ended = once(controller, 'exit');
    if (controller.exitCode === null && controller.kill()) await ended;
  });
  await eventually(
    `the controller watches (${said})`,
    async () => (said.includes('watching') ? true : undefined),
    60_000,
  );

  const running = async (name: string): Promise<VirtualMachineInstance> => {
    const instance = {
      apiVersion: 'kubevirt.io/v1',
      kind: 'VirtualMachineInstance',
      metadata: { name, namespace },
      spec: { evictionStrategy: 'External', domain: { devices: {}, memory: { guest: '64Mi' } } },
    } as unknown as VirtualMachineInstance;
    await client.create(VIRTUAL_MACHINE_INSTANCES, instance);
    const status = { phase: 'Running', nodeName: 'host-1' };
    const body = { status };
    return reporter.patch(
      VIRTUAL_MACHINE_INSTANCES,
      { namespace, name },
      { type: 'merge', body },
      { subresource: 'status' },
    );
  };
  const pod = (name: string, nodeName: string, metadata: object = {}): Pod => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace, ...metadata },
    spec: { nodeName, containers: [{ name: 'c', image: 'i' }] },
  });
  await eventually('the service account', async () =>
    client
      .raw('GET', `/api/v1/namespaces/${namespace}/serviceaccounts/default`)
      .then(() => true)
      .catch(() => undefined),
  );
  const first = await running('worker');
  const launcher = { labels: { 'kubevirt.io': 'virt-launcher' }, annotations: { 'kubevirt.io/domain': 'worker' } };
  await client.create(PODS, pod('virt-launcher-worker', 'host-1', launcher));
  // The tenant: the node that the machine is, and what runs on it.
  await client.create(NODES, { apiVersion: 'v1', kind: 'Node', metadata: { name: 'worker' } });
  await client.create(PODS, pod('tenants-app', 'worker'));
  const tenantsApp = { namespace, name: 'tenants-app' };
  const body = { status: { phase: 'Running' } };
  await client.patch(PODS, tenantsApp, { type: 'merge', body }, { subresource: 'status' });

  const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: 'virt-launcher-worker', namespace } };
  await assert.rejects(
    client.raw('POST', `/api/v1/namespaces/${namespace}/pods/virt-launcher-worker/eviction`, { body: eviction }),
    /Eviction triggered evacuation of VMI "default\/worker"/,
  );
  await eventually('the tenant evicts', async () =>
    (await client.get(PODS, tenantsApp)).metadata.deletionTimestamp ? true : undefined,
  );
  assert.equal((await client.get(NODES, { namespace: '', name: 'worker' })).spec?.unschedulable, true);
  const waiting = await client.get(VIRTUAL_MACHINE_INSTANCES, { namespace, name: 'worker' });
  assert.equal(waiting.status?.evacuationNodeName, 'host-1');
  const grace = Date.parse(waiting.metadata.annotations?.[GRACE] ?? '') - Date.now();
  assert.ok(grace > 500_000 && grace <= 600_000, String(grace));
  assert.equal(waiting.metadata.deletionTimestamp, undefined, 'not before the tenant is empty');

  // The tenant's kubelet lets it go.
  await client.delete(PODS, tenantsApp, { gracePeriodSeconds: 0 });
  await eventually('the instance is deleted', async () => {
    const now = await client.get(VIRTUAL_MACHINE_INSTANCES, { namespace, name: 'worker' }).catch(() => undefined);
    return now?.metadata.deletionTimestamp !== undefined || now === undefined ? true : undefined;
  });
  const finalizers = { metadata: { finalizers: null } };
  await client
    .patch(VIRTUAL_MACHINE_INSTANCES, { namespace, name: 'worker' }, { type: 'merge', body: finalizers })
    .catch(() => undefined);
  await eventually('it is gone', async () =>
    client
      .get(VIRTUAL_MACHINE_INSTANCES, { namespace, name: 'worker' })
      .then(() => undefined)
      .catch(() => true),
  );
  const second = await running('worker');
  assert.notEqual(second.metadata.uid, first.metadata.uid);
  await eventually('the tenant is uncordoned', async () =>
    (await client.get(NODES, { namespace: '', name: 'worker' })).spec?.unschedulable === undefined ? true : undefined,
  );
  assert.equal(second.metadata.annotations?.[GRACE], undefined);
});
