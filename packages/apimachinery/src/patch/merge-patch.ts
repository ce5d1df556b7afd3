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
  const kept = Object.keys(base);
  for (const key of kept) {
    const value = base[key];
    if (!Object.hasOwn(patch, key)) setOwn(out, key, isScalar(value) ? value : cloneJson(value));
    else if (patch[key] !== null)
      setOwn(out, key, isScalar(patch[key]) ? patch[key] : applyMergePatch(value, patch[key]));
  }
  const given = Object.keys(patch);
  for (const key of given) {
    if (!Object.hasOwn(base, key) && patch[key] !== null) {
      setOwn(out, key, isScalar(patch[key]) ? patch[key] : applyMergePatch(undefined, patch[key]));
    }
  }
  return out;
}

function withoutNulls(list: readonly unknown[]): unknown[] {
  const out: unknown[] = [];
  for (const item of list) {
    out.push(isScalar(item) ? item : applyMergePatch(undefined, item));
  }
  return out;
}

const isScalar = (value: unknown): boolean => typeof value !== 'object' || value === null;
