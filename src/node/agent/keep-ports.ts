/**
 * Forwards the ports of a guest that could not be had: another program may let go of them, or the QEMU that was to take
 * the guest over on this host and ends only when its agent is back.
 */
import type { Guest } from './guest.ts';
import type { LauncherState } from './launcher-state.ts';

const FIRST_MS = 100;
const MOST_MS = 5000;

export interface PortKeeper {
  /** Looks, unless that is under way, done, or not due yet. */
  look(): void;
  /** Somebody else has the ports in hand: what was found out is worth nothing any more. */
  forget(): void;
  stop(): void;
}

/** Makes it; it looks once at least. What is missing is tried again with longer and longer pauses. */
export function keepPorts(launcher: LauncherState, guest: Guest): PortKeeper {
  const { clock, signal } = launcher.environment;
  let state: 'due' | 'busy' | 'waiting' | 'done' = 'due';
  let pause = FIRST_MS;
  let cancel: (() => void) | undefined;
  /** Of the newest look that was not forgotten. */
  let turn = 0;

  const later = (): void => {
    state = 'waiting';
    cancel = clock.schedule(pause, () => {
      state = 'due';
      launcher.changed();
    });
    pause = Math.min(pause * 2, MOST_MS);
  };
  const check = async (mine: number): Promise<void> => {
    const { forwarder } = guest;
    const ports = launcher.record?.plan.interfaces[0]?.ports ?? [];
    // What QEMU has: an agent that was restarted did not open them.
    await forwarder?.load();
    const problems = (await forwarder?.addAll(ports)) ?? [];
    if (mine !== turn || !launcher.record) return;
    const portProblems = problems.filter(({ port }) => port.declared).map(({ message }) => message);
    if (portProblems.join() !== launcher.record.portProblems.join()) {
      // In memory alone: the next agent looks for itself.
      launcher.record = { ...launcher.record, portProblems };
      launcher.changed();
    }
    if (problems.some(({ why }) => why === 'in-use')) later();
    else state = 'done';
  };

  return {
    look() {
      if (state !== 'due' || !guest.state.connected) return;
      state = 'busy';
      const mine = ++turn;
      check(mine).catch((error: Error) => {
        if (signal.aborted || mine !== turn) return;
        launcher.log.debug('ports not looked at', { error: error.message });
        later();
      });
    },
    forget() {
      turn++;
      cancel?.();
      state = 'due';
      pause = FIRST_MS;
    },
    stop() {
      turn++;
      cancel?.();
      state = 'done';
    },
  };
}
