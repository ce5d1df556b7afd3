/**
 * Which fields of an object are declared: annotation `configsync.gke.io/declared-fields`, in the form of FieldsV1. It is taken
 * from what the server itself says that our apply owns, so that items of lists have the names that the server gives them.
 *
 * Whether a write touches them is decided without a schema: each declared field is looked up before and after.
 */
import { pathText } from '@coracle/apimachinery/apply/field-set';
import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import type { ReadonlyObject } from '@coracle/apimachinery/meta/object';
import { isJsonObject, type JsonObject } from '@coracle/apimachinery/meta/own-property';
import { FIELD_MANAGER, isGuardedAnnotation, isGuardedLabel } from '../status/metadata-keys.ts';

/** Characters of the annotation; of an object that would need more no fields are guarded. All annotations have 256 KiB. */
const MAX_LENGTH = 96 * 1024;
/** How deep declared fields may lie. */
const MAX_DEPTH = 100;
/** Paths that a refusal names. */
const MAX_NAMED = 20;
const SELF = '.';

/** What the annotation is to be, by the answer to an apply of `declared`; undefined when there is nothing to say. */
export function declaredFieldsOf(stored: ReadonlyObject, declared: ReadonlyObject): string | undefined {
  const own = (stored.metadata.managedFields ?? []).filter(
    ({ manager, operation, subresource }) => manager === FIELD_MANAGER && operation === 'Apply' && !subresource,
  );
  const entry = own.find(({ apiVersion }) => apiVersion === stored.apiVersion) ?? own[0];
  if (!isJsonObject(entry?.fieldsV1)) return undefined;
  const { 'f:metadata': metadata, ...rest } = entry.fieldsV1;
  const users = isJsonObject(metadata) ? withoutGuarded(metadata) : {};
  const fields = withEmpty({ ...(Object.keys(users).length > 0 && { 'f:metadata': users }), ...rest }, declared);
  if (Object.keys(fields).length === 0) return undefined;
  const text = JSON.stringify(fields);
  return text.length <= MAX_LENGTH ? text : undefined;
}

/** Labels and annotations of management are guarded by themselves. */
function withoutGuarded(metadata: JsonObject): JsonObject {
  const kept: JsonObject = {};
  for (const [name, fields] of Object.entries(metadata)) {
    const isGuarded = name === 'f:annotations' ? isGuardedAnnotation : name === 'f:labels' ? isGuardedLabel : undefined;
    if (!isGuarded || !isJsonObject(fields)) kept[name] = fields;
    else {
      const users = Object.entries(fields).filter(([key]) => key !== SELF && !isGuarded(key.slice(2)));
      if (users.length > 0) kept[name] = Object.fromEntries(users);
    }
  }
  return kept;
}

/**
 * An empty map or list that is declared holds nothing that is: what others put into it is theirs. FieldsV1 has one spelling for
 * that and for a map that is declared as a whole; here `.` alone stands for the first.
 */
function withEmpty(fields: JsonObject, value: unknown, depth = 0): JsonObject {
  if (depth > MAX_DEPTH) return fields;
  return Object.fromEntries(
    Object.entries(fields).map(([element, child]) => {
      if (element === SELF || !isJsonObject(child)) return [element, child];
      const part = partOf(value, element);
      if (Object.keys(child).length > 0) return [element, withEmpty(child, part, depth + 1)];
      const isEmpty = typeof part === 'object' && part !== null && Object.keys(part).length === 0;
      return [element, isEmpty ? { [SELF]: {} } : child];
    }),
  );
}

/**
 * Paths of declared fields that differ between two states of an object, `annotation` saying which are declared; at most
 * twenty. None for an annotation that cannot be read.
 */
export function changedFields(annotation: string, before: ReadonlyObject, after: ReadonlyObject): string[] {
  const changed: string[] = [];
  const look = (fields: JsonObject, [old, now]: readonly [unknown, unknown], path: readonly string[]): void => {
    if (old === now || path.length > MAX_DEPTH) return;
    for (const [element, child] of Object.entries(fields)) {
      if (changed.length >= MAX_NAMED) return;
      if (element === SELF || !isJsonObject(child)) continue;
      const at = [...path, element];
      const parts = [partOf(old, element), partOf(now, element)] as const;
      const isWhole = Object.keys(child).length === 0;
      if (isWhole && !deepEqual(...parts)) changed.push(pathText(at));
      else if (Object.hasOwn(child, SELF) && (parts[0] === undefined) !== (parts[1] === undefined))
        changed.push(pathText(at));
      else if (!isWhole) look(child, parts, at);
    }
  };
  try {
    const fields: unknown = JSON.parse(annotation);
    if (isJsonObject(fields)) look(fields, [before, after], []);
  } catch {
    return [];
  }
  return changed;
}

/** One step into a value, by an element of FieldsV1; undefined where there is none. */
function partOf(value: unknown, element: string): unknown {
  const name = element.slice(2);
  if (element.startsWith('f:')) return isJsonObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
  if (!Array.isArray(value)) return undefined;
  if (element.startsWith('i:')) return value[Number(name)];
  const wanted: unknown = JSON.parse(name);
  if (element.startsWith('v:')) return value.find((item) => deepEqual(item, wanted));
  if (!isJsonObject(wanted)) return undefined;
  const keys = Object.entries(wanted);
  return value.find((item) => isJsonObject(item) && keys.every(([key, one]) => deepEqual(item[key], one)));
}
