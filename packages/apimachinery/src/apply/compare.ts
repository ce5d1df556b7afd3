/** The difference of two objects as sets of fields. */
import { deepEqual } from '../meta/deep-equal.ts';
import { getOwn, type JsonObject } from '../meta/own-property.ts';
import { stableText } from '../schema/list-types.ts';
import type { Schema } from '../schema/schema.ts';
import { type FieldSet, insertPath, type MutableFieldSet, newSet, nodeAt } from './field-set.ts';
import { cannotBeAbsent, isNullWhenEmpty, listItems, memberSchema, shapeOf } from './topology.ts';

export interface Comparison {
  readonly added: FieldSet;
  readonly modified: FieldSet;
  readonly removed: FieldSet;
}
type Sets = Readonly<Record<keyof Comparison, MutableFieldSet>>;

/** Compares `before` with `after`; undefined stands for "not there". */
export function compareObjects(schema: Schema | undefined, before: unknown, after: unknown): Comparison {
  const sets: Sets = { added: newSet(), modified: newSet(), removed: newSet() };
  compare(schema, before, after, [], sets);
  return sets;
}

const hasContent = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && Object.keys(value).length > 0;

function compare(schema: Schema | undefined, before: unknown, after: unknown, path: string[], sets: Sets): void {
  if (before === after) return;
  // Null is a wildcard that takes the other side's form; a change of form is a change of the whole.
  const left = before === undefined || before === null ? undefined : shapeOf(schema, before);
  const right = after === undefined || after === null ? undefined : shapeOf(schema, after);
  const shape = left ?? right;
  const changesShape = left !== undefined && right !== undefined && left !== right;
  const isLeaf =
    shape === undefined ||
    shape === 'leaf' ||
    right === 'leaf' ||
    changesShape ||
    (!hasContent(before) && !hasContent(after));
  if (isLeaf) {
    if (before === undefined) insertPath(sets.added, path);
    else if (after === undefined) insertPath(sets.removed, path);
    else if (!deepEqual(before, after)) insertPath(sets.modified, path);
    // A map that turned into a leaf (or back) takes its members with it.
    if (changesShape) {
      if (left !== 'leaf') compare(schema, before, undefined, path, sets);
      else compare(schema, undefined, after, path, sets);
    }
    return;
  }
  if (shape === 'map') compareMaps(schema, [asMap(before), asMap(after)], path, sets);
  else compareLists(schema, [indexed(schema, asList(before)), indexed(schema, asList(after))], path, sets);
  if (before === undefined) insertPath(sets.added, path);
  else if (after === undefined) insertPath(sets.removed, path);
}

/** What is not there; its members are not there either. */
const NO_MEMBERS: JsonObject = Object.freeze(Object.create(null) as JsonObject);
/** A struct in which nothing is set: the structs in it are there. */
const UNSET_STRUCT: JsonObject = Object.freeze(Object.create(null) as JsonObject);
const asMap = (value: unknown): JsonObject => (value ?? NO_MEMBERS) as JsonObject;
const asList = (value: unknown): readonly unknown[] => (value ?? []) as unknown[];

function compareMaps(schema: Schema | undefined, sides: Sides, path: string[], sets: Sets): void {
  const [before, after] = sides;
  for (const key of Object.keys(before)) compareMember(schema, key, sides, path, sets);
  let added: MutableFieldSet | undefined;
  for (const key of Object.keys(after)) {
    if (Object.hasOwn(before, key)) continue;
    const now = after[key];
    if (now === undefined || typeof now === 'object') {
      compareMember(schema, key, sides, path, sets);
    } else {
      // A text or number that is new: nothing below it, nothing to compare it with.
      added ??= nodeAt(sets.added, path);
      added.members.add(`f:${key}`);
    }
  }
}

type Sides = readonly [before: JsonObject, after: JsonObject];

function compareMember(schema: Schema | undefined, key: string, sides: Sides, path: string[], sets: Sets): void {
  const [before, after] = sides;
  const old = getOwn(before, key);
  const now = getOwn(after, key);
  // Most members are texts that stay as they were.
  if (old === now) return;
  path.push(`f:${key}`);
  const implied = cannotBeAbsent(schema, key) ? UNSET_STRUCT : isNullWhenEmpty(schema, key) ? null : undefined;
  if (implied === undefined) compare(memberSchema(schema, key), old, now, path, sets);
  else {
    // Go writes them wherever it writes what they are in: with that they come and go.
    const was = old ?? (before === NO_MEMBERS ? undefined : implied);
    const is = now ?? (after === NO_MEMBERS ? undefined : implied);
    compare(memberSchema(schema, key), was, is, path, sets);
  }
  path.pop();
}

/** Items by path element; several items may share one in a live list that breaks its own rule. */
function indexed(schema: Schema | undefined, list: readonly unknown[]): Map<string, unknown[]> {
  const out = new Map<string, unknown[]>();
  for (const { element, value } of listItems(schema, list)) {
    const known = out.get(element);
    if (known === undefined) out.set(element, [value]);
    else known.push(value);
  }
  return out;
}

function compareLists(schema: Schema | undefined, lists: IndexedSides, path: string[], sets: Sets): void {
  const [old, now] = lists;
  for (const element of old.keys()) compareItem(schema, element, lists, path, sets);
  for (const element of now.keys()) if (!old.has(element)) compareItem(schema, element, lists, path, sets);
}

type Indexed = ReadonlyMap<string, readonly unknown[]>;
type IndexedSides = readonly [before: Indexed, after: Indexed];
const NO_ITEMS: readonly unknown[] = [];

function compareItem(
  schema: Schema | undefined,
  element: string,
  [old, now]: IndexedSides,
  path: string[],
  sets: Sets,
): void {
  const [left, right] = [old.get(element) ?? NO_ITEMS, now.get(element) ?? NO_ITEMS];
  path.push(element);
  if (left.length <= 1 && right.length <= 1) compare(schema?.items, left[0], right[0], path, sets);
  else if (left.length > 1 && right.length > 1) {
    if (stableText(left) !== stableText(right)) insertPath(sets.modified, path);
  } else if (left.length > 1) {
    // An item that is single again is new, and the mark of the many goes.
    if (right.length > 0) compare(schema?.items, undefined, right[0], path, sets);
    insertPath(sets.removed, path);
  } else {
    if (left.length > 0) compare(schema?.items, left[0], undefined, path, sets);
    insertPath(sets.added, path);
  }
  path.pop();
}
