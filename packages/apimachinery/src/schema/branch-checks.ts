/** allOf, anyOf, oneOf and not: the branches of a schema. Part of `validate.ts`. */
import { goQuote } from '../meta/go-text.ts';
import type { FieldError } from '../meta/status.ts';
import { memberSchema, type Schema } from './schema.ts';
import { anonymous, type Check, here, typeName, type Walk } from './validation-walk.ts';

/** The check of all four; undefined when the schema has none. `checkOf` gives the check of a branch. */
export function branchCheck(schema: Schema, checkOf: (schema: Schema) => Check): Check | undefined {
  const { allOf, anyOf, oneOf, not } = schema;
  if (!allOf?.length && !anyOf?.length && !oneOf?.length && !not) return undefined;
  const all = (allOf ?? []).map((s) => checkOf(s));
  const any = (anyOf ?? []).map((s) => checkOf(s));
  const one = (oneOf ?? []).map((s) => checkOf(s));
  const none = not && checkOf(not);
  return (value, walk) => {
    if (any.length > 0) {
      const { valid, best } = tryBranches(any, anyOf!, { value, walk, stopAtFirst: true });
      if (valid === 0) {
        anonymous(walk, `${goQuote(here(walk))} must validate at least one schema (anyOf)`);
        walk.errors.push(...best);
      }
    }
    if (one.length > 0) {
      const { valid, best } = tryBranches(one, oneOf!, { value, walk, stopAtFirst: false });
      if (valid !== 1) {
        const found = valid === 0 ? 'Found none valid' : `Found ${valid} valid alternatives`;
        anonymous(walk, `${goQuote(here(walk))} must validate one and only one schema (oneOf). ${found}`);
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
        anonymous(walk, `${goQuote(here(walk))} must validate all the schemas (allOf)${what}`);
      }
    }
    if (none !== undefined && attempt(none, value, walk).length === 0) {
      anonymous(walk, `${goQuote(here(walk))} must not validate the schema (not)`);
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

/** How many branches fit; when none does, the errors of the one that came furthest. */
function tryBranches(
  branches: readonly Check[],
  schemas: readonly Schema[],
  { value, walk, stopAtFirst }: { readonly value: unknown; readonly walk: Walk; readonly stopAtFirst: boolean },
): { valid: number; best: readonly FieldError[] } {
  let valid = 0;
  let best: { readonly errors: readonly FieldError[]; readonly matches: number } | undefined;
  for (const [i, branch] of branches.entries()) {
    const errors = attempt(branch, value, walk);
    if (errors.length === 0) {
      valid++;
      if (stopAtFirst) break;
    } else if (valid === 0) {
      const matches = matchCount(schemas[i]!, value);
      if (best === undefined || matches > best.matches) best = { errors, matches };
    }
  }
  return { valid, best: valid > 0 ? [] : (best?.errors ?? []) };
}

/**
 * How much of a schema a value has been held against: upstream's measure of the closest branch. Types that fit count, and
 * every value that is looked at.
 */
function matchCount(schema: Schema, value: unknown): number {
  const types = schema['x-kubernetes-int-or-string'] ? ['integer', 'string'] : schema.type ? [schema.type] : [];
  const found = typeName(value);
  const fitsType = types.length === 0 || types.includes(found) || (found === 'integer' && types.includes('number'));
  if (value === null) return fitsType || schema.nullable ? 1 : 0;
  // The branches below, and the checks of every value: composition, enum, the whole.
  let count = 4;
  if (types.length > 0) count += fitsType ? 2 : 1;
  for (const key of ['allOf', 'anyOf', 'oneOf'] as const) {
    const counts = (schema[key] ?? []).map((branch) => matchCount(branch, value));
    count += key === 'allOf' ? counts.reduce((sum, one) => sum + one, 0) : Math.max(0, ...counts);
  }
  if (typeof value === 'string') return count + 1;
  if (typeof value === 'number') return count + 2;
  if (Array.isArray(value)) {
    const { items } = schema;
    return count + 2 + (items ? value.reduce((sum: number, item) => sum + matchCount(items, item), 0) : 0);
  }
  if (typeof value !== 'object') return count;
  count += 1;
  for (const [key, member] of Object.entries(value)) {
    const own = memberSchema(schema, key);
    if (own !== undefined) count += matchCount(own, member);
  }
  return count;
}
