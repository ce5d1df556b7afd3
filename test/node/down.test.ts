/** `coracle down` with a running guest: shut down with it, or left running for the next `up`. */
// test:full: many guests, one after the other.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { EVENTS, NODES, PODS } from '../../packages/apimachinery/src/types/resource-types.ts';
import {
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINES,
  type VirtualMachineInstance,
} from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { hostAddressOf } from '../../packages/kubevirt/src/rules/launcher/pod-address.ts';
import { usualHostPort } from '../../packages/kubevirt/src/rules/machine/host-ports.ts';
import { findGuestsOnDisk } from '../../packages/node-agent/src/agent/launcher/guests-on-disk.ts';
import { findProcesses } from '../../packages/runtime/src/process/identity.ts';
import { openWorkspace, type Workspace } from '../cli/workspace.ts';
import { adminOf } from '../testkit/control-plane-process.ts';
import { eventually } from '../testkit/eventually.ts';
import { importTinyGuest, tinyVm, whyNoGuests } from '../testkit/tiny-guest.ts';

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
  const vmi = await eventually('an address', async () => {
    const found = await client.get(VIRTUAL_MACHINE_INSTANCES, KEY);
    return found.status?.phase === 'Running' && found.status.interfaces?.[0]?.ipAddress ? found : undefined;
  });
  const address = hostAddressOf(vmi.status!.interfaces![0]!.ipAddress!);
  await eventually('the guest to answer', () => heartbeat(address));
  await close();
  return { at, address, uid: vmi.metadata.uid };
}

async function heartbeat(address: string): Promise<number | undefined> {
  const response = await fetch(`http://${address}:${usualHostPort(8080)}/heartbeat`, {
    signal: AbortSignal.timeout(10_000),
  });
  return response.ok ? Number(await response.text()) : undefined;
}

// S-086: `down --keep-vms` leaves guests running; the next `up` adopts them.
test('down --keep-vms leaves guests running; the next up adopts them', {
  timeout: 600_000,
  ...(why && { skip: why }),
}, async (t) => {
  const { at, address, uid } = await runningGuest(t);
  const pids = await qemusOf(at);
  assert.equal(pids.length, 1);
  const down = await at.run(['down', '--data-dir', at.data, '--keep-vms']);
  assert.deepEqual(down, { code: 0, stdout: 'stopped (VMs keep running)\n', stderr: '' });
  const alone = await eventually('the guest to answer', () => heartbeat(address));

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
  await eventually('the agent to answer for the guest', async () => {
    await ask('pause');
    return true;
  });
  await eventually('the guest to go on', async () => {
    await ask('unpause');
    return true;
  });
  assert.deepEqual(await qemusOf(at), pids);
  assert.equal((await client.get(VIRTUAL_MACHINE_INSTANCES, KEY)).metadata.uid, uid);
  const after = await eventually('the guest to answer', () => heartbeat(address));
  assert.ok(after >= alone, 'the guest was not started anew');
});

// S-146: `coracle down` stops the controllers before the guests: a machine that is shut down is not started anew
//   meanwhile.
test('down shuts guests down and starts none anew meanwhile; the next up brings them back', {
  timeout: 600_000,
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
  await eventually('another guest', async () => {
    const found = await client.get(VIRTUAL_MACHINE_INSTANCES, KEY);
    return found.metadata.uid !== uid && found.status?.phase === 'Running' ? true : undefined;
  });
});

/** A machine without a disk: its firmware hears no power button, and it "boots" at once. */
const deafVmi = (name: string, grace: number): VirtualMachineInstance => ({
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachineInstance',
  metadata: { name, namespace: 'default' },
  spec: {
    terminationGracePeriodSeconds: grace,
    domain: { memory: { guest: '64Mi' }, devices: {} },
  },
});

/** Starts a guest that ignores the power button and waits until it runs. */
async function deafGuest(at: Workspace, name: string, grace = 600): Promise<void> {
  const { client, close } = adminOf(at.data);
  await client.create(VIRTUAL_MACHINE_INSTANCES, deafVmi(name, grace));
  await eventually('the guest to run', async () =>
    (await client.get(VIRTUAL_MACHINE_INSTANCES, { namespace: 'default', name })).status?.phase === 'Running'
      ? true
      : undefined,
  );
  await close();
}

