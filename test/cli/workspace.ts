/** A place of its own for command-line tests: temporary home and data directory; whatever was started on it ends with the test. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { TestContext } from 'node:test';
import { findProcesses, identify, isRunning } from '../../packages/runtime/src/process/identity.ts';

export const root: string = resolve(import.meta.dirname, '../..');

export interface Outcome {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Started {
  readonly child: ChildProcess;
  /** Resolves when it has ended. */
  readonly ended: Promise<Outcome>;
  /** Resolves when its standard output holds a whole line that matches; rejects when it ends before. */
  line(pattern: RegExp): Promise<string>;
  /** What it has written to its standard error so far. */
  stderr(): string;
}

export interface Workspace {
  readonly dir: string;
  readonly home: string;
  /** Data directory given to `--data-dir`. */
  readonly data: string;
  readonly kubeconfig: string;
  /** Runs `coracle ARGV` to its end; in a process of its own only where that makes a difference. */
  run(argv: readonly string[], env?: Readonly<Record<string, string>>): Promise<Outcome>;
  /** Runs the command line for each in one process: of commands that end without leaving anything. */
  runEach(argvs: readonly (readonly string[])[]): Promise<Outcome[]>;
  /** Starts `coracle ARGV` and leaves it running. */
  start(argv: readonly string[], env?: Readonly<Record<string, string>>): Started;
  /** `coracle up` on the data directory: a free port, no node, no change to the user's kubeconfig, detached. */
  up(...more: readonly string[]): Promise<Outcome>;
  /** Runs kubectl as the admin of the data directory. */
  kubectl(argv: readonly string[], input?: string): Promise<Outcome>;
}

/** Longest a command may take before it is ended. */
const COMMAND_MS = 300_000;

export function openWorkspace(t: TestContext): Workspace {
  const dir = mkdtempSync(join(tmpdir(), 'coracle-cli-'));
  const home = join(dir, 'home');
  mkdirSync(home);
  const data = join(dir, 'data');
  t.after(async () => {
    // Every process started here names the directory, which no other process knows.
    const pids = await findProcesses((argv) => argv.some((word) => word.includes(dir)));
    for (const pid of pids) {
      const identity = await identify(pid);
      if (!identity || pid === process.pid) continue;
      process.kill(pid, 'SIGKILL');
      while (await isRunning(identity)) await new Promise((wake) => setTimeout(wake, 5));
    }
    rmSync(dir, { recursive: true, force: true });
  });
  const own = { PATH: pathOf(), HOME: home, NODE_COMPILE_CACHE: COMPILED };
  const start: Workspace['start'] = (argv, env = {}) =>
    startProgram(process.execPath, [join(root, 'packages/coracle/src/main.ts'), ...argv], { ...own, ...env });
  const together = startCommands(dir, own);
  const run: Workspace['run'] = (argv, env) =>
    env || OWN_PROCESS.test(argv.join(' ')) || together.isBusy() ? bounded(start(argv, env)) : together.run(argv);
  const kubeconfig = join(data, 'kubeconfig');
  return {
    dir,
    home,
    data,
    kubeconfig,
    start,
    run,
    async runEach(argvs) {
      const outcomes: Outcome[] = [];
      for (const argv of argvs) outcomes.push(await together.run(argv));
      return outcomes;
    },
    up: (...more) =>
      run(['up', '--data-dir', data, '--port', '0', '--nodes', '0', '--detach', '--no-merge-kubeconfig', ...more]),
    kubectl: (argv, input) =>
      bounded(startProgram('kubectl', argv, { PATH: pathOf(), HOME: home, KUBECONFIG: kubeconfig }, input)),
  };
}

/** The program's cache of compiled sources, shared by all tests: a home of its own for each would compile them anew. */
const COMPILED = process.env['NODE_COMPILE_CACHE'] ?? join(homedir(), '.cache/coracle/compile');

/** Commands that wait for signals, give their own input and output to another program, or read theirs. */
const OWN_PROCESS = /^(up|node|controllers|console|ssh|cp|port-forward|logs)\b|(^| )-( |$)/;

interface Commands {
  /** One runs. */
  isBusy(): boolean;
  /** Runs one, when no other runs. */
  run(argv: readonly string[]): Promise<Outcome>;
}

