/** CEL values as plain JSON. */

import { encodeBase64 } from '@coracle/apimachinery/meta/base64';
import { setOwn } from '@coracle/apimachinery/meta/own-property';
import { CelEvaluationError, CelTypeNameError } from './errors.ts';
import { formatDuration, formatTimestamp } from './time.ts';
import { stringOf } from './to-string.ts';
import {
  CelDouble,
  CelDuration,
  CelMap,
  CelOptional,
  CelStruct,
  CelTimestamp,
  CelUint,
  isPlainObject,
  runtimeTypeName,
} from './values.ts';

/**
 * Plain JSON of a CEL value. Bound data comes back as the same frozen object. Bytes become base64, times and durations
 * their text, an optional its value; an empty optional inside an object is left out.
 * @throws CelEvaluationError for what JSON cannot say (a type, an IP address, a map with keys of two kinds that collide)
 */
export function celToJson(value: unknown): unknown {
  switch (typeof value) {
    case 'bigint':
      // JSON numbers of this size exist on the wire, but JS reads them as the nearest double.
      return Number(value);
    case 'object':
      return value === null ? null : objectToJson(value);
    default:
      return value;
  }
}

function objectToJson(value: object): unknown {
  if (isPlainObject(value)) return value;
  if (Array.isArray(value)) return value.every(isPlain) ? value : value.map(celToJson);
  if (value instanceof CelDouble) return value.value;
  if (value instanceof CelUint) return Number(value.value);
  if (value instanceof CelTimestamp) return formatTimestamp(value);
  if (value instanceof CelDuration) return formatDuration(value);
  if (value instanceof Uint8Array) return encodeBase64(value);
  if (value instanceof CelOptional) return value.value === undefined ? null : celToJson(value.value);
  if (value instanceof CelMap) return record([...value.entries.values()].map(([key, item]) => [stringOf(key), item]));
  if (value instanceof CelStruct) return structToJson(value);
  throw new CelEvaluationError(`type conversion error from '${runtimeTypeName(value)}' to JSON`);
}

/**
 * `Object{spec: Object.spec{...}}`: the name of a nested object is the path of the field it stands in.
 */
function structToJson(struct: CelStruct): Record<string, unknown> {
  for (const [field, value] of struct.fields) {
    if (struct.typeName.startsWith('Object')) checkNames(value, `${struct.typeName}.${field}`);
  }
  return record([...struct.fields]);
}

function checkNames(value: unknown, path: string): void {
  if (Array.isArray(value)) {
    for (const item of value) checkNames(item, path);
  } else if (value instanceof CelMap) {
    for (const [, item] of value.entries.values()) checkNames(item, path);
  } else if (value instanceof CelStruct && value.typeName !== path) {
    throw new CelTypeNameError(
      `unexpected type name "${value.typeName}", expected "${path}", which matches field name path from root Object type`,
    );
  }
}

const isPlain = (value: unknown): boolean =>
  (typeof value !== 'object' && typeof value !== 'bigint') || value === null || isPlainObject(value);

function record(entries: readonly (readonly [string, unknown])[]): Record<string, unknown> {
  const result: Record<string, unknown> = {};
  for (const [name, item] of entries) {
    if (item instanceof CelOptional && item.value === undefined) continue;
    setOwn(result, name, celToJson(item));
  }
  return result;
}
