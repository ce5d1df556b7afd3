/** A fork during which the whole program is killed, and started again: it converges, and leaves nothing behind. */
import assert from 'node:assert/strict';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINE_SNAPSHOTS,
  VIRTUAL_MACHINES,
} from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { adminOf, type ControlPlaneProcess, startProcess } from '../testkit/control-plane-process.ts';
import { eventually } from '../testkit/eventually.ts';
import { importTinyGuest, tinyVm } from '../testkit/tiny-guest.ts';

const NAMESPACE = 'default';
const MACHINES = [{ name: 'source', namespace: NAMESPACE }];

/** Forks `source` once for each delay (ms from the request to the kill). */
export async function crashForks(delays: readonly number[]): Promise<void> {
  const dir = await mkdtemp(join(tmpdir(), 'coracle-fork-crash-'));
  let plane: ControlPlaneProcess | undefined;
  try {
    await importTinyGuest(dir);
    plane = await startProcess(dir, { nodes: 1 });
    let admin = adminOf(dir);
    const quick = tinyVm('source', ({ spec }) => {
      if (spec.template.spec) spec.template.spec.terminationGracePeriodSeconds = 0;
    });
    await admin.client.create(VIRTUAL_MACHINES, quick);
    const running = (name: string) =>
      eventually(`${name} runs`, async () => {
        const vmi = await admin.client.get(VIRTUAL_MACHINE_INSTANCES, { namespace: NAMESPACE, name });
        return vmi.status?.phase === 'Running' ? vmi : undefined;
      });
    const source = await running('source');
    for (const [at, delay] of delays.entries()) {
      const name = `fork-${at}`;
      await admin.client.create(VIRTUAL_MACHINE_SNAPSHOTS, request(name));
      await new Promise((next) => setTimeout(next, delay));
      await plane.kill('SIGKILL');
      await admin.close();
      plane = await startProcess(dir, { nodes: 1 });
      admin = adminOf(dir);
      await running(name);
      await eventually(`the fork killed after ${delay} ms is over`, async () => {
        const { items } = await admin.client.list(VIRTUAL_MACHINE_SNAPSHOTS, { namespace: NAMESPACE });
        return items.length === 0 ? true : undefined;
      });
      assert.deepEqual(await readdir(join(dir, 'memory')), [], `killed after ${delay} ms`);
      const now = await running('source');
      assert.equal(now.metadata.uid, source.metadata.uid, `killed after ${delay} ms`);
      const paused = now.status?.conditions?.find(({ type }) => type === 'Paused');
      assert.notEqual(paused?.status, 'True', 'the source goes on');
      const { items } = await admin.client.list(VIRTUAL_MACHINES, { namespace: NAMESPACE });
      assert.deepEqual(items.map(({ metadata }) => metadata.name).sort(), [name, ...MACHINES.map((each) => each.name)]);
      const record = await recordOf(dir, source.metadata.uid ?? '');
      assert.deepEqual([record['saving'], record['resuming']], [undefined, undefined]);
      await admin.client.delete(VIRTUAL_MACHINES, { namespace: NAMESPACE, name });
      await eventually(`${name} is gone`, async () => {
        const { items } = await admin.client.list(VIRTUAL_MACHINES, { namespace: NAMESPACE });
        return items.length === 1 ? true : undefined;
      });
    }
    await admin.client.delete(VIRTUAL_MACHINES, { namespace: NAMESPACE, name: 'source' });
    await admin.close();
  } finally {
    await plane?.kill('SIGTERM');
    await endGuests(dir);
    await rm(dir, { recursive: true, force: true, maxRetries: 5 });
  }
}

const request = (name: string) => ({
  apiVersion: 'snapshot.kubevirt.io/v1beta1',
  kind: 'VirtualMachineSnapshot',
  metadata: {
    name,
    namespace: NAMESPACE,
    annotations: { 'coracle.dev/include-memory': 'true', 'coracle.dev/fork-into': name },
  },
  spec: { source: { apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name: 'source' } },
});

async function recordOf(dir: string, uid: string): Promise<Record<string, unknown>> {
  const [node = ''] = (await readdir(join(dir, 'nodes'), { withFileTypes: true }))
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name);
  return JSON.parse(await readFile(join(dir, 'nodes', node, 'vms', uid, 'record.json'), 'utf8'));
}

/** By their pid files: whatever failed, no guest of this test stays. */
async function endGuests(dir: string): Promise<void> {
  for (const node of await readdir(join(dir, 'nodes')).catch(() => [] as string[]))
    for (const uid of await readdir(join(dir, 'nodes', node, 'vms')).catch(() => [] as string[])) {
      const pid = await readFile(join(dir, 'nodes', node, 'vms', uid, 'qemu.pid'), 'utf8').catch(() => '');
      if (Number(pid) > 0)
        try {
          process.kill(Number(pid), 'SIGKILL');
        } catch {
          // Gone already.
        }
    }
}
