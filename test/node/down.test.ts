/** `coracle down` with a running guest: shut down with it, or left running for the next `up`. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { EVENTS, PODS } from '../../src/api/kinds/builtin/resource-types.ts';
import { VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINES } from '../../src/api/kinds/kubevirt/kubevirt.ts';
import { findProcesses } from '../../src/base/process/identity.ts';
import { usualHostPort } from '../../src/domain/machine/host-ports.ts';
import { openWorkspace, type Workspace } from '../cli/workspace.ts';
import { adminOf } from '../testkit/control-plane-process.ts';
import { importTinyGuest, tinyVm, until, whyNoGuests } from '../testkit/tiny-guest.ts';

const why = whyNoGuests();
const KEY = { namespace: 'default', name: 'tiny' };

const qemusOf = (at: Workspace): Promise<number[]> =>
  findProcesses((argv) => /qemu-system/.test(argv[0] ?? '') && argv.some((word) => word.includes(at.data)));

/** A control plane with one node and a guest whose HTTP server answers. */
async function runningGuest(t: TestContext): Promise<{ at: Workspace; address: string; uid: string | undefined }> {
  const at = openWorkspace(t);
  await importTinyGuest(at.data);
  const up = await at.up('--nodes', '1');
  assert.equal(up.code, 0, up.stderr);
  const { client, close } = adminOf(at.data);
  await client.create(VIRTUAL_MACHINES, tinyVm(KEY.name));
  const vmi = await until('an address', async () => {
    const found = await client.get(VIRTUAL_MACHINE_INSTANCES, KEY);
    return found.status?.phase === 'Running' && found.status.interfaces?.[0]?.ipAddress ? found : undefined;
  });
  const address = vmi.status!.interfaces![0]!.ipAddress!;
  await until('the guest to answer', () => heartbeat(address));
  await close();
  return { at, address, uid: vmi.metadata.uid };
}

async function heartbeat(address: string): Promise<number | undefined> {
  const response = await fetch(`http://${address}:${usualHostPort(8080)}/heartbeat`, {
    signal: AbortSignal.timeout(2000),
  });
  return response.ok ? Number(await response.text()) : undefined;
}

test('down --keep-vms leaves guests running; the next up adopts them', {
  timeout: 240_000,
  ...(why && { skip: why }),
}, async (t) => {
  const { at, address, uid } = await runningGuest(t);
  const pids = await qemusOf(at);
  assert.equal(pids.length, 1);
  const down = await at.run(['down', '--data-dir', at.data, '--keep-vms']);
  assert.deepEqual(down, { code: 0, stdout: 'stopped (VMs keep running)\n', stderr: '' });
  const alone = await until('the guest to answer', () => heartbeat(address));

  assert.equal((await at.up('--nodes', '1')).code, 0);
  const { client, close } = adminOf(at.data);
  t.after(close);
  const ask = (action: string): Promise<unknown> =>
    client.raw(
      'PUT',
      `/apis/subresources.kubevirt.io/v1/namespaces/default/virtualmachineinstances/${KEY.name}/${action}`,
      { body: {} },
    );
  // Each is refused until the agent is back, and the second until the first is written down.
  await until('the agent to answer for the guest', async () => {
    await ask('pause');
    return true;
  });
  await until('the guest to go on', async () => {
    await ask('unpause');
    return true;
  });
  assert.deepEqual(await qemusOf(at), pids);
  assert.equal((await client.get(VIRTUAL_MACHINE_INSTANCES, KEY)).metadata.uid, uid);
  const after = await until('the guest to answer', () => heartbeat(address));
  assert.ok(after >= alone, 'the guest was not started anew');
});

test('down shuts guests down and starts none anew meanwhile; the next up brings them back', {
  timeout: 240_000,
  ...(why && { skip: why }),
}, async (t) => {
  const { at, uid } = await runningGuest(t);
  assert.equal((await at.run(['down', '--data-dir', at.data])).code, 0);
  assert.deepEqual(await qemusOf(at), []);

  // Looked at with nobody at work: what is there is what the shutdown left.
  assert.equal((await at.up('--controllers', '')).code, 0);
  const left = adminOf(at.data);
  const vmi = await left.client.get(VIRTUAL_MACHINE_INSTANCES, KEY);
  assert.equal(vmi.metadata.uid, uid, 'no other instance was made');
  assert.equal(vmi.status?.phase, 'Succeeded');
  assert.equal((await left.client.list(PODS, { namespace: 'default' })).items.length, 1);
  const { items } = await left.client.list(EVENTS, { namespace: 'default' });
  assert.ok(items.some((event) => event.involvedObject?.name === KEY.name && event.reason === 'Stopped'));
  await left.close();
  assert.equal((await at.run(['down', '--data-dir', at.data])).code, 0);

  assert.equal((await at.up('--nodes', '1')).code, 0);
  const { client, close } = adminOf(at.data);
  t.after(close);
  await until('another guest', async () => {
    const found = await client.get(VIRTUAL_MACHINE_INSTANCES, KEY);
    return found.metadata.uid !== uid && found.status?.phase === 'Running' ? true : undefined;
  });
});
