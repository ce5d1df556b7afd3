/** Merging a configuration into a live object by the schema's list and map types. */
import { cloneJson } from '../meta/deep-clone.ts';
import { getOwn, type JsonObject, setOwn } from '../meta/own-property.ts';
import type { Schema } from '../schema/schema.ts';
import { listItems, memberSchema, shapeOf } from './topology.ts';

/** The live value with the configuration laid over it; a fresh value, undefined only when both are. */
export function mergeObjects(schema: Schema | undefined, live: unknown, config: unknown): unknown {
  if (config === undefined) return cloneJson(live);
  if (live === undefined || live === null || config === null) return cloneJson(config);
  const shape = shapeOf(schema, config);
  if (shape === 'leaf' || shape !== shapeOf(schema, live)) return cloneJson(config);
  return shape === 'map'
    ? mergeMaps(schema, live as JsonObject, config as JsonObject)
    : mergeLists(schema, live as unknown[], config as unknown[]);
}

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
 * behind the neighbour they had.
 */
function mergeLists(schema: Schema | undefined, live: readonly unknown[], config: readonly unknown[]): unknown[] {
  const left = listItems(schema, live).items;
  const right = listItems(schema, config).items;
  const leftValues = new Map<string, unknown[]>();
  for (const { element, value } of left) {
    const known = leftValues.get(element);
    if (known === undefined) leftValues.set(element, [value]);
    else known.push(value);
  }
  const rightValues = new Map(right.map(({ element, value }) => [element, value]));
  const leftOrder = [...leftValues.keys()];
  const rightOrder = [...rightValues.keys()];
  const shared = rightOrder.filter((element) => leftValues.has(element));
  const out: unknown[] = [];
  const take = (element: string): void => {
    const mine = leftValues.get(element) ?? [];
    if (rightValues.has(element)) out.push(mergeObjects(schema?.items, mine[0], rightValues.get(element)));
    else out.push(...mine.map((value) => cloneJson(value)));
  };
  let [l, r, s] = [0, 0, 0];
  while (l < leftOrder.length || r < rightOrder.length) {
    const [lhs, rhs] = [leftOrder[l], rightOrder[r]];
    if (lhs !== undefined && lhs === rhs) {
      take(lhs);
      l++;
      r++;
      s++;
    } else if (
      lhs !== undefined &&
      rhs !== undefined &&
      rightValues.has(lhs) &&
      shared[s] !== undefined &&
      shared[s] !== lhs
    ) {
      // Shared, but its turn in the configuration's order comes elsewhere.
      l++;
    } else if (lhs !== undefined && !rightValues.has(lhs)) {
      take(lhs);
      l++;
    } else if (rhs !== undefined) {
      take(rhs);
      if (shared[s] === rhs) s++;
      r++;
    } else {
      l++;
    }
  }
  return out;
}
