/** What a change of the object does to everybody's ownership. */
import type { DeepReadonly, UnstructuredObject } from '../meta/object.ts';
import type { JsonObject } from '../meta/own-property.ts';
import type { Schema } from '../schema/schema.ts';
import { type Comparison, compareObjects } from './compare.ts';
import type { ApplyConflict } from './conflict.ts';
import {
  difference,
  type FieldSet,
  insertPath,
  intersection,
  isEmptySet,
  newSet,
  pathsOf,
  recursiveDifference,
  union,
} from './field-set.ts';
import type { Manager, Managers } from './managers.ts';
import { liftToAtomic } from './remove.ts';
import { rootSchema } from './topology.ts';

/** Fields that nobody ever owns: who the object is, and what only the server sets. */
const STRIPPED: FieldSet = (() => {
  const set = newSet();
  for (const key of ['apiVersion', 'kind', 'metadata']) insertPath(set, [`f:${key}`]);
  const ofServer = 'name namespace creationTimestamp selfLink uid clusterName generation managedFields resourceVersion';
  for (const key of ofServer.split(' ')) insertPath(set, ['f:metadata', `f:${key}`]);
  return set;
})();

export const stripIdentity = (set: FieldSet): FieldSet => difference(set, STRIPPED);

/** Sets of paths of member names, for fields that this endpoint ignores: `[['status']]`. */
export function ignoredFields(paths: readonly (readonly string[])[] | undefined): FieldSet | undefined {
  if (!paths || paths.length === 0) return undefined;
  const set = newSet();
  for (const path of paths.map((names) => names.map((name) => `f:${name}`))) insertPath(set, path);
  return set;
}

/** An object as ownership sees it: without managedFields. */
export function withoutManagedFields(object: Readonly<JsonObject> | undefined): JsonObject {
  if (object === undefined) return {};
  const metadata = object['metadata'] as JsonObject | undefined;
  if (metadata === undefined) return object;
  const { managedFields: _, ...rest } = metadata;
  return { ...object, metadata: rest };
}

/** The other versions of a kind: ownership is validated in the version it was written down in. */
export interface Versions {
  /** The schema of a version that shows objects in its own way; undefined: they look as in the request's version. */
  schemaOf(apiVersion: string): Schema | undefined;
  /** Objects of one version as another shows them, in order. Neither version need be the request's. */
  convert(objects: readonly JsonObject[], versions: { readonly from: string; readonly to: string }): JsonObject[];
}

/** What every write brings along. */
export interface WriteOptions {
  readonly schema: Schema;
  /** The stored object; undefined when this write creates it. */
  readonly live: DeepReadonly<UnstructuredObject> | undefined;
  readonly manager: string;
  readonly apiVersion: string;
  readonly subresource?: string | undefined;
  /** RFC 3339, whole seconds. */
  readonly now: string;
  /** Paths of member names that this endpoint does not write, `[['status']]`: nobody comes to own them by it. */
  readonly ignore?: readonly (readonly string[])[];
  /** Entries of other versions are dropped when this says no. */
  readonly isServed?: (apiVersion: string) => boolean;
  /** How other versions show the object; absent: as this one. What its `convert` throws is thrown on. */
  readonly versions?: Versions;
}

/** The managers whose API version is still served, with sets that fit today's schema. */
export function currentManagers(
  managers: Managers,
  schema: Schema,
  isServed: ((apiVersion: string) => boolean) | undefined,
  versions?: Versions,
): Map<string, Manager> {
  const out = new Map<string, Manager>();
  for (const [identity, manager] of managers) {
    if (isServed && !isServed(manager.apiVersion)) continue;
    const other = versions?.schemaOf(manager.apiVersion);
    const set = liftToAtomic(other ? rootSchema(other) : schema, manager.set);
    out.set(identity, set === manager.set ? manager : { ...manager, set });
  }
  return out;
}

export interface OwnershipChange {
  readonly comparison: Comparison;
  readonly conflicts: readonly ApplyConflict[];
  /** Everybody but `self`, without what was changed or removed under them. */
  readonly managers: Map<string, Manager>;
}

interface States {
  readonly before: JsonObject;
  readonly after: JsonObject;
}

interface LossOptions {
  readonly self: string | undefined;
  readonly ignored: FieldSet | undefined;
  /** The version both states are in. */
  readonly apiVersion: string;
  readonly versions?: Versions | undefined;
}

/** Compares two states of the object and takes changed and removed fields from all managers but `self`. */
export function loseChangedFields(
  schema: Schema,
  states: States,
  managers: Managers,
  options: LossOptions,
): OwnershipChange {
  const whole = compareObjects(schema, states.before, states.after);
  const comparison = filter(whole, options.ignored);
  const changed = union(comparison.modified, comparison.added);
  const elsewhere = new Map<string, Comparison>();
  /** What changed, in the version in which a manager wrote its fields down. */
  const inVersionOf = ({ apiVersion }: Manager): Comparison => {
    const known = elsewhere.get(apiVersion);
    if (known) return known;
    const other = options.versions?.schemaOf(apiVersion);
    // What did not change looks unchanged from everywhere: nobody has to convert it.
    if (!other || isNoChange(whole)) return comparison;
    const versions = { from: options.apiVersion, to: apiVersion };
    const [before, after] = options.versions!.convert([states.before, states.after], versions);
    const filtered = filter(compareObjects(rootSchema(other), before, after), options.ignored);
    elsewhere.set(apiVersion, filtered);
    return filtered;
  };
  const conflicts: ApplyConflict[] = [];
  const out = new Map<string, Manager>();
  for (const [identity, manager] of managers) {
    if (identity === options.self) {
      out.set(identity, manager);
      continue;
    }
    const seen = inVersionOf(manager);
    const touched = intersection(manager.set, seen === comparison ? changed : union(seen.modified, seen.added));
    // Only an apply, which knows its own entry, can conflict with others. One by one: of a large object there are more
    // than a call takes arguments.
    if (options.self !== undefined) for (const path of pathsOf(touched)) conflicts.push({ manager, path });
    if (isEmptySet(touched) && isEmptySet(intersection(manager.set, seen.removed))) {
      out.set(identity, manager);
      continue;
    }
    const set = difference(difference(manager.set, touched), seen.removed);
    if (!isEmptySet(set)) out.set(identity, { ...manager, set });
  }
  return { comparison, conflicts, managers: out };
}

const isNoChange = ({ added, modified, removed }: Comparison): boolean =>
  isEmptySet(added) && isEmptySet(modified) && isEmptySet(removed);

function filter(comparison: Comparison, ignored: FieldSet | undefined): Comparison {
  if (ignored === undefined) return comparison;
  return {
    added: recursiveDifference(comparison.added, ignored),
    modified: recursiveDifference(comparison.modified, ignored),
    removed: recursiveDifference(comparison.removed, ignored),
  };
}
