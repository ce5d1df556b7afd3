/**
 * Strategic merge patch: a merge patch that knows from the type which lists are merged by key and which are replaced,
 * plus the directives kubectl and helm send ($patch, $retainKeys, $setElementOrder, $deleteFromPrimitiveList). Codes and
 * texts of refusals are those of apimachinery's strategicpatch as apiserver's PATCH tells them.
 *
 * The order of a merged list is not "old ones first": it follows the order list (or the patch) and interleaves items
 * that only the server has by their old neighbours (see element-order.ts).
 */
import { cloneJson } from '../meta/deep-clone.ts';
import { jsonKind } from '../meta/go-text.ts';
import { getOwn, isJsonObject, type JsonObject, setOwn } from '../meta/own-property.ts';
import { ApiError, badRequest } from '../meta/status.ts';
import type { Schema } from '../schema/schema.ts';
import { identityText, orderElements } from './element-order.ts';
import { type ListMeta, listMeta, structMeta } from './patch-meta.ts';

const DIRECTIVE = '$patch';
const RETAIN_KEYS = '$retainKeys';
const SET_ORDER = '$setElementOrder/';
const DELETE_FROM = '$deleteFromPrimitiveList/';

/**
 * Applies a patch and returns the new document; neither argument is changed nor shared. What a directive could not be
 * read as stays in it, as an unknown field.
 * @throws ApiError 400 for malformed directives, 422 for lists of lists, 500 for what contradicts the type
 */
export function applyStrategicMergePatch(schema: Schema, document: unknown, patch: unknown): unknown {
  if (!isJsonObject(patch)) throw badRequest('strategic merge patch: the body must be an object');
  const original = isJsonObject(document) ? (cloneJson(document) as JsonObject) : {};
  return mergeObject(schema, original, cloneJson(patch) as JsonObject);
}

/** Upstream's errors without a code of their own are 500 without a reason. */
const refused = (message: string): ApiError => new ApiError({ code: 500, message });

const badType = (expected: 'object' | 'array', actual: unknown): ApiError =>
  refused(`expected ${expected}, but received ${actual === null ? 'null' : jsonKind(actual)}`);
const unknownDirective = (directive: unknown): ApiError => refused(`unknown patch type: ${JSON.stringify(directive)}`);
const withoutMergeKey = (map: unknown, key: string): ApiError =>
  refused(`map: ${JSON.stringify(map)} does not contain declared merge key: ${key}`);
const REJECTED = 'the server rejected our request due to an error in our request';
const listOfLists = (): ApiError => new ApiError({ code: 422, reason: 'Invalid', message: REJECTED, details: {} });
/** Upstream does not survive these: it panics over a null in a list, or over a map where a key should be. */
const unreadable = (why: string): ApiError => badRequest(`strategic merge patch: ${why}`);

/** Merges into `original`; both belong to us already. */
function mergeObject(schema: Schema | undefined, original: JsonObject, patch: JsonObject): JsonObject {
  if (Object.hasOwn(patch, DIRECTIVE)) {
    const { [DIRECTIVE]: directive, ...rest } = patch;
    if (directive === 'replace') return rest;
    if (directive === 'delete') return {};
    throw unknownDirective(directive);
  }
  retainKeys(original, patch);
  for (const key of Object.keys(patch)) if (key.startsWith(SET_ORDER)) mergeOrdered(schema, original, patch, key);
  for (const key of Object.keys(patch)) {
    const deletes = key.startsWith(DELETE_FROM);
    const name = deletes ? key.slice(DELETE_FROM.length) : key;
    mergeMember(schema, original, name, { patched: patch[key], deletes });
  }
  return original;
}

function mergeMember(
  schema: Schema | undefined,
  original: JsonObject,
  key: string,
  { patched, deletes }: { readonly patched: unknown; readonly deletes: boolean },
): void {
  if (patched === null) {
    delete original[key];
    return;
  }
  const current = getOwn(original, key);
  if (isJsonObject(current) && isJsonObject(patched)) {
    const { member, strategy } = structMeta(schema, key);
    setOwn(original, key, strategy === 'replace' ? patched : mergeObject(member, current, patched));
  } else if (Array.isArray(current) && Array.isArray(patched)) {
    setOwn(original, key, mergeLists(listMeta(schema, key), [current, patched], deletes));
  } else if (!deletes || isOfKind(current, patched)) {
    if (!isOfKind(current, patched)) dropNulls(patched);
    const value = withoutDirectives(patched);
    if (value === undefined) delete original[key];
    else setOwn(original, key, value);
  }
}

