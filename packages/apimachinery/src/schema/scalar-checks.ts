/** Checks of one value by its own keywords: type, string, number, enum. Part of `validate.ts`. */
import { deepEqual } from '../meta/deep-equal.ts';
import { goFloat, isInt64, sortMembers } from '../meta/go-text.ts';
import { formatCheck, isCheckedFormat } from './formats.ts';
import { compilePattern } from './patterns.ts';
import type { Schema } from './schema.ts';
import {
  anonymous,
  type Check,
  fail,
  here,
  invalid,
  typeName,
  typeText,
  unsupported,
  type Walk,
} from './validation-walk.ts';

const typesOf = (schema: Schema): readonly string[] =>
  schema['x-kubernetes-int-or-string'] ? ['integer', 'string'] : schema.type === undefined ? [] : [schema.type];

/** The format, when it is one that is looked at in values of this type. */
function formatOf(schema: Schema): string | undefined {
  const { format } = schema;
  const type = schema['x-kubernetes-int-or-string'] ? '' : (schema.type ?? '');
  return format !== undefined && isCheckedFormat(type, format) ? format : undefined;
}

export function compileNull(schema: Schema): Check {
  const wanted = typesOf(schema).join(',');
  const allowed = schema.nullable === true || wanted === '';
  // Upstream compares with the Go type of each choice, and null has none: not even null among them is one.
  const choices = schema.enum ?? [];
  return (_value, walk) => {
    if (!allowed) typeText(walk, wanted, 'null');
    if (choices.length > 0) unsupported(walk, null, choices);
  };
}

export function typeCheck(schema: Schema): Check | undefined {
  const types = typesOf(schema);
  const format = formatOf(schema);
  if (types.length === 0) return undefined;
  const wanted = types.join(',');
  const numeric = types.includes('integer') || types.includes('number');
  const accepts = acceptsType(types);
  return (value, walk) => {
    if (accepts(value)) return;
    const found = typeName(value);
    if (found === 'array' && format !== undefined && !numeric) return;
    if (format === undefined || found === 'string' || found === 'array') typeText(walk, wanted, found);
    else typeText(walk, format, found === 'integer' ? 'int64' : found === 'number' ? 'float64' : '');
  };
}

function acceptsType(types: readonly string[]): (value: unknown) => boolean {
  if (types.length > 1) return (v) => typeof v === 'string' || isWhole(v);
  switch (types[0]) {
    case 'string':
      return (v) => typeof v === 'string';
    case 'boolean':
      return (v) => typeof v === 'boolean';
    case 'integer':
      return isWhole;
    case 'number':
      return isNumber;
    case 'array':
      return Array.isArray;
    default:
      return (v) => typeof v === 'object' && !Array.isArray(v);
  }
}

const isNumber = (v: unknown): v is number | bigint => typeof v === 'number' || typeof v === 'bigint';
/** What Go reads as an int64; a number beyond it is a float64 there. */
const isWhole = (v: unknown): boolean => typeof v === 'bigint' || (typeof v === 'number' && isInt64(v));

export function stringCheck(schema: Schema): Check | undefined {
  const { minLength, maxLength, pattern: source } = schema;
  const format = formatOf(schema);
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
    // One of the three is reported.
    if (maxLength !== undefined && value.length > maxLength && runes(value) > maxLength) {
      const detail = `may not be more than ${maxLength} ${maxLength === 1 ? 'byte' : 'bytes'}`;
      walk.errors.push({ type: 'FieldValueTooLong', field: here(walk), detail });
    } else if (minLength !== undefined && value.length < 2 * minLength && runes(value) < minLength) {
      invalid(walk, value, `should be at least ${minLength} chars long`);
    } else if (source !== undefined && !pattern?.test(value)) {
      invalid(walk, value, `should match '${source}${broken}'`);
    }
    if (formatOk !== undefined && !formatOk(value)) typeText(walk, format!, value);
  };
}

/** Code points, as Go counts runes. */
function runes(text: string): number {
  let count = 0;
  for (const _ of text) count++;
  return count;
}

