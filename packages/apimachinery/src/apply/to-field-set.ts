import { isJsonObject } from '../meta/own-property.ts';
import type { Steps } from '../meta/steps.ts';
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

/** Members or items of one step; maps and lists with more are put off. */
const SLICE = 500;

/** The same in steps, for large configurations. */
export function* toFieldSetSteps(schema: Schema | undefined, value: unknown): Steps<FieldSet> {
  const set = newSet();
  const later: Steps<void>[] = [];
  collect(schema, value, [], set, later);
  for (let work = later.pop(); work !== undefined; work = later.pop()) yield* work;
  return set;
}

function* collectSteps(
  schema: Schema | undefined,
  value: unknown[] | Record<string, unknown>,
  path: string[],
  set: MutableFieldSet,
  later: Steps<void>[],
): Steps<void> {
  if (Array.isArray(value)) {
    const items: ListItem[] = [];
    const seen = new Set<string>();
    const repeated = new Set<string>();
    for (let at = 0; at < value.length; at += SLICE) {
      yield;
      for (const item of listItems(schema, value.slice(at, at + SLICE), at)) {
        items.push(item);
        if (seen.has(item.element)) repeated.add(item.element);
        seen.add(item.element);
      }
    }
    for (let at = 0; at < items.length; at += SLICE) {
      yield;
      collectItems(schema, { items: items.slice(at, at + SLICE), repeated }, path, set, later);
    }
    return;
  }
  const keys = Object.keys(value);
  for (let at = 0; at < keys.length; at += SLICE) {
    yield;
    collectMembers(schema, [value, keys.slice(at, at + SLICE)], path, set, later);
  }
}

/** Elements that a live list names more than once: such items are owned as they are, nothing below them. */
function repeatedElements(items: readonly ListItem[]): ReadonlySet<string> {
  const seen = new Set<string>();
  let repeated: Set<string> | undefined;
  for (const { element } of items) {
    if (seen.has(element)) {
      repeated ??= new Set();
      repeated.add(element);
    }
    seen.add(element);
  }
  return repeated ?? NONE;
}
const NONE: ReadonlySet<string> = new Set();

function collect(
  schema: Schema | undefined,
  value: unknown,
  path: string[],
  set: MutableFieldSet,
  later?: Steps<void>[],
): void {
  switch (shapeOf(schema, value)) {
    case 'leaf':
      insertPath(set, path);
      return;
    case 'list': {
      const list = value as unknown[];
      if (later !== undefined && list.length > SLICE) later.push(collectSteps(schema, list, [...path], set, later));
      else {
        const items = listItems(schema, list);
        collectItems(schema, { items, repeated: repeatedElements(items) }, path, set, later);
      }
      return;
    }
    case 'map': {
      const object = value as Record<string, unknown>;
      const keys = Object.keys(object);
      if (later !== undefined && keys.length > SLICE) later.push(collectSteps(schema, object, [...path], set, later));
      else collectMembers(schema, [object, keys], path, set, later);
    }
  }
}

function collectItems(
  schema: Schema | undefined,
  { items, repeated }: { readonly items: readonly ListItem[]; readonly repeated: ReadonlySet<string> },
  path: string[],
  set: MutableFieldSet,
  later?: Steps<void>[],
): void {
  for (const item of items) {
    path.push(item.element);
    if (!repeated.has(item.element)) collect(schema?.items, item.value, path, set, later);
    insertPath(set, path);
    path.pop();
  }
}

function collectMembers(
  schema: Schema | undefined,
  [object, keys]: readonly [Record<string, unknown>, readonly string[]],
  path: string[],
  set: MutableFieldSet,
  later?: Steps<void>[],
): void {
  for (const key of keys) {
    const member = object[key];
    path.push(`f:${key}`);
    collect(memberSchema(schema, key), member, path, set, later);
    const isHollow = member === null || (isJsonObject(member) && Object.keys(member).length === 0);
    if (isHollow || !isDeclared(schema, key)) insertPath(set, path);
    path.pop();
  }
}
