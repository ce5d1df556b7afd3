/** L1-L8: what calls were answered, held against the order of writes and against real time. */
import type { HistoryRecord, Operation, Sight } from './history.ts';
import {
  describeEntry,
  type Entry,
  firstIndex,
  keyOf,
  type RevisionLog,
  revisionOf,
  type Violation,
} from './revision-log.ts';

/** Which revisions an answer may have been given at. */
interface Window {
  /** Newest revision anybody had seen when the call began. */
  readonly low: number;
  /** Everything from the next one on was asked for only after the answer. */
  readonly high: number;
}

/** Tells each answer that no order of the writes explains. */
export function checkOperations(
  records: readonly HistoryRecord[],
  log: RevisionLog,
  tell: (violation: Violation) => void,
): void {
  const operations = records.filter((record) => record.r === 'op');
  const window = windows(records, operations, log);
  for (const operation of operations) {
    const { out, status } = operation;
    if (out === 'failed' || out === 'invalid')
      tell({ rule: 'S', message: `${operation.verb} ${operation.id} was answered ${status}` });
    if (operation.t1 === null) continue;
    const { low, high } = window(operation.t0, operation.t1);
    const rv = revisionOf(operation, log);
    // L2 and L7: a write comes after all that anybody had seen when it was asked for, restarts or not.
    if (rv !== undefined && rv <= low)
      tell({ rule: 'L2', message: `${operation.verb} ${operation.id} got ${rv} when ${low} had been seen already` });
    if (rv !== undefined && rv > high)
      tell({
        rule: 'L2',
        message: `${operation.verb} ${operation.id} got ${rv}, a write asked for later got ${high + 1}`,
      });
    checkAnswer(operation, { low, high }, log, tell);
  }
  checkLists(operations, window, log, tell);
  checkObjects(log, tell);
  for (const entry of log.entries) {
    if (entry.name.startsWith('dry-') || entry.sight?.tag.startsWith('dry-'))
      tell({ rule: 'L8', message: `${describeEntry(entry)} was only a dry run` });
  }
  checkDisk(records, log, tell);
}

function windows(records: readonly HistoryRecord[], operations: readonly Operation[], log: RevisionLog) {
  const seen: [t: number, rv: number][] = [];
  for (const record of records) {
    if (record.r === 'event') seen.push([record.t, record.object.rv]);
    else if (record.r === 'bookmark') seen.push([record.t, record.rv]);
    else if (record.r === 'op' && record.t1 !== null && !record.dryRun) {
      if (record.object) seen.push([record.t1, record.object.rv]);
      if (record.answer) seen.push([record.t1, record.answer.rv]);
      const rv = revisionOf(record, log);
      if (rv !== undefined) seen.push([record.t1, rv]);
    }
  }
  seen.sort((a, b) => a[0] - b[0]);
  let top = 0;
  const newest = seen.map(([t, rv]) => {
    top = Math.max(top, rv);
    return [t, top] as const;
  });

  const asked: [t: number, rv: number][] = [];
  for (const operation of operations) {
    const rv = revisionOf(operation, log);
    if (rv !== undefined) asked.push([operation.t0, rv]);
  }
  asked.sort((a, b) => a[0] - b[0]);
  let bottom = Number.POSITIVE_INFINITY;
  const oldest: (readonly [number, number])[] = new Array(asked.length);
  for (let i = asked.length - 1; i >= 0; i--) {
    const [t, rv] = asked[i]!;
    bottom = Math.min(bottom, rv);
    oldest[i] = [t, bottom];
  }

  return (t0: number, t1: number): Window => ({
    low: newest[firstIndex(newest, ([t]) => t >= t0) - 1]?.[1] ?? 0,
    high: (oldest[firstIndex(oldest, ([t]) => t > t1)]?.[1] ?? Number.POSITIVE_INFINITY) - 1,
  });
}

