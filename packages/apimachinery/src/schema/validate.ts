/**
 * Schema validation of custom kinds: OpenAPI v3 keywords with the error texts of kube-openapi and the field error types
 * apiextensions maps them to. One closure per schema node, compiled on first use; while all is well a check allocates
 * nothing but the walk itself.
 *
 * Two oddities are upstream's and kept, because clients match on them: failures of anyOf/oneOf/allOf/not and of integer
 * ranges carry the field `<nil>`, and the value shown for a wrong type is the name of the type found.
 */
import { deepEqual } from '../meta/deep-equal.ts';
import type { FieldError } from '../meta/status.ts';
import { branchCheck } from './branch-checks.ts';
import { duplicateItems } from './list-types.ts';
import { pathText } from './prune.ts';
import { unchangedSince } from './ratcheting.ts';
import { compileNull, enumCheck, numberCheck, stringCheck, typeCheck } from './scalar-checks.ts';
import { restSchema, type Schema, ZEROS } from './schema.ts';
import { type Check, fail, here, invalid, tooMany, type Walk } from './validation-walk.ts';

interface ValidateOptions {
  /** True for CRD-backed kinds: set and map lists must not repeat. Embedded resources are validated in `embedded-resource`. */
  readonly custom: boolean;
  /** Path of the value inside its object, when it is not the root: `spec.template`. */
  readonly root?: string;
  /**
   * What the value was before: parts that are as they were are let pass whatever the schema says now (CRD ratcheting).
   * Lists of sets and maps are only asked not to repeat when the old ones did not.
   */
  readonly old?: unknown;
}

const CHECKS = new WeakMap<Schema, Check>();
const CUSTOM_CHECKS = new WeakMap<Schema, Check>();

/** Checks a value (pruned and defaulted before) against its schema; [] when it fits. CEL rules are not part of this. */
export function validateSchema(schema: Schema, value: unknown, options: ValidateOptions): FieldError[] {
  const check = checkOf(schema, options.custom);
  const { root, old } = options;
  const errorsOf = (given: unknown, unchanged?: Walk['unchanged']): FieldError[] => {
    const walk: Walk = { keys: root ? [root] : [], depth: root ? 1 : 0, errors: [], ...(unchanged && { unchanged }) };
    check(given, walk);
    return walk.errors;
  };
  const all = errorsOf(value);
  if (all.length === 0 || old === undefined) return all;
  // Only what fails is compared with what was: nearly every update is validated by the first pass alone.
  const errors = errorsOf(value, unchangedSince(schema, old));
  if (!errors.some(isRepeated)) return errors;
  return errorsOf(old).some(isRepeated) ? errors.filter((error) => !isRepeated(error)) : errors;
}

const isRepeated = (error: FieldError): boolean => error.type === 'FieldValueDuplicate';

function checkOf(schema: Schema, custom: boolean): Check {
  const cache = custom ? CUSTOM_CHECKS : CHECKS;
  const known = cache.get(schema);
  if (known !== undefined) return known;
  // A cyclic schema reaches itself while compiling: it then goes through this detour.
  let compiled: Check | undefined;
  cache.set(schema, (value, walk) => compiled!(value, walk));
  compiled = compile(schema, custom);
  cache.set(schema, compiled);
  return compiled;
}

function compile(schema: Schema, custom: boolean): Check {
  const checks = [
    typeCheck(schema),
    branchCheck(schema, (branch) => checkOf(branch, custom)),
    stringCheck(schema),
    numberCheck(schema),
    arrayCheck(schema, custom),
    enumCheck(schema),
    objectCheck(schema, custom),
  ].filter((check) => check !== undefined);
  // A null that a built-in kind has kept is what Go writes for nothing.
  return inOrder(checks, custom ? compileNull(schema) : noCheck);
}

const noCheck: Check = () => {};

function inOrder(checks: readonly Check[], nullCheck: Check): Check {
  if (checks.length === 1) {
    const only = checks[0]!;
    return (value, walk) => {
      if (walk.unchanged?.(walk, value)) return;
      if (value === null) nullCheck(value, walk);
      else only(value, walk);
    };
  }
  return (value, walk) => {
    if (walk.unchanged?.(walk, value)) return;
    if (value === null) nullCheck(value, walk);
    else for (const check of checks) check(value, walk);
  };
}

function arrayCheck(schema: Schema, custom: boolean): Check | undefined {
  const { items, minItems, maxItems, uniqueItems } = schema;
  const listType = custom ? schema['x-kubernetes-list-type'] : undefined;
  const keyed = listType === 'set' || listType === 'map';
  if (!items && minItems === undefined && maxItems === undefined && !uniqueItems && !keyed) return undefined;
  const item = items && checkOf(items, custom);
  return (value, walk) => {
    if (!Array.isArray(value)) return;
    if (item !== undefined) {
      const depth = walk.depth++;
      for (let i = 0; i < value.length; i++) {
        walk.keys[depth] = i;
        item(value[i], walk);
      }
      walk.depth = depth;
    }
    const count = value.length;
    if (minItems !== undefined && count < minItems) invalid(walk, count, `should have at least ${minItems} items`);
    if (maxItems !== undefined && count > maxItems) tooMany(walk, count, maxItems);
    if (uniqueItems && value.some((v, i) => value.slice(0, i).some((u) => deepEqual(u, v)))) {
      invalid(walk, '', "shouldn't contain duplicates");
    }
    if (!keyed) return;
    for (const { index, shown } of duplicateItems(value, schema)) {
      walk.errors.push({ type: 'FieldValueDuplicate', field: `${here(walk)}[${index}]`, value: shown });
    }
  };
}

function objectCheck(schema: Schema, custom: boolean): Check | undefined {
  const { properties, required, minProperties, maxProperties } = schema;
  const restOf = restSchema(schema);
  const rest = restOf && checkOf(restOf, custom);
  const closed = custom && schema.additionalProperties === false;
  const isCounted = minProperties !== undefined || maxProperties !== undefined;
  if (!properties && !required?.length && !rest && !closed && !isCounted) return undefined;
  // Embedded metadata is checked by its own rules, so a schema for it only adds restrictions.
  const members = new Map<string, Check>();
  for (const key of Object.keys(properties ?? {})) members.set(key, checkOf(properties![key]!, custom));
  const zeros = schema[ZEROS];
  const needed = (required ?? NONE).filter((key) => !(zeros && key in zeros));
  return (value, walk) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return;
    const object = value as Record<string, unknown>;
    const keys = Object.keys(object);
    const count = keys.length;
    if (minProperties !== undefined && count < minProperties) {
      invalid(walk, count, `should have at least ${minProperties} properties`);
    }
    if (maxProperties !== undefined && count > maxProperties) tooMany(walk, count, maxProperties);
    for (const key of closed ? keys : NONE) {
      if (members.has(key)) continue;
      fail(walk, 'FieldValueInvalid', key, `${here(walk)}.${key} in body is a forbidden property`);
    }
    const depth = walk.depth;
    for (const key of keys) {
      const check = members.get(key) ?? rest;
      if (check === undefined) continue;
      walk.keys[depth] = key;
      walk.depth = depth + 1;
      check(object[key], walk);
    }
    walk.depth = depth;
    for (const key of needed) {
      if (Object.hasOwn(object, key)) continue;
      walk.errors.push({ type: 'FieldValueRequired', field: pathText(walk.keys, walk.depth, key) });
    }
  };
}

const NONE: readonly string[] = [];
