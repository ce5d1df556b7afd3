/** Waiting for a machine to run, with a word about each phase and about what it waits for. */

import type { ObjectKey } from '@coracle/apimachinery/meta/object';
import { conditionOf, hasEnded } from '@coracle/apimachinery/meta/object-state';
import { isNotFound, orAbsent } from '@coracle/client/api-failure';
import type { Client } from '@coracle/client/client';
import {
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINES,
  type VirtualMachine,
  type VirtualMachineInstance,
} from '@coracle/kubevirt/kinds/kinds';
import { systemClock } from '@coracle/runtime/clock/clock';
import { createLinkedController } from '@coracle/runtime/signal/linked-controller';
import { CommandError } from '../command.ts';
import { type FoundMachine, textOf } from './find-machine.ts';

/** Looked at anew this often although nothing was heard of a change: a watch may have ended, or not be allowed. */
const LOOK_MS = 500;
const POLL_MS = 100;
/** What lasts no longer is not worth a word. */
const QUIET_MS = 1_000;
/** An instance that still runs so long after its end was seen has not ended. */
const SAME_MS = 60_000;
/** What starts for longer is followed no more. */
const LONGEST_S = 3_600;

/** Whom to follow, and where to say what is waited for. */
export interface Following {
  readonly client: Client;
  readonly key: ObjectKey;
  readonly signal: AbortSignal;
  readonly note: (text: string) => void;
}

/** The machine and its instance as they are now. */
async function lookAt({ client, key, signal }: Following): Promise<FoundMachine> {
  const orNone = (error: unknown): undefined => {
    if (isNotFound(error)) return undefined;
    throw error;
  };
  const [vm, vmi] = await Promise.all([
    client.get<VirtualMachine>(VIRTUAL_MACHINES, key, { signal }).catch(orNone),
    client.get<VirtualMachineInstance>(VIRTUAL_MACHINE_INSTANCES, key, { signal }).catch(orNone),
  ]);
  return { key, vm, vmi };
}

/** True for a machine that nobody starts without being asked to. */
const isOff = ({ vm, vmi }: FoundMachine): boolean => {
  if (vmi && !hasEnded(vmi)) return false;
  const status = vm?.status?.printableStatus;
  const strategy = vm?.spec.runStrategy ?? (vm?.spec.running === true ? 'Always' : 'Halted');
  const restarts = strategy === 'Always' || (strategy === 'RerunOnFailure' && vmi?.status?.phase !== 'Succeeded');
  return vm === undefined || (status === 'Stopped' && !restarts && !vm.status?.stateChangeRequests?.length);
};
const stopped = ({ name, namespace }: ObjectKey): CommandError =>
  new CommandError(`${textOf({ name, namespace })} is stopped (start it: coracle start ${name} -n ${namespace})`);

/**
 * Waits until the instance runs, at most `seconds`; what holds it is noted once it lasts longer than a second. Throws
 * CommandError for one that is paused or stopped, or does not come up in time.
 */
export async function awaitRunning(
  following: Following,
  now: FoundMachine,
  seconds: number,
): Promise<VirtualMachineInstance> {
  if (now.vmi?.status?.phase === 'Running') {
    if (conditionOf(now.vmi, 'Paused')?.status !== 'True') return now.vmi;
    const { whyNotRunning } = await import('./why-facts.ts');
    throw new CommandError(`${textOf(now.key)} ${await whyNotRunning(following.client, now, following.signal)}`);
  }
  if (isOff(now)) throw stopped(now.key);
  return followStart(following, { seconds, onPhase: () => {}, endsWhenOff: true });
}

/**
 * The machine once another instance of it runs than the one of `before`, whose guest has ended or is about to; undefined when there
 * will be none, which is noted.
 */
export async function awaitNext(following: Following, before: FoundMachine): Promise<FoundMachine | undefined> {
  const { key, signal, note } = following;
  const { vm } = before;
  if (!vm) return undefined; // nobody starts a bare instance again
  const until = systemClock.monotonic() + SAME_MS;
  try {
    while (systemClock.monotonic() < until) {
      const vmi = await awaitRunning(following, { key, vm, vmi: undefined }, LONGEST_S);
      if (vmi.metadata.uid !== before.vmi?.metadata.uid) {
        note(`${textOf(key)} was started anew`);
        return { key, vm, vmi };
      }
      await systemClock.sleep(POLL_MS, signal);
    }
  } catch (error) {
    if (!signal.aborted) note((error as Error).message);
  }
  return undefined;
}

