/**
 * Own-property access for JSON objects whose keys come from users. `object[key] = value` with the key `__proto__` would
 * swap the prototype instead of adding a member, and `object['constructor']` would find an inherited one.
 */

export type JsonObject = Record<string, unknown>;

/** True for a JSON object (not null, not an array). */
export const isJsonObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Adds or replaces a member, whatever its name. */
export function setOwn(object: JsonObject, key: string, value: unknown): void {
  if (key === '__proto__') {
    Object.defineProperty(object, key, { value, writable: true, enumerable: true, configurable: true });
  } else {
    object[key] = value;
  }
}

/** The member of that name, undefined when the object itself has none. */
export const getOwn = (object: Readonly<JsonObject>, key: string): unknown =>
  Object.hasOwn(object, key) ? object[key] : undefined;
