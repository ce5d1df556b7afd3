/** The host is restarted under its guests: what starts again is what its run strategy wants. */
// test:full: many guests, one after the other.
import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINES } from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { findProcesses, identify, isRunning } from '../../packages/runtime/src/process/identity.ts';
import { adminOf, type ControlPlaneProcess, startProcess } from '../testkit/control-plane-process.ts';
import { eventually } from '../testkit/eventually.ts';
import { importTinyGuest, tinyVm, whyNoGuests } from '../testkit/tiny-guest.ts';

const why = whyNoGuests();
const namespace = 'default';

// S-202: After a reboot of the host, Always and RerunOnFailure run again, Manual and Once have ended.
test('after a reboot of the host: Always and RerunOnFailure run again, Manual and Once have ended', {
  timeout: 600_000,
  ...(why && { skip: why }),
}, async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'coracle-reboot-'));
  let plane: ControlPlaneProcess | undefined;
  const guests = () =>
    findProcesses((argv) => argv[0]?.includes('qemu-system') === true && argv.some((word) => word.includes(dir)));
  const endGuests = async (): Promise<void> => {
    for (const pid of await guests()) {
      const identity = await identify(pid);
      if (!identity) continue;
      process.kill(pid, 'SIGKILL');
      while (await isRunning(identity)) await new Promise((wake) => setTimeout(wake, 5));
    }
  };
  t.after(async () => {
    await plane?.kill('SIGKILL');
    await endGuests();
    rmSync(dir, { recursive: true, force: true });
  });
  await importTinyGuest(dir);
  plane = await startProcess(dir, { nodes: 1 });
  let admin = adminOf(dir);
  const names = { always: 'Always', rerun: 'RerunOnFailure', manual: 'Manual', once: 'Once' } as const;
  for (const [name, runStrategy] of Object.entries(names)) {
    const vm = tinyVm(name, ({ spec }) => {
      spec.runStrategy = runStrategy;
    });
    await admin.client.create(VIRTUAL_MACHINES, vm);
  }
  const start = '/apis/subresources.kubevirt.io/v1/namespaces/default/virtualmachines/manual/start';
  await admin.client.raw('PUT', start, { body: {} });
  const instance = (name: string) =>
    admin.client.get(VIRTUAL_MACHINE_INSTANCES, { namespace, name }).catch(() => undefined);
  const running = (name: string) =>
    eventually(`${name} runs`, async () => {
      const vmi = await instance(name);
      return vmi?.status?.phase === 'Running' ? vmi : undefined;
    });
  const before = new Map<string, string>();
  for (const name of Object.keys(names)) before.set(name, (await running(name)).metadata.uid ?? '');

  // All at once, as when the power goes; then the records are of another boot.
  await plane.kill('SIGKILL');
  await admin.close();
  await endGuests();
  const [node = ''] = readdirSync(join(dir, 'nodes')).filter((name) => {
    try {
      return readdirSync(join(dir, 'nodes', name, 'vms')).length > 0;
    } catch {
      return false;
    }
  });
  const vms = join(dir, 'nodes', node, 'vms');
  const boot = '00000000-0000-4000-8000-000000000000';
  let changed = 0;
  for (const uid of readdirSync(vms)) {
    const path = join(vms, uid, 'record.json');
    const record = JSON.parse(readFileSync(path, 'utf8'));
    record.bootId = boot;
    if (record.process) record.process.bootId = boot;
    writeFileSync(path, JSON.stringify(record));
    changed++;
  }
  assert.equal(changed, 4);

  plane = await startProcess(dir, { nodes: 1 });
  admin = adminOf(dir);
  for (const name of ['always', 'rerun'])
    await eventually(`${name} runs again`, async () => {
      const vmi = await instance(name);
      return vmi?.status?.phase === 'Running' && vmi.metadata.uid !== before.get(name) ? true : undefined;
    });
  for (const name of ['manual', 'once']) {
    const word = await eventually(`${name} has ended`, async () => {
      const { status } = await admin.client.get(VIRTUAL_MACHINES, { namespace, name });
      return status?.printableStatus === 'Stopped' ? status.printableStatus : undefined;
    });
    assert.equal(word, 'Stopped');
    const left = await instance(name);
    if (left) assert.deepEqual([left.metadata.uid, left.status?.phase], [before.get(name), 'Failed']);
  }
  assert.equal((await guests()).length, 2);
  await admin.close();
});