/** The states a key went through in a window, the one it began with included; undefined = was never written. */
function* statesIn(operation: Operation, { low, high }: Window, log: RevisionLog): Generator<Entry | undefined> {
  const timeline = log.of(operation.resource, operation.ns, operation.name);
  const from = firstIndex(timeline, (entry) => entry.rv > low);
  yield timeline[from - 1];
  for (let i = from; i < timeline.length && timeline[i]!.rv <= high; i++) yield timeline[i];
}

/** L3, and L4 for single objects. */
function checkAnswer(
  operation: Operation,
  window: Window,
  log: RevisionLog,
  tell: (violation: Violation) => void,
): void {
  const { verb, out, id, pre, object, resource, ns, name } = operation;
  if (operation.dryRun || verb === 'list') return;
  const some = (test: (state: Entry | undefined) => boolean): boolean => {
    for (const state of statesIn(operation, window, log)) if (test(state)) return true;
    return false;
  };
  const absent = (state: Entry | undefined): boolean => state === undefined || state.deleted;
  const wrong = (rule: string, why: string): void =>
    tell({
      rule,
      message: `${verb} ${id} of ${keyOf(resource, ns, name)}: ${why} (between ${window.low} and ${window.high})`,
    });
  if (out === 'ok') {
    if (verb === 'get') {
      if (!some((state) => !absent(state) && state!.rv === object!.rv)) wrong('L4', `read ${object!.rv}`);
      return;
    }
    if (operation.noop) {
      if (object!.rv !== pre?.rv) wrong('L1', `a write without a change went from ${pre?.rv} to ${object!.rv}`);
      return;
    }
    const rv = revisionOf(operation, log);
    if (rv === undefined) return; // a deletion nobody saw: the watches answer for that
    const before = log.at(resource, ns, name, rv - 1);
    if (verb === 'create') {
      if (!absent(before)) wrong('L3', `made at ${rv}, but it was there: ${describeEntry(before!)}`);
      return;
    }
    if (absent(before)) wrong('L3', `done at ${rv}, but it was not there`);
    else if (pre?.rv !== undefined && before!.rv !== pre.rv)
      wrong('L3', `asked for ${pre.rv}, done upon ${before!.rv}`);
    else if (pre?.uid !== undefined && before!.uid !== pre.uid)
      wrong('L3', `asked for ${pre.uid}, done to ${before!.uid}`);
  } else if (out === 'exists') {
    if (!some((state) => !absent(state))) wrong('L3', 'said to exist');
  } else if (out === 'notfound') {
    if (!some(absent)) wrong(verb === 'get' ? 'L4' : 'L3', 'said not to be found');
  } else if (out === 'conflict' && pre) {
    const differs = (state: Entry | undefined): boolean =>
      absent(state) ||
      (pre.rv !== undefined && state!.rv !== pre.rv) ||
      (pre.uid !== undefined && state!.uid !== pre.uid);
    if (!some(differs)) wrong('L3', `said to conflict with ${pre.rv ?? pre.uid}`);
  }
}

