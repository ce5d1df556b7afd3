/** The kubectl binaries of this machine, and running one. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { accessSync, constants, existsSync, readdirSync, realpathSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { clientBinariesDir } from '../../tools/setup/client-binaries.ts';

export interface Kubectl {
  readonly path: string;
  readonly minor: number;
}

export interface Outcome {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunOptions {
  readonly env: Readonly<Record<string, string>>;
  readonly input?: string;
  readonly cwd: string;
}

const COMMAND_LIMIT_MS = 300_000;

/** Every version there is, oldest first; empty when the machine has none. Of two of a version the machine's own counts. */
export function findKubectls(): readonly Kubectl[] {
  const own = kubectlsOnPath();
  const fetched = versionsIn(clientBinariesDir()).filter(({ minor }) => own.every((one) => one.minor !== minor));
  return [...own, ...fetched].sort((a, b) => a.minor - b.minor);
}

function kubectlsOnPath(): readonly Kubectl[] {
  const onPath = (process.env['PATH'] ?? '').split(delimiter).map((dir) => join(dir, 'kubectl'));
  const first = onPath.find(isExecutable);
  if (first === undefined) return [];
  // What stands on PATH may only hand over to one of the versions beside it.
  const versions = versionsIn(dirname(realpathSync(first)));
  return versions.length > 0 ? versions : [{ path: first, minor: minorOf(first) }];
}

/** The programs of a folder that are named `kubectl.1.N`. */
function versionsIn(folder: string): readonly Kubectl[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder).flatMap((name) => {
    const minor = /^kubectl\.1\.([0-9]+)$/.exec(name)?.[1];
    return minor === undefined || !isExecutable(join(folder, name))
      ? []
      : [{ path: join(folder, name), minor: Number(minor) }];
  });
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

function minorOf(path: string): number {
  const text = execFileSync(path, ['version', '--client', '-o', 'json'], {
    encoding: 'utf8',
    timeout: COMMAND_LIMIT_MS,
  });
  return Number.parseInt((JSON.parse(text) as { clientVersion: { minor: string } }).clientVersion.minor, 10);
}

export interface RunningCommand {
  readonly outcome: Promise<Outcome>;
  /** What it has written so far. */
  readonly stdout: () => string;
  /** Resolves when standard output holds `pattern`; rejects when the command ends without. */
  saw(pattern: RegExp): Promise<void>;
  interrupt(): void;
}

/** Starts one command; it is killed when it takes too long. */
export function startKubectl(kubectl: Kubectl, args: readonly string[], options: RunOptions): RunningCommand {
  const child: ChildProcess = spawn(kubectl.path, args, {
    env: { ...options.env },
    cwd: options.cwd,
    stdio: ['pipe', 'pipe', 'pipe'],
    timeout: COMMAND_LIMIT_MS,
  });
  let stdout = '';
  let stderr = '';
  const looks = new Set<() => void>();
  child.stdout!.on('data', (chunk: Buffer) => {
    stdout += chunk.toString();
    for (const look of looks) look();
  });
  child.stderr!.on('data', (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  const outcome = new Promise<Outcome>((done, fail) => {
    child.once('error', fail);
    child.once('close', (code) => done({ code, stdout, stderr }));
  });
  // A kubectl that reads no input may have ended by now.
  child.stdin!.on('error', () => {});
  child.stdin!.end(options.input ?? '');
  return {
    outcome,
    stdout: () => stdout,
    interrupt: () => child.kill('SIGINT'),
    saw: (pattern) =>
      new Promise((done, fail) => {
        const look = (): void => {
          if (pattern.test(stdout)) done();
        };
        looks.add(look);
        look();
        void outcome.then(
          () => fail(new Error(`it ended without ${pattern}: ${stdout}${stderr}`)),
          (error: Error) => fail(error),
        );
      }),
  };
}

export const runKubectl = (kubectl: Kubectl, args: readonly string[], options: RunOptions): Promise<Outcome> =>
  startKubectl(kubectl, args, options).outcome;
