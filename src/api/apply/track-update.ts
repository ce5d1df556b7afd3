import type { DeepReadonly, ManagedFieldsEntry, UnstructuredObject } from '../meta/object.ts';
import type { JsonObject } from '../meta/own-property.ts';
import type { Schema } from '../schema/schema.ts';
import { difference, isEmptySet, union } from './field-set.ts';
import { capUpdaters, identityOf, type Manager, type Managers, readManagers, writeManagers } from './managers.ts';
import { currentManagers, ignoredFields, loseChangedFields, stripIdentity, withoutManagedFields } from './ownership.ts';
import { rootSchema } from './topology.ts';

export interface TrackUpdateOptions {
  readonly schema: Schema;
  /** The stored object; undefined when this write creates it. */
  readonly live: DeepReadonly<UnstructuredObject> | undefined;
  /** The object about to be stored. Its managedFields are what the client sent. */
  readonly updated: DeepReadonly<UnstructuredObject>;
  readonly manager: string;
  readonly apiVersion: string;
  readonly subresource?: string | undefined;
  /** RFC 3339, whole seconds. */
  readonly now: string;
  /** Paths of member names that this endpoint does not write, `[['status']]`: nobody comes to own them by it. */
  readonly ignore?: readonly (readonly string[])[];
  /** Entries of other versions are dropped when this says no. */
  readonly isServed?: (apiVersion: string) => boolean;
}

/**
 * The managedFields after a create, update or patch: the manager takes over what it added or changed, everybody else
 * loses what was changed or removed under them. Undefined: the object is not tracked.
 */
export function trackUpdate(options: TrackUpdateOptions): ManagedFieldsEntry[] | undefined {
  const managers = incomingManagers(options);
  // Once tracking was cleared it stays off for updates; the next apply starts it again.
  if (managers.size === 0 && options.live !== undefined) return undefined;
  return writeManagers(capUpdaters(recordUpdate(options, managers)));
}

type Written = readonly ManagedFieldsEntry[] | undefined | null;
const fieldsOf = (object: DeepReadonly<UnstructuredObject> | undefined): Written =>
  object?.metadata?.managedFields as Written;

/** What the client sent counts when it can be read; `[]` and `[{}]` mean "forget everything". */
function incomingManagers({ live, updated, subresource }: TrackUpdateOptions): Managers {
  const stored = (): Managers => readManagers(fieldsOf(live) ?? undefined) ?? new Map<string, Manager>();
  const sent = fieldsOf(updated);
  if (subresource || sent === undefined || sent === null) return stored();
  if (sent.length === 0 || (sent.length === 1 && Object.keys(sent[0]!).length === 0)) return new Map();
  const read = readManagers(sent);
  return read === undefined || read.size === 0 ? stored() : read;
}

/** The same on a table of managers; apply uses it for objects that were never tracked. */
export function recordUpdate(options: TrackUpdateOptions, managers: Managers): Map<string, Manager> {
  const { apiVersion, manager } = options;
  const schema = rootSchema(options.schema);
  const identity = { manager, operation: 'Update', apiVersion, subresource: options.subresource ?? '' } as const;
  const key = identityOf(identity);
  const states = {
    before: withoutManagedFields(options.live as JsonObject | undefined),
    after: withoutManagedFields(options.updated as JsonObject),
  };
  const current = currentManagers(managers, schema, options.isServed);
  const ignored = ignoredFields(options.ignore);
  // The manager's own earlier entry loses changed fields like everybody's and gets them back below: that way its
  // time moves exactly when this write changed something.
  const change = loseChangedFields(schema, states, current, { self: undefined, ignored });
  const { added, modified, removed } = change.comparison;
  const won = stripIdentity(difference(union(modified, added), removed));
  const out = change.managers;
  if (isEmptySet(won)) return out;
  const rest = out.get(key);
  out.set(key, { ...identity, time: options.now, set: rest === undefined ? won : union(rest.set, won) });
  return out;
}
