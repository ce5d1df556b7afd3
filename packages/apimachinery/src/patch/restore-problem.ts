/**
 * What upstream says of a strategic merge patch whose result is no object of its kind: such a result is not decoded from
 * JSON but moved member by member into the Go type (apimachinery's runtime/converter.go), in words of its own.
 */
import { decodeProblem } from '../schema/decode-errors.ts';
import type { Schema } from '../schema/schema.ts';

/** The first member that cannot be moved, in those words; undefined when all can. */
export function restoreProblem(schema: Schema, value: unknown): string | undefined {
  if (value === null || value === undefined || decodeProblem(schema, value) === undefined) return undefined;
  if (schema['x-kubernetes-int-or-string'] || schema.format !== undefined || schema.type === undefined) {
    return scalarProblem(schema, value);
  }
  if (schema.type === 'array')
    return Array.isArray(value) ? itemProblem(schema, value) : `cannot restore slice from ${kindOf(value)}`;
  if (schema.type !== 'object') return scalarProblem(schema, value);
  if (typeof value !== 'object' || Array.isArray(value)) {
    // A named type without members of its own decodes itself (Quantity), one with them is a struct.
    if (schema.properties) return `cannot restore struct from: ${kindOf(value)}`;
    return schema.additionalProperties ? `cannot restore map from ${kindOf(value)}` : decodeProblem(schema, value);
  }
  for (const [key, member] of Object.entries(value)) {
    const isProperty = schema.properties !== undefined && Object.hasOwn(schema.properties, key);
    const at = isProperty ? schema.properties?.[key] : schema.additionalProperties;
    const problem = typeof at === 'object' ? restoreProblem(at, member) : undefined;
    if (problem !== undefined) return problem;
  }
  return decodeProblem(schema, value);
}

function itemProblem(schema: Schema, items: readonly unknown[]): string | undefined {
  for (const item of items) {
    const problem = schema.items && restoreProblem(schema.items, item);
    if (problem !== undefined) return problem;
  }
  return decodeProblem(schema, items);
}

/** Go converts numbers to numbers, and finds a number convertible to a string without being willing to do it. */
function scalarProblem(schema: Schema, value: unknown): string | undefined {
  const from = kindOf(value);
  const to = goKindOf(schema);
  if (to === undefined || from === to) return decodeProblem(schema, value);
  const isNumber = from === 'int64' || from === 'float64';
  const wantsNumber = to === 'int32' || to === 'int64' || to === 'float64';
  const convertible = (isNumber && wantsNumber) || (from === 'int64' && to === 'string');
  return convertible ? `cannot convert ${from} to ${to}` : `unrecognized type: ${to}`;
}

/** Undefined for a type that decodes itself. */
function goKindOf(schema: Schema): string | undefined {
  if (schema['x-kubernetes-int-or-string']) return undefined;
  switch (schema.type) {
    case 'string':
      return schema.format === undefined ? 'string' : undefined;
    case 'boolean':
      return 'bool';
    case 'number':
      return 'float64';
    case 'integer':
      return schema.format === 'int32' ? 'int32' : 'int64';
    default:
      return undefined;
  }
}

function kindOf(value: unknown): string {
  if (Array.isArray(value)) return 'slice';
  switch (typeof value) {
    case 'string':
      return 'string';
    case 'boolean':
      return 'bool';
    case 'number':
      return Number.isInteger(value) ? 'int64' : 'float64';
    default:
      return 'map';
  }
}
