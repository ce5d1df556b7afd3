/** A place of its own for command-line tests: temporary home and data directory; whatever was started on it ends with the test. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import type { TestContext } from 'node:test';
import { findProcesses, identify, isRunning } from '../../packages/runtime/src/process/identity.ts';
import { COMMANDS_FILE, COMPILED, MAIN_FILE } from '../testkit/program.ts';

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
    startProgram(process.execPath, [MAIN_FILE, ...argv], { ...own, ...env });
  const together = startCommands(dir, own);
  const run: Workspace['run'] = (argv, env) =>
    env || OWN_PROCESS.test(argv.join(' ')) ? bounded(start(argv, env)) : together(argv);
  const kubeconfig = join(data, 'kubeconfig');
  return {
    dir,
    home,
    data,
    kubeconfig,
    start,
    run,
    runEach: (argvs) => Promise.all(argvs.map(together)),
    up: (...more) =>
      run(['up', '--data-dir', data, '--port', '0', '--nodes', '0', '--detach', '--no-merge-kubeconfig', ...more]),
    kubectl: (argv, input) =>
      // It does not live long enough to need its memory back.
      bounded(
        startProgram('kubectl', argv, { PATH: pathOf(), HOME: home, KUBECONFIG: kubeconfig, GOGC: 'off' }, input),
      ),
  };
}

/** Commands that wait for signals, give their own input and output to another program, or read theirs. */
const OWN_PROCESS = /^(up|node|controllers|console|ssh|cp|port-forward|logs)\b|(^| )-( |$)/;

/** Starts a process, with the first command, that runs all of them: most of what one costs is loading it. */
function startCommands(
  dir: string,
  env: Readonly<Record<string, string>>,
): (argv: readonly string[]) => Promise<Outcome> {
  const asked: PromiseWithResolvers<Outcome>[] = [];
  let child: ChildProcess | undefined;
  const begin = (): ChildProcess => {
    const begun = spawn(process.execPath, [COMMANDS_FILE, dir], { env: { ...env } });
    let complaint = '';
    begun.stderr.on('data', (chunk: Buffer) => {
      complaint += chunk.toString();
    });
    begun.stdin.on('error', () => {}); // its end is heard below
    createInterface({ input: begun.stdout }).on('line', (line) => {
      const [id, outcome] = JSON.parse(line) as [id: number, outcome: Outcome];
      asked[id]?.resolve(outcome);
    });
    begun.once('close', () => {
      child = undefined;
      for (const { resolve } of asked) resolve({ code: null, stdout: '', stderr: complaint });
    });
    return begun;
  };
  return (argv) => {
    const answer = Promise.withResolvers<Outcome>();
    child ??= begin();
    child.stdin!.write(`${JSON.stringify([asked.push(answer) - 1, argv])}\n`);
    return bounded({ child, ended: answer.promise });
  };
}

const pathOf = (): string => process.env['PATH'] ?? '/usr/bin:/bin';

/** Runs any program to its end, with exactly this environment. */
export const runProgram = (
  file: string,
  argv: readonly string[],
  env: Readonly<Record<string, string>> = { PATH: pathOf() },
): Promise<Outcome> => bounded(startProgram(file, argv, env));

async function bounded({ child, ended }: Pick<Started, 'child' | 'ended'>): Promise<Outcome> {
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
