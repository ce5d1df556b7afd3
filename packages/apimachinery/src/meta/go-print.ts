/** Values as Go's fmt prints what json decodes into interface{}: `%v`, `%s`, and the names of types. */
import { goFloat, isInt64 } from './go-text.ts';

/** `%v`: `map[a:1 b:[x y]]`, members sorted. */
export function goPlain(value: unknown): string {
  if (value === null || value === undefined) return '<nil>';
  if (Array.isArray(value)) return `[${value.map(goPlain).join(' ')}]`;
  if (typeof value === 'object') return `map[${membersOf(value, goPlain)}]`;
  return typeof value === 'number' && !isInt64(value) ? goFloat(value) : String(value);
}

/** `%s`: a text as it is, anything else with the complaint that it is none. */
export function goText(value: unknown): string {
  if (typeof value === 'string') return value;
  if (value === null || value === undefined) return '%!s(<nil>)';
  if (Array.isArray(value)) return `[${value.map(goText).join(' ')}]`;
  if (typeof value === 'object') return `map[${membersOf(value, goText)}]`;
  return `%!s(${goTypeOf(value)}=${goPlain(value)})`;
}

/** The type a decoded value has; undefined for null, which has none. */
export function goTypeOf(value: unknown): string | undefined {
  if (value === null || value === undefined) return undefined;
  if (Array.isArray(value)) return '[]interface {}';
  switch (typeof value) {
    case 'object':
      return 'map[string]interface {}';
    case 'number':
      return isInt64(value) ? 'int64' : 'float64';
    case 'bigint':
      return 'int64';
    case 'boolean':
      return 'bool';
    default:
      return 'string';
  }
}

const membersOf = (object: object, print: (value: unknown) => string): string =>
  Object.keys(object)
    .sort()
    .map((key) => `${key}:${print((object as Record<string, unknown>)[key])}`)
    .join(' ');
