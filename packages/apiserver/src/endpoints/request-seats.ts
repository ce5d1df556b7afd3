/**
 * The seam to what decides how many requests are answered at once: `flow-control/` does so by priority level; without it
 * `createInFlightLimit` counts.
 */
import type { UserInfo } from '../auth/identity.ts';
import type { Watched } from './flow-control/watch-counts.ts';
import { ONE_SEAT, type Work } from './flow-control/work-estimate.ts';
import type { Query } from './query.ts';
import type { RequestInfo } from './request-info.ts';

/** Requests answered at once: upstream's `--max-requests-inflight` and `--max-mutating-requests-inflight` together. */
export const DEFAULT_SEATS = 600;

/** What a request was matched to. */
export interface Flow {
  /** For the answer: which pair it was, by uid, because names may tell more than users should know. */
  readonly headers: Readonly<Record<string, string>>;
}

/** One priority level right now: its own seats, those in use, and the requests that run and wait. */
interface LevelLoad {
  readonly name: string;
  readonly limit: number;
  readonly inUse: number;
  readonly running: number;
  readonly waiting: number;
}

export interface FlowControl {
  /** Undefined while there are no schemas. */
  classify(user: UserInfo, info: RequestInfo): Flow | undefined;
  /** What a request will cost. The query is looked at for lists and watches only. */
  estimate(flow: Flow, request: { readonly info: RequestInfo; readonly query: Query }): Work;
  /** True: go on, and `leave` when done. False: 429. A promise of one of them: wait; only then is the signal looked at. */
  enter(
    flow: Flow,
    work: Work,
    by: { readonly user: UserInfo; readonly info: RequestInfo; readonly request: { readonly signal: AbortSignal } },
  ): boolean | Promise<boolean>;
  leave(flow: Flow, work: Work): void;
  /** A watch has begun: writes it is notified of cost more until the returned function is called. */
  watching(watched: Watched): () => void;
  /** For metrics. */
  load(): readonly LevelLoad[];
  /** From here on FlowSchemas say in their status whether their level exists. */
  start(): void;
  stop(): void;
}

const ANY: Flow = { headers: {} };

/** Takes up to `seats` requests at once, whoever sends them, and refuses those beyond (429). */
export function createInFlightLimit(seats: number = DEFAULT_SEATS): FlowControl {
  let used = 0;
  return {
    classify: () => ANY,
    estimate: () => ONE_SEAT,
    enter() {
      if (used >= seats) return false;
      used++;
      return true;
    },
    leave() {
      used--;
    },
    watching: () => () => {},
    load: () => [],
    start() {},
    stop() {},
  };
}