// S-360: `coracle down` abandons no guest: a second `down`, SIGTERM or Ctrl-C joins the wait and names the guests and
//   the seconds left, a third also names `--force`, which alone ends guests before their grace period.
test('down never abandons a guest that ignores ACPI: asked again it joins the wait, and only --force cuts it short', {
  timeout: 600_000,
  ...(why && { skip: why }),
}, async (t) => {
  const at = openWorkspace(t);
  const coracle = (...argv: string[]) => at.run([argv[0]!, '--data-dir', at.data, ...argv.slice(1)]);
  assert.equal((await at.up('--nodes', '1')).code, 0);
  await deafGuest(at, 'deaf');
  const pids = await qemusOf(at);
  assert.equal(pids.length, 1);
  for (const request of [1, 2, 3]) {
    const down = await coracle('down', '--timeout', '1');
    assert.equal(down.code, 1, down.stdout);
    assert.equal(down.stdout, '');
    assert.match(
      down.stderr,
      /error: process \d+ is still stopping: waiting for default\/deaf \((?:5\d\d|600) s left\)/,
    );
    assert.equal(/^waiting for default\/deaf \((?:5\d\d|600) s left\)/m.test(down.stderr), request > 1, down.stderr);
    assert.equal(/^waiting .* coracle down --force$/m.test(down.stderr), request > 2, down.stderr);
    assert.deepEqual(await qemusOf(at), pids);
  }
  const stopping = await coracle('status');
  assert.match(stopping.stdout, /^stopping +waits for default\/deaf \((?:5\d\d|600) s left\)$/m);
  assert.match((await at.up('--nodes', '1')).stderr, /still stopping in .*, waiting for default\/deaf/);
  assert.match((await coracle('down', '--keep-vms')).stderr, /too late for --keep-vms/);

  // The control plane is killed: the guest is shown, and stopped by whoever asks for it.
  const { pid } = JSON.parse((await coracle('status', '--json')).stdout) as { pid: number };
  process.kill(pid, 'SIGKILL');
  const orphaned = await eventually('the end of the control plane', async () => {
    const status = await coracle('status');
    return status.code === 1 ? status : undefined;
  });
  assert.match(orphaned.stdout, /^guest +default\/deaf runs on .*\(pid \d+\), without a control plane/m);
  assert.match((await coracle('down', '--keep-vms')).stdout, /guests that keep running: default\/deaf/);
  const lapsed = await coracle('down', '--timeout', '1');
  assert.equal(lapsed.code, 1);
  assert.match(
    lapsed.stderr,
    /error: not all guests have ended in time; still running: default\/deaf \((?:5\d\d|600) s left\)/,
  );
  assert.deepEqual(await qemusOf(at), pids);
  const forced = await coracle('down', '--force');
  assert.deepEqual(forced, {
    code: 0,
    stdout: 'stopped what ran without a control plane: default/deaf\n',
    stderr: '',
  });
  assert.deepEqual(await qemusOf(at), []);
  assert.doesNotMatch((await coracle('status')).stdout, /guest/);

  // The next agent tells how it ended, and starts nothing in its place.
  const up = at.start(['up', '--data-dir', at.data, '--port', '0', '--nodes', '1', '--no-merge-kubeconfig']);
  await up.line(/^ready in/);
  const { client, close } = adminOf(at.data);
  await eventually('the end to be reported', async () => {
    const vmi = await client.get(VIRTUAL_MACHINE_INSTANCES, { namespace: 'default', name: 'deaf' });
    return vmi.status?.phase === 'Succeeded' ? true : undefined;
  });
  await close();

  // In the foreground: Ctrl-C, once more, a SIGTERM. None of them ends the process.
  await deafGuest(at, 'deaf-too');
  const noted = async (pattern: RegExp): Promise<void> =>
    void (await eventually(String(pattern), () => pattern.test(up.stderr())));
  up.child.kill('SIGINT');
  await noted(/stopping; guests are shut down/);
  up.child.kill('SIGINT');
  await noted(/^waiting for default\/deaf-too \(\d+ s left\)$/m);
  up.child.kill('SIGTERM');
  await noted(/^waiting for .*; to end guests at once: coracle down --force/m);
  assert.equal((await qemusOf(at)).length, 1);
  assert.equal((await coracle('down', '--force')).stdout, 'stopped\n');
  assert.equal((await up.ended).code, 0);
  assert.deepEqual(await qemusOf(at), []);
});

