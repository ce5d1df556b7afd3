/**
 * `coracle create --image tiny --wait` by the launcher of a build, which is what users install, from its start to its end: the
 * first word of the guest's SSH server. Next to it the same QEMU by hand, on a disk as new as that one's was, with a port of the host instead of
 * the agent's network. Needs QEMU and a tiny guest built before.
 */
import { execFileSync, spawn } from 'node:child_process';
import { globSync, readFileSync, rmSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { VIRTUAL_MACHINES } from '../packages/kubevirt/src/kinds/kubevirt.ts';
import { adminOf } from '../test/testkit/control-plane-process.ts';
import { bundle } from '../tools/build/bundle.ts';
import { ensureGuest } from '../tools/guest/build-guest.ts';
import { newDataDir, removeDataDir, startPlane } from './api/plane.ts';
import { endProcess, importGuest, nodeIsReady, type StartedGuest, startByHand, whatIsMissing } from './boot.ts';
import { type BenchContext, type Outcome, Runs } from './figure.ts';

/** On a machine that others use too, one boot of a guest takes up to half as long again as the next. */
const RUNS = 7;
const ANSWER_MS = 60_000;
const ATTEMPT_MS = 500;
const PAUSE_MS = 10;

export async function benchCreate({ say }: BenchContext): Promise<Outcome> {
  const missing = whatIsMissing();
  if (missing !== undefined) return { state: 'skipped', reason: missing };
  const guest = await ensureGuest();
  const dir = newDataDir();
  const qemus = new Set<number>();
  let stop: () => Promise<void> = async () => {};
  try {
    importGuest(dir, guest, 'coracle/tiny');
    const program = join(dir, 'built');
    await bundle(join(import.meta.dirname, '..'), program);
    const launcher = join(program, 'coracle');
    const built = { main: join(program, 'lib/main.js'), cache: join(dir, 'cache') };
    const plane = await startPlane(dir, { nodes: 1, built });
    stop = () => plane.process.kill('SIGKILL');
    const admin = adminOf(dir);
    if (!(await nodeIsReady(admin.client))) return { state: 'skipped', reason: 'the node did not become ready' };
    // Its code is compiled, its key made and the image unpacked once, as on a machine where it has run before.
    await create(launcher, dir, 'first');
    const runs = new Runs();
    for (let run = 0; run < RUNS; run++) {
      const name = `create-${run}`;
      const phases = await create(launcher, dir, name);
      const vm = guestOf(dir, name);
      qemus.add(vm.pid);
      // One guest at a time: two would share the processors.
      process.kill(vm.pid, 'SIGSTOP');
      const port = await freePort();
      const { directory, argv } = vm;
      const byHand = await startByHand(
        { directory, argv: withPort(argv, port) },
        { qemus, until: () => answer(port), prepare: renewDisk },
      );
      for (const [phase, value] of Object.entries(phases)) runs.add(`create.${phase}`, 'ms', { value });
      runs.add('create.by-hand', 'ms', { value: byHand });
      runs.add('create.extra', 'ms', { value: phases['ssh']! - byHand });
      process.kill(vm.pid, 'SIGKILL');
      await admin.client.delete(VIRTUAL_MACHINES, { namespace: 'default', name });
      say(`VM ${run + 1} of ${RUNS} answered`);
    }
    await admin.close();
    return { state: 'measured', figures: runs.figures() };
  } finally {
    await stop();
    for (const record of globSync(join(dir, 'nodes/*/vms/*/qemu.pid')))
      endProcess(Number(readFileSync(record, 'utf8')));
    for (const pid of qemus) endProcess(pid);
    removeDataDir(dir);
  }
}

/** Milliseconds from the start of the command: to the machine made, running, and answering ssh, which is its end. */
async function create(launcher: string, dir: string, name: string): Promise<Record<string, number>> {
  const began = performance.now();
  const child = spawn(launcher, ['create', name, '--image', 'tiny', '--wait', '--data-dir', dir], {
    stdio: ['ignore', 'pipe', 'pipe'],
    // It takes the Node that it finds there.
    env: {
      ...process.env,
      NODE_COMPILE_CACHE: join(dir, 'cache'),
      PATH: `${dirname(process.execPath)}:${process.env['PATH']}`,
    },
  });
  const times: Record<string, number> = {};
  let text = '';
  child.stdout.on('data', (chunk: Buffer) => {
    text += chunk.toString();
    for (const [phase, word] of [
      ['made', ' created '],
      ['running', ' Running '],
    ] as const)
      if (text.includes(word)) times[phase] ??= performance.now() - began;
  });
  let trouble = '';
  child.stderr.on('data', (chunk: Buffer) => {
    trouble += chunk.toString();
  });
  const code = await new Promise<number | null>((done) => child.once('close', done));
  if (code !== 0) throw new Error(`coracle create: ${trouble}`);
  return { ...times, ssh: performance.now() - began };
}

/** The guest of a machine, as its agent started it. */
function guestOf(dir: string, name: string): StartedGuest & { readonly pid: number } {
  const record = globSync(join(dir, 'nodes/*/vms/*/record.json')).find(
    (path) => (JSON.parse(readFileSync(path, 'utf8')) as { name: string }).name === name,
  );
  if (record === undefined) throw new Error(`${name} has no record`);
  const directory = dirname(record);
  const pid = Number(readFileSync(join(directory, 'qemu.pid'), 'utf8'));
  return { directory, pid, argv: readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').slice(0, -1) };
}

/** A first boot is longer than later ones: the guest makes the key of its SSH server and keeps it on the disk. */
function renewDisk(directory: string): void {
  const disk = join(directory, 'disk-0.qcow2');
  const facts: unknown = JSON.parse(execFileSync('qemu-img', ['info', '--output=json', disk], { encoding: 'utf8' }));
  const { 'full-backing-filename': backing, 'backing-filename-format': format } = facts as Record<string, string>;
  if (!backing || !format) throw new Error(`${disk} has no image below it`);
  rmSync(disk);
  execFileSync('qemu-img', ['create', '-q', '-f', 'qcow2', '-b', backing, '-F', format, disk]);
}

/** The same command line without the filter that the agent puts before the network, and with port 22 at one of the host. */
function withPort(argv: readonly string[], port: number): string[] {
  const isFilter = (word: string): boolean => /"?qom-type"?\W+filter-|filter-/.test(word);
  const found: string[] = [];
  for (let at = 0; at < argv.length; at++) {
    const [option, value = ''] = [argv[at]!, argv[at + 1]];
    if ((option === '-object' || option === '-chardev') && (isFilter(value) || /net-\d+-/.test(value))) {
      at++;
      continue;
    }
    if (option === '-netdev') {
      const hostfwd = [{ str: `tcp:127.0.0.1:${port}-:22` }];
      found.push(option, JSON.stringify({ ...(JSON.parse(value) as object), hostfwd }));
      at++;
      continue;
    }
    found.push(option);
  }
  return found;
}

/** When the SSH server behind a port says its first word. */
async function answer(port: number): Promise<number> {
  const deadline = performance.now() + ANSWER_MS;
  while (performance.now() < deadline) {
    const spoke = await new Promise<boolean>((done) => {
      const socket = connect(port, '127.0.0.1');
      const end = (found: boolean): void => {
        socket.destroy();
        done(found);
      };
      socket.setTimeout(ATTEMPT_MS, () => end(false));
      socket.once('data', () => end(true));
      socket.once('error', () => end(false));
      socket.once('close', () => done(false));
    });
    if (spoke) return performance.now();
    await sleep(PAUSE_MS);
  }
  throw new Error(`no word of the SSH server within ${ANSWER_MS} ms`);
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const { port } = server.address() as { port: number };
  await new Promise((done) => server.close(done));
  return port;
}
