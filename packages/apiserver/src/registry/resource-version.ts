/** resourceVersion on reads: what the number asks for, and waiting until the store has caught up with it. */
import { badRequest, tooLargeResourceVersion } from '@coracle/apimachinery/meta/status';
import type { Registry } from './write-contract.ts';

/** How long a read waits for a revision that has not been published yet. */
export const FRESHNESS_WAIT_MS = 3000;

/** The number behind a resourceVersion; '' and '0' are 0. Throws ApiError 400 on anything but a decimal number. */
export function parseResourceVersion(text: string): number {
  if (text === '' || text === '0') return 0;
  const isNumber = /^[0-9]+$/.test(text);
  const value = isNumber ? Number(text) : Number.NaN;
  if (Number.isSafeInteger(value)) return value;
  const shown = JSON.stringify(text);
  const why = `strconv.ParseUint: parsing ${shown}: ${isNumber ? 'value out of range' : 'invalid syntax'}`;
  throw badRequest(`invalid resource version: resourceVersion: Invalid value: ${shown}: ${why}`);
}

/** Resolves once the store has published `revision`; throws ApiError 504 with cause ResourceVersionTooLarge after 3 s. */
export function waitForRevision(registry: Registry, revision: number, signal: AbortSignal): Promise<void> | void {
  if (registry.store.revision() >= revision) return;
  return waitOrTimeOut(registry, revision, signal);
}

async function waitOrTimeOut({ store, clock }: Registry, revision: number, signal: AbortSignal): Promise<void> {
  const timer = new AbortController();
  const cancel = clock.schedule(FRESHNESS_WAIT_MS, () => {
    timer.abort(tooLargeResourceVersion(revision, store.revision()));
  });
  try {
    await store.waitFor(revision, AbortSignal.any([signal, timer.signal]));
  } finally {
    cancel();
  }
}
