/**
 * What an apply no longer mentions. Two repairs follow the blunt removal: what any manager owns comes back, and nothing
 * goes that the manager did not own. Each set of fields is read in the version it was written down in, so the object
 * may have to be shown in several of them (structured-merge-diff, merge/update.go).
 */
import type { JsonObject } from '../meta/own-property.ts';
import { Pace, type Steps } from '../meta/steps.ts';
import type { Schema } from '../schema/schema.ts';
import { EMPTY_SET, type FieldSet, isEmptySet } from './field-set.ts';
import type { Manager, Managers } from './managers.ts';
import type { Versions } from './ownership.ts';
import { differenceSteps, intersectionSteps, removeFieldsSteps, unionSteps, withParentsSteps } from './set-steps.ts';
import { toFieldSetSteps } from './to-field-set.ts';
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
export function* pruneSteps(merged: JsonObject, pruning: Pruning): Steps<JsonObject> {
  const { managers, last } = pruning;
  if (last === undefined || isEmptySet(last.set)) return merged;
  const pace = new Pace();
  const look = looksOf(merged, pruning);
  const lastLook = look.of(last.apiVersion);
  const whole = look.at(lastLook, { look: look.request, object: merged });
  const { schema } = lastLook;
  const lastFields = yield* withParentsSteps(schema, last.set, pace);
  const blunt: Shown = { look: lastLook, object: yield* without(schema, whole.object, { fields: lastFields, pace }) };
  const owned = yield* ownedBy(managers, look, pace);
  const repaired = look.at(lastLook, yield* addBackOwned({ whole, pruned: blunt }, { look, owned, pace }));
  const all = yield* fieldsOf(whole, pace);
  const gone = yield* differenceSteps(all, yield* fieldsOf(repaired, pace), pace);
  const fields = yield* intersectionSteps(gone, lastFields, pace);
  const object = yield* without(schema, whole.object, { fields, pace });
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
function* ownedBy(managers: Managers, look: Looks, pace: Pace): Steps<Map<Look, FieldSet>> {
  const owned = new Map<Look, FieldSet>();
  for (const { apiVersion, set } of managers.values()) {
    const where = look.of(apiVersion);
    owned.set(where, yield* unionSteps(owned.get(where) ?? EMPTY_SET, set, pace));
  }
  return owned;
}

/** The pruned object with everything in it again that is owned by anybody, in the look that was repaired last. */
function* addBackOwned(
  { whole, pruned }: { readonly whole: Shown; readonly pruned: Shown },
  { look, owned, pace }: { readonly look: Looks; readonly owned: ReadonlyMap<Look, FieldSet>; readonly pace: Pace },
): Steps<Shown> {
  // The look it was pruned in first: the removal may have taken what a conversion needs.
  const others = [...owned.keys()].filter((other) => other !== pruned.look);
  let [full, left] = [whole, pruned];
  for (const where of [pruned.look, ...others]) {
    const fields = owned.get(where);
    if (fields === undefined) continue;
    [full, left] = [look.at(where, full), look.at(where, left)];
    const { schema } = where;
    const kept = yield* unionSteps(yield* fieldsOf(left, pace), yield* withParentsSteps(schema, fields, pace), pace);
    const gone = yield* differenceSteps(yield* fieldsOf(full, pace), kept, pace);
    left = { look: where, object: yield* without(schema, full.object, { fields: gone, pace }) };
  }
  return left;
}

function* fieldsOf({ look: { schema }, object }: Shown, pace: Pace): Steps<FieldSet> {
  return yield* withParentsSteps(schema, yield* toFieldSetSteps(schema, object), pace);
}

function* without(
  schema: Schema,
  object: JsonObject,
  removal: { readonly fields: FieldSet; readonly pace: Pace },
): Steps<JsonObject> {
  return ((yield* removeFieldsSteps(schema, object, removal)) ?? {}) as JsonObject;
}
