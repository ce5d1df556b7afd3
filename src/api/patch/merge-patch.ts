/** JSON Merge Patch (RFC 7386). */
import { cloneJson } from '../meta/deep-clone.ts';
import { isJsonObject, type JsonObject, setOwn } from '../meta/own-property.ts';

/** Applies a merge patch and returns the new document; neither argument is changed nor shared. */
export function applyMergePatch(document: unknown, patch: unknown): unknown {
  if (!isJsonObject(patch)) return cloneJson(patch);
  const out: JsonObject = {};
  const base = isJsonObject(document) ? document : {};
  for (const key of Object.keys(base)) {
    if (!Object.hasOwn(patch, key)) setOwn(out, key, cloneJson(base[key]));
    else if (patch[key] !== null) setOwn(out, key, applyMergePatch(base[key], patch[key]));
  }
  for (const key of Object.keys(patch)) {
    if (!Object.hasOwn(base, key) && patch[key] !== null) setOwn(out, key, applyMergePatch(undefined, patch[key]));
  }
  return out;
}
