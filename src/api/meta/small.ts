/** What work in steps does not look into: it is done with in one go. */
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
