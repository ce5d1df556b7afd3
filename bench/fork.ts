/**
 * `coracle fork` of a running guest of 256 MiB, as whole programs: from the start of the command to the first answer of
 * the fork's shell on its console, and the longest silence of the source, which writes to its console all the time, next
 * to its longest silence before. Needs QEMU and a tiny guest built before (tools/guest).
 */
import { spawn } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from '../packages/client/src/client.ts';
import { VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINES } from '../packages/kubevirt/src/kinds/kubevirt.ts';
import { createMessagePair } from '../packages/runtime/src/http/message-pair.ts';
import { type ApiHandler, type MessageSocket, NEVER, NO_BYTES } from '../packages/runtime/src/http/seam.ts';
import { adminOf } from '../test/testkit/control-plane-process.ts';
import { ensureGuest } from '../tools/guest/build-guest.ts';
import { newDataDir, removeDataDir, startPlane } from './api/plane.ts';
import { importGuest, nodeIsReady, whatIsMissing } from './boot.ts';
import { type BenchContext, type Outcome, Runs } from './figure.ts';

const RUNS = 4;
const NAMESPACE = 'default';
const SOURCE = 'source';
const WAIT_MS = 60_000;
const POLL_MS = 10;
/** Between two words of the source. */
const TICK_MS = 20;

export async function benchFork({ say }: BenchContext): Promise<Outcome> {
  const missing = whatIsMissing();
  if (missing !== undefined) return { state: 'skipped', reason: missing };
  const guest = await ensureGuest();
  const dir = newDataDir();
  let stop: () => Promise<void> = async () => {};
  try {
    importGuest(dir, guest);
    const plane = await startPlane(dir, { nodes: 1 });
    stop = () => plane.process.kill('SIGTERM');
    const admin = adminOf(dir);
    if (!(await nodeIsReady(admin.client))) return { state: 'skipped', reason: 'the node did not become ready' };
    const runs = new Runs();
    // Its code is compiled once, as on a machine where it has run before.
    await startFork(dir, 'nothing', 'nobody').catch(() => {});
    await admin.client.create(VIRTUAL_MACHINES, machine());
    await running(admin.client, SOURCE);
    const source = listen(await consoleOf(admin.handler, SOURCE, 'backlog=true'));
    await source.has('login:');
    source.type('root\n');
    await source.has(':~# ');
    source.type(`while :; do echo tick; sleep ${TICK_MS / 1000}; done &\n`);
    await sleep(1000);
    for (let run = 0; run < RUNS; run++) {
      const name = `fork-${run}`;
      source.longestSilence();
      await sleep(1000);
      const usual = source.longestSilence();
      const began = performance.now();
      const command = startFork(dir, name);
      await running(admin.client, name);
      runs.add('fork.running', 'ms', { value: performance.now() - began });
      const copy = listen(await consoleOf(admin.handler, name));
      copy.type("echo ans'w'er\n");
      await copy.has('answer');
      runs.add('fork.answers', 'ms', { value: performance.now() - began });
      await command;
      runs.add('fork.command', 'ms', { value: performance.now() - began });
      runs.add('fork.pause', 'ms', { value: source.longestSilence() });
      runs.add('fork.usual-silence', 'ms', { value: usual });
      copy.close();
      await admin.client.delete(VIRTUAL_MACHINES, { namespace: NAMESPACE, name });
      await gone(admin.client, name);
      say(`fork ${run + 1} of ${RUNS} answered`);
    }
    source.close();
    await admin.close();
    return { state: 'measured', figures: runs.figures() };
  } finally {
    await stop();
    // Guests outlive the program that started them.
    endGuests(dir);
    removeDataDir(dir);
  }
}

/** By their pid files. */
function endGuests(dir: string): void {
  for (const file of globSync(join(dir, 'nodes/*/vms/*/qemu.pid'))) {
    try {
      process.kill(Number(readFileSync(file, 'utf8')), 'SIGKILL');
    } catch {
      // Gone already.
    }
  }
}

