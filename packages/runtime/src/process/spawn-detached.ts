/**
 * Starts a process that outlives us: its own session, stdio to a file, no pipe back. What we learn later we learn
 * from /proc and from the process's own sockets.
 */
import { spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import type { Writable } from 'node:stream';
import { systemClock } from '../clock/clock.ts';
import { identify, type ProcessIdentity } from './identity.ts';
import { plainEnv } from './run.ts';

export interface DetachedOptions {
  readonly cwd: string;
  /** Receives stdout and stderr, appended; made with mode 0600. A relative name is one of `cwd`. */
  readonly outputFile: string;
  /**
   * Most bytes that `outputFile` grows by before it becomes `outputFile.1`, in whose place it comes: the process writes to
   * a pipe, behind which `BOUNDED_LOG` does, which ends with the process. Without it the file grows as it is written to.
   */
  readonly maxOutputBytes?: number;
  readonly env?: Readonly<Record<string, string>>;
  /** A file that it can read as descriptor `INPUT_FD`. */
  readonly inputFile?: string;
}

/** Behind standard input, output and errors. */
export const INPUT_FD = 3;

export interface Exit {
  /** Exit code; null when a signal ended it. */
  readonly code: number | null;
  readonly signal: string | null;
}

export interface DetachedProcess {
  readonly identity: ProcessIdentity;
  /** Resolves when the child ends while we are alive. */
  readonly exited: Promise<Exit>;
}

/**
 * A program for `sh`, arguments FILE and COUNT: copies its input to FILE, which becomes FILE.1 after COUNT pieces of at most
 * 512 bytes. Where there is no room the input is taken all the same, so that its writer does not wait.
 */
const BOUNDED_LOG = `
umask 077
while :; do
  [ -s "$1" ] && mv -f "$1" "$1.1"
  said=$(dd of="$1" bs=512 count="$2" 2>&1) || said=$(dd of=/dev/null bs=512 count="$2" 2>&1) || exit
  said=\${said%% records in*}
  [ $((\${said%+*} + \${said#*+})) -lt "$2" ] && break
done
[ -s "$1" ] || mv -f "$1.1" "$1"`;
const PIECE_BYTES = 512;
/** What was said last is in the file this long after the process has ended. */
const DRAIN_MS = 2000;

/** Starts `argv`. Throws when the tool cannot be started or is gone before it could be identified. */
export async function spawnDetached(argv: readonly string[], options: DetachedOptions): Promise<DetachedProcess> {
  const tool = argv[0] ?? '';
  if (argv.some((word) => word.includes('\0'))) throw new Error(`${tool}: an argument holds a NUL byte`);
  const log = options.maxOutputBytes === undefined ? undefined : await startLog(options.outputFile, options);
  const out = log?.input ?? openSync(options.outputFile, 'a', 0o600);
  let input: number | undefined;
  try {
    input = options.inputFile === undefined ? undefined : openSync(options.inputFile, 'r');
    const child = spawn(tool, argv.slice(1), {
      cwd: options.cwd,
      env: options.env ?? plainEnv(),
      stdio: ['ignore', out, out, ...(input === undefined ? [] : [input])],
      detached: true,
    });
    const exited = new Promise<Exit>((resolve) =>
      child.once('exit', (code, signal) => void written(log).then(() => resolve({ code, signal }))),
    );
    await new Promise<void>((resolve, reject) => {
      child.once('spawn', resolve);
      child.once('error', (error: NodeJS.ErrnoException) =>
        reject(
          new Error(error.code === 'ENOENT' ? `${tool}: not found in PATH; install it` : `${tool}: ${error.message}`),
        ),
      );
    });
    child.unref();
    const pid = child.pid ?? 0;
    const identity = await identify(pid);
    if (!identity) throw new Error(`${tool}: ended at once, see ${options.outputFile}`);
    return { identity, exited };
  } finally {
    if (typeof out === 'number') closeSync(out);
    else out.destroy();
    if (input !== undefined) closeSync(input);
  }
}

interface BoundedLog {
  /** Shared with the process whose output it is. */
  readonly input: Writable;
  readonly ended: Promise<void>;
}

async function startLog(file: string, { cwd, maxOutputBytes = 0 }: DetachedOptions): Promise<BoundedLog> {
  const child = spawn('sh', ['-c', BOUNDED_LOG, 'bounded-log', file, String(Math.ceil(maxOutputBytes / PIECE_BYTES))], {
    cwd,
    // What `dd` says is read.
    env: { ...plainEnv(), LC_ALL: 'C' },
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  });
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  await new Promise<void>((resolve, reject) => {
    child.once('spawn', resolve);
    child.once('error', reject);
  });
  child.stdin.on('error', () => {});
  child.unref();
  return { input: child.stdin, ended };
}

/** Resolves when the log has all that was said, or after a moment: somebody else may hold its input. */
async function written(log: BoundedLog | undefined): Promise<void> {
  if (!log) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  const cancel = systemClock.schedule(DRAIN_MS, resolve);
  await Promise.race([log.ended, promise]);
  cancel();
}
