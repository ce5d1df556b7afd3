/** What both ends of a migration use with their QEMU: names, settings, and waiting for what it says. */
import type { Clock } from '@coracle/runtime/clock/clock';
import { abortable } from '@coracle/runtime/signal/abortable';
import { createDeferred } from '@coracle/runtime/signal/deferred';
import type { QmpEvent } from '../../qmp/commands.ts';
import { type QmpConnection, QmpError } from '../../qmp/qmp-connection.ts';
import type { Guest } from '../guest/guest.ts';

/** Of a disk, by the number of its block node. */
export const mirrorExport = (index: number): string => `export-${index}`;
export const mirrorJob = (index: number): string => `mirror-${index}`;
/** The far end of a disk, on the source. */
export const remoteNode = (index: number): string => `remote-${index}`;

/**
 * Events tell where the stream is, the source stops before the switch-over so that mirrors can end, and the target opens
 * its disks only when it is let run.
 */
export async function setCapabilities(
  qmp: QmpConnection,
  options: { readonly autoConverge: boolean; readonly postCopy: boolean },
): Promise<{ readonly obstacle?: never }> {
  await qmp.execute('migrate-set-capabilities', {
    capabilities: [
      { capability: 'events', state: true },
      { capability: 'pause-before-switchover', state: true },
      { capability: 'late-block-activate', state: true },
      { capability: 'auto-converge', state: options.autoConverge },
      { capability: 'postcopy-ram', state: options.postCopy },
    ],
  });
  return {};
}

/**
 * The same where post-copy is requested: without it where QEMU refuses, and then with what QEMU says. The target's
 * refuses where the host does not let it handle page faults (userfaultfd).
 */
export async function tryPostCopy(
  qmp: QmpConnection,
  options: { readonly autoConverge: boolean },
): Promise<{ readonly obstacle?: string }> {
  try {
    await setCapabilities(qmp, { ...options, postCopy: true });
    return {};
  } catch (error) {
    if (!(error instanceof QmpError && error.failure === 'refused')) throw error;
    await setCapabilities(qmp, { ...options, postCopy: false });
    return { obstacle: error.message };
  }
}

/** Events of one migration are a few dozen; a guest that sends more of them loses the oldest. */
const MAX_EVENTS = 512;
const CHECK_MS = 250;

/** Keeps the events of a guest from now on, so that none is missed between a command and the wait for its effect. */
export function followEvents(guest: Guest, clock: Clock) {
  const seen: QmpEvent[] = [];
  let news = createDeferred();
  const wake = (): void => {
    news.resolve();
    news = createDeferred();
  };
  const close = guest.onEvent((event) => {
    seen.push(event);
    if (seen.length > MAX_EVENTS) seen.shift();
    wake();
  });
  return {
    /** The first event, seen already or to come, that fits. Rejects at the signal, and when QEMU or the connection is gone. */
    async wait(what: string, fits: (event: QmpEvent) => boolean, signal: AbortSignal): Promise<QmpEvent> {
      for (;;) {
        signal.throwIfAborted();
        const at = seen.findIndex(fits);
        if (at >= 0) return seen.splice(at, 1)[0] as QmpEvent;
        if (guest.state.exit !== undefined || !guest.state.connected)
          throw new Error(`${what}: QEMU ${guest.state.exit === undefined ? 'does not answer' : 'has ended'}`);
        await abortable(news.promise, signal).finally(clock.schedule(CHECK_MS, wake));
      }
    },
    close,
  };
}

export type EventLog = ReturnType<typeof followEvents>;

export const isMigrationStatus =
  (...states: readonly string[]) =>
  ({ event, data }: QmpEvent): boolean =>
    event === 'MIGRATION' && states.includes(String(data['status']));
