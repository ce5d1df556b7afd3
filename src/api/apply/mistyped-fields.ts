/**
 * Values of an applied configuration that have the wrong type, worded as structured-merge-diff words it. Upstream answers
 * them with 500, as all that cannot be typed; what a value looks like there is how Go prints it.
 */
import { isJsonObject } from '../meta/own-property.ts';
import { decodeProblem } from '../schema/decode-errors.ts';
import type { Schema } from '../schema/schema.ts';
import { keyText } from './to-field-set.ts';
import { listItems, memberSchema, rootSchema } from './topology.ts';

/** `.spec.replicas: expected numeric (int or float), got string` for each value that does not fit its kind. */
export function mistypedFields(kind: Schema, config: unknown): string[] {
  const schema = rootSchema(kind);
  // Compiled, and nearly always the end of it.
  if (decodeProblem(schema, config) === undefined) return [];
  const found: string[] = [];
  check(schema, config, '', found);
  return found;
}

/** Types that take what they are given; the rest of them is checked when they are decoded. */
const OPEN_TYPES =
  /\.(RawExtension|JSON|FieldsV1|JSONSchemaPropsOrBool|JSONSchemaPropsOrArray|JSONSchemaPropsOrStringArray)$/;

function check(schema: Schema | undefined, value: unknown, path: string, found: string[]): void {
  if (schema === undefined || value === null || value === undefined) return;
  const name = schema['x-coracle-name'];
  if (name !== undefined && OPEN_TYPES.test(name)) return;
  const problem = problemOf(schema, value);
  if (problem !== undefined) {
    found.push(`${path}: ${problem}`);
  } else if (Array.isArray(value)) {
    const type = schema['x-kubernetes-list-type'];
    const items = type === 'map' || type === 'set' ? listItems(schema, value).items : undefined;
    value.forEach((item, i) => {
      check(schema.items, item, path + stepOf(items?.[i]?.element, i), found);
    });
  } else if (isJsonObject(value)) {
    for (const [key, member] of Object.entries(value)) {
      check(memberSchema(schema, key), member, `${path}.${key}`, found);
    }
  }
}

function stepOf(element: string | undefined, index: number): string {
  if (element?.startsWith('k:')) return keyText(element);
  return element?.startsWith('v:') ? `[=${element.slice(2)}]` : `[${index}]`;
}

function problemOf(schema: Schema, value: unknown): string | undefined {
  const isScalar = typeof value !== 'object';
  switch (schema.type) {
    case 'array':
      return Array.isArray(value) ? undefined : `expected list, got &{${plain(value)}}`;
    case 'object':
      return isJsonObject(value) ? undefined : `expected map, got &{${plain(value)}}`;
    case 'integer':
    case 'number':
      return typeof value === 'number' ? undefined : `expected numeric (int or float), got ${goType(value)}`;
    case 'boolean':
      return typeof value === 'boolean' ? undefined : `expected boolean, got &{${plain(value)}}`;
    case 'string':
      if (!isPlainText(schema)) return isScalar ? undefined : `expected any scalar, got &{${plain(value)}}`;
      return typeof value === 'string'
        ? undefined
        : `expected string, got &value.valueUnstructured{Value:${syntax(value)}}`;
    default:
      return undefined;
  }
}

/** Texts with a format of their own, quantities and the like are any scalar to upstream's merge. */
const isPlainText = (schema: Schema): boolean =>
  (schema.format === undefined || schema.format === 'byte') &&
  schema['x-coracle-name'] === undefined &&
  !schema['x-kubernetes-int-or-string'];

function goType(value: unknown): string {
  if (Array.isArray(value)) return '[]interface {}';
  if (isJsonObject(value)) return 'map[string]interface {}';
  return typeof value === 'boolean' ? 'bool' : 'string';
}

/** Go's `%v`. */
function plain(value: unknown): string {
  if (value === null) return '<nil>';
  if (Array.isArray(value)) return `[${value.map(plain).join(' ')}]`;
  if (!isJsonObject(value)) return String(value);
  return `map[${sorted(value)
    .map(([key, member]) => `${key}:${plain(member)}`)
    .join(' ')}]`;
}

/** Go's `%#v`. */
function syntax(value: unknown): string {
  if (value === null) return 'interface {}(nil)';
  if (Array.isArray(value)) return `[]interface {}{${value.map(syntax).join(', ')}}`;
  if (!isJsonObject(value)) return JSON.stringify(value);
  return `map[string]interface {}{${sorted(value)
    .map(([key, member]) => `${JSON.stringify(key)}:${syntax(member)}`)
    .join(', ')}}`;
}

const sorted = (object: Readonly<Record<string, unknown>>): [string, unknown][] =>
  Object.entries(object).sort(([a], [b]) => (a < b ? -1 : 1));
