/**
 * The seats of one priority level. A request runs when its level has the seats it takes, or the server as a whole has
 * as many that nobody uses; otherwise it waits in its flow's queue, if the level has queues, or is refused. Flows of a
 * level take turns, so that one busy client does not keep the others waiting.
 */

import type { UnstructuredObject } from '@coracle/apimachinery/meta/object';
import type { PriorityLevelConfigurationSpec } from '@coracle/apimachinery/types/types';
import type { Clock } from '@coracle/runtime/clock/clock';
import { maxSeatsOf, ONE_SEAT, type Work } from './work-estimate.ts';

/** Seats of the whole server, shared by its levels. */
export interface Seats {
  readonly total: number;
  used: number;
}

interface Waiting {
  readonly seats: number;
  readonly settle: (granted: boolean) => void;
}

/** How long a request may wait in a queue: a quarter of the longest a request may take. */
export const MAX_WAIT_MS = 15_000;

export class PriorityLevel {
  readonly name: string;
  uid = '';
  exempt = false;
  /** Seats nobody else may take for good. */
  limit = 0;
  /** Requests that may wait, in all and of one flow; 0 = refuse at once. */
  maxWaiting = 0;
  maxOfFlow = 0;
  shares = 0;
  /** Queues that one flow may be dealt; 0 = there are none. */
  handSize = 0;
  /** Requests that are being answered, and the seats that they and the aftermath of others take. */
  running = 0;
  inUse = 0;
  /** Requests that wait. */
  waiting = 0;
  readonly #seats: Seats;
  readonly #clock: Clock;
  /** By flow, in the order of their turns. */
  readonly #waiting = new Map<string, Waiting[]>();

  constructor(name: string, { seats, clock }: { readonly seats: Seats; readonly clock: Clock }) {
    this.name = name;
    this.#seats = seats;
    this.#clock = clock;
  }

  configure(object: Readonly<UnstructuredObject>): void {
    const { metadata, spec } = object as UnstructuredObject & { spec: PriorityLevelConfigurationSpec };
    this.uid = metadata.uid ?? '';
    this.exempt = spec.type === 'Exempt';
    this.shares = this.exempt ? 0 : (spec.limited?.nominalConcurrencyShares ?? 30);
    const { type, queuing = {} } = spec.limited?.limitResponse ?? {};
    const { queues = 64, handSize = 8, queueLengthLimit = 50 } = queuing;
    this.handSize = type === 'Queue' ? handSize : 0;
    this.maxWaiting = type === 'Queue' ? queues * queueLengthLimit : 0;
    this.maxOfFlow = type === 'Queue' ? handSize * queueLengthLimit : 0;
  }

  /** The most seats that one request may take; 0 = the level says nothing. */
  get maxSeats(): number {
    return maxSeatsOf(this.limit, this.handSize);
  }

  /** True: it runs now, and `leave` must follow. False: it may `wait`. */
  enter({ seats }: Work = ONE_SEAT): boolean {
    return this.#fits(seats) && this.#take(seats);
  }

  /** Resolves to whether the request may run after all; false at once when there is no place to wait. */
  wait(flow: string, signal: AbortSignal, { seats }: Work = ONE_SEAT): false | Promise<boolean> {
    if (this.waiting >= this.maxWaiting) return false;
    const queue = this.#waiting.get(flow) ?? [];
    if (queue.length >= this.maxOfFlow) return false;
    this.#waiting.set(flow, queue);
    this.waiting++;
    return new Promise((resolve) => {
      const settle = (granted: boolean): void => {
        cancel();
        signal.removeEventListener('abort', giveUp);
        const at = queue.indexOf(waiting);
        if (at >= 0) queue.splice(at, 1);
        if (queue.length === 0) this.#waiting.delete(flow);
        this.waiting--;
        resolve(granted);
      };
      const giveUp = (): void => settle(false);
      const cancel = this.#clock.schedule(MAX_WAIT_MS, giveUp);
      signal.addEventListener('abort', giveUp, { once: true });
      const waiting: Waiting = { seats, settle };
      queue.push(waiting);
    });
  }

  /** The request is answered; its seats are free again, at once or when `release` is called in its stead. */
  leave({ seats, afterMs }: Work = ONE_SEAT): void {
    this.running--;
    if (afterMs === 0) this.release(seats);
  }

  release(seats: number): void {
    this.inUse -= seats;
    this.#seats.used -= seats;
  }

  /** Lets the request run whose turn it is; false when there are no seats for it or nobody waits. */
  admitOne(): boolean {
    if (this.waiting === 0) return false;
    for (const [flow, queue] of this.#waiting) {
      const next = queue[0];
      if (!next) continue;
      // Who needs many seats is waited for: otherwise small requests would never let it in.
      if (!this.#fits(next.seats)) return false;
      // To the end of the turns, with whoever of the flow still waits.
      this.#waiting.delete(flow);
      this.#take(next.seats);
      next.settle(true);
      if (queue.length > 0) this.#waiting.set(flow, queue);
      return true;
    }
    return false;
  }

  #fits(seats: number): boolean {
    const { used, total } = this.#seats;
    if (this.inUse + seats <= this.limit || used + seats <= total) return true;
    // A request wider than its level runs alone.
    return seats > 1 && this.inUse === 0 && (this.limit > 0 || used < total);
  }

  #take(seats: number): true {
    this.running++;
    this.inUse += seats;
    this.#seats.used += seats;
    return true;
  }
}
