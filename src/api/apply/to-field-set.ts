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
  const isList = Array.isArray(value);
  const all: readonly unknown[] = isList ? value : Object.keys(value);
  for (let at = 0; at < all.length; at += SLICE) {
    yield;
    const part = all.slice(at, at + SLICE);
    if (isList) collectItems(schema, listItems(schema, part, at).items, path, set, later);
    else collectMembers(schema, [value, part as string[]], path, set, later);
  }
}

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
      else collectItems(schema, listItems(schema, list).items, path, set, later);
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
  items: readonly ListItem[],
  path: string[],
  set: MutableFieldSet,
  later?: Steps<void>[],
): void {
  for (const item of items) {
    path.push(item.element);
    collect(schema?.items, item.value, path, set, later);
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

/** Mistakes of keyed lists in a configuration: items without keys, and keys given twice. */
export function listProblems(schema: Schema | undefined, value: unknown, path = ''): string[] {
  switch (shapeOf(schema, value)) {
    case 'leaf':
      return [];
    case 'list': {
      const { items, problems } = listItems(schema, value as unknown[]);
      const found = problems.map((text) => `${path}: ${text}`);
      const seen = new Set<string>();
      for (const { element, value: item } of items) {
        const text = element.startsWith('k:') ? keyText(element) : `[=${element.slice(2)}]`;
        if (seen.has(element)) found.push(`${path}: duplicate entries for key ${text}`);
        seen.add(element);
        found.push(...listProblems(schema?.items, item, path + text));
      }
      return found;
    }
    case 'map': {
      const object = value as Record<string, unknown>;
      return Object.keys(object).flatMap((key) =>
        listProblems(memberSchema(schema, key), object[key], `${path}.${key}`),
      );
    }
  }
}

/** `[name="a",protocol="TCP"]` from the element of a keyed item. */
export const keyText = (element: string): string => {
  const keys = JSON.parse(element.slice(2)) as Record<string, unknown>;
  return `[${Object.entries(keys)
    .map(([key, value]) => `${key}=${JSON.stringify(value)}`)
    .join(',')}]`;
};
