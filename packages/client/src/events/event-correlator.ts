/**
 * Decides what becomes of an event before it costs a request, as client-go's correlator does: drop it (spam), count it
 * on an event written before, or write it anew. Memory is bounded: least recently used entries go first.
 */

/** What identifies events that are "the same" and only counted. */
interface EventIdentity {
  /** Who reports, about which object: the spam filter's key. */
  readonly source: string;
  readonly type: string;
  readonly reason: string;
  readonly message: string;
}

/** An event written before, as far as a count on it needs. */
interface WrittenEvent {
  readonly namespace: string;
  readonly name: string;
  count: number;
  readonly firstTimestamp: string;
}

type Correlation =
  | { readonly type: 'drop' }
  | { readonly type: 'create'; readonly key: string; readonly message: string }
  | { readonly type: 'count'; readonly key: string; readonly written: WrittenEvent; readonly message: string };

const MAX_ENTRIES = 4096;
/** A token bucket for each source and object: 25 at once, then one in five minutes. */
const SPAM_BURST = 25;
const SPAM_REFILL_MS = 300_000;
/** More than this many different messages of one reason within ten minutes become one event. */
const SIMILAR_MAX = 10;
const SIMILAR_WINDOW_MS = 600_000;

/** Makes a correlator; `now` in monotonic milliseconds. */
export function createEventCorrelator(now: () => number) {
  const known = new Map<string, WrittenEvent>();
  const buckets = new Map<string, { tokens: number; at: number }>();
  /** `messages` are bounded by SIMILAR_MAX. */
  const similar = new Map<string, { readonly messages: Set<string>; last: number }>();

  const allowed = (key: string): boolean => {
    const at = now();
    const bucket = touch(buckets, key) ?? { tokens: SPAM_BURST, at };
    bucket.tokens = Math.min(SPAM_BURST, bucket.tokens + (at - bucket.at) / SPAM_REFILL_MS);
    bucket.at = at;
    put(buckets, key, bucket);
    if (bucket.tokens < 1) return false;
    bucket.tokens -= 1;
    return true;
  };

  /** True when the event is one of too many that differ in their message only. */
  const aggregates = (key: string, message: string): boolean => {
    const at = now();
    let entry = touch(similar, key);
    if (!entry || at - entry.last > SIMILAR_WINDOW_MS) entry = { messages: new Set(), last: at };
    entry.last = at;
    put(similar, key, entry);
    if (entry.messages.size < SIMILAR_MAX) entry.messages.add(message);
    return !entry.messages.has(message);
  };

  return {
    correlate({ source, type, reason, message }: EventIdentity): Correlation {
      if (!allowed(source)) return { type: 'drop' };
      const group = JSON.stringify([source, type, reason]);
      const combined = aggregates(group, message);
      const shown = combined ? `(combined from similar events): ${message}` : message;
      // All combined events of a group are one event whose message is the newest.
      const key = combined ? group : JSON.stringify([source, type, reason, message]);
      const written = touch(known, key);
      return written ? { type: 'count', key, written, message: shown } : { type: 'create', key, message: shown };
    },
    /** Remembers what was written under a key, so that the next one is counted on it. */
    written: (key: string, event: WrittenEvent): void => put(known, key, event),
    /** The event under the key is gone (its TTL is over): the next one is written anew. */
    forget: (key: string): void => void known.delete(key),
  };
}

/** Reads an entry and makes it the most recently used. */
function touch<V>(map: Map<string, V>, key: string): V | undefined {
  const value = map.get(key);
  if (value !== undefined) {
    map.delete(key);
    map.set(key, value);
  }
  return value;
}

function put<V>(map: Map<string, V>, key: string, value: V): void {
  map.delete(key);
  map.set(key, value);
  if (map.size > MAX_ENTRIES) map.delete(map.keys().next().value!);
}
