/** `coracle up`: the control plane and its nodes in one process, in the foreground or detached. */
import { closeSync, fstatSync, openSync, readSync, realpathSync } from 'node:fs';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { systemClock } from '../../base/clock/clock.ts';
import { isRunning } from '../../base/process/identity.ts';
import { type Exit, spawnDetached } from '../../base/process/spawn-detached.ts';
import { aborted } from '../../base/signal/abortable.ts';
import { type DataDir, dataDirAt, defaultDataDir, ensurePrivateDir } from '../config/data-dir.ts';
import { editUserKubeconfig, mergeKubeconfig, unmergeKubeconfig, userKubeconfigPath } from '../config/kubeconfig.ts';
import { findRunning, publishRunning, type Running, withdrawRunning } from '../config/running.ts';
import { takeStopRequest } from '../config/stop-request.ts';
import { VERSION } from '../config/version.ts';
import { type CommandContext, CommandError, listFlag, numberFlag, textFlag, UsageError } from './command.ts';
import { processLog } from './process-log.ts';
import { untilStopped } from './until-stopped.ts';

const DEFAULT_PORT = 16443;
const POLL_MS = 10;
const WARNING = 'warning: ';
/** First start makes keys and may probe the host; past this something is wrong. */
const START_MS = 60_000;
/** A process that is gone is heard of within this time. */
const EXIT_MS = 1_000;

/** `coracle up`. */
export async function up(context: CommandContext): Promise<number> {
  const { flags, environment } = context;
  const dir = dataDirAt(textFlag(flags, 'data-dir') ?? defaultDataDir(environment));
  const port = numberFlag(flags, 'port', { min: 0, max: 65_535, or: DEFAULT_PORT });
  const nodes = numberFlag(flags, 'nodes', { min: 0, max: 64, or: 1 });
  const started = systemClock.monotonic();
  const other = await findRunning(dir);
  if (other)
    throw new CommandError(
      `already running in ${dir.root} (pid ${other.process.pid}, ${other.url}); stop it with: coracle down`,
    );
  const controllers = textFlag(flags, 'controllers') ?? '*';
  const merge = flags['no-merge-kubeconfig'] !== true;
  const hostDiskRoots = listFlag(flags, 'host-disk').map((path) => resolve(path));
  if (flags['detach'] === true)
    return detach(context, {
      dir,
      argv: [
        '--port',
        String(port),
        '--nodes',
        String(nodes),
        '--controllers',
        controllers,
        ...hostDiskRoots.flatMap((path) => ['--host-disk', path]),
        ...(merge ? [] : ['--no-merge-kubeconfig']),
      ],
      started,
    });
  return foreground(context, { dir, port, nodes, controllers, hostDiskRoots, merge, started });
}

interface ForegroundOptions {
  readonly dir: DataDir;
  readonly port: number;
  readonly nodes: number;
  readonly controllers: string;
  readonly hostDiskRoots: readonly string[];
  readonly merge: boolean;
  readonly started: number;
}

