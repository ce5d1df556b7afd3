/** What work in pieces does not look into: it is done with in one go. */
const SMALL = 8;

const NO_KEYS: readonly string[] = Object.freeze([]);

/**
 * Undefined for texts, numbers, and lists and objects of a few of them; else the names of the members (none for a list).
 * Naming the members of a large object is most of the work there is with it: it should be done once.
 */
export function keysOfLarge(value: unknown): readonly string[] | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  if (Array.isArray(value)) return value.length <= SMALL && !value.some(isContainer) ? undefined : NO_KEYS;
  const object = value as Record<string, unknown>;
  const keys = Object.keys(object);
  if (keys.length > SMALL) return keys;
  for (const key of keys) if (isContainer(object[key])) return keys;
  return undefined;
}

const isContainer = (value: unknown): boolean => typeof value === 'object' && value !== null;

/**
 * What is left of so many nodes; below zero for a value of more. Of a large object, naming the members is all the work
 * there is, but that is some milliseconds: others should be let in after it.
 */
export function nodesLeft(value: unknown, most: number): number {
  if (typeof value !== 'object' || value === null) return most - 1;
  let left = most - 1;
  if (Array.isArray(value)) {
    if (value.length > left) return -1;
    for (let i = 0; i < value.length && left >= 0; i++) left = nodesLeft(value[i], left);
    return left;
  }
  const keys = Object.keys(value);
  if (keys.length > left) return -1;
  for (let i = 0; i < keys.length && left >= 0; i++)
    left = nodesLeft((value as Record<string, unknown>)[keys[i]!], left);
  return left;
}
