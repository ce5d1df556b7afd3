/**
 * Ten tiny guests that are created at once: until the first and the last is Ready, and what all processes hold then, shared
 * pages counted once. Needs QEMU and a tiny guest built before (tools/guest).
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { VIRTUAL_MACHINES, type VirtualMachine } from '../packages/kubevirt/src/kinds/kubevirt.ts';
import { adminOf } from '../test/testkit/control-plane-process.ts';
import { ensureGuest } from '../tools/guest/build-guest.ts';
import { newDataDir, removeDataDir, startPlane } from './api/plane.ts';
import { endProcess, importGuest, machine, nodeIsReady, whatIsMissing } from './boot.ts';
import { type BenchContext, type Outcome, Runs } from './figure.ts';
import { proportionalMib } from './process-memory.ts';

const RUNS = 3;
const GUESTS = 10;
const NAMESPACE = 'default';
const READY_MS = 120_000;
/** Until what starts beside the guests has settled. */
const SETTLE_MS = 3000;

export async function benchTenGuests({ say }: BenchContext): Promise<Outcome> {
  const missing = whatIsMissing();
  if (missing !== undefined) return { state: 'skipped', reason: missing };
  const guest = await ensureGuest();
  const runs = new Runs();
  for (let run = 0; run < RUNS; run++) {
    const dir = newDataDir();
    let stop: () => Promise<void> = async () => {};
    try {
      importGuest(dir, guest);
      const plane = await startPlane(dir, { nodes: 1 });
      stop = () => plane.process.kill('SIGKILL');
      const admin = adminOf(dir);
      if (!(await nodeIsReady(admin.client))) return { state: 'skipped', reason: 'the node did not become ready' };
      const began = performance.now();
      await Promise.all(
        Array.from({ length: GUESTS }, (_, i) => admin.client.create(VIRTUAL_MACHINES, machine(`guest-${i}`))),
      );
      const readyMs: number[] = [];
      while (readyMs.length < GUESTS) {
        if (performance.now() - began > READY_MS) throw new Error(`${readyMs.length} of ${GUESTS} guests became ready`);
        await sleep(50);
        const { items } = await admin.client.list(VIRTUAL_MACHINES, { namespace: NAMESPACE });
        const ready = items.filter(isReady).length;
        while (readyMs.length < ready) readyMs.push(performance.now() - began);
      }
      runs.add('ten-guests.first', 'ms', { value: readyMs[0] ?? Number.NaN });
      runs.add('ten-guests.ready', 'ms', { value: readyMs.at(-1) ?? Number.NaN });
      await sleep(SETTLE_MS);
      for (const [kind, pids] of processesOf(dir)) {
        const sizes = pids.map((pid) => proportionalMib(pid) ?? 0);
        runs.add(`ten-guests.${kind}`, 'MiB', { value: sizes.reduce((sum, size) => sum + size, 0) });
      }
      await admin.close();
      say(`run ${run + 1} of ${RUNS} done`);
    } finally {
      await stop();
      for (const pids of processesOf(dir).values()) for (const pid of pids) endProcess(pid);
      removeDataDir(dir);
    }
  }
  return { state: 'measured', figures: runs.figures(), notes: { guests: GUESTS } };
}

const isReady = ({ status }: VirtualMachine): boolean =>
  (status?.conditions ?? []).some(({ type, status: is }) => type === 'Ready' && is === 'True');

/** Processes beside the control plane, by what they are: as the node's files name them. */
function processesOf(dir: string): Map<'qemu' | 'filters' | 'switch', number[]> {
  const nodes = join(dir, 'nodes');
  const identity = (path: string): number => {
    const read = JSON.parse(readFileSync(path, 'utf8')) as { pid: number } | { identity: { pid: number } };
    return 'identity' in read ? read.identity.pid : read.pid;
  };
  const each = <T>(list: readonly string[], read: (path: string) => T): T[] =>
    list.flatMap((path) => (existsSync(path) ? [read(path)] : []));
  const names = existsSync(nodes) ? readdirSync(nodes).map((name) => join(nodes, name)) : [];
  const vms = names.flatMap((node) =>
    each([join(node, 'vms')], (at) => readdirSync(at).map((uid) => join(at, uid))).flat(),
  );
  return new Map([
    [
      'qemu',
      each(
        vms.map((vm) => join(vm, 'qemu.pid')),
        (path) => Number(readFileSync(path, 'utf8')),
      ),
    ],
    [
      'filters',
      each(
        vms.map((vm) => join(vm, 'net-filter-process.json')),
        identity,
      ),
    ],
    [
      'switch',
      each(
        names.map((node) => join(node, 'network/switch-process.json')),
        identity,
      ),
    ],
  ] as const);
}
