/** The difference of two objects as sets of fields. */
import { deepEqual, equalSteps } from '../meta/deep-equal.ts';
import { getOwn, type JsonObject } from '../meta/own-property.ts';
import { keysOfLarge } from '../meta/small.ts';
import { Pace, type Steps } from '../meta/steps.ts';
import { stableText } from '../schema/list-types.ts';
import type { Schema } from '../schema/schema.ts';
import { type FieldSet, insertPath, type MutableFieldSet, newSet, nodeAt } from './field-set.ts';
import { cannotBeAbsent, isNullWhenEmpty, type ListItem, listItems, memberSchema, shapeOf } from './topology.ts';

export interface Comparison {
  readonly added: FieldSet;
  readonly modified: FieldSet;
  readonly removed: FieldSet;
}
interface Sets {
  readonly added: MutableFieldSet;
  readonly modified: MutableFieldSet;
  readonly removed: MutableFieldSet;
  /** Where large maps and lists are put off to, when the comparison is done in steps. */
  readonly later?: Steps<void>[];
}

/** Compares `before` with `after`; undefined stands for "not there". */
export function compareObjects(schema: Schema | undefined, before: unknown, after: unknown): Comparison {
  const sets: Sets = { added: newSet(), modified: newSet(), removed: newSet() };
  compare(schema, before, after, [], sets);
  return sets;
}

/** Members or items of one step; maps and lists with more are compared apart. */
const SLICE = 200;

/** The same in steps, for large objects. */
export function* compareSteps(schema: Schema | undefined, before: unknown, after: unknown): Steps<Comparison> {
  const later: Steps<void>[] = [];
  const sets = { added: newSet(), modified: newSet(), removed: newSet(), later };
  compare(schema, before, after, [], sets);
  // Which fields are found does not depend on the order in which they are looked for.
  for (let work = later.pop(); work !== undefined; work = later.pop()) yield* work;
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
  // Naming the members of a large map is a step of its own: it is counted once.
  const size = sets.later === undefined ? undefined : sizeOf(before, after);
  const isLeaf =
    shape === undefined ||
    shape === 'leaf' ||
    right === 'leaf' ||
    changesShape ||
    (size === undefined ? !hasContent(before) && !hasContent(after) : size === 0);
  if (isLeaf) {
    if (before === undefined) insertPath(sets.added, path);
    else if (after === undefined) insertPath(sets.removed, path);
    else if (sets.later !== undefined && keysOfLarge(before) !== undefined) {
      sets.later.push(leafSteps(before, after, [...path], sets));
    } else if (!deepEqual(before, after)) insertPath(sets.modified, path);
    // A map that turned into a leaf (or back) takes its members with it.
    if (changesShape) {
      if (left !== 'leaf') compare(schema, before, undefined, path, sets);
      else compare(schema, undefined, after, path, sets);
    }
    return;
  }
  if (sets.later !== undefined && size! > SLICE) {
    if (shape === 'map') sets.later.push(mapSteps(schema, asMap(before), asMap(after), [...path], sets));
    else sets.later.push(listSteps(schema, asList(before), asList(after), [...path], sets));
  } else if (shape === 'map') compareMaps(schema, asMap(before), asMap(after), path, sets);
  else compareLists(schema, asList(before), asList(after), path, sets);
  if (before === undefined) insertPath(sets.added, path);
  else if (after === undefined) insertPath(sets.removed, path);
}

/** Whole values of any form, and large ones. */
function* leafSteps(before: unknown, after: unknown, path: string[], sets: Sets): Steps<void> {
  if (!(yield* equalSteps(before, after, new Pace()))) insertPath(sets.modified, path);
}

/** What is not there; its members are not there either. */
const NO_MEMBERS: JsonObject = Object.freeze(Object.create(null) as JsonObject);
/** A struct in which nothing is set: the structs in it are there. */
const UNSET_STRUCT: JsonObject = Object.freeze(Object.create(null) as JsonObject);
const asMap = (value: unknown): JsonObject => (value ?? NO_MEMBERS) as JsonObject;
const asList = (value: unknown): readonly unknown[] => (value ?? []) as unknown[];

