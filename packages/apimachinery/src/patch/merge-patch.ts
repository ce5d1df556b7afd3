/** JSON Merge Patch (RFC 7386). */
import { cloneSteps } from '../meta/deep-clone.ts';
import { isJsonObject, type JsonObject, setOwn } from '../meta/own-property.ts';
import { finish, Pace, type Steps } from '../meta/steps.ts';

/** Applies a merge patch and returns the new document; neither argument is changed nor shared. */
export const applyMergePatch = (document: unknown, patch: unknown): unknown =>
  finish(applyMergePatchSteps(document, patch));

/** The same in steps, for large patches and documents. */
export function* applyMergePatchSteps(document: unknown, patch: unknown, pace: Pace = new Pace()): Steps<unknown> {
  if (!isJsonObject(patch)) {
    if (isScalar(patch)) return patch;
    // A list is taken as it is where a map was, and without the nulls of its objects elsewhere (evanphx/json-patch v4).
    return isJsonObject(document) ? yield* cloneSteps(patch, pace) : yield* withoutNulls(patch as unknown[], pace);
  }
  const out: JsonObject = {};
  const base = isJsonObject(document) ? document : {};
  const kept = Object.keys(base);
  if (pace.due(kept.length)) yield;
  for (const key of kept) {
    const value = base[key];
    if (!Object.hasOwn(patch, key)) setOwn(out, key, isScalar(value) ? value : yield* cloneSteps(value, pace));
    else if (patch[key] !== null)
      setOwn(out, key, isScalar(patch[key]) ? patch[key] : yield* applyMergePatchSteps(value, patch[key], pace));
    if (pace.due()) yield;
  }
  const given = Object.keys(patch);
  if (pace.due(given.length)) yield;
  for (const key of given) {
    if (!Object.hasOwn(base, key) && patch[key] !== null) {
      setOwn(out, key, isScalar(patch[key]) ? patch[key] : yield* applyMergePatchSteps(undefined, patch[key], pace));
    }
    if (pace.due()) yield;
  }
  return out;
}

function* withoutNulls(list: readonly unknown[], pace: Pace): Steps<unknown[]> {
  const out: unknown[] = [];
  for (const item of list) {
    out.push(isScalar(item) ? item : yield* applyMergePatchSteps(undefined, item, pace));
    if (pace.due()) yield;
  }
  return out;
}

const isScalar = (value: unknown): boolean => typeof value !== 'object' || value === null;
