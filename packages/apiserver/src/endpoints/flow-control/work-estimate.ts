/**
 * How many seats a request takes, and for how long after its answer: a long list and a write that many watch keep the
 * server busy for others too (apiserver util/flowcontrol/request). Most requests take one seat.
 */

/** What a request costs in its priority level. */
export interface Work {
  /** Seats taken while the request is answered and, if there is one, for the time after it. */
  readonly seats: number;
  /** How long the seats stay taken after the answer; 0 = not at all. The client waits for none of it. */
  readonly afterMs: number;
}

export const ONE_SEAT: Work = Object.freeze({ seats: 1, afterMs: 0 });

const BYTES_PER_SEAT = 100_000;
/** Lists come from memory and leave in pieces: they never hold more than this at once. */
const MAX_BYTES_AT_ONCE = 1_000_000;
const MAX_LIST_SEATS = 100;
const MAX_WRITE_SEATS = 10;
const WATCHERS_PER_SEAT = 10;
/** What one event costs each watcher. */
const EVENT_MS = 5;
const MAX_SHARE_OF_LEVEL = 0.15;

/** The most seats that one request may take in a level with queues; 0 = the level says nothing. */
export const maxSeatsOf = (limit: number, handSize: number): number =>
  handSize === 0 ? 0 : Math.max(1, Math.min(Math.ceil(limit * MAX_SHARE_OF_LEVEL), Math.floor(limit / handSize)));

/** A list, or a watch that begins with one. */
export function listWork(
  list: {
    /** Stored objects of the resource. */
    readonly objects: number;
    readonly averageBytes: number;
    /** Of the request; 0 = none. */
    readonly limit: number;
    /** True when a name is selected. */
    readonly single: boolean;
  },
  maxOfLevel: number,
): Work {
  const { objects, averageBytes, limit, single } = list;
  const loaded = single ? 1 : limit > 0 ? Math.min(limit, objects) : objects;
  const wanted = Math.ceil(Math.min(loaded * averageBytes, MAX_BYTES_AT_ONCE) / BYTES_PER_SEAT);
  const seats = Math.min(wanted, capped(maxOfLevel, MAX_LIST_SEATS));
  return seats <= 1 ? ONE_SEAT : { seats, afterMs: 0 };
}

/** A write of something that so many watch. More work than a level allows at once takes longer, not less. */
export function writeWork(watchers: number, maxOfLevel: number): Work {
  if (watchers < WATCHERS_PER_SEAT) return ONE_SEAT;
  const wanted = Math.ceil(watchers / WATCHERS_PER_SEAT);
  const seats = Math.min(wanted, capped(maxOfLevel, MAX_WRITE_SEATS));
  return { seats, afterMs: (wanted * EVENT_MS) / seats };
}

const capped = (maxOfLevel: number, most: number): number =>
  maxOfLevel === 0 || maxOfLevel > most ? most : maxOfLevel;