/** Members or items of both sides, as far as it matters. */
function sizeOf(before: unknown, after: unknown): number {
  const size = lengthOf(before);
  return size > SLICE ? size : size + lengthOf(after);
}

const lengthOf = (value: unknown): number =>
  Array.isArray(value) ? value.length : typeof value === 'object' && value !== null ? Object.keys(value).length : 0;

/** As `compareMaps`. */
function* mapSteps(
  schema: Schema | undefined,
  before: JsonObject,
  after: JsonObject,
  path: string[],
  sets: Sets,
): Steps<void> {
  yield;
  const old = Object.keys(before);
  yield;
  const now = Object.keys(after);
  yield;
  const sides = [before, after] as const;
  for (let at = 0; at < old.length; at++) {
    compareMember(schema, old[at]!, sides, path, sets);
    if (at % SLICE === SLICE - 1) yield;
  }
  for (let at = 0; at < now.length; at++) {
    compareNewMember(schema, now[at]!, sides, path, sets);
    if (at % SLICE === SLICE - 1) yield;
  }
}

function compareNewMember(schema: Schema | undefined, key: string, sides: Sides, path: string[], sets: Sets): void {
  const [before, after] = sides;
  if (Object.hasOwn(before, key)) return;
  const now = after[key];
  if (now === undefined || typeof now === 'object') {
    compareMember(schema, key, sides, path, sets);
  } else {
    // A text or number that is new: nothing below it, nothing to compare it with.
    nodeAt(sets.added, path).members.add(`f:${key}`);
  }
}

/** As `compareLists`. */
function* listSteps(
  schema: Schema | undefined,
  before: readonly unknown[],
  after: readonly unknown[],
  path: string[],
  sets: Sets,
): Steps<void> {
  const [old, now] = [yield* indexSteps(schema, before), yield* indexSteps(schema, after)];
  let at = 0;
  for (const element of old.keys()) {
    compareItem(schema, element, [old, now], path, sets);
    if (at++ % SLICE === SLICE - 1) yield;
  }
  for (const element of now.keys()) {
    if (!old.has(element)) compareItem(schema, element, [old, now], path, sets);
    if (at++ % SLICE === SLICE - 1) yield;
  }
}

function* indexSteps(schema: Schema | undefined, list: readonly unknown[]): Steps<Map<string, unknown[]>> {
  const out = new Map<string, unknown[]>();
  for (let at = 0; at < list.length; at += SLICE) {
    index(out, listItems(schema, list.slice(at, at + SLICE), at));
    yield;
  }
  return out;
}

function compareMaps(
  schema: Schema | undefined,
  before: JsonObject,
  after: JsonObject,
  path: string[],
  sets: Sets,
): void {
  const sides = [before, after] as const;
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
  index(out, listItems(schema, list));
  return out;
}

function index(out: Map<string, unknown[]>, items: readonly ListItem[]): void {
  for (const { element, value } of items) {
    const known = out.get(element);
    if (known === undefined) out.set(element, [value]);
    else known.push(value);
  }
}

function compareLists(
  schema: Schema | undefined,
  before: readonly unknown[],
  after: readonly unknown[],
  path: string[],
  sets: Sets,
): void {
  const [old, now] = [indexed(schema, before), indexed(schema, after)];
  for (const element of old.keys()) compareItem(schema, element, [old, now], path, sets);
  for (const element of now.keys()) if (!old.has(element)) compareItem(schema, element, [old, now], path, sets);
}

type Indexed = ReadonlyMap<string, readonly unknown[]>;
const NO_ITEMS: readonly unknown[] = [];

function compareItem(
  schema: Schema | undefined,
  element: string,
  [old, now]: readonly [Indexed, Indexed],
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