const isOfKind = (current: unknown, patched: unknown): boolean =>
  current !== null && jsonKind(current) === jsonKind(patched);

/** `$retainKeys`: members of the live object that it does not list go; the patch must not set any other. */
function retainKeys(original: JsonObject, patch: JsonObject): void {
  if (!Object.hasOwn(patch, RETAIN_KEYS)) return;
  const listed = patch[RETAIN_KEYS];
  delete patch[RETAIN_KEYS];
  if (!Array.isArray(listed)) throw badRequest('invalid patch format of retainKeys');
  const retained = new Set<unknown>(listed);
  for (const key of Object.keys(patch)) {
    if (patch[key] === null || key.startsWith(SET_ORDER) || key.startsWith(DELETE_FROM)) continue;
    if (!retained.has(key)) throw badRequest('invalid patch format of retainKeys');
  }
  for (const key of Object.keys(original)) if (!retained.has(key)) delete original[key];
}

/** A list together with its `$setElementOrder`; both are taken out of the patch. */
function mergeOrdered(schema: Schema | undefined, original: JsonObject, patch: JsonObject, directive: string): void {
  const key = directive.slice(SET_ORDER.length);
  const order = patch[directive];
  delete patch[directive];
  if (!Array.isArray(order)) throw badType('array', order);
  const current = listIn(original, key);
  const patched = listIn(patch, key);
  const meta = listMeta(schema, key);
  const { mergeKey } = meta;
  checkOrder(patched ?? [], order, mergeKey);
  if (current === undefined && patched === undefined) return;
  const merged =
    patched === undefined
      ? current!
      : current === undefined
        ? (withoutDirectives(patched) as unknown[])
        : mergeLists(meta, [current, patched], false);
  if (mergeKey !== '') for (const item of merged) keyOf(item, mergeKey);
  if (elementType([current ?? [], patched ?? []]) === 'object') {
    for (const item of [...order, ...(current ?? [])]) {
      if (!isJsonObject(item)) throw badType('object', item);
      keyOf(item, mergeKey);
    }
  }
  setOwn(original, key, orderElements(merged, { wanted: order, before: current ?? [], mergeKey }));
  delete patch[key];
}

function listIn(object: JsonObject, key: string): unknown[] | undefined {
  if (!Object.hasOwn(object, key)) return undefined;
  const value = object[key];
  if (!Array.isArray(value)) throw badType('array', value);
  return value;
}

/** The merge key of an item that must have one. */
function keyOf(item: unknown, mergeKey: string): unknown {
  if (!isJsonObject(item)) throw badType('object', item);
  const value = getOwn(item, mergeKey);
  if (value === undefined) throw withoutMergeKey(item, mergeKey);
  return value;
}

/** Items of the patch must stand in the order list, in the same relative order. */
function checkOrder(patched: readonly unknown[], order: readonly unknown[], mergeKey: string): void {
  if (order.length === 0 || patched.length === 0) return;
  const identity = (item: unknown): string => {
    if (mergeKey !== '') return identityText(keyOf(item, mergeKey));
    if (isJsonObject(item)) throw unreadable('maps without a merge key cannot be put into an order');
    return identityText(item);
  };
  if (mergeKey !== '') for (const item of patched) if (!isJsonObject(item)) throw badType('object', item);
  const kept = mergeKey === '' ? patched : patched.filter((item) => (item as JsonObject)[DIRECTIVE] !== 'delete');
  let [at, place] = [0, 0];
  while (at < kept.length && place < order.length) {
    const item = kept[at];
    if (isJsonObject(item) && Object.hasOwn(item, DIRECTIVE)) {
      at++;
      continue;
    }
    if (identity(item) === identity(order[place])) at++;
    place++;
  }
  if (at === kept.length || place < order.length) return;
  const wanted = `${SET_ORDER.slice(0, -1)} list ${JSON.stringify(order)}`;
  throw refused(`The order in patch list ${JSON.stringify(patched)} doesn't match ${wanted}`);
}

