import type { DeepReadonly } from './object.ts';
import { setOwn } from './own-property.ts';
import { keysOfLarge } from './small.ts';
import type { Pace, Steps } from './steps.ts';

/**
 * A mutable deep copy of a JSON value. Plain recursion: several times faster than structuredClone on small trees, and
 * it keeps a member named `__proto__` a member.
 */
export function cloneJson<T>(value: DeepReadonly<T> | T): T {
  return copy(value) as T;
}

function copy(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) {
    const out = new Array<unknown>(value.length);
    for (let i = 0; i < value.length; i++) out[i] = copy(value[i]);
    return out;
  }
  const source = value as Record<string, unknown>;
  const out: Record<string, unknown> = {};
  for (const key of Object.keys(source)) {
    const member = source[key];
    const cloned = typeof member === 'object' && member !== null ? copy(member) : member;
    if (key === '__proto__') setOwn(out, key, cloned);
    else out[key] = cloned;
  }
  return out;
}

/** The same in steps, for large values. */
export function* cloneSteps(value: unknown, pace: Pace): Steps<unknown> {
  const keys = keysOfLarge(value);
  return keys === undefined ? copy(value) : yield* cloneLarge(value as object, keys, pace);
}

/** Most members are small: what copies those in steps would cost more than the copy. */
function* cloneLarge(value: object, keys: readonly string[], pace: Pace): Steps<unknown> {
  if (Array.isArray(value)) {
    const out: unknown[] = [];
    for (const item of value) {
      const below = keysOfLarge(item);
      out.push(below === undefined ? copy(item) : yield* cloneLarge(item, below, pace));
      if (pace.due()) yield;
    }
    return out;
  }
  const source = value as Record<string, unknown>;
  const out: Record<string, unknown> = {};
  if (pace.due(keys.length)) yield;
  for (const key of keys) {
    const member = source[key];
    const below = keysOfLarge(member);
    setOwn(out, key, below === undefined ? copy(member) : yield* cloneLarge(member as object, below, pace));
    if (pace.due()) yield;
  }
  return out;
}
