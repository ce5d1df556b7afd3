/** The verbs in which defaults are written down. They change the object in place; `null` counts as unset. */
import { isObject } from '@coracle/apimachinery/types/read-value';

export type MutableObject = Record<string, unknown>;

/** True for a field that a default is for. */
export const isUnset = (object: MutableObject, key: string): boolean =>
  !Object.hasOwn(object, key) || object[key] === undefined || object[key] === null;

/** Sets each value whose field is unset. Values must be scalars or fresh: they become part of the object. */
export function preset(object: MutableObject, values: Readonly<Record<string, unknown>>): void {
  for (const [key, value] of Object.entries(values)) if (isUnset(object, key)) object[key] = value;
}

/** The object in a field, made when the field is unset; undefined when something else stands there. */
export function ensureObject(object: MutableObject, key: string): MutableObject | undefined {
  if (isUnset(object, key)) object[key] = {};
  return member(object, key);
}

/** The object in a field, if it is there. */
export function member(object: MutableObject | undefined, key: string): MutableObject | undefined {
  if (object === undefined || !Object.hasOwn(object, key)) return undefined;
  const value = object[key];
  return isObject(value) ? value : undefined;
}

/** The objects in a list field. */
export function members(object: MutableObject | undefined, key: string): MutableObject[] {
  if (object === undefined || !Object.hasOwn(object, key)) return [];
  const value = object[key];
  return Array.isArray(value) ? value.filter(isObject) : [];
}
