/**
 * What of an object cannot be typed by its kind, worded as structured-merge-diff words it (typed/validate.go): fields the
 * kind does not have, values of the wrong type, items of keyed lists and sets without an identity of their own. Upstream
 * refuses such a configuration before it merges anything, whatever `fieldValidation` says.
 */
import { jsonKind } from '../meta/go-text.ts';
import { isJsonObject } from '../meta/own-property.ts';
import { ApiError } from '../meta/status.ts';
import type { Schema } from '../schema/schema.ts';
import { createReach } from '../schema/schema-reach.ts';
import { stepText } from './field-set.ts';
import { isDeclared, itemElement, memberSchema, rootSchema } from './topology.ts';

/**
 * `.spec.replicas: expected numeric (int or float), got string` for each place that does not fit the kind. A stored list may
 * name an item twice (`allowDuplicates`); a configuration may not.
 */
export function typingErrors(kind: Schema, value: unknown, { allowDuplicates = false } = {}): string[] {
  const found: string[] = [];
  visit(rootSchema(kind), value, { path: '', found, allowDuplicates, open: false, root: true });
  return found;
}

/**
 * True for a kind whose valid objects may still be impossible to type: sets take texts, numbers and booleans only, while
 * a definition may declare sets of maps and lists.
 */
export const mayBeUntypable = createReach(
  (schema) =>
    schema['x-kubernetes-list-type'] === 'set' &&
    (schema.items?.type === 'object' || schema.items?.type === 'array' || schema.items?.type === undefined),
);

/**
 * The refusal of a configuration that cannot be typed: 500 without a reason, as upstream answers an error that is no
 * Status. `whose` is `namespace/name; group/version, Kind=K`.
 */
export const untypedConfig = (whose: string, problems: readonly string[]): ApiError =>
  new ApiError({ code: 500, message: `failed to create typed patch object (${whose}): ${typingText(problems)}` });

/** One problem as it is, more in a list of their own lines. */
export const typingText = (problems: readonly string[]): string =>
  problems.length === 1 ? problems[0]! : `errors:\n${problems.map((one) => `  ${one}`).join('\n')}`;

interface Place {
  readonly path: string;
  readonly found: string[];
  readonly allowDuplicates: boolean;
  /** Below a part that keeps unknown fields everything is kept, down to the next named type. */
  readonly open: boolean;
  readonly root?: boolean;
}

/** Types that take what they are given; the rest of them is checked when they are decoded. */
const OPEN_TYPES = /\.(RawExtension|JSON|JSONSchemaPropsOrBool|JSONSchemaPropsOrArray|JSONSchemaPropsOrStringArray)$/;

function visit(schema: Schema | undefined, value: unknown, place: Place): void {
  if (schema === undefined || value === null || value === undefined) return;
  const name = schema['x-coracle-name'];
  if (name !== undefined && OPEN_TYPES.test(name)) return;
  const wanted = wantedFor(schema, value);
  if (wanted !== undefined) place.found.push(`${place.path}: expected ${wanted}, got ${jsonKind(value)}`);
  else if (Array.isArray(value)) visitItems(schema, value, place);
  else if (isJsonObject(value)) visitMembers(schema, value, place);
}

function visitItems(schema: Schema, list: readonly unknown[], place: Place): void {
  const type = schema['x-kubernetes-list-type'];
  const isKeyed = type === 'map' || type === 'set';
  const seen = new Set<string>();
  for (const [at, item] of list.entries()) {
    let step = `[${at}]`;
    if (isKeyed) {
      const { element, problem } = itemElement(schema, item);
      if (problem !== undefined) {
        // An item without an identity ends the list.
        place.found.push(`${place.path}: element ${at}: ${problem}`);
        return;
      }
      step = stepText(element);
      if (seen.has(element) && !place.allowDuplicates) {
        place.found.push(`${place.path}: duplicate entries for key ${step}`);
      }
      seen.add(element);
    }
    const below = { ...place, path: place.path + step, open: opens(schema, place), root: false };
    visit(schema.items, item, below);
  }
}

const opens = (schema: Schema, { open }: Place): boolean =>
  open || schema['x-kubernetes-preserve-unknown-fields'] === true;

function visitMembers(schema: Schema, object: Readonly<Record<string, unknown>>, place: Place): void {
  const open = opens(schema, place);
  const { properties, additionalProperties } = schema;
  const takesAll =
    additionalProperties !== undefined ? additionalProperties !== false : open || !hasProperties(properties);
  for (const key of Object.keys(object)) {
    const declared = isDeclared(schema, key) || (place.root && (key === 'apiVersion' || key === 'kind'));
    if (!declared && !takesAll) {
      // One is enough: upstream looks no further into this map.
      place.found.push(`${place.path}.${key}: field not declared in schema`);
      return;
    }
    const member = memberSchema(schema, key);
    const isNamed = member?.['x-coracle-name'] !== undefined;
    const at = { ...place, path: `${place.path}.${key}`, open: open && !isNamed, root: false };
    visit(member, object[key], at);
  }
}

function hasProperties(properties: Schema['properties']): boolean {
  for (const _ in properties) return true;
  return false;
}

/** What a value should be that does not fit; undefined for one that does. */
function wantedFor(schema: Schema, value: unknown): string | undefined {
  const isScalar = typeof value !== 'object';
  switch (schema.type) {
    case 'array':
      return Array.isArray(value) ? undefined : 'list';
    case 'object':
      return isJsonObject(value) ? undefined : 'map';
    case 'integer':
    case 'number':
      return typeof value === 'number' || typeof value === 'bigint' ? undefined : 'numeric (int or float)';
    case 'boolean':
      return typeof value === 'boolean' ? undefined : 'boolean';
    case 'string':
      if (!isPlainText(schema)) return isScalar ? undefined : 'any scalar';
      return typeof value === 'string' ? undefined : 'string';
    default:
      // Quantities and the like of the built-in types are texts upstream; a definition without a type takes anything.
      return isScalar || !schema['x-coracle-name'] || !schema['x-kubernetes-int-or-string'] ? undefined : 'any scalar';
  }
}

/** Texts with a format of their own are any scalar to upstream's merge. */
const isPlainText = (schema: Schema): boolean =>
  (schema.format === undefined || schema.format === 'byte') &&
  schema['x-coracle-name'] === undefined &&
  !schema['x-kubernetes-int-or-string'];
