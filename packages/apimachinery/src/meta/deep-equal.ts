import { keysOfLarge } from './small.ts';
import type { Pace, Steps } from './steps.ts';

/** Equality of JSON values: member order is ignored, a member that is undefined counts as absent. */
export function deepEqual(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  if (Array.isArray(a)) {
    if (!Array.isArray(b) || a.length !== b.length) return false;
    for (let i = 0; i < a.length; i++) if (!deepEqual(a[i], b[i])) return false;
    return true;
  }
  if (Array.isArray(b)) return false;
  return objectsEqual(a as Record<string, unknown>, b as Record<string, unknown>);
}

function objectsEqual(a: Record<string, unknown>, b: Record<string, unknown>): boolean {
  let members = 0;
  for (const key of Object.keys(a)) {
    const value = a[key];
    if (value === undefined) continue;
    if (!Object.hasOwn(b, key) || !deepEqual(value, b[key])) return false;
    members++;
  }
  for (const key of Object.keys(b)) if (b[key] !== undefined) members--;
  return members === 0;
}

/** The same in steps, for large values. */
export function* equalSteps(a: unknown, b: unknown, pace: Pace): Steps<boolean> {
  if (a === b) return true;
  const keys = keysOfLarge(a);
  return keys === undefined ? deepEqual(a, b) : yield* largeEqual(a as object, b, { keys, pace });
}

function* largeEqual(
  a: object,
  b: unknown,
  { keys, pace }: { readonly keys: readonly string[]; readonly pace: Pace },
): Steps<boolean> {
  // Most members are small: what compares those in steps would cost more than the comparison.
  const member = (left: unknown, right: unknown): boolean | Steps<boolean> => {
    if (left === right) return true;
    const below = keysOfLarge(left);
    return below === undefined ? deepEqual(left, right) : largeEqual(left as object, right, { keys: below, pace });
  };
  if (typeof b !== 'object' || b === null || Array.isArray(a) !== Array.isArray(b)) return false;
  if (pace.due(keys.length >> 2)) yield;
  if (Array.isArray(a)) {
    const list = b as readonly unknown[];
    if (a.length !== list.length) return false;
    for (let i = 0; i < a.length; i++) {
      if (pace.due()) yield;
      const same = member(a[i], list[i]);
      if (same === false || (same !== true && !(yield* same))) return false;
    }
    return true;
  }
  const [left, right] = [a as Record<string, unknown>, b as Record<string, unknown>];
  let members = 0;
  for (const key of keys) {
    const value = left[key];
    if (value === undefined) continue;
    if (pace.due()) yield;
    if (!Object.hasOwn(right, key)) return false;
    const same = member(value, right[key]);
    if (same === false || (same !== true && !(yield* same))) return false;
    members++;
  }
  for (const key of Object.keys(right)) if (right[key] !== undefined) members--;
  return members === 0;
}
