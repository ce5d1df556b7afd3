/** JSON Merge Patch (RFC 7386). */
import { cloneJson } from '../meta/deep-clone.ts';
import { isJsonObject, type JsonObject, setOwn } from '../meta/own-property.ts';

/** Applies a merge patch and returns the new document; neither argument is changed nor shared. */
export function applyMergePatch(document: unknown, patch: unknown): unknown {
  if (!isJsonObject(patch)) {
    if (isScalar(patch)) return patch;
    // A list is taken as it is where a map was, and without the nulls of its objects elsewhere (evanphx/json-patch v4).
    return isJsonObject(document) ? cloneJson(patch) : withoutNulls(patch as unknown[]);
  }
  const out: JsonObject = {};
  const base = isJsonObject(document) ? document : {};
  for (const key of Object.keys(base)) {
    const value = base[key];
    if (!Object.hasOwn(patch, key)) setOwn(out, key, isScalar(value) ? value : cloneJson(value));
    else if (patch[key] !== null)
      setOwn(out, key, isScalar(patch[key]) ? patch[key] : applyMergePatch(value, patch[key]));
  }
  for (const key of Object.keys(patch)) {
    if (!Object.hasOwn(base, key) && patch[key] !== null) {
      setOwn(out, key, isScalar(patch[key]) ? patch[key] : applyMergePatch(undefined, patch[key]));
    }
  }
  return out;
}

const withoutNulls = (list: readonly unknown[]): unknown[] =>
  list.map((item) => (isScalar(item) ? item : applyMergePatch(undefined, item)));

const isScalar = (value: unknown): boolean => typeof value !== 'object' || value === null;
