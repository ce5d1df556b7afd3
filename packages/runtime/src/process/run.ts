/**
 * Runs a short-lived tool to its end. The outcome is a value: a tool that fails is an ordinary thing, and what it
 * wrote on stderr is what the user needs to read. Not for processes that outlive us: see spawn-detached.ts.
 */
import { spawn } from 'node:child_process';
import { systemClock } from '../clock/clock.ts';

export interface RunOptions {
  /** Ends the child when it fires; the result is then `aborted`. */
  readonly signal: AbortSignal;
  /** Limit for the whole run, milliseconds. */
  readonly timeoutMs: number;
  readonly cwd?: string;
  /** The whole environment; nothing is inherited unless given. Default: PATH and LC_ALL=C only. */
  readonly env?: Readonly<Record<string, string>>;
  /** Written to stdin, which is then closed. Without it stdin is /dev/null. */
  readonly input?: Uint8Array;
  /** Bound of captured stdout; more is a failure. Default 1 MiB. */
  readonly maxStdout?: number;
  /** Receives stdout instead of the capture. Return value is awaited: the child is held back meanwhile. */
  readonly onStdout?: (chunk: Uint8Array) => void | Promise<void>;
}

type Stopped = 'timeout' | 'aborted' | 'output';
export type RunFailure = 'spawn' | 'exit' | 'signal' | Stopped;

export type RunResult =
  | { readonly ok: true; readonly stdout: Uint8Array; readonly stderr: string }
  | {
      readonly ok: false;
      readonly reason: RunFailure;
      /** Exit code for 'exit'. */
      readonly code?: number;
      /** Which tool, what happened, and the end of what it said. */
      readonly message: string;
      readonly stdout: Uint8Array;
      readonly stderr: string;
    };

const MAX_STDOUT = 1024 * 1024;
/** Only the tail of stderr is kept. */
const MAX_STDERR = 16 * 1024;
/** Between SIGTERM and SIGKILL. */
const KILL_AFTER_MS = 2000;

/** PATH of the system tools and a fixed locale: what a tool gets when the caller names no environment. */
export const plainEnv = (): Record<string, string> => ({
  PATH: process.env['PATH'] ?? '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
  LC_ALL: 'C',
});

/** Runs `argv` to its end. Never rejects: spawn errors are results too. `argv[0]` is looked up in PATH. */
export function run(argv: readonly string[], options: RunOptions): Promise<RunResult> {
  const tool = argv[0] ?? '';
  const maxStdout = options.maxStdout ?? MAX_STDOUT;
  const none = new Uint8Array(0);
  const refuse = async (reason: RunFailure, message: string): Promise<RunResult> => ({
    ok: false,
    reason,
    message,
    stdout: none,
    stderr: '',
  });
  if (options.signal.aborted) return refuse('aborted', `${tool}: not started: cancelled`);
  if (argv.some((word) => word.includes('\0'))) return refuse('spawn', `${tool}: an argument holds a NUL byte`);

  return new Promise((resolve) => {
    const child = spawn(tool, argv.slice(1), {
      cwd: options.cwd,
      env: options.env ?? plainEnv(),
      stdio: [options.input ? 'pipe' : 'ignore', 'pipe', 'pipe'],
      // Its own group, so that the ladder reaches the children of the tool as well.
      detached: true,
    });
    const stdout: Buffer[] = [];
    let stdoutBytes = 0;
    let stderr = '';
    let why: Stopped | undefined;
    let sinkError: unknown;
    let cancelKill = (): void => {};

    const signalGroup = (name: NodeJS.Signals): void => {
      if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
      try {
        process.kill(-child.pid, name);
      } catch {
        child.kill(name);
      }
    };
    const stop = (reason: Stopped): void => {
      if (why) return;
      why = reason;
      signalGroup('SIGTERM');
      cancelKill = systemClock.schedule(KILL_AFTER_MS, () => signalGroup('SIGKILL'));
    };
    const onAbort = (): void => stop('aborted');
    options.signal.addEventListener('abort', onAbort, { once: true });
    const cancelLimit = systemClock.schedule(options.timeoutMs, () => stop('timeout'));

    let settled = false;
    const settle = (result: RunResult): void => {
      if (settled) return;
      settled = true;
      cancelLimit();
      cancelKill();
      options.signal.removeEventListener('abort', onAbort);
      resolve(result);
    };
    const sink = options.onStdout;
    child.stdout?.on('data', (chunk: Buffer) => {
      if (sink) {
        const busy = sink(chunk);
        if (!busy) return;
        child.stdout?.pause();
        busy.then(
          () => child.stdout?.resume(),
          (error: unknown) => {
            sinkError = error;
            stop('output');
            child.stdout?.resume();
          },
        );
        return;
      }
      stdoutBytes += chunk.length;
      if (stdoutBytes > maxStdout) return stop('output');
      stdout.push(chunk);
    });
    child.stderr?.on('data', (chunk: Buffer) => {
      stderr = (stderr + chunk.toString('utf8')).slice(-MAX_STDERR);
    });
    child.stdin?.on('error', () => {});
    if (options.input) child.stdin?.end(options.input);
    child.on('error', (error: NodeJS.ErrnoException) => {
      const hint = error.code === 'ENOENT' ? 'not found in PATH; install it' : error.message;
      settle({ ok: false, reason: 'spawn', message: `${tool}: ${hint}`, stdout: none, stderr });
    });
    child.on('close', (code, signal) => {
      const out = Buffer.concat(stdout);
      if (!why && code === 0) return settle({ ok: true, stdout: out, stderr });
      const said = stderr.trim().slice(-2000);
      const stopped = {
        timeout: `took longer than ${options.timeoutMs} ms`,
        aborted: 'cancelled',
        output: sinkError instanceof Error ? sinkError.message : `wrote more than ${maxStdout} bytes`,
      };
      const ended = signal ? `ended by ${signal}` : `exit code ${code}`;
      const what = why ? stopped[why] : ended;
      settle({
        ok: false,
        reason: why ?? (signal ? 'signal' : 'exit'),
        ...(code !== null && { code }),
        message: said === '' ? `${tool}: ${what}` : `${tool}: ${what}: ${said}`,
        stdout: out,
        stderr,
      });
    });
  });
}
