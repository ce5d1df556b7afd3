import { isJsonObject } from '../meta/own-property.ts';
import type { Schema } from '../schema/schema.ts';
import { type FieldSet, insertPath, type MutableFieldSet, newSet } from './field-set.ts';
import { isDeclared, listItems, memberSchema, shapeOf } from './topology.ts';

/**
 * The fields a configuration speaks of: every leaf, every item of a keyed list, every key of a map, and members that are
 * null or empty maps.
 */
export function toFieldSet(schema: Schema | undefined, value: unknown): FieldSet {
  const set = newSet();
  collect(schema, value, [], set);
  return set;
}

function collect(schema: Schema | undefined, value: unknown, path: string[], set: MutableFieldSet): void {
  switch (shapeOf(schema, value)) {
    case 'leaf':
      insertPath(set, path);
      return;
    case 'list':
      for (const item of listItems(schema, value as unknown[]).items) {
        path.push(item.element);
        collect(schema?.items, item.value, path, set);
        insertPath(set, path);
        path.pop();
      }
      return;
    case 'map': {
      const object = value as Record<string, unknown>;
      for (const key of Object.keys(object)) {
        const member = object[key];
        path.push(`f:${key}`);
        collect(memberSchema(schema, key), member, path, set);
        const isHollow = member === null || (isJsonObject(member) && Object.keys(member).length === 0);
        if (isHollow || !isDeclared(schema, key)) insertPath(set, path);
        path.pop();
      }
    }
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

const keyText = (element: string): string => {
  const keys = JSON.parse(element.slice(2)) as Record<string, unknown>;
  return `[${Object.entries(keys)
    .map(([key, value]) => `${key}=${JSON.stringify(value)}`)
    .join(',')}]`;
};
