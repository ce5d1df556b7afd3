/**
 * What an apply no longer mentions. Two repairs follow the blunt removal: what any manager owns comes back, and nothing
 * goes that the manager did not own. Each set of fields is read in the version it was written down in, so the object
 * may have to be shown in several of them (structured-merge-diff, merge/update.go).
 */
import type { JsonObject } from '../meta/own-property.ts';
import type { Schema } from '../schema/schema.ts';
import { difference, EMPTY_SET, type FieldSet, intersection, isEmptySet, union } from './field-set.ts';
import type { Manager, Managers } from './managers.ts';
import type { Versions } from './ownership.ts';
import { removeFields, withParents } from './remove.ts';
import { toFieldSet } from './to-field-set.ts';
import { rootSchema } from './topology.ts';

export interface Pruning {
  /** Everybody, the applying manager with what it applies now. */
  readonly managers: Managers;
  /** The applying manager as it was before; undefined when it comes to own something for the first time. */
  readonly last: Manager | undefined;
  /** Of the request's version, as `rootSchema` gives it. */
  readonly schema: Schema;
  readonly apiVersion: string;
  readonly versions: Versions | undefined;
}

/** The merged object without what its manager applied last time and does not mention now; itself when that is nothing. */
export function pruneObject(merged: JsonObject, pruning: Pruning): JsonObject {
  const { managers, last } = pruning;
  if (last === undefined || isEmptySet(last.set)) return merged;
  const look = looksOf(merged, pruning);
  const lastLook = look.of(last.apiVersion);
  const whole = look.at(lastLook, { look: look.request, object: merged });
  const { schema } = lastLook;
  const lastFields = withParents(schema, last.set);
  const blunt: Shown = { look: lastLook, object: without(schema, whole.object, lastFields) };
  const owned = ownedBy(managers, look);
  const repaired = look.at(lastLook, addBackOwned({ whole, pruned: blunt }, look, owned));
  const all = fieldsOf(whole);
  const gone = difference(all, fieldsOf(repaired));
  const fields = intersection(gone, lastFields);
  const object = without(schema, whole.object, fields);
  return look.at(look.request, { look: lastLook, object }).object;
}

/** One way objects are shown; versions that show them alike share it. */
interface Look {
  readonly apiVersion: string;
  readonly schema: Schema;
}

interface Shown {
  readonly look: Look;
  readonly object: JsonObject;
}

interface Looks {
  readonly request: Look;
  of(apiVersion: string): Look;
  at(look: Look, shown: Shown): Shown;
}

function looksOf(merged: JsonObject, { schema, apiVersion, versions }: Pruning): Looks {
  const request: Look = { apiVersion, schema };
  const others = new Map<string, Look>();
  return {
    request,
    of(version) {
      const other = version === apiVersion ? undefined : versions?.schemaOf(version);
      if (other === undefined) return request;
      const known = others.get(version);
      if (known !== undefined) return known;
      const look: Look = { apiVersion: version, schema: rootSchema(other) };
      others.set(version, look);
      return look;
    },
    at(look, shown) {
      if (look === shown.look) return shown;
      const from = shown.look.apiVersion;
      const [object] = versions!.convert([withIdentity(shown.object, merged, from)], { from, to: look.apiVersion });
      return { look, object: object! };
    },
  };
}

/** Whoever converts must know what; a removal may have taken all metadata. */
function withIdentity(object: JsonObject, { kind, metadata: whole }: JsonObject, apiVersion: string): JsonObject {
  const { name, namespace, uid } = whole as JsonObject;
  const metadata = { name, ...(namespace !== undefined && { namespace }), ...(uid !== undefined && { uid }) };
  return { ...object, apiVersion, kind, metadata: { ...metadata, ...(object['metadata'] as JsonObject | undefined) } };
}

/** What is owned, by the look in which it was written down. */
function ownedBy(managers: Managers, look: Looks): Map<Look, FieldSet> {
  const owned = new Map<Look, FieldSet>();
  for (const { apiVersion, set } of managers.values()) {
    const where = look.of(apiVersion);
    owned.set(where, union(owned.get(where) ?? EMPTY_SET, set));
  }
  return owned;
}

/** The pruned object with everything in it again that is owned by anybody, in the look that was repaired last. */
function addBackOwned(
  { whole, pruned }: { readonly whole: Shown; readonly pruned: Shown },
  look: Looks,
  owned: ReadonlyMap<Look, FieldSet>,
): Shown {
  // The look it was pruned in first: the removal may have taken what a conversion needs.
  const others = [...owned.keys()].filter((other) => other !== pruned.look);
  let [full, left] = [whole, pruned];
  for (const where of [pruned.look, ...others]) {
    const fields = owned.get(where);
    if (fields === undefined) continue;
    [full, left] = [look.at(where, full), look.at(where, left)];
    const { schema } = where;
    const kept = union(fieldsOf(left), withParents(schema, fields));
    const gone = difference(fieldsOf(full), kept);
    left = { look: where, object: without(schema, full.object, gone) };
  }
  return left;
}

function fieldsOf({ look: { schema }, object }: Shown): FieldSet {
  return withParents(schema, toFieldSet(schema, object));
}

function without(schema: Schema, object: JsonObject, fields: FieldSet): JsonObject {
  return (removeFields(schema, object, fields) ?? {}) as JsonObject;
}
