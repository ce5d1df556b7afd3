/**
 * What is written down of a run, one JSON document a line, one file for each client process. Times are nanoseconds of
 * the machine's monotonic clock, so that files of several processes can be laid side by side.
 */

/** The first line of a file. */
export interface Header {
  readonly r: 'header';
  readonly client: string;
  readonly seed: number;
  readonly commit: string;
}

export type Resource = 'configmaps' | 'poddisruptionbudgets';

/** An object as somebody saw it. */
export interface Sight {
  readonly ns: string;
  readonly name: string;
  readonly uid: string;
  readonly rv: number;
  /** Digest of the whole object (kind and apiVersion aside). */
  readonly sha: string;
  /** Its label `group`, which watches select by. */
  readonly group: string;
  readonly created: string;
  readonly generation?: number;
  /** Digest of its spec. */
  readonly spec?: string;
  /** What the writer marked it with. */
  readonly tag: string;
}

/** How a call ended; `unknown` when no whole answer came. */
export type Outcome = 'ok' | 'conflict' | 'exists' | 'notfound' | 'gone' | 'invalid' | 'refused' | 'failed' | 'unknown';

export interface Operation {
  readonly r: 'op';
  readonly c: string;
  readonly id: string;
  readonly t0: number;
  /** Null when no answer came. */
  readonly t1: number | null;
  readonly verb: 'create' | 'update' | 'patch' | 'delete' | 'get' | 'list';
  readonly resource: Resource;
  readonly ns: string;
  readonly name: string;
  /** What the caller made a condition. */
  readonly pre?: { readonly uid?: string; readonly rv?: number };
  readonly dryRun?: boolean;
  /** The write changed nothing. */
  readonly noop?: boolean;
  readonly list?: ListQuestion;
  readonly out: Outcome;
  readonly status: number;
  /** The object of the answer. */
  readonly object?: Sight;
  /** Uid that a deletion named. */
  readonly uid?: string;
  readonly answer?: { readonly rv: number; readonly items: readonly Sight[]; readonly more: boolean };
}

export interface ListQuestion {
  readonly rv?: number;
  readonly match?: 'Exact' | 'NotOlderThan';
  readonly group?: string;
  /** Calls with the same chain are the pages of one list, in order. */
  readonly chain: string;
  readonly page: number;
}

export interface WatchOpen {
  readonly r: 'open';
  readonly c: string;
  readonly w: string;
  readonly t: number;
  readonly resource: Resource;
  /** '' watches all namespaces. */
  readonly ns: string;
  readonly group?: string;
  /** Revision asked for. */
  readonly from: number;
  /** sendInitialEvents: `from` means nothing then. */
  readonly initial: boolean;
}

export interface WatchEvent {
  readonly r: 'event';
  readonly w: string;
  readonly t: number;
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly object: Sight;
}

export interface Bookmark {
  readonly r: 'bookmark';
  readonly w: string;
  readonly t: number;
  readonly rv: number;
  readonly initialEnd?: boolean;
}

export interface WatchClose {
  readonly r: 'close';
  readonly w: string;
  readonly t: number;
  /** `settled`: the load was over, and the watch had all the time it needed to tell the rest. */
  readonly reason: 'ended' | 'cut' | 'gone' | 'refused' | 'settled';
  readonly status: number;
}

export interface Fault {
  readonly r: 'fault';
  readonly t: number;
  readonly kind: 'start' | 'kill' | 'compact';
  /** Of a compaction: everything at or below it is forgotten. */
  readonly rv?: number;
}

/** The first write after the load: watches that settled must have delivered everything before it. */
export interface Settled {
  readonly r: 'settled';
  readonly rv: number;
}

/** The log as it lay on the disk at the end: the revisions of the recorded kinds that were not compacted. */
export interface Dump {
  readonly r: 'dump';
  readonly rows: readonly {
    readonly rv: number;
    readonly resource: Resource;
    readonly ns: string;
    readonly name: string;
    /** Absent when the row is a tombstone. */
    readonly object?: Sight;
  }[];
}

export type HistoryRecord =
  | Header
  | Operation
  | WatchOpen
  | WatchEvent
  | Bookmark
  | WatchClose
  | Fault
  | Settled
  | Dump;

/** Reads one file of a history. The last line may be cut short by a kill; it is left out. */
export function parseHistory(text: string): HistoryRecord[] {
  const lines = text.split('\n');
  const records: HistoryRecord[] = [];
  for (const [at, line] of lines.entries()) {
    if (line === '') continue;
    try {
      records.push(JSON.parse(line) as HistoryRecord);
    } catch (error) {
      if (at !== lines.length - 1) throw error;
    }
  }
  return records;
}
