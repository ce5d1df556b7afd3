/** A "no" that rests on a write which is still on its way waits for it: after a crash it would have been untrue. */
import { ApiError } from '@coracle/apimachinery/meta/status';
import type { ObjectStore, StoreKey } from '../cache/object-store.ts';

/**
 * Runs `attempt`, which decides against the newest decided state of `key`. A refusal is thrown once that state is durable;
 * when it never becomes so, `attempt` runs again, on what is left. Failures to store are thrown at once.
 */
export async function refuseWhenDurable<T>(
  store: Pick<ObjectStore, 'settled'>,
  key: StoreKey,
  attempt: () => Promise<T>,
): Promise<T> {
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      const durable = isRefusal(error) ? store.settled(key) : undefined;
      if (!durable || (await durable)) throw error;
    }
  }
}

/** Not for a lack of room, in the queue or on the disk. */
const isRefusal = (error: unknown): boolean => error instanceof ApiError && error.code < 500 && error.code !== 429;
