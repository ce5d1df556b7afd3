import { deepEqual } from '../meta/deep-equal.ts';
import type { DeepReadonly, ManagedFieldsEntry, UnstructuredObject } from '../meta/object.ts';
import type { JsonObject } from '../meta/own-property.ts';
import { createdFields } from './created-fields.ts';
import { equalSets, type FieldSet, isEmptySet, union } from './field-set.ts';
import { capUpdaters, identityOf, type Manager, type Managers, readManagers, writeManagers } from './managers.ts';
import {
  currentManagers,
  ignoredFields,
  loseChangedFields,
  type OwnershipChange,
  stripIdentity,
  type WriteOptions,
  withoutManagedFields,
} from './ownership.ts';
import { rootSchema } from './topology.ts';
import { mayBeUntypable, typingErrors } from './typing-errors.ts';

export interface TrackUpdateOptions extends WriteOptions {
  /** The object about to be stored. Its managedFields are what the client sent. */
  readonly updated: DeepReadonly<UnstructuredObject>;
  /** Set for an object that may not fit its kind: what it carries of `ignore` nobody validates, and perhaps `live` is old. */
  readonly doubt?: { readonly live: boolean } | undefined;
}

/**
 * The managedFields after a create, update or patch: the manager takes over what it added or changed, everybody else
 * loses what was changed or removed under them. Undefined: the object is not tracked.
 */
export function trackUpdate(options: TrackUpdateOptions): ManagedFieldsEntry[] | undefined {
  const managers = incomingManagers(options);
  // Once tracking was cleared it stays off for updates; the next apply starts it again.
  if (managers.size === 0 && options.live !== undefined) return undefined;
  if (isUntypable(options)) return undefined;
  return writeManagers(capUpdaters(recordUpdate(options, managers)));
}

/** Upstream gives up the record of who made an object rather than the object (FieldManager.UpdateNoErrors). */
function isUntypable({ schema, live, updated, ignore, doubt }: TrackUpdateOptions): boolean {
  const kind = rootSchema(schema);
  const misfits = (value: unknown): boolean => typingErrors(kind, value, { allowDuplicates: true }).length > 0;
  if (mayBeUntypable(kind)) return misfits(live) || misfits(updated);
  if (doubt === undefined) return false;
  if (doubt.live && misfits(live)) return true;
  for (const [name = ''] of ignore ?? []) {
    const part = (updated as JsonObject)[name];
    if (name === 'metadata' || typeof part !== 'object' || part === null) continue;
    const isSame = deepEqual(part, (live as JsonObject | undefined)?.[name]);
    if (!isSame && misfits({ [name]: part })) return true;
  }
  return false;
}

type Written = readonly ManagedFieldsEntry[] | undefined | null;
const fieldsOf = (object: DeepReadonly<UnstructuredObject> | undefined): Written =>
  object?.metadata?.managedFields as Written;

/** What the client sent counts when it can be read; `[]` and `[{}]` mean "forget everything". */
function incomingManagers({ live, updated, subresource }: TrackUpdateOptions): Managers {
  const stored = (): Managers => readManagers(fieldsOf(live) ?? undefined) ?? new Map<string, Manager>();
  const sent = fieldsOf(updated);
  if (subresource || sent === undefined || sent === null) return stored();
  if (forgetsAll(sent)) return new Map();
  const read = readManagers(sent);
  return read === undefined || read.size === 0 ? stored() : read;
}

const forgetsAll = (sent: readonly ManagedFieldsEntry[]): boolean =>
  sent.length === 0 || (sent.length === 1 && Object.keys(sent[0]!).length === 0);

/** The same on a table of managers; apply uses it for objects that were never tracked. */
export function recordUpdate(options: TrackUpdateOptions, managers: Managers): Map<string, Manager> {
  const schema = rootSchema(options.schema);
  const updated = withoutManagedFields(options.updated as JsonObject);
  if (options.live === undefined && managers.size === 0) {
    return firstManager(options, createdFields(schema, updated, options.ignore));
  }
  const { apiVersion, versions } = options;
  const states = { before: withoutManagedFields(options.live as JsonObject | undefined), after: updated };
  const current = currentManagers(managers, schema, options.isServed, versions);
  // The manager's own earlier entry loses changed fields like everybody's and gets them back afterwards: that way its time
  // moves exactly when this write changed something.
  const loss = { self: undefined, ignored: ignoredFields(options.ignore), apiVersion, versions };
  return takeOver(options, current, loseChangedFields(schema, states, current, loss));
}

const identityIn = ({ manager, apiVersion, subresource }: TrackUpdateOptions) =>
  ({ manager, operation: 'Update', apiVersion, subresource: subresource ?? '' }) as const;

function firstManager(options: TrackUpdateOptions, set: FieldSet): Map<string, Manager> {
  if (isEmptySet(set)) return new Map();
  const identity = identityIn(options);
  return new Map([[identityOf(identity), { ...identity, time: options.now, set }]]);
}

function takeOver(options: TrackUpdateOptions, current: Managers, change: OwnershipChange): Map<string, Manager> {
  const identity = identityIn(options);
  const key = identityOf(identity);
  const { added, modified } = change.comparison;
  const won = stripIdentity(union(modified, added));
  const out = change.managers;
  if (isEmptySet(won)) return out;
  const rest = out.get(key);
  const set = rest === undefined ? won : union(rest.set, won);
  // Mostly a manager writes the fields it has: the very same set then needs no spelling out.
  const own = current.get(key);
  // Upstream takes the times of scale's entries from the object as it was (managedfields/scalehandler.go).
  const time = options.subresource === 'scale' ? own?.time : options.now;
  out.set(key, { ...identity, time, set: own !== undefined && equalSets(own.set, set) ? own.set : set });
  return out;
}
