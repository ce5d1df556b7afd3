/** Checks of one value by its own keywords: type, string, number, enum. Part of `validate.ts`. */
import { deepEqual } from '../meta/deep-equal.ts';
import { formatCheck } from './formats.ts';
import { compilePattern } from './patterns.ts';
import type { Schema } from './schema.ts';
import { anonymous, type Check, here, invalid, typeName, typeText, unsupported } from './validation-walk.ts';

const typesOf = (schema: Schema): readonly string[] =>
  schema['x-kubernetes-int-or-string'] ? ['integer', 'string'] : schema.type === undefined ? [] : [schema.type];

export function compileNull(schema: Schema): Check {
  const wanted = typesOf(schema).join(',');
  const allowed = schema.nullable === true || wanted === '';
  const inEnum = schema.enum === undefined || schema.enum.includes(null);
  return (_value, walk) => {
    if (!allowed) typeText(walk, wanted, 'null');
    else if (!inEnum) unsupported(walk, null, schema.enum!);
  };
}

export function typeCheck(schema: Schema): Check | undefined {
  const types = typesOf(schema);
  const { format } = schema;
  if (types.length === 0) return undefined;
  const wanted = types.join(',');
  const numeric = types.includes('integer') || types.includes('number');
  const accepts = acceptsType(types);
  return (value, walk) => {
    if (accepts(value)) return;
    const found = typeName(value);
    if (found === 'array' && format !== undefined && !numeric) return;
    if (format !== undefined && found !== 'string' && found !== 'array') {
      const foundFormat = found === 'integer' ? 'int64' : found === 'number' ? 'float64' : '';
      typeText(walk, format, foundFormat);
    } else {
      typeText(walk, wanted, found);
    }
  };
}

function acceptsType(types: readonly string[]): (value: unknown) => boolean {
  if (types.length > 1) return (v) => typeof v === 'string' || (typeof v === 'number' && Number.isInteger(v));
  switch (types[0]) {
    case 'string':
      return (v) => typeof v === 'string';
    case 'boolean':
      return (v) => typeof v === 'boolean';
    case 'integer':
      return (v) => typeof v === 'number' && Number.isInteger(v);
    case 'number':
      return (v) => typeof v === 'number';
    case 'array':
      return Array.isArray;
    default:
      return (v) => typeof v === 'object' && !Array.isArray(v);
  }
}

export function stringCheck(schema: Schema): Check | undefined {
  const { minLength, maxLength, pattern: source, format } = schema;
  const formatOk = format === undefined || typesOf(schema).includes('integer') ? undefined : formatCheck(format);
  if (minLength === undefined && maxLength === undefined && source === undefined && !formatOk) return undefined;
  let pattern: { test(text: string): boolean } | undefined;
  let broken = '';
  if (source !== undefined) {
    try {
      pattern = compilePattern(source);
    } catch (error) {
      broken = `, but pattern is invalid: ${(error as Error).message}`;
    }
  }
  return (value, walk) => {
    if (typeof value !== 'string') return;
    if (minLength !== undefined && value.length < 2 * minLength && runes(value) < minLength) {
      invalid(walk, value, `should be at least ${minLength} chars long`);
    }
    if (maxLength !== undefined && value.length > maxLength && runes(value) > maxLength) {
      walk.errors.push({
        type: 'FieldValueTooLong',
        field: here(walk),
        detail: `may not be more than ${maxLength} ${maxLength === 1 ? 'byte' : 'bytes'}`,
      });
    }
    if (source !== undefined && !pattern?.test(value)) invalid(walk, value, `should match '${source}${broken}'`);
    if (formatOk !== undefined && !formatOk(value)) typeText(walk, format!, value);
  };
}

/** Code points, as Go counts runes. */
function runes(text: string): number {
  let count = 0;
  for (const _ of text) count++;
  return count;
}

const INT_RANGES: Readonly<Record<string, readonly [number, number]>> = {
  int32: [-2147483648, 2147483647],
  uint32: [0, 4294967295],
  // The largest doubles below the bounds: the bounds themselves are not representable.
  int64: [-(2 ** 63), 2 ** 63 - 1024],
  uint64: [0, 2 ** 64 - 2048],
};

export function numberCheck(schema: Schema): Check | undefined {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf, format } = schema;
  const range = typesOf(schema)[0] === 'integer' ? INT_RANGES[format ?? 'int64'] : undefined;
  if (minimum === undefined && maximum === undefined && multipleOf === undefined && !range) return undefined;
  return (value, walk) => {
    if (typeof value !== 'number') return;
    if (range !== undefined && Number.isInteger(value) && (value < range[0] || value > range[1])) {
      const shown = format === undefined ? '(default format)' : `with format ${format}`;
      anonymous(walk, `Checked value must be of type integer ${shown} in ${here(walk)}`);
    }
    if (multipleOf !== undefined && !isMultiple(value, multipleOf)) {
      invalid(walk, value, `should be a multiple of ${multipleOf}`);
    }
    if (maximum !== undefined && (exclusiveMaximum ? value >= maximum : value > maximum)) {
      invalid(walk, value, `should be less than ${exclusiveMaximum ? '' : 'or equal to '}${maximum}`);
    }
    if (minimum !== undefined && (exclusiveMinimum ? value <= minimum : value < minimum)) {
      invalid(walk, value, `should be greater than ${exclusiveMinimum ? '' : 'or equal to '}${minimum}`);
    }
  };
}

/** Decimal factors such as 0.1 are not exact in binary: a quotient within rounding distance of an integer counts. */
function isMultiple(value: number, factor: number): boolean {
  const quotient = factor < 1 ? (1 / factor) * value : value / factor;
  return Math.abs(quotient - Math.round(quotient)) <= 1e-9 * Math.max(1, Math.abs(quotient));
}

export function enumCheck(schema: Schema): Check | undefined {
  const allowed = schema.enum;
  if (allowed === undefined || allowed.length === 0) return undefined;
  const simple = new Set(allowed);
  return (value, walk) => {
    if (simple.has(value)) return;
    if (typeof value === 'object' && allowed.some((v) => deepEqual(v, value))) return;
    unsupported(walk, value, allowed);
  };
}
