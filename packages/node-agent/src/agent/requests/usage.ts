/** What the host and the guests on it take of processors, memory and disk, as /proc tells it. Linux only. */
import { readFile, statfs } from 'node:fs/promises';
import type { ProcessIdentity } from '@coracle/runtime/process/identity';

export interface CpuAndMemory {
  /** Since the start, in nanoseconds of one processor. */
  readonly cpuNanos: number;
  /** Bytes in memory that could not be had back at once. */
  readonly memoryBytes: number;
}

/** What a process has taken, by where it was. */
export interface ProcessTimes extends CpuAndMemory {
  readonly userNanos: number;
  readonly systemNanos: number;
}

/** USER_HZ, which /proc counts in: 100 on every platform of Linux that QEMU runs on here. */
export const TICK_NANOS = 10_000_000;
const PAGE_BYTES = 4096;
const KIB = 1024;

/** Undefined when /proc does not say. */
export async function hostUsage() {
  try {
    return parseHost(await readFile('/proc/stat', 'latin1'), await readFile('/proc/meminfo', 'latin1'));
  } catch {
    return undefined;
  }
}

/** Reads /proc/stat and /proc/meminfo. */
export function parseHost(stat: string, memory: string) {
  const ticks = /^cpu +([\d ]+)$/m.exec(stat)?.[1]?.split(' ').map(Number);
  const booted = /^btime (\d+)$/m.exec(stat)?.[1];
  const kib = (name: string): number => Number(new RegExp(`^${name}: +(\\d+) kB$`, 'm').exec(memory)?.[1]);
  const [total, available] = [kib('MemTotal'), kib('MemAvailable')];
  if (!ticks || booted === undefined || Number.isNaN(total) || Number.isNaN(available)) return undefined;
  // user nice system idle iowait irq softirq steal; the guests' own time is in the first two already.
  const busy = ticks.slice(0, 8).reduce((sum, one, at) => (at === 3 || at === 4 ? sum : sum + one), 0);
  return {
    cpuNanos: busy * TICK_NANOS,
    memoryBytes: (total - available) * KIB,
    availableBytes: available * KIB,
    /** When the host was started, ms since the epoch. */
    bootedAt: Number(booted) * 1000,
  };
}

/** Undefined when exactly this process runs no more. */
export async function processUsage({ pid, startTime }: ProcessIdentity): Promise<ProcessTimes | undefined> {
  try {
    const usage = parseProcess(await readFile(`/proc/${pid}/stat`, 'latin1'));
    return usage?.startTime === startTime ? usage : undefined;
  } catch {
    return undefined;
  }
}

/** Reads /proc/PID/stat: fields 14 and 15 (user and system time), 22 (start) and 24 (resident pages). */
export function parseProcess(text: string): (ProcessTimes & { readonly startTime: string }) | undefined {
  const fields = text
    .slice(text.lastIndexOf(')') + 2)
    .trim()
    .split(' ');
  const [user, system, startTime, pages] = [fields[11], fields[12], fields[19], fields[21]];
  if (user === undefined || system === undefined || startTime === undefined || pages === undefined) return undefined;
  const [userNanos, systemNanos] = [Number(user) * TICK_NANOS, Number(system) * TICK_NANOS];
  return {
    cpuNanos: userNanos + systemNanos,
    userNanos,
    systemNanos,
    memoryBytes: Number(pages) * PAGE_BYTES,
    startTime,
  };
}

/** Of the file system that a directory lies on; undefined when it is not there. */
export async function diskUsage(directory: string) {
  try {
    const { bsize, blocks, bavail, files, ffree } = await statfs(directory);
    return { availableBytes: bavail * bsize, capacityBytes: blocks * bsize, inodes: files, inodesFree: ffree };
  } catch {
    return undefined;
  }
}
