/**
 * Keeps the ports of a guest as its machine and its user want them: those that could not be had are tried again, because
 * another program may let go of them, or the QEMU that was to take the guest over on this host; those that it has under
 * their own number are given back when a program of the host wants them, or nobody asks for them any more.
 */
import { type AskedPort, askedHostPorts, HOST_PORTS_ANNOTATION } from '@coracle/kubevirt/rules/machine/host-ports';
import { podCard } from '@coracle/kubevirt/rules/machine/interfaces';
import type { GuestPort } from '../../network/forwarder.ts';
import { wildcardListeners } from '../../network/wildcard-listeners.ts';
import type { LauncherState } from '../launcher/launcher-state.ts';
import type { Guest } from './guest.ts';

const FIRST_MS = 100;
const MOST_MS = 5000;
/** How often somebody is looked for who wants a port that the guest has under its own number. */
const WATCH_MS = 1000;

interface Wanted {
  readonly asked: readonly AskedPort[];
  readonly problems: readonly string[];
  /** Some are another program's: they are asked for again later. */
  readonly givenBack: boolean;
}

/**
 * Makes it; it looks once at least. What is missing is tried again with longer and longer pauses. `listeners`: `tcp/22` for
 * what the host has, or wants, on all addresses.
 */
export function keepPorts(launcher: LauncherState, guest: Guest, { listeners = wildcardListeners } = {}) {
  const { clock, signal } = launcher.environment;
  let state: 'due' | 'busy' | 'waiting' | 'done' = 'due';
  let pause = FIRST_MS;
  let cancel: (() => void) | undefined;
  /** Of the newest look that was not forgotten. */
  let turn = 0;
  /** What the user asked for when it looked last. */
  let seen: string | undefined;

  const asked = (): string => launcher.vmi?.metadata.annotations?.[HOST_PORTS_ANNOTATION] ?? '';
  const again = (ms: number): void => {
    state = 'waiting';
    cancel = clock.schedule(ms, () => {
      state = 'due';
      launcher.changed();
    });
  };
  const later = (): void => {
    again(pause);
    pause = Math.min(pause * 2, MOST_MS);
  };
  const check = async (mine: number): Promise<void> => {
    const { forwarder } = guest;
    const ports = podCard(launcher.record?.plan)?.ports ?? [];
    seen = asked();
    // What QEMU has: an agent that was restarted did not open them.
    await forwarder?.load();
    const wanted = await wantedPorts(launcher, listeners);
    const before = JSON.stringify(forwarder?.published());
    const problems = (await forwarder?.forward(ports, wanted.asked)) ?? [];
    if (mine !== turn || !launcher.record) return;
    const ofDeclared = problems.filter(({ declared }) => declared).map(({ message }) => message);
    const portProblems = [...wanted.problems, ...ofDeclared];
    const isNews = portProblems.join() !== launcher.record.portProblems.join();
    for (const text of portProblems.filter((one) => !launcher.record?.portProblems.includes(one)))
      launcher.event('Warning', 'PortNotForwarded', text);
    // In memory alone: the next agent looks for itself.
    if (isNews) launcher.record = { ...launcher.record, portProblems };
    if (isNews || before !== JSON.stringify(forwarder?.published())) launcher.changed();
    if (wanted.givenBack || problems.some(({ why }) => why === 'in-use')) later();
    else if (wanted.asked.length > 0 && forwarder?.byNumber().length) again(WATCH_MS);
    else state = 'done';
  };

  return {
    /** Looks, unless that is under way, done, or not due yet. */
    look(): void {
      if ((state === 'waiting' || state === 'done') && seen !== undefined && seen !== asked()) {
        cancel?.();
        state = 'due';
      }
      if (state !== 'due' || !guest.state.connected) return;
      state = 'busy';
      const mine = ++turn;
      check(mine).catch((error: Error) => {
        if (signal.aborted || mine !== turn) return;
        launcher.log.debug('ports not looked at', { error: error.message });
        later();
      });
    },
    /** Somebody else has the ports in hand: what was found out is worth nothing any more. */
    forget(): void {
      turn++;
      cancel?.();
      state = 'due';
      pause = FIRST_MS;
    },
    stop(): void {
      turn++;
      cancel?.();
      state = 'done';
      seen = undefined;
    },
  };
}

const nameOf = ({ protocol, port }: GuestPort): string => `${protocol}/${port}`;

/** The ports that the user wants by number, without those of the VM's address that the host has a use for. */
async function wantedPorts(
  { vmi, record, environment }: LauncherState,
  listeners: () => Promise<ReadonlySet<string>>,
): Promise<Wanted> {
  const asked = askedHostPorts(vmi?.metadata.annotations);
  const declared = new Set((podCard(record?.plan)?.ports ?? []).map(nameOf));
  // Answers of a guest by UDP are let through for the ports of its spec alone (`net-filter.ts`).
  const isServed = (port: GuestPort): boolean => port.protocol === 'tcp' || declared.has(nameOf(port));
  const ports = asked.ports.filter(isServed);
  const unserved = asked.ports.filter((port) => !isServed(port));
  const problems = [
    ...asked.problems,
    ...unserved.map(({ port }) => `UDP port ${port} is none of the ports of the first interface; it is not forwarded`),
  ];
  if (ports.length === 0) return { asked: [], problems, givenBack: false };
  if (!environment.allowsHostPorts) {
    const refusal = `node ${environment.nodeName} does not forward ports under their own number: it was started without --allow-host-ports`;
    return { asked: [], problems: [...problems, refusal], givenBack: false };
  }
  const taken = await listeners();
  // One of 127.0.0.1 that is another program's cannot be had, and one that can be had is nobody's.
  const isTaken = (port: AskedPort): boolean => port.hostPort === undefined && taken.has(nameOf(port));
  const left = ports.filter(isTaken);
  for (const { protocol, port } of left) {
    const name = `${protocol.toUpperCase()} port ${port} of the host`;
    problems.push(`${name} is wanted by another program; the guest does not have it under its own number`);
  }
  return { asked: ports.filter((port) => !isTaken(port)), problems, givenBack: left.length > 0 };
}
