/**
 * Strategic merge patch: a merge patch that knows from the type which lists are merged by key and which are replaced,
 * plus the directives kubectl and helm send ($patch, $retainKeys, $setElementOrder, $deleteFromPrimitiveList).
 *
 * The order of a merged list is not "old ones first": it follows the order list (or the patch) and interleaves items
 * that only the server has by their old neighbours (see element-order.ts).
 */
import { cloneJson } from '../meta/deep-clone.ts';
import { deepEqual } from '../meta/deep-equal.ts';
import { isJsonObject, type JsonObject, setOwn } from '../meta/own-property.ts';
import { ApiError, badRequest } from '../meta/status.ts';
import type { Schema } from '../schema/schema.ts';
import { identityText, orderElements } from './element-order.ts';

const DIRECTIVE = '$patch';
const RETAIN_KEYS = '$retainKeys';
const SET_ORDER = '$setElementOrder/';
const DELETE_FROM = '$deleteFromPrimitiveList/';

/**
 * Applies a patch and returns the new document; neither argument is changed nor shared.
 * @throws ApiError 400 for malformed directives, 422 Invalid for $retainKeys or merge keys that contradict the patch
 */
export function applyStrategicMergePatch(schema: Schema, document: unknown, patch: unknown): unknown {
  if (!isJsonObject(patch)) throw badRequest('strategic merge patch: the body must be an object');
  const original = isJsonObject(document) ? (cloneJson(document) as JsonObject) : {};
  return mergeObject(schema, original, patch);
}

const rejected = (why: string): ApiError =>
  new ApiError({
    code: 422,
    reason: 'Invalid',
    message: `the server rejected our request due to an error in our request: strategic merge patch: ${why}`,
    details: { causes: [{ message: why }] },
  });

/** The schema of one member, undefined for free-form parts: those merge like JSON, their lists are replaced. */
function memberSchema(schema: Schema | undefined, key: string): Schema | undefined {
  if (schema?.properties && Object.hasOwn(schema.properties, key)) return schema.properties[key];
  return typeof schema?.additionalProperties === 'object' ? schema.additionalProperties : undefined;
}

const strategies = (schema: Schema | undefined): readonly string[] =>
  schema?.['x-kubernetes-patch-strategy']?.split(',') ?? [];

/** Merges into `original`, which belongs to us already. */
function mergeObject(schema: Schema | undefined, original: JsonObject, patch: JsonObject): JsonObject {
  if (Object.hasOwn(patch, DIRECTIVE)) {
    switch (patch[DIRECTIVE]) {
      case 'replace':
        return withoutDirectives(patch) as JsonObject;
      case 'delete':
        return {};
      case 'merge':
        break;
      default:
        throw badRequest(`strategic merge patch: unknown patch type ${JSON.stringify(patch[DIRECTIVE])}`);
    }
  }
  retainKeys(original, patch);
  for (const key of Object.keys(patch)) {
    if (key.startsWith(SET_ORDER)) mergeOrdered(schema, original, patch, key);
  }
  for (const key of Object.keys(patch)) {
    if (key === DIRECTIVE || key === RETAIN_KEYS || key.startsWith(SET_ORDER)) continue;
    if (key.startsWith(DELETE_FROM)) deleteFromList(original, key.slice(DELETE_FROM.length), patch[key]);
    else if (!Object.hasOwn(patch, SET_ORDER + key) || patch[key] === null)
      mergeMember(schema, original, key, patch[key]);
  }
  return original;
}

function mergeMember(schema: Schema | undefined, original: JsonObject, key: string, patched: unknown): void {
  if (patched === null) {
    delete original[key];
    return;
  }
  const member = memberSchema(schema, key);
  const current = Object.hasOwn(original, key) ? original[key] : undefined;
  const strategy = strategies(member);
  if (isJsonObject(current) && isJsonObject(patched)) {
    const replaced = strategy.includes('replace');
    setOwn(original, key, replaced ? withoutDirectives(patched) : mergeObject(member, current, patched));
  } else if (Array.isArray(current) && Array.isArray(patched) && strategy.includes('merge')) {
    setOwn(original, key, mergeList(member!, current, patched));
  } else if (isJsonObject(patched) && patched[DIRECTIVE] === 'delete') {
    delete original[key];
  } else {
    setOwn(original, key, withoutDirectives(patched));
  }
}

