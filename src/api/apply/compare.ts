/** The difference of two objects as sets of fields. */
import { deepEqual } from '../meta/deep-equal.ts';
import { getOwn, type JsonObject } from '../meta/own-property.ts';
import { stableText } from '../schema/list-types.ts';
import type { Schema } from '../schema/schema.ts';
import { type FieldSet, insertPath, type MutableFieldSet, newSet } from './field-set.ts';
import { cannotBeAbsent, listItems, memberSchema, shapeOf } from './topology.ts';

export interface Comparison {
  readonly added: FieldSet;
  readonly modified: FieldSet;
  readonly removed: FieldSet;
}
interface Sets {
  readonly added: MutableFieldSet;
  readonly modified: MutableFieldSet;
  readonly removed: MutableFieldSet;
}

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
  if (shape === 'map') compareMaps(schema, asMap(before), asMap(after), path, sets);
  else compareLists(schema, asList(before), asList(after), path, sets);
  if (before === undefined) insertPath(sets.added, path);
  else if (after === undefined) insertPath(sets.removed, path);
}

const NO_MEMBERS: JsonObject = Object.freeze(Object.create(null) as JsonObject);
const asMap = (value: unknown): JsonObject => (value ?? NO_MEMBERS) as JsonObject;
const asList = (value: unknown): readonly unknown[] => (value ?? []) as unknown[];

function compareMaps(
  schema: Schema | undefined,
  before: JsonObject,
  after: JsonObject,
  path: string[],
  sets: Sets,
): void {
  const keys = new Set([...Object.keys(before), ...Object.keys(after)]);
  for (const key of keys) {
    let [old, now] = [getOwn(before, key), getOwn(after, key)];
    if (old === undefined && now === undefined) continue;
    if (cannotBeAbsent(schema, key)) {
      old ??= {};
      now ??= {};
    }
    path.push(`f:${key}`);
    compare(memberSchema(schema, key), old, now, path, sets);
    path.pop();
  }
}

/** Items by path element; several items may share one in a live list that breaks its own rule. */
function indexed(schema: Schema | undefined, list: readonly unknown[]): Map<string, unknown[]> {
  const out = new Map<string, unknown[]>();
  for (const { element, value } of listItems(schema, list).items) {
    const known = out.get(element);
    if (known === undefined) out.set(element, [value]);
    else known.push(value);
  }
  return out;
}

function compareLists(
  schema: Schema | undefined,
  before: readonly unknown[],
  after: readonly unknown[],
  path: string[],
  sets: Sets,
): void {
  const [old, now] = [indexed(schema, before), indexed(schema, after)];
  for (const element of new Set([...old.keys(), ...now.keys()])) {
    const [left, right] = [old.get(element) ?? [], now.get(element) ?? []];
    path.push(element);
    if (left.length <= 1 && right.length <= 1) compare(schema?.items, left[0], right[0], path, sets);
    else if (left.length === 0) insertPath(sets.added, path);
    else if (right.length === 0) insertPath(sets.removed, path);
    else if (stableText(left) !== stableText(right)) insertPath(sets.modified, path);
    path.pop();
  }
}
