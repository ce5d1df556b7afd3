/** Reads of untyped JSON by path: own properties only, and a wrong type reads as absent. */
import { isJsonObject } from '../meta/own-property.ts';

export type JsonObject = Readonly<Record<string, unknown>>;

const EMPTY_OBJECT: JsonObject = Object.freeze({});

export const isObject = isJsonObject;

/** The value under a path of own properties, or undefined. */
export function valueAt(object: unknown, ...path: string[]): unknown {
  let value = object;
  for (const step of path) {
    if (!isObject(value) || !Object.hasOwn(value, step)) return undefined;
    value = value[step];
  }
  return value;
}

export function textAt(object: unknown, ...path: string[]): string {
  const value = valueAt(object, ...path);
  return typeof value === 'string' ? value : '';
}

export function numberAt(object: unknown, ...path: string[]): number {
  const value = valueAt(object, ...path);
  // An int64 beyond ±2^53 is a bigint: rules compare it, they do not count with it.
  return typeof value === 'number' || typeof value === 'bigint' ? Number(value) : 0;
}

export const isTrueAt = (object: unknown, ...path: string[]): boolean => valueAt(object, ...path) === true;

export function listAt(object: unknown, ...path: string[]): readonly unknown[] {
  const value = valueAt(object, ...path);
  return Array.isArray(value) ? value : [];
}

/** The items of a list that are objects. */
export const objectsAt = (object: unknown, ...path: string[]): readonly Record<string, unknown>[] =>
  listAt(object, ...path).filter(isObject);

export const textsAt = (object: unknown, ...path: string[]): readonly string[] =>
  listAt(object, ...path).filter((item) => typeof item === 'string');

export function objectAt(object: unknown, ...path: string[]): JsonObject {
  const value = valueAt(object, ...path);
  return isObject(value) ? value : EMPTY_OBJECT;
}