/** L4 for lists: one list, with all its pages, is the state at the one revision it names. */
function checkLists(
  operations: readonly Operation[],
  window: (t0: number, t1: number) => Window,
  log: RevisionLog,
  tell: (violation: Violation) => void,
): void {
  const chains = new Map<string, Operation[]>();
  for (const operation of operations) {
    if (operation.verb !== 'list' || operation.out !== 'ok' || operation.t1 === null) continue;
    const { chain } = operation.list!;
    const pages = chains.get(chain);
    if (pages) pages.push(operation);
    else chains.set(chain, [operation]);
  }
  const lists = [...chains.values()]
    .map((pages) => pages.sort((a, b) => a.list!.page - b.list!.page))
    .sort((a, b) => a[0]!.answer!.rv - b[0]!.answer!.rv);
  const state = new Map<string, Entry>();
  let next = 0;
  for (const pages of lists) {
    const [first] = pages;
    const { rv } = first!.answer!;
    const { list, resource, ns, id } = first!;
    const { low, high } = window(first!.t0, first!.t1!);
    if (rv > high) tell({ rule: 'L4', message: `list ${id} is of ${rv}; a later write got ${high + 1}` });
    if (list!.rv === undefined && rv < low)
      tell({ rule: 'L4', message: `list ${id} is of ${rv} when ${low} was seen` });
    if (list!.match === 'Exact' ? rv !== list!.rv : rv < (list!.rv ?? 0))
      tell({ rule: 'L4', message: `list ${id} is of ${rv}, asked for ${list!.match ?? ''} ${list!.rv}` });
    for (const page of pages)
      if (page.answer!.rv !== rv)
        tell({
          rule: 'L4',
          message: `list ${id}: page ${page.list!.page} is of ${page.answer!.rv}, the first of ${rv}`,
        });

    for (; next < log.entries.length && log.entries[next]!.rv <= rv; next++) {
      const entry = log.entries[next]!;
      const key = keyOf(entry.resource, entry.ns, entry.name);
      if (entry.deleted) state.delete(key);
      else state.set(key, entry);
    }
    const wanted = new Map<string, Entry>();
    for (const [key, entry] of state) {
      if (entry.resource !== resource || (ns !== '' && entry.ns !== ns)) continue;
      if (list!.group === undefined || entry.sight?.group === list!.group) wanted.set(key, entry);
    }
    let last = '';
    for (const item of pages.flatMap((page) => page.answer!.items)) {
      const key = keyOf(resource, item.ns, item.name);
      const entry = wanted.get(key);
      if (entry?.rv !== item.rv)
        tell({
          rule: 'L4',
          message: `list ${id} of ${rv} holds ${key} at ${item.rv}; it was ${entry ? describeEntry(entry) : 'not there'}`,
        });
      wanted.delete(key);
      if (key <= last) tell({ rule: 'L4', message: `list ${id}: ${key} stands after ${last}` });
      last = key;
    }
    if (!pages.at(-1)!.answer!.more)
      for (const entry of wanted.values())
        tell({ rule: 'L4', message: `list ${id} of ${rv} lacks ${describeEntry(entry)}` });
  }
}

/** L6: what stays the same for the life of an object, and when its generation rises. */
function checkObjects(log: RevisionLog, tell: (violation: Violation) => void): void {
  const lives = new Map<string, { readonly key: string; last: Entry }>();
  for (const entry of log.entries) {
    const key = keyOf(entry.resource, entry.ns, entry.name);
    const life = lives.get(entry.uid);
    if (!life) {
      lives.set(entry.uid, { key, last: entry });
      continue;
    }
    const was: Sight | undefined = life.last.sight;
    const is = entry.sight;
    if (life.key !== key || life.last.deleted)
      tell({
        rule: 'L6',
        message: `uid ${entry.uid} of ${describeEntry(life.last)} is used again: ${describeEntry(entry)}`,
      });
    else if (was && is) {
      if (was.created !== is.created)
        tell({ rule: 'L6', message: `${describeEntry(entry)}: creationTimestamp changed` });
      const step = (is.generation ?? 0) - (was.generation ?? 0);
      if (!entry.deleted && is.generation !== undefined && step !== (was.spec === is.spec ? 0 : 1))
        tell({
          rule: 'L6',
          message: `${describeEntry(entry)}: generation went from ${was.generation} to ${is.generation}`,
        });
    }
    life.last = entry;
  }
}

/** L5 and W11: all that anybody was answered or shown lies on the disk. */
function checkDisk(records: readonly HistoryRecord[], log: RevisionLog, tell: (violation: Violation) => void): void {
  for (const dump of records) {
    if (dump.r !== 'dump') continue;
    const rows = new Map(dump.rows.map((row) => [row.rv, row]));
    const acknowledged = new Set<number>();
    for (const record of records) {
      const rv = record.r === 'op' ? revisionOf(record, log) : undefined;
      if (rv !== undefined) acknowledged.add(rv);
    }
    for (const entry of log.entries) {
      if (rows.has(entry.rv)) continue;
      const rule = acknowledged.has(entry.rv) ? 'L5' : 'W11';
      tell({
        rule,
        message: `${describeEntry(entry)} was ${rule === 'L5' ? 'acknowledged' : 'shown'} and is not on the disk`,
      });
    }
  }
}
