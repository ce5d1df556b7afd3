/** The one way in which tests wait for what others write. */

/** Test machines may be ten times slower than they are when quiet. */
const LIMIT_MS = 150_000;
const FIRST_POLL_MS = 5;
const LONGEST_POLL_MS = 100;

type Awaitable<T> = T | Promise<T>;

/**
 * Asks again until `read` gives something other than undefined, null or false, and returns that. A `read` that throws is asked
 * again too. Rejects after `ms` milliseconds with what was waited for and the last error.
 */
export function eventually<T>(
  what: string,
  read: () => Awaitable<T | undefined | null | false>,
  ms?: number,
): Promise<T>;
/** Asks again until `read` gives what `holds` accepts (without it: anything but undefined, null and false). */
export function eventually<T>(read: () => Awaitable<T>, holds?: (found: T) => boolean): Promise<T>;
export async function eventually<T>(
  first: string | (() => Awaitable<T>),
  second?: (() => Awaitable<T>) | ((found: T) => boolean),
  ms = LIMIT_MS,
): Promise<T> {
  const isNamed = typeof first === 'string';
  const read = isNamed ? (second as () => Awaitable<T>) : first;
  const holds = (!isNamed && (second as ((found: T) => boolean) | undefined)) || isSomething;
  // Without words of its own a wait is named by its condition.
  const what = isNamed ? first : String(second ?? first);
  const deadline = performance.now() + ms;
  for (let pollMs = FIRST_POLL_MS; ; pollMs = Math.min(2 * pollMs, LONGEST_POLL_MS)) {
    let seen: unknown;
    try {
      const found = await read();
      if (holds(found)) return found;
      seen = found;
    } catch (error) {
      seen = error;
    }
    if (performance.now() > deadline) {
      const last = seen instanceof Error ? seen.message : (JSON.stringify(seen) ?? String(seen));
      throw new Error(`${what}: not within ${ms} ms; last: ${last.slice(0, 2000)}`, { cause: seen });
    }
    await new Promise((resolve) => setTimeout(resolve, pollMs));
  }
}

const isSomething = (found: unknown): boolean => found !== undefined && found !== null && found !== false;
