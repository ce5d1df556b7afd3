/**
 * From an applied VM to the first byte of its guest on the console, next to the same QEMU started by hand: the very
 * command line the agent used, without its pause at the start, in a copy of its directory. Needs QEMU and a tiny guest built before (tools/guest).
 */
import { spawn, spawnSync } from 'node:child_process';
import { cpSync, existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { NODES } from '../packages/apimachinery/src/types/resource-types.ts';
import type { Client } from '../packages/client/src/client.ts';
import { VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINES } from '../packages/kubevirt/src/kinds/kubevirt.ts';
import { adminOf } from '../test/testkit/control-plane-process.ts';
import { ensureGuest } from '../tools/guest/build-guest.ts';
import { newDataDir, removeDataDir, startPlane } from './api/plane.ts';
import { type BenchContext, type Outcome, Runs } from './figure.ts';

const RUNS = 5;
const NAMESPACE = 'default';
const READY_MS = 20_000;
/** Without hardware virtualisation a guest takes seconds to its first byte. */
const BOOT_MS = 30_000;
const POLL_MS = 2;
const SERIAL_LOG = 'serial.log';

export async function benchBoot({ say }: BenchContext): Promise<Outcome> {
  const missing = whatIsMissing();
  if (missing !== undefined) return { state: 'skipped', reason: missing };
  const guest = await ensureGuest();
  const dir = newDataDir();
  const qemus = new Set<number>();
  let stop: () => Promise<void> = async () => {};
  try {
    importGuest(dir, guest);
    const plane = await startPlane(dir, { nodes: 1 });
    stop = () => plane.process.kill('SIGKILL');
    const admin = adminOf(dir);
    if (!(await nodeIsReady(admin.client))) return { state: 'skipped', reason: 'the node did not become ready' };
    const runs = new Runs();
    for (let run = 0; run < RUNS; run++) {
      const vm = await bootOne(admin.client, dir, `boot-${run}`);
      qemus.add(vm.pid);
      runs.add('boot.running', 'ms', { value: vm.runningMs });
      runs.add('vmi-writes-to-running', 'each', { value: vm.writes });
      // One guest at a time: two would share the processors.
      process.kill(vm.pid, 'SIGSTOP');
      // By hand right behind it: what the host gives a guest changes by a third from one minute to the next.
      const byHand = await startByHand(vm, { qemus, until: firstByte });
      runs.add('boot.by-hand', 'ms', { value: byHand });
      runs.add('boot.first-byte', 'ms', { value: vm.firstByteMs, plain: byHand });
      runs.add('boot.extra', 'ms', { value: vm.firstByteMs - byHand });
      say(`VM ${run + 1} of ${RUNS} booted`);
    }
    await admin.close();
    return { state: 'measured', figures: runs.figures() };
  } finally {
    await stop();
    for (const pid of qemus) endProcess(pid);
    removeDataDir(dir);
  }
}

/** Why no guest can be booted here; undefined when one can. */
export function whatIsMissing(): string | undefined {
  if (spawnSync('qemu-system-x86_64', ['--version']).status !== 0) return 'no qemu-system-x86_64 here';
  const cache = join(process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'coracle', 'guest');
  if (!existsSync(cache)) return 'no tiny guest built yet (node tools/guest/build.ts builds it)';
  return undefined;
}

/** Imports the tiny guest as localhost/NAME. */
export function importGuest(
  dir: string,
  guest: { readonly disk: string; readonly kernel: string; readonly initrd: string },
  name = 'tiny',
): void {
  const main = resolve(import.meta.dirname, '../packages/coracle/src/main.ts');
  const files = [guest.disk, '--kernel', guest.kernel, '--initrd', guest.initrd];
  const done = spawnSync(process.execPath, [main, 'image', 'import', name, ...files, '--data-dir', dir]);
  if (done.status !== 0) throw new Error(`image import: ${done.stderr.toString()}`);
}

/** Waits for the node; false when it did not come. */
export async function nodeIsReady(client: Client): Promise<boolean> {
  for (let waited = 0; waited < READY_MS; waited += 100) {
    const { items } = await client.list(NODES);
    const ready = items[0]?.status?.conditions?.find(({ type }) => type === 'Ready');
    if (ready?.status === 'True') return true;
    await sleep(100);
  }
  return false;
}

/** What is needed to start its QEMU once more. */
export interface StartedGuest {
  readonly directory: string;
  readonly argv: readonly string[];
}

interface StartedVm extends StartedGuest {
  readonly pid: number;
  /** From sending the VM to the first byte on its console, and to phase Running as a watcher sees it. */
  readonly firstByteMs: number;
  readonly runningMs: number;
  /** Writes to the VMI after its creation, up to Running. */
  readonly writes: number;
}

async function bootOne(client: Client, dir: string, name: string): Promise<StartedVm> {
  const stop = new AbortController();
  let writes = 0;
  let runningAt: number | undefined;
  let uid: string | undefined;
  const watching = (async () => {
    const options = { namespace: NAMESPACE, resourceVersion: '0', signal: stop.signal };
    for await (const { type, object } of client.watch(VIRTUAL_MACHINE_INSTANCES, options)) {
      if (object.metadata.name !== name) continue;
      uid = object.metadata.uid;
      if (type === 'MODIFIED' && runningAt === undefined) writes++;
      if (object.status?.phase === 'Running') runningAt ??= performance.now();
    }
  })().catch(() => {});
  await sleep(200);
  const sent = performance.now();
  await client.create(VIRTUAL_MACHINES, machine(name));
  let directory: string | undefined;
  const firstByteAt = await firstByte(() => {
    directory ??= uid === undefined ? undefined : vmDirectory(dir, uid);
    return directory;
  });
  for (let waited = 0; runningAt === undefined && waited < BOOT_MS; waited += 20) await sleep(20);
  stop.abort();
  await watching;
  if (runningAt === undefined || directory === undefined) throw new Error(`${name} did not come to run`);
  const pid = Number(readFileSync(join(directory, 'qemu.pid'), 'utf8'));
  const argv = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').slice(0, -1);
  return { directory, pid, argv, firstByteMs: firstByteAt - sent, runningMs: runningAt - sent, writes };
}

function vmDirectory(dir: string, uid: string): string | undefined {
  const nodes = join(dir, 'nodes');
  const name = readdirSync(nodes).find((node) => existsSync(join(nodes, node, 'vms', uid)));
  return name === undefined ? undefined : join(nodes, name, 'vms', uid);
}

/** When the console's log holds its first byte. */
async function firstByte(directory: () => string | undefined): Promise<number> {
  const deadline = performance.now() + BOOT_MS;
  while (performance.now() < deadline) {
    const where = directory();
    const found = where === undefined ? undefined : statSync(join(where, SERIAL_LOG), { throwIfNoEntry: false });
    if (found && found.size > 0) return performance.now();
    await sleep(POLL_MS);
  }
  throw new Error(`no byte on the console within ${BOOT_MS} ms`);
}

/** In a copy of the directory, so that the agent's guest and its files are left alone: milliseconds to what `until` waits for. */
export async function startByHand(
  vm: StartedGuest,
  {
    qemus,
    until,
    prepare,
  }: {
    readonly qemus: Set<number>;
    readonly until: (directory: () => string) => Promise<number>;
    readonly prepare?: (directory: string) => void;
  },
): Promise<number> {
  const directory = `${vm.directory}-by-hand`;
  const made = new Set([SERIAL_LOG, 'qemu.pid']);
  cpSync(vm.directory, directory, {
    recursive: true,
    filter: (path) => !made.has(basename(path)) && !statSync(path).isSocket(),
  });
  prepare?.(directory);
  const [program, ...argv] = vm.argv
    .filter((word) => word !== '-S')
    .map((word) => word.replaceAll(vm.directory, directory));
  const began = performance.now();
  const qemu = spawn(program!, argv, { cwd: directory, stdio: 'ignore' });
  qemus.add(qemu.pid!);
  try {
    return (await until(() => directory)) - began;
  } finally {
    const ended = new Promise((done) => qemu.once('exit', done));
    if (qemu.exitCode === null) {
      qemu.kill('SIGKILL');
      await ended;
    }
    qemus.delete(qemu.pid!);
  }
}

/** Kills it, if it lives. */
export function endProcess(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // Gone already.
  }
}

/** A machine that boots the tiny guest by its kernel. */
export const machine = (name: string) => ({
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachine',
  metadata: { name, namespace: NAMESPACE },
  spec: {
    runStrategy: 'Always' as const,
    template: {
      spec: {
        domain: {
          memory: { guest: '128Mi' },
          devices: {},
          firmware: {
            kernelBoot: {
              kernelArgs: 'console=ttyS0',
              container: { image: 'localhost/tiny', kernelPath: '/boot/vmlinuz', initrdPath: '/boot/initrd' },
            },
          },
        },
      },
    },
  },
});
