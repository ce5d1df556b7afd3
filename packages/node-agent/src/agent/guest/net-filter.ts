/**
 * The packet filter of a guest (`node-agent/network/filter-process.ts`): QEMU is configured to hand it what the guest sends, and the
 * process is kept alive. Cards on a segment need none: they lead to the switch alone. QEMU drops what it cannot hand over, so a guest whose filter is away is cut off, not let loose.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { podAddressOf } from '@coracle/kubevirt/rules/launcher/pod-address';
import { podCard } from '@coracle/kubevirt/rules/machine/interfaces';
import type { MachinePlan } from '@coracle/kubevirt/rules/machine/machine-plan';
import type { Clock } from '@coracle/runtime/clock/clock';
import type { Logger } from '@coracle/runtime/log/log';
import { isRunning, type ProcessIdentity } from '@coracle/runtime/process/identity';
import { terminate } from '@coracle/runtime/process/terminate';
import { writeFileAtomic } from '../../image/atomic-file.ts';
import { FILTER_FILES, FILTER_VERSION, type FilterConfig, type FilteredCard } from '../../network/filter-files.ts';
import { startProgram } from '../../network/start-program.ts';
import type { GuestHello } from '../../network/switch/switch-state.ts';
import { VM_FILES } from '../../qemu/argv.ts';
import { dnsAddress, POD_NETDEV } from '../../qemu/cards.ts';
import type { QmpConnection } from '../../qmp/qmp-connection.ts';
import type { Guest } from './guest.ts';

const POLL_MS = 1000;
const FIRST_RETRY_MS = 250;
const MOST_RETRY_MS = 10_000;
/** Until a filter of another version that does not end is killed. */
const END_MS = 1000;
/** It holds a few frames at a time; its bytes in flight are bounded. */
const HEAP_MIB = 64;

export interface NetFilterOptions {
  /** Of the VM. */
  readonly directory: string;
  readonly plan: MachinePlan;
  /** Of the VM on this host. */
  readonly address: string;
  readonly clock: Clock;
  readonly log: Logger;
}

/**
 * Sees to it that the guest has its filter as long as it is ours to look after. Resolves when it has it; rejects when the
 * first try failed, which is repeated until the guest is closed or has ended.
 */
export function keepNetFilter(guest: Guest, options: NetFilterOptions): Promise<void> {
  const cards = cardsOf(options.plan);
  if (cards.length === 0) return Promise.resolve();
  const { clock, log } = options;
  const isOver = (): boolean => guest.signal.aborted || guest.state.exit !== undefined;
  return new Promise((resolve, reject) => {
    void (async () => {
      let pause = FIRST_RETRY_MS;
      while (!isOver()) {
        try {
          const ended = (await runningFilter(guest, options)) ?? (await startFilter(guest.qmp(), options, cards));
          resolve();
          pause = FIRST_RETRY_MS;
          await ended();
          // QEMU ends before it, or with it: then there is nothing left to do.
          await clock.sleep(FIRST_RETRY_MS, guest.signal);
          if (!isOver()) log.warn('the packet filter of a guest has ended; it is started again');
        } catch (error) {
          reject(error as Error);
          if (isOver()) return;
          log.warn('the packet filter of a guest could not be started', { error: (error as Error).message });
          await clock.sleep(pause, guest.signal).catch(() => {});
          pause = Math.min(2 * pause, MOST_RETRY_MS);
        }
      }
      resolve();
    })();
  });
}

function cardsOf(plan: MachinePlan): FilteredCard[] {
  const { network, ports = [] } = podCard(plan) ?? {};
  if (!network) return [];
  const { cidr, gateway } = network;
  const udp = ports.some(({ protocol }) => protocol === 'udp');
  return [{ netdev: POD_NETDEV, network: { cidr, gateway, dns: dnsAddress(network) }, udp }];
}

type Ended = () => Promise<void>;

const endOf =
  (identity: ProcessIdentity, { clock }: NetFilterOptions, signal: AbortSignal): Ended =>
  async () => {
    while (await isRunning(identity)) await clock.sleep(POLL_MS, signal);
  };

/** What the switch of the node has to know of the guest. */
function helloOf(plan: MachinePlan, address: string): GuestHello {
  const nic = podCard(plan);
  if (!nic?.network) throw new Error('a guest without a card');
  const declared = nic.ports.filter((port) => port.declared);
  return {
    type: 'guest',
    address: podAddressOf(address),
    inside: nic.network.guest,
    gateway: nic.network.gateway,
    dns: dnsAddress(nic.network),
    mac: nic.mac,
    ...(nic.resolvers && { resolvers: nic.resolvers }),
    ...(declared.length > 0 && { ports: declared.map(({ protocol, port }) => ({ protocol, port })) }),
  };
}

