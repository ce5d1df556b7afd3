/** The end of `coracle up`: guests are waited for, whoever asks again sees for which, and none is left behind. */

import { findGuestsOnDisk } from '@coracle/node-agent/agent/launcher/guests-on-disk';
import { stopGuestsOnDisk } from '@coracle/node-agent/agent/launcher/stop-guests-on-disk';
import type { Clock } from '@coracle/runtime/clock/clock';
import type { Logger } from '@coracle/runtime/log/log';
import type { Host } from '../compose/host.ts';
import type { DataDir } from '../config/data-dir.ts';
import { type AwaitedGuest, awaitedText, publishStopping, type Stopping } from '../config/running.ts';
import { type StopRequest, takeStopRequest } from '../config/stop-request.ts';

export interface StopHostOptions {
  readonly dir: DataDir;
  /** What the first request asked for. */
  readonly request: StopRequest;
  /** Tells whoever looks at this process. */
  readonly note: (text: string) => void;
  readonly clock: Clock;
  readonly log: Logger;
}

export interface HostStop {
  /** Somebody asks once more: joins the wait, or ends it when that is what the request says. */
  askedAgain(): void;
  /** Resolves when everything has ended. */
  readonly done: Promise<void>;
}

const PUBLISH_MS = 500;

/** Stops a host. Nothing but the end of every guest (or a forced end) ends the wait, unless guests are to be kept. */
export function stopHost(host: Host, options: StopHostOptions): HostStop {
  const { dir, note, clock, log, request } = options;
  const over = new AbortController();
  let requests = 1;
  let force = request.force;
  let published = '';
  const publish = (): void => {
    const guests = request.keepVms ? [] : awaitedGuests(host, clock.now());
    const stopping: Stopping = { keepVms: request.keepVms, requests, guests };
    // Seconds that pass are no news: the times at which they end are published.
    const text = JSON.stringify({
      ...stopping,
      guests: guests.map(({ name, until }) => [name, Math.round(until / 2000)]),
    });
    if (text === published) return;
    published = text;
    try {
      publishStopping(dir, stopping);
    } catch (error) {
      log.warn('the stop is not shown to others', { error: (error as Error).message });
    }
  };
  const stop = async (): Promise<void> => {
    publish();
    const closing = host.close({ keepVms: request.keepVms });
    if (force) void host.forceStop();
    void (async () => {
      while (!over.signal.aborted) {
        await clock.sleep(PUBLISH_MS, over.signal).catch(() => {});
        if (!over.signal.aborted) publish();
      }
    })();
    await closing;
    if (!request.keepVms) await stopLeft(dir, { force, clock, log, signal: over.signal });
  };
  return {
    askedAgain() {
      requests += 1;
      const again = takeStopRequest(dir);
      if (again.force && !request.keepVms) {
        force = true;
        note('ending all guests now');
        host.forceStop().catch((error: Error) => log.error('guests not ended', { error: error.message }));
      } else if (request.keepVms) note('still stopping; guests keep running');
      else {
        const guests = awaitedGuests(host, clock.now());
        const waits = guests.length > 0 ? `waiting for ${awaitedText(guests, clock.now())}` : 'still stopping';
        note(requests > 2 ? `${waits}; to end guests at once: coracle down --force --data-dir ${dir.root}` : waits);
      }
      publish();
    },
    done: stop().finally(() => over.abort(new DOMException('stopped', 'AbortError'))),
  };
}

/** Guests that no agent here looked after: their record is lost, or they were just being started. */
async function stopLeft(
  dir: DataDir,
  options: { readonly force: boolean; readonly clock: Clock; readonly log: Logger; readonly signal: AbortSignal },
): Promise<void> {
  const left = (await findGuestsOnDisk(dir.nodes)).filter(({ agent }) => agent === undefined);
  if (left.length === 0) return;
  options.log.warn('guests run that no node looked after; they are stopped', { guests: left.length });
  await stopGuestsOnDisk(left, options).done.catch((error: Error) =>
    options.log.error('a guest was left running', { error: error.message }),
  );
}

/** The guests that a host, or the agents of one, wait for; `now`: ms since the epoch. */
export const awaitedGuests = (host: Pick<Host, 'stopping'>, now: number): AwaitedGuest[] =>
  host.stopping().map(({ namespace, name, leftMs }) => ({ name: `${namespace}/${name}`, until: now + leftMs }));