/**
 * Calls `onPhase` for each phase of the instance, and resolves when it runs. Throws CommandError past `seconds`, with why, and
 * with `endsWhenOff` once the machine has come to rest.
 */
export async function followStart(
  following: Following,
  {
    seconds,
    onPhase,
    endsWhenOff = false,
  }: { readonly seconds: number; readonly onPhase: (phase: string) => void; readonly endsWhenOff?: boolean },
): Promise<VirtualMachineInstance> {
  const { client, key, note, signal } = following;
  const begun = systemClock.monotonic();
  const deadline = begun + seconds * 1000;
  const life = createLinkedController(signal);
  const changes = listen(client, key, life.signal);
  let phase: string | undefined;
  let said: string | undefined;
  try {
    for (;;) {
      const change = changes.next();
      const found = await lookAt(following);
      const current = found.vmi?.status?.phase;
      if (current !== undefined && current !== phase) {
        phase = current;
        onPhase(current);
      }
      if (found.vmi && current === 'Running') return found.vmi;
      const waited = systemClock.monotonic() - begun;
      if (endsWhenOff && waited > QUIET_MS && isOff(found)) throw stopped(key);
      if (waited > QUIET_MS || current === 'Failed') {
        const { readMachineFacts, whyOf } = await import('./why-facts.ts');
        const { state, reason, next } = whyOf(await readMachineFacts(client, found, signal));
        const text = reason === undefined ? undefined : `${state}: ${reason}${next ? ` (${next})` : ''}`;
        if (systemClock.monotonic() > deadline)
          throw new CommandError(`${textOf(key)} does not run after ${seconds} s${text ? `; ${text}` : ''}`);
        if (text !== undefined && text !== said) note(text);
        said = text;
      }
      await Promise.race([change, systemClock.sleep(LOOK_MS, life.signal)]);
      signal.throwIfAborted();
    }
  } finally {
    life.abort(new DOMException('followed no more', 'AbortError'));
    life.release();
  }
}

/** Waits until that instance has ended or gone, at most `seconds`. Throws CommandError with how to end its guest at once. */
export async function awaitGone(
  { client, key, note, signal }: Following,
  { vmi, seconds, action }: { readonly vmi: FoundMachine['vmi']; readonly seconds: number; readonly action: string },
): Promise<void> {
  if (vmi === undefined) return;
  const begun = systemClock.monotonic();
  let isSaid = false;
  for (;;) {
    const now = await orAbsent(client.get(VIRTUAL_MACHINE_INSTANCES, key, { signal }));
    if (now?.metadata.uid !== vmi.metadata.uid || hasEnded(now)) return;
    const waited = systemClock.monotonic() - begun;
    if (waited > seconds * 1000)
      throw new CommandError(
        `${textOf(key)} still runs after ${seconds} s (to end its guest at once: coracle ${action} ${key.name} -n ${key.namespace} --force)`,
      );
    if (waited > QUIET_MS && !isSaid) note(`waiting until the guest of ${textOf(key)} has shut down`);
    isSaid ||= waited > QUIET_MS;
    await systemClock.sleep(POLL_MS, signal);
  }
}

/** Resolves at the next event of the instance. Never rejects. */
function listen(client: Client, { namespace, name }: ObjectKey, signal: AbortSignal): { next(): Promise<void> } {
  let wake = (): void => {};
  const follow = async (): Promise<void> => {
    try {
      const options = { namespace, fieldSelector: `metadata.name=${name}`, signal, readOnly: true };
      for await (const _event of client.watch(VIRTUAL_MACHINE_INSTANCES, options)) wake();
    } catch {
      // It is looked at from time to time without it.
    }
  };
  void follow();
  return {
    next: () =>
      new Promise((resolve) => {
        wake = resolve;
      }),
  };
}