/** The command as a user would give it; rejects with what it said. */
function startFork(dir: string, name: string, source = SOURCE): Promise<void> {
  const program = resolve(import.meta.dirname, '../coracle');
  const child = spawn(program, ['fork', source, '-n', NAMESPACE, '--name', name, '--data-dir', dir], {
    stdio: ['ignore', 'ignore', 'pipe'],
    // That of one installation, not of a developer's many checkouts.
    env: { ...process.env, NODE_COMPILE_CACHE: join(dir, 'compiled') },
  });
  let said = '';
  child.stderr.on('data', (chunk: Buffer) => {
    said += chunk.toString();
  });
  return new Promise((done, fail) => {
    child.once('exit', (code) => (code === 0 ? done() : fail(new Error(`coracle fork ended with ${code}: ${said}`))));
  });
}

async function until(what: string, test: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + WAIT_MS;
  while (!(await test().catch(() => false))) {
    if (performance.now() > deadline) throw new Error(`${what}: not within ${WAIT_MS} ms`);
    await sleep(POLL_MS);
  }
}

/** Watched: asked again and again, the server would be measured with a second load beside the fork. */
async function running(client: Client, name: string): Promise<void> {
  const seen = { namespace: NAMESPACE, fieldSelector: `metadata.name=${name}`, signal: AbortSignal.timeout(WAIT_MS) };
  for await (const { object } of client.watch(VIRTUAL_MACHINE_INSTANCES, seen))
    if (object.status?.phase === 'Running') return;
  throw new Error(`${name} runs: the watch ended before`);
}

const gone = (client: Client, name: string): Promise<void> =>
  until(`${name} is gone`, async () => {
    const { items } = await client.list(VIRTUAL_MACHINE_INSTANCES, { namespace: NAMESPACE });
    return !items.some(({ metadata }) => metadata.name === name);
  });

async function consoleOf(handler: ApiHandler, name: string, query = ''): Promise<MessageSocket> {
  const response = await handler({
    method: 'GET',
    path: `/apis/subresources.kubevirt.io/v1/namespaces/${NAMESPACE}/virtualmachineinstances/${name}/console`,
    query,
    headers: { connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-protocol': 'plain.kubevirt.io' },
    body: NO_BYTES,
    peer: { address: '' },
    signal: NEVER,
    upgradable: true,
  });
  if (!response.upgrade) throw new Error(`console of ${name}: ${response.status}`);
  const [near, far] = createMessagePair('plain.kubevirt.io');
  response.upgrade.accept(far);
  return near;
}

/** The last of what is heard. */
const MAX_HEARD = 4096;

function listen(socket: MessageSocket) {
  let heard = '';
  let last = performance.now();
  let longest = 0;
  socket.onMessage((data) => {
    const now = performance.now();
    longest = Math.max(longest, now - last);
    last = now;
    heard = (heard + new TextDecoder().decode(data)).slice(-MAX_HEARD);
  });
  return {
    type: (text: string): void => void socket.send(new TextEncoder().encode(text)),
    has: (text: string): Promise<void> => until(`console says ${text}`, async () => heard.includes(text)),
    /** Since it was asked last, ms. */
    longestSilence(): number {
      const silence = longest;
      longest = 0;
      return silence;
    },
    close: (): void => socket.close(),
  };
}

const machine = () => ({
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachine',
  metadata: { name: SOURCE, namespace: NAMESPACE },
  spec: {
    runStrategy: 'Always' as const,
    template: {
      spec: {
        terminationGracePeriodSeconds: 0,
        domain: {
          memory: { guest: '256Mi' },
          devices: { disks: [{ name: 'root', disk: { bus: 'virtio' } }] },
          firmware: {
            kernelBoot: {
              kernelArgs: 'console=ttyS0',
              container: { image: 'localhost/tiny', kernelPath: '/boot/vmlinuz', initrdPath: '/boot/initrd' },
            },
          },
        },
        volumes: [{ name: 'root', containerDisk: { image: 'localhost/tiny' } }],
      },
    },
  },
});
