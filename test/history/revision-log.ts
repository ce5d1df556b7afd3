/** The one order of writes that all that was seen adds up to: what every answer is held against. */
import type { Dump, HistoryRecord, Operation, Resource, Sight, WatchEvent, WatchOpen } from './history.ts';

export interface Violation {
  /** L1-L8, W1-W11, or S for an answer that is an error of the server. */
  readonly rule: string;
  readonly message: string;
}

/** One write. */
export interface Entry {
  readonly rv: number;
  readonly resource: Resource;
  readonly ns: string;
  readonly name: string;
  readonly deleted: boolean;
  readonly uid: string;
  /** The object as written, or as the deletion showed it; absent when only the disk tells of a deletion. */
  readonly sight: Sight | undefined;
}

export interface RevisionLog {
  readonly byRevision: ReadonlyMap<number, Entry>;
  /** Ascending by revision. */
  readonly entries: readonly Entry[];
  /** Deletions by uid. */
  readonly deletions: ReadonlyMap<string, Entry>;
  /** The newest write of a key at or below a revision. */
  at(resource: Resource, ns: string, name: string, rv: number): Entry | undefined;
  /** All writes of a key, ascending. */
  of(resource: Resource, ns: string, name: string): readonly Entry[];
}

export const keyOf = (resource: Resource, ns: string, name: string): string => `${resource}/${ns}/${name}`;

/** Index of the first element for which `test` is true, in a list where it is false and then true. */
export function firstIndex<T>(list: readonly T[], test: (item: T) => boolean): number {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (test(list[middle]!)) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** Gathers the writes out of answers, events and the disk. Two that claim one revision are reported as L1 or W10. */
export function buildLog(records: readonly HistoryRecord[], tell: (violation: Violation) => void): RevisionLog {
  const byRevision = new Map<number, Entry>();
  const opens = new Map<string, WatchOpen>();
  for (const record of records) if (record.r === 'open') opens.set(record.w, record);

  const add = (entry: Entry, from: string): void => {
    const known = byRevision.get(entry.rv);
    if (!known) {
      byRevision.set(entry.rv, entry);
      return;
    }
    const same = known.uid === entry.uid && known.name === entry.name && known.deleted === entry.deleted;
    if (!same) {
      tell({
        rule: 'L1',
        message: `revision ${entry.rv} is given out twice: ${describeEntry(known)}, and ${from}: ${describeEntry(entry)}`,
      });
    } else if (known.sight && entry.sight && known.sight.sha !== entry.sight.sha) {
      tell({ rule: 'W10', message: `${describeEntry(entry)} is seen with two contents (${from})` });
    } else if (!known.sight && entry.sight) byRevision.set(entry.rv, entry);
  };
  const put = (resource: Resource, sight: Sight, from: string): void =>
    add({ rv: sight.rv, resource, ns: sight.ns, name: sight.name, deleted: false, uid: sight.uid, sight }, from);

  const events: [WatchOpen, WatchEvent][] = [];
  const dumps: Dump[] = [];
  for (const record of records) {
    if (record.r === 'op') {
      if (record.dryRun) continue;
      if (record.object) put(record.resource, record.object, `${record.verb} of ${record.id}`);
      for (const item of record.answer?.items ?? []) put(record.resource, item, `list ${record.id}`);
    } else if (record.r === 'event') {
      const open = opens.get(record.w)!;
      if (record.type !== 'DELETED') put(open.resource, record.object, `watch ${record.w}`);
      else if (open.group === undefined) events.push([open, record]);
    } else if (record.r === 'dump') dumps.push(record);
  }
  for (const [{ resource }, { w, object }] of events)
    add(
      { rv: object.rv, resource, ns: object.ns, name: object.name, deleted: true, uid: object.uid, sight: object },
      `watch ${w}`,
    );
  // The disk last: it tells of writes that nobody was answered and nobody saw.
  for (const dump of dumps) {
    const uids = new Map<string, string>();
    for (const { rv, resource, ns, name, object } of dump.rows) {
      const key = keyOf(resource, ns, name);
      const uid = object?.uid ?? uids.get(key) ?? byRevision.get(rv)?.uid ?? '';
      add({ rv, resource, ns, name, deleted: object === undefined, uid, sight: object }, 'the disk');
      if (object) uids.set(key, object.uid);
    }
  }

  const entries = [...byRevision.values()].sort((a, b) => a.rv - b.rv);
  const timelines = new Map<string, Entry[]>();
  const deletions = new Map<string, Entry>();
  for (const entry of entries) {
    const key = keyOf(entry.resource, entry.ns, entry.name);
    const timeline = timelines.get(key);
    if (timeline) timeline.push(entry);
    else timelines.set(key, [entry]);
    if (!entry.deleted) continue;
    const before = deletions.get(entry.uid);
    if (before && before.rv !== entry.rv)
      tell({ rule: 'W4', message: `${describeEntry(entry)} was deleted before, at ${before.rv}` });
    deletions.set(entry.uid, entry);
  }
  const of: RevisionLog['of'] = (resource, ns, name) => timelines.get(keyOf(resource, ns, name)) ?? [];
  return {
    byRevision,
    entries,
    deletions,
    of,
    at(resource, ns, name, rv) {
      const timeline = of(resource, ns, name);
      return timeline[firstIndex(timeline, (entry) => entry.rv > rv) - 1];
    },
  };
}

/** An entry in words. */
export const describeEntry = ({ resource, ns, name, uid, rv, deleted }: Entry): string =>
  `${resource} ${ns}/${name} (${uid.slice(0, 8)})${deleted ? ' deleted' : ''} at ${rv}`;

/** The revision an answered write took; undefined when it took none, or when nobody saw it. */
export function revisionOf(operation: Operation, log: RevisionLog): number | undefined {
  if (operation.out !== 'ok' || operation.dryRun || operation.noop) return undefined;
  if (operation.verb === 'delete') return log.deletions.get(operation.uid ?? '')?.rv;
  if (operation.verb === 'get' || operation.verb === 'list') return undefined;
  return operation.object?.rv;
}