/** The one type that all elements have. */
function elementType(lists: readonly (readonly unknown[])[]): string {
  let found: string | undefined;
  for (const item of lists.flat()) {
    const type = item === null ? undefined : jsonKind(item);
    if (found === undefined) {
      if (type === undefined) throw unreadable('a list must not hold null');
      if (Array.isArray(item)) throw listOfLists();
      found = type;
    } else if (type !== found) {
      throw refused(`list element types are not identical: ${JSON.stringify(lists)}`);
    }
  }
  if (found === undefined) throw refused('no elements in any of the given slices');
  return found;
}

function mergeLists(meta: ListMeta, [current, patched]: readonly [unknown[], unknown[]], deletes: boolean): unknown[] {
  if (meta.strategy !== 'merge' && !deletes) return patched;
  if (current.length === 0 && patched.length === 0) return current;
  const { mergeKey } = meta;
  if (elementType([current, patched]) !== 'object') {
    const given = new Set(patched);
    if (deletes) return current.filter((item) => !given.has(item));
    const merged = [...new Set([...current, ...patched])];
    if (mergeKey !== '') throw badType('object', merged[0]);
    return orderElements(merged, { wanted: patched, before: current, mergeKey: '' });
  }
  if (mergeKey === '') throw refused(`cannot merge lists without merge key for ${meta.kind}`);
  const { kept, plain } = applyItemDirectives(current as JsonObject[], patched as JsonObject[], mergeKey);
  const merged = [...kept];
  const places = new Map<string, number>();
  for (const [at, item] of merged.entries()) keepFirst(places, identityText(item[mergeKey]), at);
  for (const item of plain) {
    const key = identityText(keyOf(item, mergeKey));
    const at = places.get(key);
    if (at === undefined) {
      keepFirst(places, key, merged.length);
      merged.push(item);
    } else {
      merged[at] = mergeObject(meta.items, merged[at]!, item);
    }
  }
  for (const item of [...merged, ...kept]) keyOf(item, mergeKey);
  return orderElements(merged, { wanted: plain, before: kept, mergeKey });
}

function keepFirst(places: Map<string, number>, key: string, at: number): void {
  if (!places.has(key)) places.set(key, at);
}

/** `{$patch: delete, key: v}` removes items, a `{$patch: replace}` makes the rest of the patch the whole list. */
function applyItemDirectives(
  current: JsonObject[],
  patched: readonly JsonObject[],
  mergeKey: string,
): { kept: JsonObject[]; plain: JsonObject[] } {
  const removed = new Set<string>();
  let isReplaced = false;
  const plain: JsonObject[] = [];
  for (const item of patched) {
    const directive = getOwn(item, DIRECTIVE);
    if (directive === undefined) plain.push(item);
    else if (directive === 'delete') removed.add(identityText(keyOf(item, mergeKey)));
    else if (directive === 'replace') isReplaced = true;
    else if (directive === 'merge') throw refused('merging lists cannot yet be specified in the patch');
    else throw unknownDirective(directive);
  }
  // What replaces is the list from now on: nothing is left that its items could be merged into.
  if (isReplaced) return { kept: plain, plain: [] };
  const kept = removed.size === 0 ? current : current.filter((item) => !removed.has(identityText(item[mergeKey])));
  return { kept, plain };
}

/** Takes the nulls out of maps, in place. */
function dropNulls(value: unknown): void {
  if (typeof value !== 'object' || value === null) return;
  if (Array.isArray(value)) {
    for (const item of value) dropNulls(item);
    return;
  }
  const object = value as JsonObject;
  for (const key of Object.keys(object)) {
    if (object[key] === null) delete object[key];
    else dropNulls(object[key]);
  }
}

/** The patch as a value: where there is nothing to merge with, maps that bring a directive have no place. */
function withoutDirectives(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) {
    const kept: unknown[] = [];
    for (const item of value) {
      const rest = withoutDirectives(item);
      if (rest !== undefined) kept.push(rest);
    }
    return kept;
  }
  if (Object.hasOwn(value, DIRECTIVE)) return undefined;
  const object = value as JsonObject;
  for (const key of Object.keys(object)) {
    const member = withoutDirectives(object[key]);
    if (member === undefined) delete object[key];
    else setOwn(object, key, member);
  }
  return object;
}
