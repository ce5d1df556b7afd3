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
import { checkEmbedded } from './embedded-resource.ts';
import { duplicateItems } from './list-types.ts';
import { pathText } from './prune.ts';
import { unchangedSince } from './ratcheting.ts';
import { compileNull, enumCheck, numberCheck, stringCheck, typeCheck } from './scalar-checks.ts';
import type { Schema } from './schema.ts';
import { anonymous, type Check, here, invalid, tooMany, type Walk } from './validation-walk.ts';

export interface ValidateOptions {
  /** True for CRD-backed kinds: set and map lists must not repeat, embedded resources need apiVersion and kind. */
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
  const walk: Walk = { keys: [], depth: 0, errors: [] };
  if (options.root) {
    walk.keys.push(options.root);
    walk.depth = 1;
  }
  const check = checkOf(schema, options.custom);
  check(value, walk);
  if (walk.errors.length === 0 || options.old === undefined) return walk.errors;
  // Only what fails is compared with what was: nearly every update is judged by the first pass alone.
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
  add(branchCheck(schema, custom));
  add(stringCheck(schema));
  add(numberCheck(schema));
  add(arrayCheck(schema, custom));
  add(enumCheck(schema));
  add(objectCheck(schema, custom));
  if (custom && schema['x-kubernetes-embedded-resource']) {
    add((value, walk) => checkEmbedded(value, here(walk), walk.errors));
  }
  const nullCheck = compileNull(schema);
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
    if (keyed) {
      for (const { index, shown } of duplicateItems(value, schema)) {
        walk.errors.push({ type: 'FieldValueDuplicate', field: `${here(walk)}[${index}]`, value: shown });
      }
    }
  };
}

function objectCheck(schema: Schema, custom: boolean): Check | undefined {
  const { properties, required, minProperties, maxProperties, additionalProperties } = schema;
  const rest = typeof additionalProperties === 'object' ? checkOf(additionalProperties, custom) : undefined;
  if (!properties && !required?.length && !rest && minProperties === undefined && maxProperties === undefined) {
    return undefined;
  }
  // Embedded metadata is checked by its own rules, so a schema for it only adds restrictions.
  const members = new Map<string, Check>();
  for (const key of Object.keys(properties ?? {})) members.set(key, checkOf(properties![key]!, custom));
  const needed = required ?? [];
  return (value, walk) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return;
    const object = value as Record<string, unknown>;
    const keys = Object.keys(object);
    if (minProperties !== undefined && keys.length < minProperties) {
      invalid(walk, keys.length, `should have at least ${minProperties} properties`);
      return;
    }
    if (maxProperties !== undefined && keys.length > maxProperties) {
      tooMany(walk, keys.length, maxProperties);
      return;
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
      walk.errors.push({ type: 'FieldValueRequired', field: pathText(walk.keys, depth, key) });
    }
  };
}

function branchCheck(schema: Schema, custom: boolean): Check | undefined {
  const { allOf, anyOf, oneOf, not } = schema;
  if (!allOf?.length && !anyOf?.length && !oneOf?.length && !not) return undefined;
  const all = (allOf ?? []).map((s) => checkOf(s, custom));
  const any = (anyOf ?? []).map((s) => checkOf(s, custom));
  const one = (oneOf ?? []).map((s) => checkOf(s, custom));
  const none = not && checkOf(not, custom);
  return (value, walk) => {
    if (any.length > 0) {
      const { valid, best } = tryBranches(any, value, walk, true);
      if (valid === 0) {
        anonymous(walk, `${JSON.stringify(here(walk))} must validate at least one schema (anyOf)`);
        walk.errors.push(...best);
      }
    }
    if (one.length > 0) {
      const { valid, best } = tryBranches(one, value, walk, false);
      if (valid !== 1) {
        const found = valid === 0 ? 'Found none valid' : `Found ${valid} valid alternatives`;
        anonymous(walk, `${JSON.stringify(here(walk))} must validate one and only one schema (oneOf). ${found}`);
        walk.errors.push(...best);
      }
    }
    if (all.length > 0) {
      let valid = 0;
      const found: FieldError[] = [];
      for (const check of all) {
        const errors = attempt(check, value, walk);
        if (errors.length === 0) valid++;
        else found.push(...errors);
      }
      if (valid !== all.length) {
        walk.errors.push(...found);
        const what = valid === 0 ? '. None validated' : '';
        anonymous(walk, `${JSON.stringify(here(walk))} must validate all the schemas (allOf)${what}`);
      }
    }
    if (none !== undefined && attempt(none, value, walk).length === 0) {
      anonymous(walk, `${JSON.stringify(here(walk))} must not validate the schema (not)`);
    }
  };
}

/** Runs a check aside and returns what it found. */
function attempt(check: Check, value: unknown, walk: Walk): FieldError[] {
  const outer = walk.errors;
  walk.errors = [];
  check(value, walk);
  const found = walk.errors;
  walk.errors = outer;
  return found;
}

/** How many branches fit, and the shortest list of errors among those that do not. */
function tryBranches(
  branches: readonly Check[],
  value: unknown,
  walk: Walk,
  stopAtFirst: boolean,
): { valid: number; best: readonly FieldError[] } {
  let valid = 0;
  let best: FieldError[] | undefined;
  for (const branch of branches) {
    const errors = attempt(branch, value, walk);
    if (errors.length === 0) {
      valid++;
      if (stopAtFirst) break;
    } else if (best === undefined || errors.length < best.length) {
      best = errors;
    }
  }
  return { valid, best: valid > 0 ? [] : (best ?? []) };
}

export { decodeErrors, type ObjectKind } from './decode-errors.ts';