// S-361: Guests without a control plane (after `--keep-vms`, a crash, a kill) are shown by `status`; `down` shuts them
//   down within their grace period, and the next agent reports how they ended.
test('down shuts down guests that were left without a control plane, by ACPI and within their grace period', {
  timeout: 600_000,
  ...(why && { skip: why }),
}, async (t) => {
  const { at } = await runningGuest(t);
  assert.equal((await at.run(['down', '--data-dir', at.data, '--keep-vms'])).code, 0);
  const down = await at.run(['down', '--data-dir', at.data]);
  assert.equal(down.code, 0, down.stderr);
  assert.equal(down.stdout, 'stopped what ran without a control plane: default/tiny\n');
  assert.deepEqual(await qemusOf(at), []);
  assert.equal((await at.up('--nodes', '1', '--controllers', '')).code, 0);
  const { client, close } = adminOf(at.data);
  t.after(close);
  await eventually('the shutdown to be reported', async () =>
    (await client.get(VIRTUAL_MACHINE_INSTANCES, KEY)).status?.phase === 'Succeeded' ? true : undefined,
  );
});

// S-362
test('a start with fewer nodes removes those that nobody serves, says so, and ends what hangs on them', {
  timeout: 600_000,
  ...(why && { skip: why }),
}, async (t) => {
  const at = openWorkspace(t);
  assert.equal((await at.up('--nodes', '2')).code, 0);
  const first = adminOf(at.data);
  const gone = await eventually('both nodes', async () => {
    const { items } = await first.client.list(NODES, {});
    const ready = items.filter(({ status }) =>
      status?.conditions?.some((one) => one.type === 'Ready' && one.status === 'True'),
    );
    return ready.length === 2
      ? ready.map(({ metadata }) => metadata.name!).find((name) => name.endsWith('-2'))
      : undefined;
  });
  await first.close();
  assert.equal((await at.run(['down', '--data-dir', at.data])).code, 0);

  // A Pod that hangs in Terminating on the node, as its agent never said that it has ended.
  assert.equal((await at.up('--controllers', '', '--nodes', '2')).code, 0);
  const { pid } = JSON.parse((await at.run(['status', '--json', '--data-dir', at.data])).stdout) as { pid: number };
  const second = adminOf(at.data);
  await second.client.create(PODS, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'hangs', namespace: 'default', finalizers: [] },
    spec: { nodeName: gone, containers: [{ name: 'c', image: 'i' }] },
  });
  process.kill(pid, 'SIGKILL');
  await second.close();
  await eventually('the end of the control plane', async () =>
    (await at.run(['status', '--data-dir', at.data])).code === 1 ? true : undefined,
  );

  const up = await at.up('--nodes', '1');
  assert.equal(up.code, 0, up.stderr);
  assert.match(up.stderr, new RegExp(`^warning: node ${gone} is removed: --nodes does not include it`, 'm'));
  const { client, close } = adminOf(at.data);
  t.after(close);
  const names = (await client.list(NODES, {})).items.map(({ metadata }) => metadata.name);
  assert.ok(!names.includes(gone), names.join());
  const { items } = await client.list(PODS, { namespace: 'default' });
  assert.deepEqual(
    items.map(({ metadata }) => metadata.name),
    [],
  );
});

// S-368: `coracle node --stop-vms` ends when its guests have shut down; asked again, it says which it waits for.
test('coracle node --stop-vms shuts its guests down before it ends', {
  timeout: 600_000,
  ...(why && { skip: why }),
}, async (t) => {
  const at = openWorkspace(t);
  assert.equal((await at.up()).code, 0);
  const made = await at.run(['token', 'create', '--data-dir', at.data, '--json']);
  const { token, server, caHash } = JSON.parse(made.stdout) as { token: string; server: string; caHash: string };
  const edge = join(at.dir, 'edge');
  const node = at.start([
    ...['node', 'join', '--data-dir', edge, '--name', 'edge', '--stop-vms'],
    ...['--server', server, '--token', token, '--ca-hash', caHash],
  ]);
  await node.line(/^node edge is ready/);
  await deafGuest(at, 'edgy', 1);
  const guests = () => findGuestsOnDisk(join(edge, 'nodes'));
  assert.equal((await guests()).length, 1);
  node.child.kill('SIGTERM');
  assert.equal((await node.ended).code, 0);
  assert.deepEqual(await guests(), []);
  const { client, close } = adminOf(at.data);
  t.after(close);
  const { spec, status } = await client.get(NODES, { namespace: '', name: 'edge' });
  assert.equal(spec?.unschedulable, true);
  assert.equal(status?.conditions?.find(({ type }) => type === 'Ready')?.status, 'False');
});
