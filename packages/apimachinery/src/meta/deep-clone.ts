import type { DeepReadonly } from './object.ts';
import { setOwn } from './own-property.ts';
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
