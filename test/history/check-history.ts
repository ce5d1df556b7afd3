/** The history checker: reads what clients wrote down and tells which promises of the API were broken. Pure. */
import { checkOperations } from './check-operations.ts';
import { checkWatches } from './check-watches.ts';
import type { HistoryRecord } from './history.ts';
import { buildLog, revisionOf, type Violation } from './revision-log.ts';

/** Violations kept; the rest is only counted. */
const KEPT = 500;

export interface Result {
  /** At most 500, in the order they were found. */
  readonly violations: readonly Violation[];
  /** Of each rule that was broken, how often. */
  readonly broken: Readonly<Record<string, number>>;
  readonly operations: number;
  /** Calls without an answer. */
  readonly unanswered: number;
  /** Answered writes. */
  readonly writes: number;
  readonly revisions: number;
  readonly watches: number;
  readonly events: number;
}

/**
 * Checks L1-L8 and W1-W11 of the reliability document over the records of all clients of one run. Searches nothing:
 * revisions order the writes, so every check is a walk along that order.
 */
export function checkHistory(records: readonly HistoryRecord[]): Result {
  const violations: Violation[] = [];
  const broken: Record<string, number> = {};
  const tell = (violation: Violation): void => {
    broken[violation.rule] = (broken[violation.rule] ?? 0) + 1;
    if (violations.length < KEPT) violations.push(violation);
  };
  const log = buildLog(records, tell);
  checkOperations(records, log, tell);
  checkWatches(records, log, tell);
  let operations = 0;
  let unanswered = 0;
  let writes = 0;
  let watches = 0;
  let events = 0;
  for (const record of records) {
    if (record.r === 'op') {
      operations++;
      if (record.t1 === null) unanswered++;
      if (revisionOf(record, log) !== undefined) writes++;
    } else if (record.r === 'open') watches++;
    else if (record.r === 'event') events++;
  }
  return { violations, broken, operations, unanswered, writes, revisions: log.entries.length, watches, events };
}