/** What libslirp does not know it cannot say: then the filter answers. */
function dhcpOf(plan: MachinePlan): Pick<FilterConfig, 'dhcp'> {
  const { dhcp } = podCard(plan) ?? {};
  return dhcp?.ntpServers || dhcp?.privateOptions ? { dhcp: { hostname: plan.hostname, ...dhcp } } : {};
}

/** The filter that an earlier agent started, if it lives. One of another version is ended. */
async function runningFilter(guest: Guest, options: NetFilterOptions): Promise<Ended | undefined> {
  const path = join(options.directory, FILTER_FILES.process);
  try {
    const identity = JSON.parse(await readFile(path, 'utf8')) as ProcessIdentity;
    if (!(await isRunning(identity))) return undefined;
    const config = JSON.parse(await readFile(join(options.directory, FILTER_FILES.config), 'utf8')) as FilterConfig;
    if (config.version === FILTER_VERSION) return endOf(identity, options, guest.signal);
    await terminate(identity, { clock: options.clock, signal: guest.signal, graceMs: END_MS });
    return undefined;
  } catch {
    return undefined;
  }
}

async function startFilter(
  qmp: QmpConnection,
  { directory, plan, address }: NetFilterOptions,
  cards: readonly FilteredCard[],
): Promise<Ended> {
  for (const card of cards) await redirect(qmp, card);
  await bring(qmp, POD_NETDEV);
  const config: FilterConfig = {
    version: FILTER_VERSION,
    cards,
    hello: helloOf(plan, address),
    ...dhcpOf(plan),
    ...(plan.serial?.log && { logs: [VM_FILES.serialLog] }),
  };
  await writeFileAtomic(join(directory, FILTER_FILES.config), JSON.stringify(config));
  const child = await startProgram('filter-process', { cwd: directory, heapMiB: HEAP_MIB, outputFile: '/dev/null' });
  await writeFileAtomic(join(directory, FILTER_FILES.process), JSON.stringify(child.identity));
  return async () => void (await child.exited);
}

/**
 * Tells QEMU to send what comes from the guest to one socket, and to take what its network shall get from another. Guests
 * of earlier versions are configured so while they run. The second has to be configured anew for each filter: it stops listening when
 * the one before goes.
 */
async function redirect(qmp: QmpConnection, { netdev, udp }: FilteredCard): Promise<void> {
  const { objects, socket } = await filtersOf(qmp);
  const [taken, given, seen] = [`${netdev}-taken`, `${netdev}-given`, `${netdev}-seen`];
  await socket(taken, FILTER_FILES.taken(netdev));
  await socket(given, FILTER_FILES.given(netdev));
  if (udp) await socket(seen, FILTER_FILES.seen(netdev));
  const filter = (id: string, type: string, how: Readonly<Record<string, string>>): Promise<object> =>
    qmp.execute('object-add', { 'qom-type': type, id, netdev, ...how });
  if (!objects.has(`${netdev}-take`))
    await filter(`${netdev}-take`, 'filter-redirector', { queue: 'rx', outdev: taken });
  if (udp && !objects.has(`${netdev}-see`))
    await filter(`${netdev}-see`, 'filter-mirror', { queue: 'tx', outdev: seen });
  if (objects.has(`${netdev}-give`)) await qmp.execute('object-del', { id: `${netdev}-give` });
  // What comes from the guest passes the list from its tail to its head: behind the one that takes comes the one that gives.
  await filter(`${netdev}-give`, 'filter-redirector', { queue: 'rx', position: 'head', indev: given });
}

/** Tells QEMU to give the guest what comes from other guests by a socket: configured anew for each filter, as above. */
async function bring(qmp: QmpConnection, netdev: string): Promise<void> {
  const { objects, socket } = await filtersOf(qmp);
  const brought = `${netdev}-brought`;
  await socket(brought, FILTER_FILES.brought(netdev));
  if (objects.has(`${netdev}-bring`)) await qmp.execute('object-del', { id: `${netdev}-bring` });
  await qmp.execute('object-add', {
    'qom-type': 'filter-redirector',
    id: `${netdev}-bring`,
    netdev,
    queue: 'tx',
    indev: brought,
  });
}

/** What QEMU has of them, and a way to add a socket that it lacks. */
async function filtersOf(qmp: QmpConnection) {
  const devices = new Set((await qmp.execute('query-chardev')).map(({ label }) => label));
  const objects = new Set((await qmp.execute('qom-list', { path: '/objects' })).map(({ name }) => name));
  const socket = async (id: string, path: string): Promise<void> => {
    if (devices.has(id)) return;
    const addr = { type: 'unix', data: { path } } as const;
    await qmp.execute('chardev-add', { id, backend: { type: 'socket', data: { addr, server: true, wait: false } } });
  };
  return { objects, socket };
}
