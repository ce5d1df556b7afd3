/**
 * `npm run demo`: a control plane, a VirtualMachine applied to it, and what its guest says on the serial console.
 * --once cleans up and exits 0 when the guest has spoken; --image REF runs another container disk than the tiny guest.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { parse } from 'yaml';
import { createClient } from '../../packages/client/src/create-client.ts';
import { startHost } from '../../packages/coracle/src/compose/host.ts';
import { dataDirAt, ensurePrivateDir } from '../../packages/coracle/src/config/data-dir.ts';
import {
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINES,
  type VirtualMachine,
} from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { openImageStore } from '../../packages/node-agent/src/image/image-store.ts';
import { importImage } from '../../packages/node-agent/src/image/local-images.ts';
import { systemClock } from '../../packages/runtime/src/clock/clock.ts';
import { createHttpsTransport } from '../../packages/runtime/src/http/https-transport.ts';
import { createMessagePair } from '../../packages/runtime/src/http/message-pair.ts';
import { NO_BYTES } from '../../packages/runtime/src/http/seam.ts';
import { createLogger, formatRecord } from '../../packages/runtime/src/log/log.ts';
import { ensureGuest } from '../guest/build-guest.ts';
import { ensurePrograms, QEMU_PROGRAMS } from '../setup/host-packages.ts';

/** What the tiny guest prints when it has done all it was asked to. */
const LAST_WORDS = /cloud-init: done/;
/** A guest of another image need not say anything in particular: its console is shown this long. */
const OTHER_IMAGE_MS = 30_000;
const BOOT_MS = 120_000;

const root = resolve(dirname(fileURLToPath(import.meta.url)), '../..');
const HELP = `A control plane, a virtual machine, and what its guest says. Ctrl-C stops everything.

Usage: npm run demo -- [flags]

Flags:
  --once       clean up and end with 0 when the guest has spoken
  --image REF  boot this container disk instead of the tiny guest, for example quay.io/containerdisks/cirros
  --help, -h   show this
`;
const say = (line: string): void => void process.stderr.write(`${line}\n`);

interface DemoFlags {
  readonly once: boolean;
  readonly help: boolean;
  readonly image?: string | undefined;
}

const flags = readFlags();
const values: DemoFlags = flags ?? { once: false, help: false };
process.exitCode = flags === undefined ? 1 : flags.help ? 0 : await main();

/** Undefined, and one line, when the call is wrong; `--help` is answered. */
function readFlags(): DemoFlags | undefined {
  try {
    const { values: read } = parseArgs({
      options: {
        once: { type: 'boolean', default: false },
        help: { type: 'boolean', short: 'h', default: false },
        image: { type: 'string' },
      },
    });
    if (read.help) process.stdout.write(HELP);
    return read;
  } catch (error) {
    say(`error: ${(error as Error).message.split('. ')[0]} (see: npm run demo -- --help)`);
    return undefined;
  }
}

