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
import { type DuplicateItem, duplicateItems } from './list-types.ts';
import { pathText } from './prune.ts';
import { unchangedSince } from './ratcheting.ts';
import { compileNull, enumCheck, numberCheck, stringCheck, typeCheck } from './scalar-checks.ts';
import { type Schema, ZEROS } from './schema.ts';
import { type Check, fail, here, invalid, tooMany, type Walk } from './validation-walk.ts';

export interface ValidateOptions {
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
export const validateSchema = (schema: Schema, value: unknown, options: ValidateOptions): FieldError[] =>
  validateRules(schema, value, options, checkOf(schema, options.custom));

function validateRules(schema: Schema, value: unknown, options: ValidateOptions, check: Check): FieldError[] {
  const walk: Walk = { keys: [], depth: 0, errors: [] };
  if (options.root) {
    walk.keys.push(options.root);
    walk.depth = 1;
  }
  check(value, walk);
  return ratcheted(schema, value, options, { check, walk });
}

function ratcheted(
  schema: Schema,
  value: unknown,
  options: ValidateOptions,
  { check, walk }: { readonly check: Check; readonly walk: Walk },
): FieldError[] {
  if (walk.errors.length === 0 || options.old === undefined) return walk.errors;
  // Only what fails is compared with what was: nearly every update is validated by the first pass alone.
  const again: Walk = { ...walk, errors: [], unchanged: unchangedSince(schema, options.old) };
  check(value, again);
  const { errors } = again;
  if (!errors.some(isRepeated)) return errors;
  const before: Walk = { ...walk, errors: [] };
  check(options.old, before);
  return before.errors.some(isRepeated) ? errors.filter((error) => !isRepeated(error)) : errors;
}

const isRepeated = (error: FieldError): boolean => error.type === 'FieldValueDuplicate';

function checkOf(schema: Schema, custom: boolean): Check {
  const cache = custom ? CUSTOM_CHECKS : CHECKS;
  let check = cache.get(schema);
  if (check === undefined) {
    // A cyclic schema reaches itself while compiling: it then goes through this detour.
    let compiled: Check | undefined;
    check = (value, walk) => compiled!(value, walk);
    cache.set(schema, check);
    compiled = compile(schema, custom);
    cache.set(schema, compiled);
    return compiled;
  }
  return check;
}

function compile(schema: Schema, custom: boolean): Check {
  const checks: Check[] = [];
  const add = (check: Check | undefined): void => {
    if (check !== undefined) checks.push(check);
  };
  add(typeCheck(schema));
  add(branchCheck(schema, (branch) => checkOf(branch, custom)));
  add(stringCheck(schema));
  add(numberCheck(schema));
  add(arrayCheck(schema, custom));
  add(enumCheck(schema));
  add(objectCheck(schema, custom));
  // A null that a built-in kind has kept is what Go writes for nothing.
  const nullCheck = custom ? compileNull(schema) : noCheck;
  return inOrder(checks, nullCheck);
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
  const check: Check = (value, walk) => {
    if (!Array.isArray(value)) return;
    if (item !== undefined) {
      const depth = walk.depth++;
      for (let i = 0; i < value.length; i++) {
        walk.keys[depth] = i;
        item(value[i], walk);
      }
      walk.depth = depth;
    }
    ofAll(value, walk);
    if (keyed) reportRepeated(walk, duplicateItems(value, schema));
  };
  const ofAll = (value: readonly unknown[], walk: Walk): void => {
    const count = value.length;
    if (minItems !== undefined && count < minItems) invalid(walk, count, `should have at least ${minItems} items`);
    if (maxItems !== undefined && count > maxItems) tooMany(walk, count, maxItems);
    if (uniqueItems && value.some((v, i) => value.slice(0, i).some((u) => deepEqual(u, v)))) {
      invalid(walk, '', "shouldn't contain duplicates");
    }
  };
  return check;
}

function reportRepeated(walk: Walk, items: readonly DuplicateItem[]): void {
  for (const { index, shown } of items) {
    walk.errors.push({ type: 'FieldValueDuplicate', field: `${here(walk)}[${index}]`, value: shown });
  }
}

function objectCheck(schema: Schema, custom: boolean): Check | undefined {
  const { properties, required, minProperties, maxProperties, additionalProperties } = schema;
  const rest = typeof additionalProperties === 'object' ? checkOf(additionalProperties, custom) : undefined;
  const closed = custom && additionalProperties === false;
  const isCounted = minProperties !== undefined || maxProperties !== undefined;
  if (!properties && !required?.length && !rest && !closed && !isCounted) return undefined;
  // Embedded metadata is checked by its own rules, so a schema for it only adds restrictions.
  const members = new Map<string, Check>();
  for (const key of Object.keys(properties ?? {})) members.set(key, checkOf(properties![key]!, custom));
  const zeros = schema[ZEROS];
  const needed = zeros === undefined ? (required ?? []) : (required ?? []).filter((key) => !(key in zeros));
  const check: Check = (value, walk) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return;
    const object = value as Record<string, unknown>;
    const keys = Object.keys(object);
    countMembers(keys.length, walk);
    if (closed) reportUnknown(keys, walk);
    const depth = walk.depth;
    for (const key of keys) {
      const check = members.get(key) ?? rest;
      if (check === undefined) continue;
      walk.keys[depth] = key;
      walk.depth = depth + 1;
      check(object[key], walk);
    }
    walk.depth = depth;
    if (needed.length > 0) reportMissing(object, walk);
  };
  const countMembers = (count: number, walk: Walk): void => {
    if (minProperties !== undefined && count < minProperties) {
      invalid(walk, count, `should have at least ${minProperties} properties`);
    }
    if (maxProperties !== undefined && count > maxProperties) tooMany(walk, count, maxProperties);
  };
  const reportUnknown = (keys: readonly string[], walk: Walk): void => {
    for (const key of keys) {
      if (members.has(key)) continue;
      fail(walk, 'FieldValueInvalid', key, `${here(walk)}.${key} in body is a forbidden property`);
    }
  };
  const reportMissing = (object: Record<string, unknown>, walk: Walk): void => {
    for (const key of needed) {
      if (Object.hasOwn(object, key)) continue;
      walk.errors.push({ type: 'FieldValueRequired', field: pathText(walk.keys, walk.depth, key) });
    }
  };
  return check;
}
