/** metadata.managedFields as a table of managers, and back. */
import type { ManagedFieldsEntry } from '../meta/object.ts';
import { EMPTY_SET, type FieldSet, isEmptySet, union } from './field-set.ts';
import { readFields, writeFields } from './stored-fields.ts';

export interface Manager {
  readonly manager: string;
  readonly operation: 'Apply' | 'Update';
  readonly apiVersion: string;
  readonly subresource: string;
  readonly time: string | undefined;
  readonly set: FieldSet;
}

/** By identity: manager, operation and subresource; for updates the apiVersion as well. */
export type Managers = ReadonlyMap<string, Manager>;

type ManagerIdentity = Pick<Manager, 'manager' | 'operation' | 'apiVersion' | 'subresource'>;

/** The key of a manager in the table. */
export const identityOf = (m: ManagerIdentity): string =>
  JSON.stringify([m.manager, m.operation, m.operation === 'Apply' ? '' : m.apiVersion, m.subresource]);

/** Reads managedFields; undefined when an entry is malformed (the whole list then counts as lost). */
export function readManagers(entries: readonly ManagedFieldsEntry[] | undefined): Managers | undefined {
  const out = new Map<string, Manager>();
  for (const entry of entries ?? []) {
    if (!isReadable(entry)) return undefined;
    const set = entry.fieldsV1 === undefined ? EMPTY_SET : readFields(entry.fieldsV1);
    if (set === undefined) return undefined;
    const manager: Manager = {
      manager: entry.manager ?? '',
      operation: entry.operation as Manager['operation'],
      apiVersion: entry.apiVersion as string,
      subresource: entry.subresource ?? '',
      time: entry.time,
      set,
    };
    out.set(identityOf(manager), manager);
  }
  return out;
}

const isReadable = ({ operation, apiVersion, fieldsType }: ManagedFieldsEntry): boolean =>
  (operation === 'Apply' || operation === 'Update') && Boolean(apiVersion) && fieldsType === 'FieldsV1';

/** Writes the table: applies before updates, then by time, manager, apiVersion and subresource; undefined when empty. */
export function writeManagers(managers: Managers): ManagedFieldsEntry[] | undefined {
  const list = [...managers.values()].filter((m) => !isEmptySet(m.set)).sort(compareManagers);
  return list.length === 0 ? undefined : list.map(entryOf);
}

const entryOf = ({ manager, operation, apiVersion, time, subresource, set }: Manager): ManagedFieldsEntry => ({
  ...(manager !== '' && { manager }),
  operation,
  apiVersion,
  ...(time !== undefined && { time }),
  fieldsType: 'FieldsV1',
  fieldsV1: writeFields(set),
  ...(subresource !== '' && { subresource }),
});

const compareText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

function compareManagers(a: Manager, b: Manager): number {
  return (
    compareText(a.operation, b.operation) ||
    compareText(a.time ?? '', b.time ?? '') ||
    compareText(a.manager, b.manager) ||
    compareText(a.apiVersion, b.apiVersion) ||
    compareText(a.subresource, b.subresource)
  );
}

/** Entries of updates kept before the oldest are merged. */
const MAX_UPDATERS = 10;
const BUCKET = 'ancient-changes';

/** Merges the oldest update entries of each apiVersion into one bucket until at most ten are left. */
export function capUpdaters(managers: Managers): Managers {
  if (managers.size <= MAX_UPDATERS) return managers;
  const updaters = [...managers.entries()].filter(([, m]) => m.operation === 'Update');
  if (updaters.length <= MAX_UPDATERS) return managers;
  updaters.sort(([i, a], [j, b]) => compareText(a.time ?? '', b.time ?? '') || compareText(i, j));
  const out = new Map(managers);
  const first = new Map<string, string>();
  let count = updaters.length;
  for (const [identity, manager] of updaters) {
    if (count <= MAX_UPDATERS) break;
    const { apiVersion } = manager;
    const opener = first.get(apiVersion);
    if (opener === undefined) {
      first.set(apiVersion, identity);
      continue;
    }
    const bucket: ManagerIdentity = { manager: BUCKET, operation: 'Update', apiVersion, subresource: '' };
    const bucketId = identityOf(bucket);
    if (!out.has(bucketId)) {
      const set = out.get(opener)!.set;
      out.delete(opener);
      out.set(bucketId, { ...bucket, time: undefined, set });
    }
    out.set(bucketId, { ...bucket, time: manager.time, set: union(out.get(bucketId)!.set, manager.set) });
    if (identity !== bucketId) out.delete(identity);
    count--;
  }
  return out;
}
