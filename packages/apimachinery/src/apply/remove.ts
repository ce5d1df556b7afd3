/** Taking fields out of objects, and completing sets of fields for that. */
import { isJsonObject, type JsonObject, setOwn } from '../meta/own-property.ts';
import type { Schema } from '../schema/schema.ts';
import { type FieldSet, isEmptySet } from './field-set.ts';
import { isDeclared, listItems, memberSchema, shapeOf } from './topology.ts';

/**
 * A copy of the value without the fields of the set; undefined when nothing is left. A map or list within it that this
 * empties becomes null, which the kind then validates (structured-merge-diff, typed/remove.go).
 */
export function removeFields(schema: Schema | undefined, value: unknown, fields: FieldSet): unknown {
  switch (shapeOf(schema, value)) {
    case 'leaf':
      return isJsonObject(value) || Array.isArray(value) ? undefined : value;
    case 'list': {
      const kept: unknown[] = [];
      for (const item of listItems(schema, value as unknown[])) {
        if (fields.members.has(item.element)) continue;
        const below = fields.children.get(item.element);
        const rest = below && !isEmptySet(below) ? removeFields(schema?.items, item.value, below) : item.value;
        kept.push(rest ?? null);
      }
      return kept.length > 0 ? kept : undefined;
    }
    case 'map': {
      const object = value as JsonObject;
      const out: JsonObject = {};
      for (const key of Object.keys(object)) {
        const element = `f:${key}`;
        if (fields.members.has(element)) continue;
        const below = fields.children.get(element);
        const member = object[key];
        const rest = below && !isEmptySet(below) ? removeFields(memberSchema(schema, key), member, below) : member;
        setOwn(out, key, rest ?? null);
      }
      return Object.keys(out).length > 0 ? out : undefined;
    }
  }
}

/** The set with every struct field that has something below it as a member, too. */
export function withParents(schema: Schema | undefined, set: FieldSet): FieldSet {
  const members = new Set(set.members);
  const children = new Map<string, FieldSet>();
  for (const [element, child] of set.children) {
    const key = element.startsWith('f:') ? element.slice(2) : undefined;
    if (key !== undefined && isDeclared(schema, key)) members.add(element);
    children.set(element, withParents(key === undefined ? schema?.items : memberSchema(schema, key), child));
  }
  return { members, children };
}

/**
 * Ownership after a change of schema: where a list or map has become atomic, owning parts of it turns into owning the
 * whole. (The way back needs nothing: an owned whole is simply no longer split.)
 */
export function liftToAtomic(schema: Schema | undefined, set: FieldSet): FieldSet {
  let members: Set<string> | undefined;
  let children: Map<string, FieldSet> | undefined;
  for (const [element, child] of set.children) {
    const isField = element.startsWith('f:');
    const inner = isField ? memberSchema(schema, element.slice(2)) : schema?.items;
    const lifted = isOwnedWhole(inner, child) ? undefined : liftToAtomic(inner, child);
    if (lifted === child) continue;
    children ??= new Map(set.children);
    if (lifted !== undefined) {
      children.set(element, lifted);
    } else {
      children.delete(element);
      members ??= new Set(set.members);
      members.add(element);
    }
  }
  // Nearly always nothing changed: the same set back tells the callers so.
  return children === undefined ? set : { members: members ?? set.members, children };
}

function isOwnedWhole(schema: Schema | undefined, set: FieldSet): boolean {
  // All of them are fields, or all are items.
  const first = set.members.values().next().value ?? set.children.keys().next().value;
  return first !== undefined && shapeOf(schema, first.startsWith('f:') ? ONE_MEMBER : ONE_ITEM) === 'leaf';
}
const ONE_MEMBER = Object.freeze({ a: 1 });
const ONE_ITEM = Object.freeze([1]);