async function main(): Promise<number> {
  if (ensurePrograms(QEMU_PROGRAMS, say).length > 0) return 1;
  const stop = new AbortController();
  process.once('SIGINT', () => stop.abort());
  process.once('SIGTERM', () => stop.abort());
  const home = mkdtempSync(join(tmpdir(), 'coracle-demo-'));
  const dir = dataDirAt(home);
  try {
    ensurePrivateDir(dir.root);
    if (values.image === undefined && !(await importTinyGuest(dir.images))) return 1;
    const began = systemClock.monotonic();
    const log = createLogger((record) => void process.stderr.write(formatRecord(record, systemClock.now())), 'warn');
    const host = await startHost({ dir, port: 0, nodes: 1, controllers: '*', clock: systemClock, log });
    try {
      say(`control plane ready in ${((systemClock.monotonic() - began) / 1000).toFixed(1)} s at ${host.url}`);
      say(`  export KUBECONFIG=${dir.kubeconfig}`);
      return await show(host.access, stop.signal);
    } finally {
      await host.close({ keepVms: false });
    }
  } catch (error) {
    say(`error: ${error instanceof Error ? error.message : String(error)}`);
    return 1;
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}

/** Builds (once) and imports the guest; false with a line of advice when this host cannot build it. */
async function importTinyGuest(images: string): Promise<boolean> {
  try {
    const guest = await ensureGuest({ log: (line: string) => say(`set-up: ${line}`) });
    const store = await openImageStore(images, { clock: systemClock });
    await importImage(store, 'coracle/tiny', guest.disk, {
      kernel: guest.kernel,
      initrd: guest.initrd,
      signal: AbortSignal.timeout(BOOT_MS),
    });
    return true;
  } catch (error) {
    say(`the tiny guest cannot be built here: ${error instanceof Error ? error.message : String(error)}`);
    say('run a container disk of a registry instead: npm run demo -- --image quay.io/containerdisks/cirros');
    return false;
  }
}

async function show(access: Awaited<ReturnType<typeof startHost>>['access'], stopped: AbortSignal): Promise<number> {
  if ('token' in access.user) throw new Error('the demo needs the admin certificate');
  const handler = createHttpsTransport({
    server: access.server,
    ca: access.ca,
    certificate: access.user.certificate,
    key: access.user.key,
  });
  const client = createClient(handler, { userAgent: 'coracle-demo' });
  const signal = AbortSignal.any([stopped, AbortSignal.timeout(BOOT_MS)]);
  try {
    const vm = parse(readFileSync(join(root, 'examples/tiny-vm.yaml'), 'utf8')) as VirtualMachine;
    vm.metadata.namespace = 'default';
    const [volume] = vm.spec.template.spec?.volumes ?? [];
    if (values.image !== undefined && volume) volume.containerDisk = { image: values.image };
    await client.create(VIRTUAL_MACHINES, vm);
    say('applied examples/tiny-vm.yaml; the guest says:');
    const key = { namespace: 'default', name: 'tiny' };
    await untilRunning(client, key, signal);
    const vmi = await client.get(VIRTUAL_MACHINE_INSTANCES, key);
    const spoken = await followConsole(handler, { key, signal, stopped });
    say('');
    say(`kubectl get vmi tiny -o jsonpath={.spec.domain.firmware.uuid}: ${vmi.spec.domain?.firmware?.uuid}`);
    if (!spoken && !stopped.aborted) {
      say('error: the guest did not report in time');
      return 1;
    }
    await client.delete(VIRTUAL_MACHINES, key);
    return 0;
  } finally {
    await handler.close();
  }
}

async function untilRunning(
  client: ReturnType<typeof createClient>,
  key: { namespace: string; name: string },
  signal: AbortSignal,
): Promise<void> {
  for await (const event of client.watch(VIRTUAL_MACHINE_INSTANCES, {
    namespace: key.namespace,
    fieldSelector: `metadata.name=${key.name}`,
    signal,
  })) {
    if (event.type !== 'ADDED' && event.type !== 'MODIFIED') continue;
    const { phase, conditions } = event.object.status ?? {};
    if (phase === 'Running') return;
    const trouble = conditions?.find((c) => c.type === 'Synchronized' && c.status === 'False');
    if (phase === 'Failed' || trouble) throw new Error(`the machine does not start: ${trouble?.message ?? phase}`);
  }
  throw new Error('the machine did not start in time');
}

/** Prints the console. Resolves true when the guest has said its last words (or, without --once, when Ctrl-C comes). */
async function followConsole(
  handler: ReturnType<typeof createHttpsTransport>,
  at: { key: { namespace: string; name: string }; signal: AbortSignal; stopped: AbortSignal },
): Promise<boolean> {
  const { key, signal, stopped } = at;
  const response = await handler({
    method: 'GET',
    path: `/apis/subresources.kubevirt.io/v1/namespaces/${key.namespace}/virtualmachineinstances/${key.name}/console`,
    query: 'backlog=true',
    headers: { connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-protocol': 'plain.kubevirt.io' },
    body: NO_BYTES,
    peer: { address: '' },
    signal,
    upgradable: true,
  });
  if (!response.upgrade) throw new Error(`the console answered ${response.status}`);
  const [socket, far] = createMessagePair('plain.kubevirt.io');
  response.upgrade.accept(far);
  return new Promise((done) => {
    let tail = '';
    let spoken = false;
    const finish = (result: boolean): void => {
      socket.close();
      done(result);
    };
    const decoder = new TextDecoder();
    socket.onMessage((data) => {
      process.stdout.write(data);
      tail = (tail + decoder.decode(data, { stream: true })).slice(-4096);
      if (spoken || values.image !== undefined || !LAST_WORDS.test(tail)) return;
      spoken = true;
      if (values.once) finish(true);
      else say('\n(the guest runs on; Ctrl-C stops everything)');
    });
    socket.onClose(() => done(spoken));
    if (values.once && values.image !== undefined) systemClock.schedule(OTHER_IMAGE_MS, () => finish(true));
    const end = (values.once ? signal : stopped) as AbortSignal;
    end.addEventListener('abort', () => finish(spoken), { once: true });
  });
}
