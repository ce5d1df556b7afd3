/**
 * What field-set.ts and remove.ts do to sets and objects, in steps, for those of very many fields. The results are the
 * same; what is small is handed to them.
 */
import { type JsonObject, setOwn } from '../meta/own-property.ts';
import { keysOfLarge } from '../meta/small.ts';
import type { Pace, Steps } from '../meta/steps.ts';
import type { Schema } from '../schema/schema.ts';
import { difference, EMPTY_SET, type FieldSet, intersection, isEmptySet, isWithin, union } from './field-set.ts';
import { removeFields, withParents } from './remove.ts';
import { isDeclared, type ListItem, listItems, memberSchema, shapeOf } from './topology.ts';

/** Nodes of a set that is done with in one go. */
const SMALL = 64;
/** What such a set counts as, in members looked at. */
const WEIGHT = 32;
/** Items whose names are worked out between two stops. */
const SLICE = 500;

const isSmall = (set: FieldSet): boolean => isWithin(set, SMALL);

export function* unionSteps(a: FieldSet, b: FieldSet, pace: Pace): Steps<FieldSet> {
  if (isSmall(b)) return union(a, b);
  const members = new Set(a.members);
  for (const element of b.members) {
    if (pace.due()) yield;
    members.add(element);
  }
  const children = new Map(a.children);
  yield;
  for (const [element, child] of b.children) {
    if (pace.due()) yield;
    const other = children.get(element);
    children.set(element, other === undefined ? child : yield* unionSteps(other, child, pace));
  }
  return { members, children };
}

export function* intersectionSteps(a: FieldSet, b: FieldSet, pace: Pace): Steps<FieldSet> {
  if (isSmall(a) || isSmall(b)) {
    if (pace.due(WEIGHT)) yield;
    return intersection(a, b);
  }
  const members = new Set<string>();
  for (const element of a.members) {
    if (pace.due()) yield;
    if (b.members.has(element)) members.add(element);
  }
  const children = new Map<string, FieldSet>();
  for (const [element, child] of a.children) {
    const other = b.children.get(element);
    if (pace.due()) yield;
    if (other === undefined) continue;
    const both = yield* intersectionSteps(child, other, pace);
    if (!isEmptySet(both)) children.set(element, both);
  }
  return { members, children };
}

export function* differenceSteps(a: FieldSet, b: FieldSet, pace: Pace): Steps<FieldSet> {
  if (isSmall(a)) {
    if (pace.due(WEIGHT)) yield;
    return difference(a, b);
  }
  const members = new Set<string>();
  for (const element of a.members) {
    if (pace.due()) yield;
    if (!b.members.has(element)) members.add(element);
  }
  const children = new Map<string, FieldSet>();
  for (const [element, child] of a.children) {
    if (pace.due()) yield;
    const rest = yield* differenceSteps(child, b.children.get(element) ?? EMPTY_SET, pace);
    if (!isEmptySet(rest)) children.set(element, rest);
  }
  return { members, children };
}

export function* withParentsSteps(schema: Schema | undefined, set: FieldSet, pace: Pace): Steps<FieldSet> {
  if (isSmall(set)) {
    if (pace.due(WEIGHT)) yield;
    return withParents(schema, set);
  }
  const members = new Set(set.members);
  const children = new Map<string, FieldSet>();
  if (members.size > SLICE) yield;
  for (const [element, child] of set.children) {
    if (pace.due()) yield;
    const key = element.startsWith('f:') ? element.slice(2) : undefined;
    if (key !== undefined && isDeclared(schema, key)) members.add(element);
    const inner = key === undefined ? schema?.items : memberSchema(schema, key);
    children.set(element, yield* withParentsSteps(inner, child, pace));
  }
  return { members, children };
}

/** As `removeFields`: undefined when nothing is left. */
export function* removeFieldsSteps(
  schema: Schema | undefined,
  value: unknown,
  { fields, pace }: { readonly fields: FieldSet; readonly pace: Pace },
): Steps<unknown> {
  const shape = shapeOf(schema, value);
  const keys = shape === 'leaf' ? undefined : keysOfLarge(value);
  if (keys === undefined) {
    if (pace.due()) yield;
    return removeFields(schema, value, fields);
  }
  if (shape === 'list') {
    const kept: unknown[] = [];
    for (const item of yield* listItemsSteps(schema, value as unknown[])) {
      if (pace.due()) yield;
      if (fields.members.has(item.element)) continue;
      const below = fields.children.get(item.element);
      const rest =
        below && !isEmptySet(below)
          ? yield* removeFieldsSteps(schema?.items, item.value, { fields: below, pace })
          : item.value;
      kept.push(rest ?? null);
    }
    return kept.length > 0 ? kept : undefined;
  }
  const object = value as JsonObject;
  const out: JsonObject = {};
  let left = 0;
  for (const key of keys) {
    if (pace.due()) yield;
    const element = `f:${key}`;
    if (fields.members.has(element)) continue;
    const below = fields.children.get(element);
    const member = object[key];
    const rest =
      below && !isEmptySet(below)
        ? yield* removeFieldsSteps(memberSchema(schema, key), member, { fields: below, pace })
        : member;
    setOwn(out, key, rest ?? null);
    left++;
  }
  return left > 0 ? out : undefined;
}

function* listItemsSteps(schema: Schema | undefined, list: readonly unknown[]): Steps<ListItem[]> {
  const items: ListItem[] = [];
  for (let at = 0; at < list.length; at += SLICE) {
    if (at > 0) yield;
    for (const item of listItems(schema, list.slice(at, at + SLICE), at)) items.push(item);
  }
  return items;
}
