/** W1-W9: each watch, held against the order of writes. */
import type { Bookmark, HistoryRecord, WatchClose, WatchEvent, WatchOpen } from './history.ts';
import { describeEntry, type Entry, firstIndex, keyOf, type RevisionLog, type Violation } from './revision-log.ts';

interface Expected {
  readonly rv: number;
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly entry: Entry;
  /** The object went out of the selection; what is shown is not the write itself. */
  readonly left: boolean;
}

/** Tells each watch that is not the order of writes, from where it began to where it ended. */
export function checkWatches(
  records: readonly HistoryRecord[],
  log: RevisionLog,
  tell: (violation: Violation) => void,
): void {
  const frames = new Map<string, (WatchEvent | Bookmark | WatchClose)[]>();
  const opens: WatchOpen[] = [];
  const compactions: { t: number; rv: number }[] = [];
  let settled = 0;
  for (const record of records) {
    if (record.r === 'open') {
      opens.push(record);
      if (!frames.has(record.w)) frames.set(record.w, []);
    } else if (record.r === 'event' || record.r === 'bookmark' || record.r === 'close') {
      const known = frames.get(record.w);
      if (known) known.push(record);
      else frames.set(record.w, [record]);
    } else if (record.r === 'fault' && record.kind === 'compact') compactions.push({ t: record.t, rv: record.rv! });
    else if (record.r === 'settled') settled = record.rv;
  }
  const scopes = new Map<string, Expected[]>();
  const scopeOf = (open: WatchOpen): Expected[] => {
    const scope = `${open.resource} ${open.ns} ${open.group ?? ''}`;
    const known = scopes.get(scope);
    if (known) return known;
    const made = expectedOf(open, log);
    scopes.set(scope, made);
    return made;
  };
  for (const open of opens) {
    const seen = frames.get(open.w)!;
    const close = seen.find((frame) => frame.r === 'close');
    const forgotten = compactions.reduce((top, { t, rv }) => (t < open.t ? Math.max(top, rv) : top), 0);
    const everForgotten = compactions.reduce((top, { rv }) => Math.max(top, rv), 0);
    if (close?.reason === 'gone' && !open.initial && open.from >= everForgotten)
      tell({ rule: 'W6', message: `watch ${open.w} could not be resumed from ${open.from}` });
    if (!open.initial && open.from < forgotten && close?.reason !== 'gone' && close?.reason !== 'cut')
      tell({ rule: 'W7', message: `watch ${open.w} from ${open.from} was not refused; ${forgotten} is forgotten` });
    if (close?.reason === 'gone') continue;
    checkWatch(open, seen, scopeOf(open), settled, (rule, message) =>
      tell({ rule, message: `watch ${open.w}: ${message}` }),
    );
  }
}

/** What a watch of this scope tells of each write. */
function expectedOf(open: WatchOpen, log: RevisionLog): Expected[] {
  const inside = new Set<string>();
  const expected: Expected[] = [];
  for (const entry of log.entries) {
    if (entry.resource !== open.resource || (open.ns !== '' && entry.ns !== open.ns)) continue;
    const key = keyOf(entry.resource, entry.ns, entry.name);
    const was = inside.has(key);
    const is = !entry.deleted && (open.group === undefined || entry.sight?.group === open.group);
    if (is) inside.add(key);
    else inside.delete(key);
    if (!was && !is) continue;
    const type = is ? (was ? 'MODIFIED' : 'ADDED') : 'DELETED';
    expected.push({ rv: entry.rv, type, entry, left: type === 'DELETED' && !entry.deleted });
  }
  return expected;
}

function checkWatch(
  open: WatchOpen,
  frames: readonly (WatchEvent | Bookmark | WatchClose)[],
  expected: readonly Expected[],
  settled: number,
  tell: (rule: string, message: string) => void,
): void {
  let last = open.from;
  let marked = 0;
  let at = firstIndex(expected, ({ rv }) => rv > open.from);
  const given = new Set<number>();
  let initial: Map<string, WatchEvent> | undefined = open.initial ? new Map() : undefined;
  const missing = (upTo: number, rule: string): void => {
    for (; at < expected.length && expected[at]!.rv < upTo; at++)
      tell(rule, `did not tell of ${describeEntry(expected[at]!.entry)} (${expected[at]!.type})`);
  };
  for (const frame of frames) {
    if (frame.r === 'event') {
      const { object, type } = frame;
      if (initial) {
        const key = keyOf(open.resource, object.ns, object.name);
        if (type !== 'ADDED' || initial.has(key)) tell('W9', `initial event ${type} of ${key} at ${object.rv}`);
        initial.set(key, frame);
        continue;
      }
      if (object.rv <= last) {
        if (given.has(object.rv)) tell('W2', `delivered twice: ${object.ns}/${object.name} at ${object.rv}`);
        else if (object.rv <= open.from) tell('W8', `began at ${open.from} and delivered ${object.rv}`);
        else if (object.rv <= marked) tell('W5', `delivered ${object.rv} after the bookmark ${marked}`);
        else tell('W1', `delivered ${object.rv} after ${last}`);
        continue;
      }
      missing(object.rv, 'W3');
      const found = expected[at];
      if (found?.rv !== object.rv)
        tell('W3', `delivered ${type} ${object.ns}/${object.name} at ${object.rv}, which is no write`);
      else {
        at++;
        if (found.type !== type || found.entry.uid !== object.uid)
          tell(
            type === 'DELETED' ? 'W4' : 'W3',
            `delivered ${type} ${object.ns}/${object.name}, it was ${found.type} ${describeEntry(found.entry)}`,
          );
        else if (!found.left && found.entry.sight && found.entry.sight.sha !== object.sha)
          tell('W10', `showed ${describeEntry(found.entry)} with another content`);
      }
      last = object.rv;
      given.add(object.rv);
    } else if (frame.r === 'bookmark') {
      if (initial) {
        if (!frame.initialEnd) continue;
        checkInitial(initial, expected, frame.rv, tell);
        initial = undefined;
        at = firstIndex(expected, ({ rv }) => rv > frame.rv);
        last = frame.rv;
      }
      if (frame.rv < last) tell('W5', `bookmark ${frame.rv} after ${last}`);
      missing(frame.rv + 1, 'W5');
      marked = Math.max(marked, frame.rv);
      last = Math.max(last, frame.rv);
    } else if (frame.reason === 'settled') {
      if (initial) tell('W9', 'the end of the initial events never came');
      else missing(settled, 'W3');
    }
  }
}

/** W9: the initial events are the list at the revision of their end. */
function checkInitial(
  initial: ReadonlyMap<string, WatchEvent>,
  expected: readonly Expected[],
  rv: number,
  tell: (rule: string, message: string) => void,
): void {
  const state = new Map<string, Expected>();
  for (const event of expected) {
    if (event.rv > rv) break;
    const key = keyOf(event.entry.resource, event.entry.ns, event.entry.name);
    if (event.type === 'DELETED') state.delete(key);
    else state.set(key, event);
  }
  for (const [key, { object }] of initial) {
    if (state.get(key)?.rv !== object.rv) tell('W9', `initial events of ${rv} hold ${key} at ${object.rv}`);
    state.delete(key);
  }
  for (const { entry } of state.values()) tell('W9', `initial events of ${rv} lack ${describeEntry(entry)}`);
}
