/**
 * Who a process is. A pid alone says nothing after a restart: the kernel reuses it. Boot id, pid and start time
 * (field 22 of /proc/PID/stat) together name one process for ever. Linux only.
 */
import { readdir, readFile } from 'node:fs/promises';

/** One process, for ever: written to disk, compared after a restart. */
export interface ProcessIdentity {
  readonly bootId: string;
  readonly pid: number;
  /** Clock ticks since boot, as text (may exceed 2^53 only in theory; compared, never computed with). */
  readonly startTime: string;
}

/** The kernel's id of this boot. */
export async function bootId(): Promise<string> {
  return (await readFile('/proc/sys/kernel/random/boot_id', 'latin1')).trim();
}

/** State letter and start time of a pid, or undefined when there is no such process. */
export const readStat = (pid: number): Promise<ReturnType<typeof parseStat>> =>
  readFile(`/proc/${pid}/stat`, 'latin1').then(parseStat, () => undefined);

/** Parses /proc/PID/stat. The command name is in parentheses and may itself hold parentheses and spaces. */
export function parseStat(text: string): { state: string; startTime: string } | undefined {
  const fields = text
    .slice(text.lastIndexOf(')') + 2)
    .trim()
    .split(' ');
  const [state, startTime] = [fields[0], fields[19]];
  return state === undefined || startTime === undefined ? undefined : { state, startTime };
}

/** The identity of a live process, or undefined when it is gone or a zombie. */
export async function identify(pid: number): Promise<ProcessIdentity | undefined> {
  const stat = await readStat(pid);
  if (!stat || stat.state === 'Z' || stat.state === 'X') return undefined;
  return { bootId: await bootId(), pid, startTime: stat.startTime };
}

/** True while exactly this process runs. A zombie counts as dead: it holds nothing any more. */
export async function isRunning(identity: ProcessIdentity): Promise<boolean> {
  const now = await identify(identity.pid);
  return now !== undefined && now.bootId === identity.bootId && now.startTime === identity.startTime;
}

/** Signals the process if it is still the same one; true when the signal was sent. */
export async function signalProcess(identity: ProcessIdentity, signal: 'SIGTERM' | 'SIGKILL'): Promise<boolean> {
  if (!(await isRunning(identity))) return false;
  try {
    return process.kill(identity.pid, signal);
  } catch {
    return false;
  }
}

/** One after the other takes four times as long, and each new guest waits for it. */
const READ_AT_ONCE = 8;

type Processes = ReadonlyMap<number, readonly string[]>;

let underWay: Promise<void> = Promise.resolve();
/** The look that has not begun yet: whoever asks now is shown all that runs by now. */
let next: Promise<Processes> | undefined;

/**
 * Every pid whose argument vector satisfies `matches`; processes that vanish meanwhile are skipped. Callers that come while
 * the system is looked through share the next look, which begins when that one is through: a hundred guests that are
 * started together do not have it looked through a hundred times.
 */
export async function findProcesses(matches: (argv: readonly string[]) => boolean): Promise<number[]> {
  next ??= underWay.then(() => {
    next = undefined;
    const look = readProcesses();
    underWay = look.then(
      () => {},
      () => {},
    );
    return look;
  });
  return [...(await next)].flatMap(([pid, argv]) => (matches(argv) ? [pid] : []));
}

/** Argument vectors by pid: as many as the system has processes, and let go with the look. */
async function readProcesses(): Promise<Processes> {
  const processes = new Map<number, readonly string[]>();
  const names = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).values();
  const readSome = async (): Promise<void> => {
    for (const name of names) {
      const line = await readFile(`/proc/${name}/cmdline`, 'utf8').catch(() => '');
      if (line !== '') processes.set(Number(name), line.split('\0'));
    }
  };
  await Promise.all(Array.from({ length: READ_AT_ONCE }, readSome));
  return processes;
}