/** `$retainKeys`: members of the live object that it does not list go; the patch must not set any other. */
function retainKeys(original: JsonObject, patch: JsonObject): void {
  if (!Object.hasOwn(patch, RETAIN_KEYS)) return;
  const listed = patch[RETAIN_KEYS];
  if (!Array.isArray(listed)) throw badRequest('invalid patch format of retainKeys');
  const retained = new Set<unknown>(listed);
  for (const key of Object.keys(patch)) {
    if (patch[key] === null || key.startsWith('$')) continue;
    if (!retained.has(key)) throw rejected(`$retainKeys does not list ${JSON.stringify(key)}, which the patch sets`);
  }
  for (const key of Object.keys(original)) if (!retained.has(key)) delete original[key];
}

function deleteFromList(original: JsonObject, key: string, values: unknown): void {
  if (!Array.isArray(values)) throw badRequest('invalid patch format of primitive list');
  const current = Object.hasOwn(original, key) ? original[key] : undefined;
  if (!Array.isArray(current)) return;
  const removed = new Set(values.map(identityText));
  setOwn(
    original,
    key,
    current.filter((item) => !removed.has(identityText(item))),
  );
}

/** A list together with its `$setElementOrder`. */
function mergeOrdered(schema: Schema | undefined, original: JsonObject, patch: JsonObject, directive: string): void {
  const key = directive.slice(SET_ORDER.length);
  const order = patch[directive];
  if (!Array.isArray(order)) throw badRequest('invalid patch format of setElementOrder list');
  if (Object.hasOwn(patch, key) && patch[key] === null) return;
  const current = Object.hasOwn(original, key) ? original[key] : undefined;
  const patched = Object.hasOwn(patch, key) ? patch[key] : undefined;
  if (current === undefined && patched === undefined) return;
  if ((current !== undefined && !Array.isArray(current)) || (patched !== undefined && !Array.isArray(patched))) {
    throw badRequest(`invalid patch format of setElementOrder list: ${JSON.stringify(key)} is not a list`);
  }
  const member = memberSchema(schema, key);
  const mergeKey = listMergeKey(member, order);
  checkOrder(patched ?? [], order, mergeKey);
  const before = (current as unknown[] | undefined) ?? [];
  let merged: unknown[];
  if (patched === undefined) merged = before;
  else if (strategies(member).includes('merge')) merged = mergeList(member!, before, patched);
  else merged = withoutDirectives(patched) as unknown[];
  setOwn(original, key, orderElements(merged, { wanted: order, before, mergeKey }));
}

/** The merge key of a list of objects; '' for a list of scalars. */
function listMergeKey(schema: Schema | undefined, sample: readonly unknown[]): string {
  return sample.some(isJsonObject) ? (schema?.['x-kubernetes-patch-merge-key'] ?? '') : '';
}

const identityOf = (item: unknown, mergeKey: string): unknown => {
  if (mergeKey === '') return item;
  if (!isJsonObject(item)) throw rejected(`a list item is not an object but ${JSON.stringify(item)}`);
  const value = Object.hasOwn(item, mergeKey) ? item[mergeKey] : undefined;
  if (value === undefined) {
    throw rejected(`map: ${JSON.stringify(item)} does not contain declared merge key: ${mergeKey}`);
  }
  return value;
};

/** Items of the patch must stand in the order list, in the same relative order. */
function checkOrder(patched: readonly unknown[], order: readonly unknown[], mergeKey: string): void {
  if (order.length === 0 || patched.length === 0) return;
  let at = 0;
  for (const item of patched) {
    if (isJsonObject(item) && Object.hasOwn(item, DIRECTIVE)) continue;
    const wanted = identityOf(item, mergeKey);
    while (at < order.length && !deepEqual(identityOf(order[at], mergeKey), wanted)) at++;
    if (at++ >= order.length) {
      throw badRequest(
        `The order in patch list:\n${JSON.stringify(patched)}\n doesn't match ${SET_ORDER.slice(0, -1)} list:\n${JSON.stringify(order)}\n`,
      );
    }
  }
}

