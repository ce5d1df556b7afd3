/**
 * What the control plane and ten agents in its process hold for each of 1,000 machines that run, on a hypervisor that only
 * pretends (`fake-hypervisor.ts`): resident memory before and after, and the heap alone. Needs QEMU, of which agents ask what it can.
 */
import { spawnSync } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { NODES } from '../packages/apimachinery/src/types/resource-types.ts';
import {
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINES,
  type VirtualMachine,
} from '../packages/kubevirt/src/kinds/kubevirt.ts';
import { adminOf } from '../test/testkit/control-plane-process.ts';
import { newDataDir, removeDataDir, startPlane } from './api/plane.ts';
import { endProcess } from './boot.ts';
import { startFakeHypervisor } from './fake-hypervisor.ts';
import { type BenchContext, type Outcome, Runs } from './figure.ts';
import { residentMib } from './process-memory.ts';

const MACHINES = 1000;
const AT_A_TIME = 20;
/** A node takes 110 Pods. */
const AGENTS = 10;
const NAMESPACE = 'default';
const RUNNING_MS = 500_000;
const SETTLE_MS = 20_000;

export async function benchMachines({ say }: BenchContext): Promise<Outcome> {
  const real = spawnSync('sh', ['-c', 'command -v qemu-system-x86_64']).stdout.toString().trim();
  if (real === '') return { state: 'skipped', reason: 'no qemu-system-x86_64 here' };
  const dir = newDataDir();
  const fake = startFakeHypervisor(newDataDir(), real);
  const runs = new Runs();
  let stop: () => Promise<void> = async () => {};
  try {
    const plane = await startPlane(dir, { nodes: AGENTS, path: `${fake.bin}:${process.env['PATH']}` });
    stop = () => plane.process.kill('SIGKILL');
    const { pid } = plane.process;
    const { client, close } = adminOf(dir);
    const until = async (what: string, count: () => Promise<number>, wanted: number): Promise<void> => {
      const began = performance.now();
      for (let last = -1; ; ) {
        const found = await count();
        if (found >= wanted) return;
        if (found !== last && Math.floor(found / 100) !== Math.floor(last / 100)) say(`${found} of ${wanted} ${what}`);
        last = found;
        if (performance.now() - began > RUNNING_MS) throw new Error(`${found} of ${wanted} ${what}`);
        await sleep(1000);
      }
    };
    const readyNodes = async (): Promise<number> =>
      (await client.list(NODES)).items.filter(({ status }) =>
        status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True'),
      ).length;
    await until('nodes ready', readyNodes, AGENTS);
    await sleep(SETTLE_MS);
    const before = residentMib(pid) ?? Number.NaN;
    const began = performance.now();
    for (let from = 0; from < MACHINES; from += AT_A_TIME)
      await Promise.all(
        Array.from({ length: AT_A_TIME }, (_, i) => client.create(VIRTUAL_MACHINES, machine(`vm-${from + i}`))),
      );
    const running = async (): Promise<number> =>
      (await client.list(VIRTUAL_MACHINE_INSTANCES, { namespace: NAMESPACE })).items.filter(
        ({ status }) => status?.phase === 'Running',
      ).length;
    await until('machines run', running, MACHINES);
    runs.add('machines.seconds', 's', { value: (performance.now() - began) / 1000 });
    runs.add('machines.rss.running', 'MiB', { value: residentMib(pid) ?? Number.NaN });
    await sleep(SETTLE_MS);
    const after = residentMib(pid) ?? Number.NaN;
    runs.add('machines.rss.idle', 'MiB', { value: before });
    runs.add('machines.rss.settled', 'MiB', { value: after });
    runs.add('machines.memory', 'MiB', { value: (after - before) / MACHINES });
    await close();
    return { state: 'measured', figures: runs.figures(), notes: { machines: MACHINES, agents: AGENTS } };
  } finally {
    await stop();
    for (const guest of fake.guests()) endProcess(guest);
    fake.close();
    removeDataDir(dir);
  }
}

/** Without a card: its packet filter would be a process of its own, which is no part of the agent. */
const machine = (name: string): VirtualMachine => ({
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachine',
  metadata: { name, namespace: NAMESPACE },
  spec: {
    runStrategy: 'Always',
    template: {
      metadata: { labels: { app: name } },
      spec: {
        domain: {
          memory: { guest: '1Mi' },
          resources: { requests: { cpu: '1m', memory: '1M' }, overcommitGuestOverhead: true },
          // The container of the console's log asks for 35 MB of a host that has not so much.
          devices: { autoattachPodInterface: false, logSerialConsole: false },
        },
      },
    },
  },
});
