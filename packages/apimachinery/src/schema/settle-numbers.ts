/**
 * Numbers that a document spells in a way of its own, where the value of a built-in kind holds what JavaScript read: what
 * Go keeps as it was written is put back.
 */
import { isJsonObject, setOwn } from '../meta/own-property.ts';
import { inexactNumber } from './read-json.ts';
import type { OddNumber, OddNumbers } from './scan-json.ts';
import { FORMS, memberSchema, type Schema } from './schema.ts';
import fields from './wide-fields.json' with { type: 'json' };
import { readNumber } from './wide-integers.ts';

type Holder = Record<string | number, unknown>;

/**
 * Puts, in place, the text of a number where a Quantity is wanted, and an integer beyond ±2^53 where it is content of any
 * form or an int64 that is kept. The value must decode.
 * @throws ApiError 400 for a number that a double does not hold and code of ours counts with
 */
export function settleNumbers(schema: Schema, value: unknown, numbers: OddNumbers): void {
  for (const [path, number] of numbers) {
    const holder = holderOf(value, number);
    const key = number.keys.at(-1);
    if (holder === undefined || key === undefined) continue;
    const settled = settle(schema, number, path);
    if (settled !== undefined) setOwn(holder as Record<string, unknown>, String(key), settled);
  }
}

/** The object or list that holds the number still: a later member of its name may have taken its place. */
function holderOf(value: unknown, { keys, text }: OddNumber): Holder | undefined {
  let holder = value;
  for (const key of keys.slice(0, -1)) {
    if (!isHolder(holder) || !Object.hasOwn(holder, key)) return undefined;
    holder = holder[key];
  }
  const key = keys.at(-1);
  if (key === undefined || !isHolder(holder) || !Object.hasOwn(holder, key)) return undefined;
  return Object.is(holder[key], Number(text)) ? holder : undefined;
}

const isHolder = (value: unknown): value is Holder => Array.isArray(value) || isJsonObject(value);

/** What stands for the number; undefined leaves what is there. */
function settle(schema: Schema, { keys, text }: OddNumber, path: string): unknown {
  const target = targetOf(schema, keys);
  if (target === undefined || target.schema.type === 'number') return undefined;
  if (target.schema['x-coracle-name']?.endsWith('.Quantity')) return text;
  const read = readNumber(text);
  if (typeof read === 'number' && Number.isFinite(read)) return undefined;
  if (typeof read === 'bigint') {
    if (target.schema['x-kubernetes-preserve-unknown-fields'] === true) return read;
    switch (rangeOf(target.field, read)) {
      case 'kept':
        return read;
      case 'refused':
        return undefined;
      case 'counted':
    }
  }
  throw inexactNumber(text, path);
}

/**
 * What becomes of an int64 beyond ±2^53 in a field (`io.k8s.api.core.v1.Toleration.tolerationSeconds`): it is kept with
 * all its digits; validation refuses any that large, so that a double will do until then; or code of ours counts with it.
 */
export function rangeOf(field: string, value: bigint): 'kept' | 'refused' | 'counted' {
  const [type = '', name = ''] = field.split('.').slice(-2);
  if (name === 'observedGeneration' || KEPT.has(`${type}.${name}`)) return 'kept';
  if (NOT_NEGATIVE.has(`${type}.${name}`)) return value < 0n ? 'refused' : 'kept';
  return REFUSED.has(`${type}.${name}`) ? 'refused' : 'counted';
}

const KEPT: ReadonlySet<string> = new Set(fields.kept);
/** Upstream takes any that is not negative. */
const NOT_NEGATIVE: ReadonlySet<string> = new Set(fields.notNegative);
/** The bounds of these are far closer (validation.go of their groups). */
const REFUSED: ReadonlySet<string> = new Set(fields.refused);

/** The schema of a number, or of the content of any form that holds it; undefined below an unknown field. */
function targetOf(
  schema: Schema,
  keys: readonly (string | number)[],
): { readonly schema: Schema; readonly field: string } | undefined {
  let node: Schema | undefined = schema;
  let field = '';
  for (const key of keys) {
    if (node[FORMS] !== undefined) {
      const form: Schema | undefined = typeof key === 'number' ? node[FORMS].list : node[FORMS].object;
      if (form === undefined) return undefined;
      node = form;
    }
    if (node['x-kubernetes-preserve-unknown-fields']) break;
    const next: Schema | undefined = typeof key === 'number' ? node.items : memberSchema(node, key);
    if (next === undefined) return undefined;
    // The items of a list go by its name.
    if (typeof key !== 'number') field = `${node['x-coracle-name'] ?? ''}.${key}`;
    node = next;
  }
  return { schema: node, field };
}
