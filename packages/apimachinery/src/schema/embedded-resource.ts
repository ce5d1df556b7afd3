/** Rules of whole objects inside objects: x-kubernetes-embedded-resource (apiextensions schema/objectmeta). */
import { sortMembers } from '../meta/go-text.ts';
import { checkDns1035Label } from '../meta/name-rules.ts';
import type { ObjectMeta } from '../meta/object.ts';
import { getOwn, isJsonObject } from '../meta/own-property.ts';
import type { FieldError } from '../meta/status.ts';
import { validateObjectMeta } from '../meta/validate-object-meta.ts';
import { decodeProblem } from './decode-errors.ts';
import { OBJECT_META_SCHEMA } from './object-meta-schema.ts';
import { pruneUnknown } from './prune.ts';
import { restSchema, type Schema } from './schema.ts';
import { createTreeSearch } from './schema-reach.ts';

/** Where a value stands; `whole` makes it an embedded resource whatever its schema says. */
interface EmbeddedPlace {
  readonly path: string;
  readonly whole: boolean;
}

/** True when a schema allows objects inside of its objects: others need no walk. Schemas of definitions have no cycles. */
export const hasEmbedded = createTreeSearch((schema) => schema['x-kubernetes-embedded-resource'] === true);

const below = (path: string, field: string): string => (path === '' ? field : `${path}.${field}`);

/** Calls `visit` for each embedded resource of a value, the outer ones first. */
function walk(
  value: unknown,
  schema: Schema,
  { path, whole }: EmbeddedPlace,
  visit: (object: Record<string, unknown>, path: string) => void,
): void {
  if (!whole && !hasEmbedded(schema)) return;
  if (Array.isArray(value)) {
    if (schema.items === undefined) return;
    for (const [i, item] of value.entries()) walk(item, schema.items, { path: `${path}[${i}]`, whole: false }, visit);
    return;
  }
  if (!isJsonObject(value)) return;
  if (whole || schema['x-kubernetes-embedded-resource']) visit(value, path);
  const rest = restSchema(schema);
  for (const key of Object.keys(value)) {
    const property = getOwn(schema.properties ?? {}, key) as Schema | undefined;
    if (property !== undefined) walk(value[key], property, { path: below(path, key), whole: false }, visit);
    else if (rest !== undefined) walk(value[key], rest, { path: `${path}[${key}]`, whole: false }, visit);
  }
}

/**
 * Brings the metadata of embedded resources into ObjectMeta's shape, in place: unknown fields go. Returns the first type
 * that does not fit.
 */
export function coerceEmbedded(value: unknown, schema: Schema, place: EmbeddedPlace): FieldError | undefined {
  let wrong: FieldError | undefined;
  walk(value, schema, place, (object, path) => {
    for (const field of ['apiVersion', 'kind']) {
      if (!Object.hasOwn(object, field) || typeof object[field] === 'string') continue;
      wrong ??= invalid(below(path, field), object[field], 'must be a string');
    }
    if (!Object.hasOwn(object, 'metadata')) return;
    const problem = decodeProblem(OBJECT_META_SCHEMA, object['metadata']);
    if (problem !== undefined) wrong ??= invalid(below(path, 'metadata'), object['metadata'], problem);
    else pruneUnknown(OBJECT_META_SCHEMA, object['metadata'], { custom: false });
  });
  return wrong;
}

function invalid(field: string, value: unknown, detail: string): FieldError {
  return { type: 'FieldValueInvalid', field, value: sortMembers(value), detail };
}

/** Errors of the embedded resources of a value: they need apiVersion and kind, and metadata as any object's. */
export function embeddedErrors(value: unknown, schema: Schema, place: EmbeddedPlace): FieldError[] {
  const errors: FieldError[] = [];
  walk(value, schema, place, (object, path) => {
    for (const field of ['apiVersion', 'kind']) {
      if (!Object.hasOwn(object, field)) errors.push({ type: 'FieldValueRequired', field: below(path, field) });
    }
    errors.push(...typeMetaErrors(object, path), ...metadataErrors(object, path));
  });
  return errors;
}

function typeMetaErrors(object: Readonly<Record<string, unknown>>, path: string): FieldError[] {
  const errors: FieldError[] = [];
  for (const field of ['apiVersion', 'kind'] as const) {
    if (!Object.hasOwn(object, field)) continue;
    const text = object[field];
    const at = below(path, field);
    if (typeof text !== 'string') errors.push(invalid(at, text, 'must be a string'));
    else if (text === '') errors.push(invalid(at, text, 'must not be empty'));
    else if (field === 'apiVersion') {
      if (text.split('/').length > 2) errors.push(invalid(at, text, `unexpected GroupVersion string: ${text}`));
    } else {
      const problems = checkDns1035Label(text.toLowerCase());
      const prefix = 'may have mixed case, but should otherwise match: ';
      if (problems.length > 0) errors.push(invalid(at, text, prefix + problems.join(',')));
    }
  }
  return errors;
}

function metadataErrors(object: Readonly<Record<string, unknown>>, path: string): FieldError[] {
  if (!Object.hasOwn(object, 'metadata')) return [];
  const { metadata } = object;
  const at = below(path, 'metadata');
  const problem = decodeProblem(OBJECT_META_SCHEMA, metadata);
  if (problem !== undefined) return [invalid(at, metadata, problem)];
  const meta = (metadata ?? {}) as ObjectMeta;
  return validateObjectMeta(
    { ...meta, name: meta.name || 'fakename' },
    { namespaced: Boolean(meta.namespace), names: 'path-segment', custom: true },
  ).map((error) => ({ ...error, field: error.field.replace(/^metadata/, () => at) }));
}