function mergeList(schema: Schema, current: unknown[], patched: readonly unknown[]): unknown[] {
  if (current.length === 0 && patched.length === 0) return current;
  const kinds = new Set([...current, ...patched].map((item) => (isJsonObject(item) ? 'object' : typeof item)));
  if ([...current, ...patched].some(Array.isArray)) throw rejected('lists of lists are not supported');
  if (!kinds.has('object')) {
    // Texts, numbers and the like: lists and objects were sorted out above.
    const merged = [...new Set([...current, ...patched])];
    return orderElements(merged, { wanted: patched, before: current, mergeKey: '' });
  }
  if (kinds.size > 1) throw rejected('list element types are not identical');
  const mergeKey = schema['x-kubernetes-patch-merge-key'];
  if (mergeKey === undefined) throw rejected('cannot merge lists without merge key');

  const { kept, plain, isReplaced } = applyItemDirectives(current as JsonObject[], patched as JsonObject[], mergeKey);
  if (isReplaced) return plain.map(withoutDirectives);
  const before = [...kept];
  const merged = [...kept];
  const places = new Map<string, number>();
  merged.forEach((item, at) => {
    keepFirst(places, identityText(item[mergeKey]), at);
  });
  for (const item of plain) {
    const key = identityText(identityOf(item, mergeKey));
    const at = places.get(key);
    if (at === undefined) {
      const added = withoutDirectives(item) as JsonObject;
      keepFirst(places, identityText(added[mergeKey]), merged.length);
      merged.push(added);
    } else {
      merged[at] = mergeObject(schema.items, merged[at]!, item);
    }
  }
  for (const item of merged) identityOf(item, mergeKey);
  return orderElements(merged, { wanted: plain, before, mergeKey });
}

function keepFirst(places: Map<string, number>, key: string, at: number): void {
  if (!places.has(key)) places.set(key, at);
}

/** `{$patch: delete, key: v}` removes items, a lone `{$patch: replace}` makes the patch the whole list. */
function applyItemDirectives(
  current: JsonObject[],
  patched: readonly JsonObject[],
  mergeKey: string,
): { kept: JsonObject[]; plain: JsonObject[]; isReplaced: boolean } {
  const removed = new Set<string>();
  let isReplaced = false;
  const plain: JsonObject[] = [];
  for (const item of patched) {
    if (!Object.hasOwn(item, DIRECTIVE)) {
      plain.push(item);
    } else if (item[DIRECTIVE] === 'delete') {
      removed.add(identityText(identityOf(item, mergeKey)));
    } else if (item[DIRECTIVE] === 'replace') {
      isReplaced = true;
      // With its key the directive replaces that one item's content.
      const { [DIRECTIVE]: _, ...rest } = item;
      if (Object.hasOwn(rest, mergeKey)) plain.push(rest);
    } else if (item[DIRECTIVE] === 'merge') {
      throw rejected('merging lists cannot yet be specified in the patch');
    } else {
      throw badRequest(`strategic merge patch: unknown patch type ${JSON.stringify(item[DIRECTIVE])}`);
    }
  }
  const kept = removed.size === 0 ? current : current.filter((item) => !removed.has(identityText(item[mergeKey])));
  return { kept, plain, isReplaced };
}

/** The patch as a value: where there is nothing to merge with, directives and nulls have done their work. */
function withoutDirectives(value: unknown): unknown {
  if (Array.isArray(value)) {
    return value
      .filter((item) => !(isJsonObject(item) && isPureDirective(item)))
      .map((item) => withoutDirectives(item));
  }
  if (!isJsonObject(value)) return value;
  const out: JsonObject = {};
  for (const key of Object.keys(value)) {
    const member = value[key];
    const isDirective =
      key === DIRECTIVE || key === RETAIN_KEYS || key.startsWith(SET_ORDER) || key.startsWith(DELETE_FROM);
    if (isDirective || member === null || (isJsonObject(member) && member[DIRECTIVE] === 'delete')) continue;
    setOwn(out, key, withoutDirectives(member));
  }
  return out;
}

const isPureDirective = (item: JsonObject): boolean =>
  item[DIRECTIVE] === 'delete' || (item[DIRECTIVE] === 'replace' && Object.keys(item).length === 1);