/** Whether a number fits into the Go type that a type and format stand for. */
function rangeOf(type: string | undefined, format: string | undefined): (value: number) => boolean {
  if (type === 'integer' && format === 'int32') return (n) => Number.isInteger(n) && n >= -(2 ** 31) && n < 2 ** 31;
  if (type === 'integer') return isInt64;
  return type === 'number' && format === 'float' ? (n) => Number.isFinite(Math.fround(n)) : () => true;
}

const remainder = (value: number | bigint, factor: number): number =>
  typeof value === 'bigint' ? Number(value % BigInt(factor)) : value % factor;

export function numberCheck(schema: Schema): Check | undefined {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf } = schema;
  const types = typesOf(schema);
  // Of two types (int-or-string) none says anything about ranges.
  const type = types.length === 1 ? types[0] : undefined;
  const format = formatOf(schema);
  const isBound = minimum !== undefined || maximum !== undefined || multipleOf !== undefined;
  if (!isBound && type !== 'integer' && format !== 'float') return undefined;
  const fits = rangeOf(type, format);
  const shown = format === undefined ? '(default format)' : `with format ${format}`;
  const reported = (walk: Walk, what: string): void =>
    anonymous(walk, `${what} value must be of type ${type} ${shown} in ${here(walk)}`);
  /** Integers are held against the integer part of a bound, when the bound itself is of the type. */
  const compared = (value: number | bigint, bound: number) => {
    const isInt = fits(bound) && (typeof value === 'bigint' || isInt64(value));
    const used = isInt ? Math.trunc(bound) : bound;
    return { bound: used, text: isInt ? String(used) : goFloat(used), isInt };
  };
  return (given, walk) => {
    if (!isNumber(given)) return;
    const value = Number(given);
    // A bigint fits an int64 by its nature; as a double the last of them would not.
    if (typeof given === 'bigint' ? format === 'int32' : !fits(value)) reported(walk, 'Checked');
    if (multipleOf !== undefined) {
      if (!fits(multipleOf)) reported(walk, 'MultipleOf');
      const { bound, text, isInt } = compared(given, multipleOf);
      if (bound <= 0) {
        const detail = `factor MultipleOf declared for ${here(walk)} must be positive: ${text}`;
        fail(walk, 'FieldValueInvalid', bound, detail);
      } else if (isInt ? remainder(given, bound) !== 0 : !isMultiple(value, bound)) {
        invalid(walk, value, `should be a multiple of ${text}`);
      }
    }
    if (minimum !== undefined) {
      if (!fits(minimum)) reported(walk, 'Minimum boundary');
      const { bound, text } = compared(given, minimum);
      if (exclusiveMinimum ? given <= bound : given < bound) {
        invalid(walk, value, `should be greater than ${exclusiveMinimum ? '' : 'or equal to '}${text}`);
      }
    }
    if (maximum !== undefined) {
      if (!fits(maximum)) reported(walk, 'Maximum boundary');
      const { bound, text } = compared(given, maximum);
      if (exclusiveMaximum ? given >= bound : given > bound) {
        invalid(walk, value, `should be less than ${exclusiveMaximum ? '' : 'or equal to '}${text}`);
      }
    }
  };
}

/** Decimal factors such as 0.1 are not exact in binary: a quotient within rounding distance of an integer counts. */
function isMultiple(value: number, factor: number): boolean {
  const quotient = factor < 1 ? (1 / factor) * value : value / factor;
  if (Math.abs(quotient) > Number.MAX_SAFE_INTEGER) return false;
  const rounded = Math.round(quotient);
  return quotient === rounded || (rounded !== 0 && Math.abs(quotient - rounded) < 1e-9 * Math.abs(rounded));
}

export function enumCheck(schema: Schema): Check | undefined {
  const allowed = schema.enum;
  if (allowed === undefined || allowed.length === 0) return undefined;
  const simple = new Set(allowed);
  return (value, walk) => {
    if (simple.has(value)) return;
    if (typeof value === 'object' && allowed.some((v) => deepEqual(v, value))) return;
    // Upstream converts a number to the Go type of each choice first, and so cuts off what an integer can not hold.
    if (typeof value === 'number' && simple.has(Math.trunc(value)) && isInt64(Math.trunc(value))) return;
    unsupported(walk, sortMembers(value), allowed);
  };
}
