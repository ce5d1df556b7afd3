/**
 * Starts a process that outlives us: its own session, stdio to a file, no pipe back. What we learn later we learn
 * from /proc and from the process's own sockets.
 */
import { spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { identify, type ProcessIdentity } from './identity.ts';
import { plainEnv } from './run.ts';

export interface DetachedOptions {
  readonly cwd: string;
  /** Receives stdout and stderr, appended; made with mode 0600. */
  readonly outputFile: string;
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

/** Starts `argv`. Throws when the tool cannot be started or is gone before it could be identified. */
export async function spawnDetached(argv: readonly string[], options: DetachedOptions): Promise<DetachedProcess> {
  const tool = argv[0] ?? '';
  if (argv.some((word) => word.includes('\0'))) throw new Error(`${tool}: an argument holds a NUL byte`);
  const out = openSync(options.outputFile, 'a', 0o600);
  let input: number | undefined;
  try {
    input = options.inputFile === undefined ? undefined : openSync(options.inputFile, 'r');
    const child = spawn(tool, argv.slice(1), {
      cwd: options.cwd,
      env: options.env ?? plainEnv(),
      stdio: ['ignore', out, out, ...(input === undefined ? [] : [input])],
      detached: true,
    });
    const exited = new Promise<Exit>((resolve) => child.once('exit', (code, signal) => resolve({ code, signal })));
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
    closeSync(out);
    if (input !== undefined) closeSync(input);
  }
}
