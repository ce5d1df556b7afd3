import { cloneJson } from '../meta/deep-clone.ts';
import { deepEqual } from '../meta/deep-equal.ts';
import { getOwn, isJsonObject, type JsonObject, setOwn } from '../meta/own-property.ts';

/**
 * The merge patch (RFC 7386) that turns `from` into `to`; undefined when they are equal. Lists are replaced whole. A
 * merge patch cannot say "set to null", so a member that is null or undefined in `to` is treated as absent.
 */
export function createMergePatch(from: unknown, to: unknown): unknown {
  if (!isJsonObject(from) || !isJsonObject(to)) {
    return deepEqual(from, to) ? undefined : withoutNulls(to);
  }
  const patch: JsonObject = {};
  let changed = false;
  const set = (key: string, value: unknown): void => {
    setOwn(patch, key, value);
    changed = true;
  };
  for (const key of Object.keys(from)) {
    if (from[key] === undefined || from[key] === null) continue;
    const wanted = getOwn(to, key);
    if (wanted === undefined || wanted === null) {
      set(key, null);
    } else if (from[key] !== wanted) {
      const inner = createMergePatch(from[key], wanted);
      if (inner !== undefined) set(key, inner);
    }
  }
  for (const key of Object.keys(to)) {
    const had = getOwn(from, key);
    if ((had === undefined || had === null) && to[key] !== undefined && to[key] !== null) {
      set(key, withoutNulls(to[key]));
    }
  }
  return changed ? patch : undefined;
}

/** Inside a patch a null member would mean removal; in lists nulls are values and stay. */
function withoutNulls(value: unknown): unknown {
  if (!isJsonObject(value)) return cloneJson(value);
  const out: JsonObject = {};
  for (const key of Object.keys(value)) {
    if (value[key] !== null && value[key] !== undefined) setOwn(out, key, withoutNulls(value[key]));
  }
  return out;
}