function startTogether(dir: string, env: Readonly<Record<string, string>>): ChildProcess {
  const child = spawn(process.execPath, [join(root, 'test/cli/run-commands.ts'), dir], { env: { ...env } });
  child.stdin.on('error', () => {}); // its end is heard by its output
  child.stdout.setEncoding('utf8');
  return child;
}

/** A process that runs commands one after the other: most of what a command costs is loading it. It starts with the first. */
function startCommands(dir: string, env: Readonly<Record<string, string>>): Commands {
  let child: ChildProcess | undefined;
  let isBusy = false;
  const ask = (argv: readonly string[]): Promise<Outcome> =>
    new Promise((resolve, reject) => {
      child ??= startTogether(dir, env);
      const { stdin, stdout, stderr } = child;
      let said = '';
      let complained = '';
      const hear = (chunk: string): void => {
        said += chunk;
        if (said.endsWith('\n')) over(() => resolve(JSON.parse(said) as Outcome));
      };
      const complain = (chunk: Buffer): void => {
        complained += chunk.toString();
      };
      const fail = (): void => {
        child = undefined;
        over(() => reject(new Error(`coracle ${argv.join(' ')} ended its process: ${complained}`)));
      };
      const timer = setTimeout(() => child?.kill('SIGKILL'), COMMAND_MS);
      const over = (act: () => void): void => {
        clearTimeout(timer);
        stdout!.off('data', hear).off('close', fail);
        stderr!.off('data', complain);
        act();
      };
      stdout!.on('data', hear).once('close', fail);
      stderr!.on('data', complain);
      stdin!.write(`${JSON.stringify(argv)}\n`);
    });
  return {
    isBusy: () => isBusy,
    async run(argv) {
      isBusy = true;
      try {
        return await ask(argv);
      } finally {
        isBusy = false;
      }
    },
  };
}

const pathOf = (): string => process.env['PATH'] ?? '/usr/bin:/bin';

/** Runs any program to its end, with exactly this environment. */
export const runProgram = (
  file: string,
  argv: readonly string[],
  env: Readonly<Record<string, string>> = { PATH: pathOf() },
): Promise<Outcome> => bounded(startProgram(file, argv, env));

async function bounded({ child, ended }: Started): Promise<Outcome> {
  const timer = setTimeout(() => child.kill('SIGKILL'), COMMAND_MS);
  try {
    return await ended;
  } finally {
    clearTimeout(timer);
  }
}

function startProgram(
  file: string,
  argv: readonly string[],
  env: Readonly<Record<string, string>>,
  input?: string,
): Started {
  const child = spawn(file, argv, { env: { ...env }, stdio: ['pipe', 'pipe', 'pipe'] });
  let stdout = '';
  let stderr = '';
  let wake = (): void => {};
  child.stdout.on('data', (chunk: Buffer) => {
    stdout += chunk.toString();
    wake();
  });
  child.stderr.on('data', (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  child.stdin.on('error', () => {}); // a program that reads nothing may be gone first
  child.stdin.end(input);
  let over = false;
  const ended = new Promise<Outcome>((done, fail) => {
    child.once('error', fail);
    child.once('close', (code) => {
      over = true;
      wake();
      done({ code, stdout, stderr });
    });
  });
  return {
    child,
    ended,
    stderr: () => stderr,
    async line(pattern) {
      for (;;) {
        const found = stdout
          .split('\n')
          .slice(0, -1)
          .find((text) => pattern.test(text));
        if (found !== undefined) return found;
        if (over) throw new Error(`ended (${child.exitCode}) without a line like ${pattern}: ${stdout}${stderr}`);
        await new Promise<void>((resume) => {
          wake = resume;
        });
      }
    },
  };
}

/** What `coracle up` prints once it is ready. */
export const READY: RegExp = /^ready in \d+\.\d+s {2}https:\/\/127\.0\.0\.1:\d+ {2}kubeconfig \/\S+$/;

export const lines = (text: string): string[] => text.split('\n').slice(0, -1);

/** The line of an outcome that is one line on standard error and nothing else. */
export function refusal(outcome: Outcome, code: number): string {
  const [line = '', ...more] = lines(outcome.stderr);
  assert.deepEqual([outcome.code, outcome.stdout, more], [code, '', []], outcome.stderr);
  assert.match(line, /^error: \S/);
  return line;
}

/** The process that a data directory's `running.json` names. */
export const holderOf = (data: string): number =>
  JSON.parse(readFileSync(join(data, 'running.json'), 'utf8')).process.pid;
