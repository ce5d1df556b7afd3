/** Merging a configuration into a live object by the schema's list and map types. */
import { cloneJson } from '../meta/deep-clone.ts';
import { getOwn, type JsonObject, setOwn } from '../meta/own-property.ts';
import type { Schema } from '../schema/schema.ts';
import { listItems, memberSchema, shapeOf } from './topology.ts';

/** The live value with the configuration laid over it; a fresh value, undefined only when both are. */
export function mergeObjects(schema: Schema | undefined, live: unknown, config: unknown): unknown {
  if (config === undefined) return cloneJson(live);
  // Null takes the other side's form: nothing is said about the members or items of a map or list that has any.
  if (config === null && isKeptUnderNull(schema, live)) return cloneJson(live);
  if (live === undefined || live === null || config === null) return cloneJson(config);
  const shape = shapeOf(schema, config);
  if (shape === 'leaf' || shape !== shapeOf(schema, live)) return cloneJson(config);
  return shape === 'map'
    ? mergeMaps(schema, live as JsonObject, config as JsonObject)
    : [...rowOf(schema, live as unknown[], config as unknown[])].map(([ours, theirs]) =>
        mergeObjects(schema?.items, ours, theirs),
      );
}

const isKeptUnderNull = (schema: Schema | undefined, live: unknown): boolean =>
  typeof live === 'object' && live !== null && Object.keys(live).length > 0 && shapeOf(schema, live) !== 'leaf';

function mergeMaps(schema: Schema | undefined, live: JsonObject, config: JsonObject): JsonObject {
  const out: JsonObject = {};
  for (const key of Object.keys(live)) {
    const merged = mergeObjects(memberSchema(schema, key), live[key], getOwn(config, key));
    if (merged !== undefined) setOwn(out, key, merged);
  }
  for (const key of Object.keys(config)) {
    if (Object.hasOwn(live, key)) continue;
    const added = cloneJson(config[key]);
    if (added !== undefined) setOwn(out, key, added);
  }
  return out;
}

/**
 * Items of both sides in one row: the configuration decides the order of its items, items that only the server has stay
 * behind the neighbour they had (structured-merge-diff, typed/merge.go). Each as what there is of it, and what is said.
 */
function* rowOf(
  schema: Schema | undefined,
  live: readonly unknown[],
  config: readonly unknown[],
): Generator<readonly [unknown, unknown]> {
  const left = listItems(schema, live);
  const right = listItems(schema, config);
  const leftValues = new Map<string, unknown>();
  for (const { element, value } of left) {
    // What the live list names twice is not merged with: the configuration's item takes its place.
    leftValues.set(element, leftValues.has(element) ? null : value);
  }
  const rightValues = new Map(right.map(({ element, value }) => [element, value]));
  const shared = right.filter(({ element }) => leftValues.has(element)).map(({ element }) => element);
  const taken = new Set<string>();
  const take = (element: string): readonly [unknown, unknown] => {
    taken.add(element);
    return [leftValues.get(element), rightValues.get(element)];
  };
  let [l, r, s] = [0, 0, 0];
  while (l < left.length || r < right.length) {
    const [mine, theirs] = [left[l], right[r]];
    if (mine !== undefined && theirs !== undefined) {
      if (mine.element === theirs.element) {
        yield take(mine.element);
        l++;
        r++;
        s++;
        continue;
      }
      // Shared, but its turn in the configuration's order comes elsewhere.
      if (rightValues.has(mine.element) && shared[s] !== undefined && shared[s] !== mine.element) {
        l++;
        continue;
      }
    }
    if (mine !== undefined) {
      if (!rightValues.has(mine.element)) {
        yield [mine.value, undefined];
        l++;
        continue;
      }
      if (taken.has(mine.element)) l++;
    }
    if (theirs !== undefined) {
      yield take(theirs.element);
      if (shared[s] === theirs.element) s++;
      r++;
    }
  }
}
