/** Default values must themselves be what their schema wants (apiextensions schema/defaulting/validation.go). */
import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import { sortMembers } from '@coracle/apimachinery/meta/go-text';
import { isJsonObject } from '@coracle/apimachinery/meta/own-property';
import { type FieldError, fieldErrorBody } from '@coracle/apimachinery/meta/status';
import { coerceEmbedded, embeddedErrors } from '@coracle/apimachinery/schema/embedded-resource';
import { pruneUnknown } from '@coracle/apimachinery/schema/prune';
import type { Schema } from '@coracle/apimachinery/schema/schema';
import { validateSchema } from '@coracle/apimachinery/schema/validate';
import { invalid } from '@coracle/apimachinery/validation/field-errors';
import type { RawSchema } from './crd.ts';
import { type KnownSchemas, rootSchemaOf, toSchema } from './crd-schema.ts';
import { createRuleCheck } from './rules.ts';
import { anySchema, childOf, propertiesOf } from './structural-rules.ts';

const META = new Set(['metadata', 'apiVersion', 'kind']);
const EMBEDDED = 'x-kubernetes-embedded-resource';
const hasDefault = (schema: RawSchema): boolean => schema['default'] !== undefined && schema['default'] !== null;

/** Errors of all defaults in the (structural) schema of a whole object at `path`. */
export function defaultErrors(schema: RawSchema, path: string): FieldError[] {
  const work: Work = { errors: [], known: new Map(), wholes: new Map() };
  if (!anySchema(schema, hasDefault)) return [];
  visit(schema, path, { ...rootOf(schema, true), ...work });
  return work.errors;
}

/** What is shared by the decision of all defaults. */
interface Work {
  readonly errors: FieldError[];
  readonly known: KnownSchemas;
  /** Whole objects as our schemas. */
  readonly wholes: Map<RawSchema, Schema>;
}

interface Visit extends Work {
  /** The whole object that the value is a part of, resource or embedded resource. */
  readonly whole: RawSchema;
  /** True for that of the definition itself. */
  readonly isRoot: boolean;
  /** Builds that object around a value that stands here. */
  readonly surround: (value: unknown) => Record<string, unknown>;
  readonly insideMeta: boolean;
}

const rootOf = (whole: RawSchema, isRoot: boolean): Pick<Visit, 'whole' | 'isRoot' | 'surround' | 'insideMeta'> => ({
  whole,
  isRoot,
  insideMeta: false,
  surround: (value) => {
    const object = isJsonObject(value) ? value : {};
    object['kind'] ??= 'Validation';
    object['apiVersion'] ??= 'validation/v1';
    return object;
  },
});

/** Defaults below `additionalProperties` are forbidden by other rules where they matter: upstream does not look there. */
function visit(schema: RawSchema, path: string, from: Visit): void {
  const at: Visit = schema[EMBEDDED] === true ? { ...from, ...rootOf(schema, false) } : from;
  if (hasDefault(schema)) {
    for (const error of errorsOfDefault(schema, `${path}.default`, at)) at.errors.push(error);
  }
  const items = childOf(schema, 'items');
  if (items !== undefined) {
    visit(items, `${path}.items`, { ...at, surround: (value) => at.surround([value] as never) });
  }
  const isWhole = schema === at.whole;
  for (const [name, property] of propertiesOf(schema)) {
    visit(property, `${path}.properties[${name}]`, {
      ...at,
      insideMeta: at.insideMeta || (isWhole && META.has(name)),
      surround: (value) => at.surround({ [name]: value }),
    });
  }
}

/** The default with the metadata of embedded resources brought into shape; `unpruned` when more than that is unknown. */
function prunedDefault(schema: RawSchema, node: Schema): { readonly value: unknown; readonly unpruned?: true } {
  const value = cloneJson(schema['default']);
  coerceEmbedded(value, node, { path: '', whole: false });
  const pruned = cloneJson(value);
  if (typeof pruned === 'object') pruneUnknown(node, pruned, { custom: true, part: true });
  return deepEqual(pruned, value) ? { value } : { value, unpruned: true };
}

function errorsOfDefault(schema: RawSchema, field: string, at: Visit): readonly FieldError[] {
  const isRoot = at.isRoot && schema === at.whole;
  const { default: given, ...bare } = schema;
  const node = isRoot ? rootSchemaOf(bare, at.known) : toSchema(bare, at.known);
  if (at.insideMeta) {
    const why = metadataProblem(given, at);
    return why === undefined
      ? contentErrors(given, { node, field, isRoot })
      : [invalid(field, sortMembers(given), why)];
  }
  const { value, unpruned } = prunedDefault(schema, node);
  const errors: FieldError[] = [];
  if (unpruned) errors.push(invalid(field, sortMembers(value), 'must not have unknown fields'));
  const place = { path: field, whole: isRoot };
  const wrong = coerceEmbedded(cloneJson(given), node, place);
  const found = wrong === undefined ? embeddedErrors(value, node, place) : [wrong];
  return [...errors, ...(found.length > 0 ? found : contentErrors(value, { node, field, isRoot }))];
}

/** A default of a part of the metadata is validated in a whole object. */
function metadataProblem(value: unknown, at: Visit): string | undefined {
  const { whole, isRoot, surround } = at;
  const object = surround(cloneJson(value));
  const node = at.wholes.get(whole) ?? (isRoot ? rootSchemaOf(whole, at.known) : toSchema(whole, at.known));
  at.wholes.set(whole, node);
  const place = { path: '', whole: true };
  const wrong = coerceEmbedded(object, node, place);
  const errors = wrong === undefined ? embeddedErrors(object, node, place) : [wrong];
  if (errors.length === 0) return undefined;
  const texts = [...new Set(errors.map((error) => `${error.field}: ${fieldErrorBody(error)}`))];
  return `must result in valid metadata: ${texts.length === 1 ? texts[0] : `[${texts.join(', ')}]`}`;
}

/** What the schema and its rules say of the value: as one that stays, and as one that comes in. */
function contentErrors(
  value: unknown,
  { node, field, isRoot }: { readonly node: Schema; readonly field: string; readonly isRoot: boolean },
): readonly FieldError[] {
  const errors = validateSchema(node, value, { custom: false });
  if (errors.length > 0) {
    return errors.map((error) => ({
      ...error,
      field: error.field === '' || error.field === '<nil>' ? field : `${field}.${error.field}`,
    }));
  }
  const check = createRuleCheck(node, { path: field, whole: isRoot, ratchet: false });
  if (check === undefined) return [];
  const kept = check(value, value);
  return kept.length > 0 ? kept : check(value, undefined);
}
