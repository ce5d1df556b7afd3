/** Waiting for what QEMU says while its guest moves. */
import type { Clock } from '@coracle/runtime/clock/clock';
import type { QmpEvent } from '../../qmp/commands.ts';
import type { Guest } from '../guest/guest.ts';

export interface EventLog {
  /** The first event, seen already or to come, that fits. Rejects at the signal, and when QEMU or the connection is gone. */
  wait(what: string, fits: (event: QmpEvent) => boolean, signal: AbortSignal): Promise<QmpEvent>;
  close(): void;
}

/** Events of one migration are a few dozen; a guest that sends more of them loses the oldest. */
const MAX_EVENTS = 512;
const CHECK_MS = 250;

/** Keeps the events of a guest from now on, so that none is missed between a command and the wait for its effect. */
export function followEvents(guest: Guest, clock: Clock): EventLog {
  const seen: QmpEvent[] = [];
  const waiters = new Set<() => void>();
  const stop = guest.onEvent((event) => {
    seen.push(event);
    if (seen.length > MAX_EVENTS) seen.shift();
    for (const wake of waiters) wake();
  });
  return {
    async wait(what, fits, signal) {
      for (;;) {
        signal.throwIfAborted();
        const at = seen.findIndex(fits);
        if (at >= 0) return seen.splice(at, 1)[0] as QmpEvent;
        if (guest.state.exit !== undefined || !guest.state.connected)
          throw new Error(`${what}: QEMU ${guest.state.exit === undefined ? 'does not answer' : 'has ended'}`);
        await new Promise<void>((resolve) => {
          const done = (): void => {
            waiters.delete(done);
            signal.removeEventListener('abort', done);
            cancel();
            resolve();
          };
          const cancel = clock.schedule(CHECK_MS, done);
          waiters.add(done);
          signal.addEventListener('abort', done, { once: true });
        });
      }
    },
    close: stop,
  };
}

export const isMigrationStatus =
  (...states: readonly string[]) =>
  ({ event, data }: QmpEvent): boolean =>
    event === 'MIGRATION' && states.includes(String(data['status']));
