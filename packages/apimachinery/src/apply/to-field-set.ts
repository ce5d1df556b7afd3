import { isJsonObject, type JsonObject } from '../meta/own-property.ts';
import type { Schema } from '../schema/schema.ts';
import { type FieldSet, insertPath, type MutableFieldSet, newSet } from './field-set.ts';
import { isDeclared, type ListItem, listItems, memberSchema, shapeOf } from './topology.ts';

/**
 * The fields a configuration speaks of: every leaf, every item of a keyed list, every key of a map, and members that are
 * null or empty maps.
 */
export function toFieldSet(schema: Schema | undefined, value: unknown): FieldSet {
  const set = newSet();
  collect(schema, value, [], set);
  return set;
}

/** Elements that a live list names more than once: such items are owned as they are, nothing below them. */
function repeatedElements(items: readonly ListItem[]): ReadonlySet<string> | undefined {
  const seen = new Set<string>();
  let repeated: Set<string> | undefined;
  for (const { element } of items) {
    if (seen.has(element)) {
      repeated ??= new Set();
      repeated.add(element);
    }
    seen.add(element);
  }
  return repeated;
}

function collect(schema: Schema | undefined, value: unknown, path: string[], set: MutableFieldSet): void {
  switch (shapeOf(schema, value)) {
    case 'leaf':
      insertPath(set, path);
      return;
    case 'list':
      collectItems(schema, value as unknown[], path, set);
      return;
    case 'map':
      collectMembers(schema, value as JsonObject, path, set);
  }
}

function collectItems(schema: Schema | undefined, list: unknown[], path: string[], set: MutableFieldSet): void {
  const items = listItems(schema, list);
  const repeated = repeatedElements(items);
  for (const item of items) {
    path.push(item.element);
    if (!repeated?.has(item.element)) collect(schema?.items, item.value, path, set);
    insertPath(set, path);
    path.pop();
  }
}

function collectMembers(schema: Schema | undefined, object: JsonObject, path: string[], set: MutableFieldSet): void {
  for (const key of Object.keys(object)) {
    const member = object[key];
    path.push(`f:${key}`);
    collect(memberSchema(schema, key), member, path, set);
    const isHollow = member === null || (isJsonObject(member) && Object.keys(member).length === 0);
    if (isHollow || !isDeclared(schema, key)) insertPath(set, path);
    path.pop();
  }
}
