/** Reading and making maps: objects of bound data, and maps made in CEL. */
import { CelEvaluationError, noOverload } from './errors.ts';
import { stringOf } from './to-string.ts';
import {
  CelDouble,
  CelMap,
  CelOptional,
  CelStruct,
  CelUint,
  fromJson,
  intFromBigInt,
  isPlainObject,
  NONE,
  runtimeTypeName,
} from './values.ts';

/** One value for equal keys: 1, 1u and 1.0 are one key. Undefined: no key can be equal. */
function canonicalKey(key: unknown): unknown {
  if (key instanceof CelUint) return intFromBigInt(key.value);
  if (key instanceof CelDouble) {
    if (!Number.isInteger(key.value)) return undefined;
    return Number.isSafeInteger(key.value) ? key.value + 0 : intFromBigInt(BigInt(key.value));
  }
  const kind = typeof key;
  return kind === 'string' || kind === 'number' || kind === 'bigint' || kind === 'boolean' ? key : undefined;
}

/** A map or an object without the key. */
export const noSuchKey = (key: unknown): CelEvaluationError => new CelEvaluationError(`no such key: ${stringOf(key)}`);

const badListIndex = (key: unknown): CelEvaluationError =>
  new CelEvaluationError(`unsupported index type '${runtimeTypeName(key)}' in list`);

/** Whether a value has entries at all. What has none (null, a number, a text) lacks every key: that is no overload error. */
const hasEntries = (value: unknown): boolean => value instanceof CelMap || isPlainObject(value);

/** Sets an entry, also one that is there, and whatever the key is: what is no scalar is equal to itself only. */
export function mapReplace(map: CelMap, key: unknown, value: unknown): void {
  map.entries.set(canonicalKey(key) ?? key, [key, value]);
}

/** The value of a key, or undefined. @throws CelEvaluationError when the target is no map */
export function mapFind(map: unknown, key: unknown): unknown {
  if (map instanceof CelMap) return map.entries.get(canonicalKey(key))?.[1];
  if (isPlainObject(map)) {
    if (typeof key !== 'string' || !Object.hasOwn(map, key)) return undefined;
    return fromJson(map[key]);
  }
  throw noOverload();
}

/** `list[i]`, `map[k]`. */
export function index(target: unknown, key: unknown): unknown {
  if (target instanceof CelOptional) return optionalIndex(target, key);
  if (Array.isArray(target)) return fromJson(target[listIndex(target, key)]);
  if (target instanceof CelStruct) throw noOverload();
  const value = hasEntries(target) ? mapFind(target, key) : undefined;
  if (value === undefined) throw noSuchKey(key);
  return value;
}

function listIndex(list: readonly unknown[], key: unknown): number {
  const position = typeof key === 'number' ? key : canonicalKey(key);
  if (typeof position !== 'number' && typeof position !== 'bigint') {
    if (key instanceof CelDouble) throw new CelEvaluationError(`unsupported index value: ${stringOf(key)}`);
    throw badListIndex(key);
  }
  if (position < 0 || position >= list.length) throw new CelEvaluationError(`index out of bounds: ${position}`);
  return Number(position);
}

/** `x[?k]`: an optional, none when there is no such entry. */
export function optionalIndex(target: unknown, key: unknown): CelOptional {
  const inner = target instanceof CelOptional ? target.value : target;
  if (inner === undefined) return NONE;
  if (Array.isArray(inner)) {
    const position = canonicalKey(key);
    if (typeof position !== 'number' && typeof position !== 'bigint') throw badListIndex(key);
    return position < 0 || position >= inner.length ? NONE : new CelOptional(fromJson(inner[Number(position)]));
  }
  if (inner instanceof CelStruct) {
    const field = inner.fields.get(String(key));
    return field === undefined ? NONE : new CelOptional(field);
  }
  const value = hasEntries(inner) ? mapFind(inner, key) : undefined;
  return value === undefined ? NONE : new CelOptional(value);
}

/** `x.name`. Of an optional: an optional. */
export function select(target: unknown, name: string): unknown {
  if (isPlainObject(target)) {
    const value = target[name];
    if (value === undefined || (name in Object.prototype && !Object.hasOwn(target, name))) throw noSuchKey(name);
    return typeof value === 'number' ? fromJson(value) : value;
  }
  if (target instanceof CelMap) {
    const entry = target.entries.get(name);
    if (entry === undefined) throw noSuchKey(name);
    return entry[1];
  }
  if (target instanceof CelOptional) return optionalIndex(target, name);
  if (target instanceof CelStruct) {
    const value = target.fields.get(name);
    if (value === undefined) throw noSuchKey(name);
    return value;
  }
  if (target === undefined) throw new CelEvaluationError(`no such attribute(s): ${name}`);
  throw Array.isArray(target) ? badListIndex(name) : noSuchKey(name);
}

/** `has(x.name)`. */
export function isSet(target: unknown, name: string): boolean {
  if (isPlainObject(target)) return target[name] !== undefined && Object.hasOwn(target, name);
  if (target instanceof CelMap) return target.entries.has(name);
  if (target instanceof CelStruct) return target.fields.has(name);
  if (target instanceof CelOptional) return target.value !== undefined && isSet(target.value, name);
  if (Array.isArray(target)) throw badListIndex(name);
  return false;
}

export const mapKeys = (map: CelMap | Readonly<Record<string, unknown>>): unknown[] =>
  map instanceof CelMap ? [...map.entries.values()].map(([key]) => key) : Object.keys(map);