async function foreground(context: CommandContext, options: ForegroundOptions): Promise<number> {
  const { environment, print, note, signal, flags } = context;
  const { dir } = options;
  const log = processLog(environment, systemClock);
  const { chooseComponents } = await import('../compose/components.ts');
  try {
    chooseComponents(options.controllers);
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
  const stop = untilStopped(signal);
  const { startHost } = await import('../compose/host.ts');
  const host = await startHost({
    dir,
    port: options.port,
    nodes: options.nodes,
    controllers: options.controllers,
    hostDiskRoots: options.hostDiskRoots,
    clock: systemClock,
    log,
  });
  const kubeconfig = userKubeconfigPath(environment);
  // $KUBECONFIG may be the admin's own file, which is written whole and must not be emptied at the end.
  const merge = options.merge && !isSameFile(kubeconfig, dir.kubeconfig);
  if (merge)
    changeUserKubeconfig(note, () => editUserKubeconfig(kubeconfig, (text) => mergeKubeconfig(text, host.access)));
  await publishRunning(dir, {
    url: host.url,
    version: VERSION,
    nodes: host.nodes,
    startedAt: new Date(systemClock.now()).toISOString(),
  });
  print(readyLine(context, { dir, url: host.url, seconds: (systemClock.monotonic() - options.started) / 1000 }));
  await aborted(stop.signal);
  // Ctrl-C stops everything; a bare SIGTERM (an upgrade, a supervisor) leaves guests running, as `down --keep-vms` does.
  const { keepVms } = signal.aborted ? { keepVms: false } : takeStopRequest(dir);
  if (signal.aborted && flags['json'] !== true) note(keepVms ? 'stopping' : 'stopping; guests are shut down');
  await host.close({ keepVms });
  if (merge)
    changeUserKubeconfig(note, () => editUserKubeconfig(kubeconfig, (text) => unmergeKubeconfig(text, host.access)));
  withdrawRunning(dir);
  stop.release();
  return 0;
}

/** The user's own kubeconfig is a convenience: trouble with it is told, and stops nothing. */
function changeUserKubeconfig(note: (text: string) => void, change: () => void): void {
  try {
    change();
  } catch (error) {
    note(`${WARNING}the user's kubeconfig was left as it is: ${(error as Error).message}`);
  }
}

function isSameFile(one: string, other: string): boolean {
  try {
    return realpathSync(one) === realpathSync(other);
  } catch {
    return false; // one of them is not there
  }
}

function readyLine(
  { flags }: CommandContext,
  at: { readonly dir: DataDir; readonly url: string; readonly seconds: number },
): string {
  const { dir, url, seconds } = at;
  if (flags['json'] === true)
    return JSON.stringify({
      ready: true,
      seconds: Number(seconds.toFixed(3)),
      url,
      kubeconfig: dir.kubeconfig,
      dataDir: dir.root,
    });
  return `ready in ${seconds.toFixed(1)}s  ${url}  kubeconfig ${dir.kubeconfig}`;
}

async function detach(
  context: CommandContext,
  options: { readonly dir: DataDir; readonly argv: readonly string[]; readonly started: number },
): Promise<number> {
  const { dir, argv, started } = options;
  const main = fileURLToPath(new URL('../main.ts', import.meta.url));
  ensurePrivateDir(dir.root);
  const logStart = sizeOf(dir.log);
  const child = await spawnDetached(
    [process.execPath, ...process.execArgv, main, 'up', '--data-dir', dir.root, ...argv],
    {
      cwd: dir.root,
      outputFile: dir.log,
      env: { ...pick(context.environment), CORACLE_LOG: context.environment['CORACLE_LOG'] ?? 'info' },
    },
  );
  let exit: Exit | undefined;
  void child.exited.then((how) => {
    exit = how;
  });
  const deadline = systemClock.monotonic() + START_MS;
  for (;;) {
    const running: Running | undefined = await findRunning(dir);
    if (running?.process.pid === child.identity.pid) {
      for (const line of linesSince(dir.log, logStart)) if (line.startsWith(WARNING)) context.note(line);
      context.print(readyLine(context, { dir, url: running.url, seconds: (systemClock.monotonic() - started) / 1000 }));
      return 0;
    }
    if (!(await isRunning(child.identity))) {
      // The child holds no reference to the event loop, so its exit is waited for with a timer.
      for (let waited = 0; exit === undefined && waited < EXIT_MS; waited += POLL_MS)
        await systemClock.sleep(POLL_MS, context.signal);
      const message = lastError(dir.log, logStart);
      throw exit?.code === 2 ? new UsageError(message) : new CommandError(message);
    }
    if (systemClock.monotonic() > deadline)
      throw new CommandError(`not ready after ${START_MS / 1000} s; see ${dir.log}`);
    await systemClock.sleep(POLL_MS, context.signal);
  }
}

/** What a detached process needs of the environment, and nothing else. */
function pick(environment: CommandContext['environment']): Record<string, string> {
  const names = [
    'PATH',
    'HOME',
    'USER',
    'LANG',
    'TZ',
    'TMPDIR',
    'KUBECONFIG',
    'XDG_DATA_HOME',
    'XDG_CACHE_HOME',
    'XDG_CONFIG_HOME',
    'NODE_COMPILE_CACHE',
    'CORACLE_DEBUG',
  ];
  return Object.fromEntries(
    names.flatMap((name) => (environment[name] === undefined ? [] : [[name, environment[name]]])),
  );
}

function sizeOf(path: string): number {
  try {
    const file = openSync(path, 'r');
    try {
      return fstatSync(file).size;
    } finally {
      closeSync(file);
    }
  } catch {
    return 0;
  }
}

/** What the child wrote since `from`, the last 16 KiB of it. */
function linesSince(path: string, from: number): string[] {
  const buffer = Buffer.alloc(16_384);
  const file = openSync(path, 'r');
  const length = readSync(file, buffer, 0, buffer.length, Math.max(from, fstatSync(file).size - buffer.length));
  closeSync(file);
  return buffer.toString('utf8', 0, length).trim().split('\n');
}

/** The error line the child ended with. */
function lastError(path: string, from: number): string {
  const line = linesSince(path, from)
    .findLast((text) => text.startsWith('error: '))
    ?.slice('error: '.length);
  return line ?? `the control plane ended while starting; see ${path}`;
}
