/** What a change of the object does to everybody's ownership. */
import type { JsonObject } from '../meta/own-property.ts';
import type { Schema } from '../schema/schema.ts';
import { type Comparison, compareObjects } from './compare.ts';
import { type ApplyConflict, conflictsOf } from './conflict.ts';
import {
  difference,
  type FieldSet,
  insertPath,
  intersection,
  isEmptySet,
  newSet,
  recursiveDifference,
  union,
} from './field-set.ts';
import type { Manager, Managers } from './managers.ts';
import { liftToAtomic } from './remove.ts';

/** Fields that nobody ever owns: who the object is, and what only the server sets. */
const STRIPPED: FieldSet = (() => {
  const set = newSet();
  for (const key of ['apiVersion', 'kind', 'metadata']) insertPath(set, [`f:${key}`]);
  for (const key of [
    'name',
    'namespace',
    'creationTimestamp',
    'selfLink',
    'uid',
    'clusterName',
    'generation',
    'managedFields',
    'resourceVersion',
  ]) {
    insertPath(set, ['f:metadata', `f:${key}`]);
  }
  return set;
})();

export const stripIdentity = (set: FieldSet): FieldSet => difference(set, STRIPPED);

/** Sets of paths of member names, for fields that this endpoint ignores: `[['status']]`. */
export function ignoredFields(paths: readonly (readonly string[])[] | undefined): FieldSet | undefined {
  if (!paths || paths.length === 0) return undefined;
  const set = newSet();
  for (const path of paths)
    insertPath(
      set,
      path.map((name) => `f:${name}`),
    );
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

/** The managers whose API version is still served, with sets that fit today's schema. */
export function currentManagers(
  managers: Managers,
  schema: Schema,
  isServed: ((apiVersion: string) => boolean) | undefined,
): Map<string, Manager> {
  const out = new Map<string, Manager>();
  for (const [identity, manager] of managers) {
    if (isServed && !isServed(manager.apiVersion)) continue;
    const set = liftToAtomic(schema, manager.set);
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

/** Compares two states of the object and takes changed and removed fields from all managers but `self`. */
export function loseChangedFields(
  schema: Schema,
  states: { readonly before: JsonObject; readonly after: JsonObject },
  managers: Managers,
  options: { readonly self: string | undefined; readonly ignored: FieldSet | undefined },
): OwnershipChange {
  const comparison = filter(compareObjects(schema, states.before, states.after), options.ignored);
  const changed = union(comparison.modified, comparison.added);
  const conflicts: ApplyConflict[] = [];
  const out = new Map<string, Manager>();
  for (const [identity, manager] of managers) {
    if (identity === options.self) {
      out.set(identity, manager);
      continue;
    }
    const touched = intersection(manager.set, changed);
    const isTouched = !isEmptySet(touched);
    if (isTouched) conflicts.push(...conflictsOf(manager, touched));
    if (!isTouched && isEmptySet(intersection(manager.set, comparison.removed))) {
      out.set(identity, manager);
      continue;
    }
    const set = difference(difference(manager.set, touched), comparison.removed);
    if (!isEmptySet(set)) out.set(identity, { ...manager, set });
  }
  return { comparison, conflicts, managers: out };
}

function filter(comparison: Comparison, ignored: FieldSet | undefined): Comparison {
  if (ignored === undefined) return comparison;
  return {
    added: recursiveDifference(comparison.added, ignored),
    modified: recursiveDifference(comparison.modified, ignored),
    removed: recursiveDifference(comparison.removed, ignored),
  };
}
