/** `coracle down`: stops the control plane of a data directory and every guest in it, and says "stopped" when they are. */
import { existsSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { findGuestsOnDisk, nameOfGuest } from '@coracle/node-agent/agent/launcher/guests-on-disk';
import { stopGuestsOnDisk } from '@coracle/node-agent/agent/launcher/stop-guests-on-disk';
import { systemClock } from '@coracle/runtime/clock/clock';
import { silentLogger } from '@coracle/runtime/log/log';
import { isRunning, signalProcess } from '@coracle/runtime/process/identity';
import { terminate } from '@coracle/runtime/process/terminate';
import { createLinkedController } from '@coracle/runtime/signal/linked-controller';
import { parse } from 'yaml';
import { type DataDir, dataDirAt, defaultDataDir } from '../config/data-dir.ts';
import { editUserKubeconfig, unmergeKubeconfig, userKubeconfigPath } from '../config/kubeconfig.ts';
import { awaitedText, findRunning, type Running, type Stopping } from '../config/running.ts';
import { stopRequestPath } from '../config/stop-request.ts';
import { writePrivateFile } from '../config/write-file.ts';
import { type CommandContext, CommandError, numberFlag, textFlag, UsageError } from './command.ts';

/** Past this the command gives up waiting (the process goes on stopping, and the next `down` joins the wait). */
const STOP_S = 120;
/** A process that was asked to end its guests at once, and has not by then, is killed. */
const FORCE_S = 15;
const LOOK_MS = 100;
/** A stop that takes no longer is not worth a word. */
const QUIET_MS = 3_000;

/** `coracle down`. */
export async function down(context: CommandContext): Promise<number> {
  const { flags, environment, print } = context;
  const dir = dataDirAt(textFlag(flags, 'data-dir') ?? defaultDataDir(environment));
  const seconds = numberFlag(flags, 'timeout', { min: 1, max: 86_400, or: STOP_S });
  const [keepVms, force, asJson] = [flags['keep-vms'] === true, flags['force'] === true, flags['json'] === true];
  if (keepVms && force)
    throw new UsageError('--keep-vms leaves guests running and --force ends them: give one of them');
  const wait: Wait = {
    context,
    dir,
    keepVms,
    force,
    note: (text) => void (!asJson && context.note(text)),
    deadline: systemClock.monotonic() + seconds * 1000,
  };
  const running = await findRunning(dir);
  if (running) await stopProcess(running, wait);
  // One that was killed could not take its context out of the user's kubeconfig.
  else forgetContext(dir.kubeconfig, userKubeconfigPath(environment));
  const ended = await stopGuests(wait);
  if (asJson)
    print(
      JSON.stringify({
        stopped: running !== undefined,
        ...(running && { pid: running.process.pid, keepVms }),
        ...(ended.stopped.length > 0 && { guestsStopped: ended.stopped }),
        ...(ended.kept.length > 0 && { guestsRunning: ended.kept }),
      }),
    );
  else if (running) print(`stopped${keepVms ? ' (VMs keep running)' : ''}`);
  else print(outcome(dir, ended));
  return 0;
}

/** What `down` waits with. */
interface Wait {
  readonly context: CommandContext;
  readonly dir: DataDir;
  readonly keepVms: boolean;
  readonly force: boolean;
  readonly note: (text: string) => void;
  /** Monotonic time at which the command gives up. */
  readonly deadline: number;
}

/** What there was to stop where no control plane ran. */
function outcome({ root }: DataDir, { stopped, kept }: Awaited<ReturnType<typeof stopGuests>>): string {
  if (kept.length > 0) return `no control plane runs in ${root}; guests that keep running: ${kept.join(', ')}`;
  return stopped.length === 0
    ? `nothing runs in ${root}`
    : `stopped what ran without a control plane: ${stopped.join(', ')}`;
}

/** Tells the control plane to stop and waits until it has. Throws CommandError that says what it waits for. */
async function stopProcess(running: Running, wait: Wait): Promise<void> {
  const { dir, keepVms, force, context } = wait;
  const { signal } = context;
  if (running.stopping && !running.stopping.keepVms && keepVms)
    throw new CommandError('it is too late for --keep-vms: the guests are being shut down already');
  try {
    writePrivateFile(stopRequestPath(dir), JSON.stringify({ keepVms, force }));
  } catch (error) {
    // A full disk keeps nobody from stopping: the process leaves its guests then, and they are ended below.
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
  }
  await signalProcess(running.process, 'SIGTERM');
  const begun = systemClock.monotonic();
  const deadline = force ? Math.min(wait.deadline, begun + FORCE_S * 1000) : wait.deadline;
  let lastNames: string | undefined;
  for (;;) {
    if (!(await isRunning(running.process))) break;
    const stopping = (await findRunning(dir))?.stopping;
    const text = stopping && waitingText(stopping);
    // From the second request on at once, when the process has heard it.
    const isHeard = (stopping?.requests ?? 0) > (running.stopping?.requests ?? 1);
    const names = stopping?.guests.map(({ name }) => name).join();
    if (text && lastNames !== names && (isHeard || systemClock.monotonic() - begun > QUIET_MS)) {
      lastNames = names;
      wait.note(stopping!.requests > 2 ? `${text}; to end guests at once: coracle down --force` : text);
    }
    if (systemClock.monotonic() >= deadline) {
      if (force) {
        // Its guests are ended below.
        await terminate(running.process, { clock: systemClock, signal, graceMs: 0 });
        break;
      }
      throw new CommandError(
        `process ${running.process.pid} is still stopping${text ? `: ${text}` : `; see ${dir.log}`}; coracle down joins the wait, coracle down --force ends guests at once`,
      );
    }
    await systemClock.sleep(LOOK_MS, signal).catch(() => {
      throw new CommandError(
        `interrupted; process ${running.process.pid} is still stopping${text ? `: ${text}` : ''} (coracle down joins the wait)`,
      );
    });
  }
  rmSync(stopRequestPath(dir), { force: true });
}

/** Undefined when it waits for no guest. */
const waitingText = ({ guests }: Stopping): string | undefined =>
  guests.length > 0 ? `waiting for ${awaitedText(guests, systemClock.now())}` : undefined;

/** Ends the guests that run without a control plane. Throws CommandError that names those that still run. */
async function stopGuests(wait: Wait): Promise<{ readonly stopped: string[]; readonly kept: string[] }> {
  const { dir, keepVms, force, note, context } = wait;
  const guests = await findGuestsOnDisk(dir.nodes);
  const names = guests.map(nameOfGuest);
  if (keepVms || guests.length === 0) return { stopped: [], kept: names };
  const served = guests.find(({ agent }) => agent !== undefined);
  if (served)
    throw new CommandError(
      `${nameOfGuest(served)} is served by process ${served.agent!.pid} (coracle node, or a control plane that starts); stop that first`,
    );
  const linked = createLinkedController(context.signal);
  const patience = systemClock.schedule(Math.max(0, wait.deadline - systemClock.monotonic()), () =>
    linked.abort(new Error('not all guests have ended in time')),
  );
  const stopping = stopGuestsOnDisk(guests, { force, clock: systemClock, log: silentLogger, signal: linked.signal });
  const waitingFor = (): string => {
    const now = systemClock.now();
    const guests = stopping.waiting().map(({ name, leftMs }) => ({ name, until: now + leftMs }));
    return awaitedText(guests, now);
  };
  const telling = systemClock.schedule(force ? QUIET_MS : 0, () => note(`waiting for ${waitingFor()}`));
  try {
    await stopping.done;
  } catch (error) {
    const still = waitingFor();
    throw new CommandError(
      `${(error as Error).message}; still running: ${still} (coracle down continues, coracle down --force ends guests at once)`,
    );
  } finally {
    telling();
    patience();
    linked.release();
  }
  return { stopped: names, kept: [] };
}

/** Takes the context of this data directory's control plane out of the user's kubeconfig, if it is there and both can be read. */
function forgetContext(own: string, user: string): void {
  if (!existsSync(own) || !existsSync(user) || realpathSync(own) === realpathSync(user)) return;
  try {
    const { clusters } = parse(readFileSync(own, 'utf8')) as {
      clusters: [{ name: string; cluster: { server: string } }];
    };
    const [{ name, cluster }] = clusters;
    const forget = (text: string): string => unmergeKubeconfig(text, { name, server: cluster.server });
    const text = readFileSync(user, 'utf8');
    if (forget(text) !== text) editUserKubeconfig(user, forget);
  } catch {
    // A kubeconfig that cannot be read or is being written is left as it is.
  }
}
