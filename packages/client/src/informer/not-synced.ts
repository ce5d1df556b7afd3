/** A controller's informers that do not come to hold what the server has: it cannot do its work, and says so. */
import type { KubeObject } from '@coracle/apimachinery/meta/object';
import type { Clock } from '@coracle/runtime/clock/clock';
import { createLinkedController } from '@coracle/runtime/signal/linked-controller';
import type { Informer } from './informer.ts';

/** How long a controller waits for its informers before it makes room for one that may fare better. */
export const SYNC_WITHIN_MS = 60_000;

type Watched = Pick<Informer<KubeObject>, 'isSynced' | 'lastError' | 'synced'> & {
  readonly type: { readonly resource: string };
};

/** The informers of a controller did not sync in time; the message names the kinds and their last errors. */
export class NotSyncedError extends Error {
  override readonly name = 'NotSyncedError';
}

/**
 * Resolves when all hold a whole state.
 * @throws NotSyncedError when one does not within `SYNC_WITHIN_MS`; the reason of `signal` when that aborts first
 */
export async function syncedInTime(informers: readonly Watched[], clock: Clock, signal: AbortSignal): Promise<void> {
  const limit = createLinkedController(signal);
  const stopTimer = clock.schedule(SYNC_WITHIN_MS, () => limit.abort(new NotSyncedError(describe(informers))));
  try {
    await Promise.all(informers.map((informer) => informer.synced(limit.signal)));
  } finally {
    stopTimer();
    limit.release();
  }
}

function describe(informers: readonly Watched[]): string {
  const missing = informers.filter(({ isSynced }) => !isSynced);
  const texts = missing.map(({ type, lastError }) => `${type.resource} (${lastError ?? 'no answer yet'})`);
  return `not synced within ${SYNC_WITHIN_MS / 1000} s: ${texts.join(', ')}`;
}
