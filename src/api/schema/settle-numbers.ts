/**
 * Numbers that a document spells in a way of its own, where the value of a built-in kind holds what JavaScript read: what
 * Go keeps as it was written is put back.
 */
import { isJsonObject, setOwn } from '../meta/own-property.ts';
import { inexactNumber } from './read-json.ts';
import type { OddNumber, OddNumbers } from './scan-json.ts';
import { FORMS, type Schema } from './schema.ts';
import { readNumber } from './wide-integers.ts';

type Holder = Record<string | number, unknown>;

/**
 * Puts, in place, the text of a number where a Quantity is wanted, and an integer beyond ±2^53 where it is content of any
 * form or a WIDE field. The value must decode.
 * @throws ApiError 400 for any other number that a double does not hold
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
  const isOpen = target.schema['x-kubernetes-preserve-unknown-fields'] === true || WIDE.has(target.field);
  if (typeof read === 'bigint' && isOpen) return read;
  throw inexactNumber(text, path);
}

/** Fields with an int64 that no code of ours counts with, by type and name. */
const WIDE: ReadonlySet<string> = new Set([
  'io.k8s.api.apps.v1.ControllerRevision.revision',
  'io.k8s.api.resource.v1.DeviceAttribute.int',
]);

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
    let next: Schema | undefined;
    if (typeof key === 'number') next = node.items;
    else if (node.properties !== undefined && Object.hasOwn(node.properties, key)) next = node.properties[key];
    else if (typeof node.additionalProperties === 'object') next = node.additionalProperties;
    if (next === undefined) return undefined;
    field = `${node['x-coracle-name'] ?? ''}.${key}`;
    node = next;
  }
  return { schema: node, field };
}
