import { readFileSync } from 'node:fs';

/** Length of the ticks in which Linux counts CPU time. */
const TICK_MICROS = 10_000;
/** `utime` and `stime` of /proc/PID/stat, counted from the state behind the name in brackets. */
const USER = 11;
const SYSTEM = 12;

/**
 * CPU time of a process so far, all its threads together, in microseconds; undefined where the system does not tell
 * (/proc). Other work on the machine moves it much less than it moves rates.
 */
export function cpuMicros(pid: number): number | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    return (Number(fields[USER]) + Number(fields[SYSTEM])) * TICK_MICROS;
  } catch {
    return undefined;
  }
}
