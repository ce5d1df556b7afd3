/**
 * What a guest takes and has taken: processors and memory as the kernel counts them, disks and balloon as QEMU does, cards,
 * file systems and load as the guest's own agent does. Each part has a limit of time and is left out past it.
 */
import { readFile } from 'node:fs/promises';
import type { MachinePlan } from '@coracle/kubevirt/rules/machine/machine-plan';
import type { Clock } from '@coracle/runtime/clock/clock';
import type { ProcessIdentity } from '@coracle/runtime/process/identity';
import type { BlockStats } from '../../qmp/commands.ts';
import type { AskGuestAgent } from '../../qmp/guest-agent.ts';
import { type ProcessTimes, processUsage, TICK_NANOS } from '../requests/usage.ts';
import type { Guest } from './guest.ts';
import {
  askFilesystems,
  askLoad,
  askTraffic,
  type CardTraffic,
  type GuestFilesystem,
  type GuestLoad,
} from './guest-agent-facts.ts';

export interface VcpuStats {
  readonly id: number;
  readonly seconds: number;
  /** Ready to run, and not running. */
  readonly delaySeconds?: number;
  /** Waiting for input and output; where the kernel counts that. */
  readonly waitSeconds?: number;
  /** Processors of the node that it may run on. */
  readonly processors?: number;
}

export interface DiskStats {
  readonly name: string;
  readonly stats: BlockStats['stats'];
}

/** Bytes and counts as the guest's balloon driver gives them; what it does not know is missing. */
export type BalloonStats = Readonly<Record<string, number>>;

export interface GuestStats {
  readonly process?: ProcessTimes;
  /** Bytes. */
  readonly memoryBytes: number;
  readonly balloonBytes?: number;
  readonly balloon: BalloonStats;
  readonly vcpus: readonly VcpuStats[];
  readonly disks: readonly DiskStats[];
  readonly cards: readonly CardTraffic[];
  readonly filesystems: readonly GuestFilesystem[];
  readonly load?: GuestLoad;
}

/** How often a guest is to tell of its memory, seconds: upstream's default. Asked for when somebody first wants to know. */
const BALLOON_PERIOD_S = 10;
/** QEMU and the guest agent are waited for no longer. */
const PATIENCE_MS = 1_000;
const BALLOON = '/machine/peripheral/balloon0';
/** Prefix of the ids of what a user named. */
const USERS = 'ua-';

interface Measured {
  readonly guest: Guest;
  readonly plan: MachinePlan;
  readonly process: ProcessIdentity;
}

/** Measures a guest now. Never rejects. */
export async function guestStats({ guest, plan, process }: Measured, clock: Clock): Promise<GuestStats> {
  const within = <T>(asked: Promise<T>, otherwise: T): Promise<T> =>
    new Promise((resolve) => {
      const cancel = clock.schedule(PATIENCE_MS, () => resolve(otherwise));
      asked.then(resolve, () => resolve(otherwise)).finally(cancel);
    });
  const qmp = guest.qmp();
  const limit = { timeoutMs: PATIENCE_MS };
  const inside = guest.state.agentConnected
    ? within(guest.agent.converse(askInside), NOTHING_INSIDE)
    : Promise.resolve(NOTHING_INSIDE);
  const [times, threads, blocks, actual, balloon, fromInside] = await Promise.all([
    processUsage(process),
    within(qmp.execute('query-cpus-fast', undefined, limit), []),
    within(qmp.execute('query-blockstats', undefined, limit), []),
    within<number | undefined>(
      qmp.execute('query-balloon', undefined, limit).then(({ actual }) => actual),
      undefined,
    ),
    within(balloonStats(guest), {}),
    inside,
  ]);
  const vcpus = await Promise.all(
    threads.map(({ 'cpu-index': id, 'thread-id': thread }) => vcpuStats(process.pid, { id, thread })),
  );
  return {
    ...(times && { process: times }),
    memoryBytes: plan.memoryBytes,
    ...(actual !== undefined && { balloonBytes: actual }),
    balloon,
    vcpus: vcpus.flatMap((vcpu) => vcpu ?? []),
    disks: blocks.flatMap(({ qdev, stats }) => {
      const device = qdev?.split('/')[3];
      return device?.startsWith(USERS) ? [{ name: device.slice(USERS.length), stats }] : [];
    }),
    ...fromInside,
  };
}

type Inside = Pick<GuestStats, 'cards' | 'filesystems' | 'load'>;
const NOTHING_INSIDE: Inside = { cards: [], filesystems: [] };

async function askInside(ask: AskGuestAgent): Promise<Inside> {
  const [cards, filesystems, load] = [await askTraffic(ask), await askFilesystems(ask), await askLoad(ask)];
  return { cards, filesystems, ...(load && { load }) };
}

/** Those of the driver's answer that are there; QEMU says -1 of the others. Nothing before the driver was asked for them. */
async function balloonStats(guest: Guest): Promise<BalloonStats> {
  const qmp = guest.qmp();
  const answer = (await qmp.execute('qom-get', { path: BALLOON, property: 'guest-stats' })) as {
    readonly stats?: Readonly<Record<string, unknown>>;
    readonly 'last-update'?: number;
  };
  if (!answer['last-update']) {
    const property = 'guest-stats-polling-interval';
    await qmp.execute('qom-set', { path: BALLOON, property, value: BALLOON_PERIOD_S });
    return {};
  }
  return Object.fromEntries(
    Object.entries(answer.stats ?? {}).filter(
      (entry): entry is [string, number] => typeof entry[1] === 'number' && entry[1] >= 0 && entry[1] < 2 ** 63,
    ),
  );
}

async function vcpuStats(
  pid: number,
  { id, thread }: { readonly id: number; readonly thread: number },
): Promise<VcpuStats | undefined> {
  const file = (name: string): Promise<string> =>
    readFile(`/proc/${pid}/task/${thread}/${name}`, 'latin1').catch(() => '');
  const [stat, schedstat, sched, status] = await Promise.all(['stat', 'schedstat', 'sched', 'status'].map(file));
  return parseVcpu(id, { stat: stat ?? '', schedstat: schedstat ?? '', sched: sched ?? '', status: status ?? '' });
}

/** Reads the four files of a thread; what one of them does not say is left out. Undefined when the thread is gone. */
export function parseVcpu(
  id: number,
  files: Readonly<Record<'stat' | 'schedstat' | 'sched' | 'status', string>>,
): VcpuStats | undefined {
  const fields = files.stat.slice(files.stat.lastIndexOf(')') + 2).split(' ');
  const ticks = Number(fields[11]) + Number(fields[12]);
  if (Number.isNaN(ticks)) return undefined;
  const delay = /^\d+ (\d+) /.exec(files.schedstat)?.[1];
  const wait = /^(?:se\.statistics\.)?iowait_sum\s*:\s*([\d.]+)/m.exec(files.sched)?.[1];
  const allowed = /^Cpus_allowed_list:\s*([\d,-]+)$/m.exec(files.status)?.[1];
  return {
    id,
    seconds: (ticks * TICK_NANOS) / 1e9,
    ...(delay !== undefined && { delaySeconds: Number(delay) / 1e9 }),
    ...(wait !== undefined && { waitSeconds: Number(wait) / 1e3 }),
    ...(allowed !== undefined && { processors: countOf(allowed) }),
  };
}

/** `0-3,8` are five. */
const countOf = (list: string): number =>
  list.split(',').reduce((sum, range) => {
    const [first, last] = range.split('-').map(Number);
    return sum + (last ?? first ?? 0) - (first ?? 0) + 1;
  }, 0);
