import type { DeepReadonly } from '@coracle/apimachinery/meta/object';

/** Freezes a JSON value all the way down and returns it. Frozen parts are taken to be frozen below as well. */
export function deepFreeze<T>(value: T): DeepReadonly<T> {
  freeze(value);
  return value as DeepReadonly<T>;
}

function freeze(value: unknown): void {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return;
  Object.freeze(value);
  if (Array.isArray(value)) for (const item of value) freeze(item);
  else for (const key of Object.keys(value)) freeze((value as Record<string, unknown>)[key]);
}
