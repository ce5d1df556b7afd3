/**
 * YAML of large documents, in steps: what the library writes, put together from parts of it. Each part is written below as
 * many names as make it stand as it stands in the whole.
 */

import { setOwn } from '@coracle/apimachinery/meta/own-property';
import type { Steps } from '@coracle/apimachinery/meta/steps';
import { TextParts } from '@coracle/apimachinery/meta/text-parts';
import { stringify } from 'yaml';

/** Nodes written in one go, and between two stops: some milliseconds. */
const TOGETHER = 200;

/** YAML 1.1, which the parsers of clients read; lines are not folded. */
export const YAML_STYLE = { lineWidth: 0, version: '1.1' } as const;

const encoder = new TextEncoder();

/** The bytes of `stringify(value, YAML_STYLE)`, in parts; a JSON value. */
export function* yamlSteps(value: unknown): Steps<Uint8Array[]> {
  if (isSmall(value)) return [encoder.encode(stringify(value, YAML_STYLE))];
  yield;
  const out = new TextParts();
  yield* writeBelow(value, { indent: '', first: '' }, out);
  return out.end();
}

/** Where lines begin: the first of a list's item stands behind its dash. */
interface Place {
  readonly indent: string;
  readonly first: string;
}

/** Members or items one after the other: small ones together. `value` is a large map or list. */
function* writeBelow(value: unknown, place: Place, out: TextParts): Steps<void> {
  const { indent } = place;
  let { first } = place;
  let batch: Batch | undefined;
  const write = (): void => {
    if (batch !== undefined) out.put(placed(batch.value, { indent, first }));
    batch = undefined;
    first = indent;
  };
  const isList = Array.isArray(value);
  for (const key of isList ? value.keys() : Object.keys(value as object)) {
    const member: unknown = (value as Record<string | number, unknown>)[key];
    if (member === undefined) continue;
    const size = sizeOf(member);
    const head = size < TOGETHER ? undefined : isList ? '' : headOf(key as string);
    if (head === undefined) {
      batch ??= { value: isList ? [] : {}, size: 0 };
      if (isList) (batch.value as unknown[]).push(member);
      else setOwn(batch.value as Record<string, unknown>, key as string, member);
      batch.size += size + 1;
      if (batch.size < TOGETHER) continue;
      write();
      yield;
      continue;
    }
    if (batch !== undefined) write();
    // Looking at a large one was a step of its own.
    yield;
    if (isList) {
      yield* writeBelow(member, { indent: `${indent}  `, first: `${first}- ` }, out);
    } else {
      out.put(`${first}${head}\n`);
      yield* writeBelow(member, { indent: `${indent}  `, first: `${indent}  ` }, out);
    }
    first = indent;
  }
  if (batch !== undefined) write();
  yield;
}

interface Batch {
  readonly value: object;
  size: number;
}

const isSmall = (value: unknown): boolean => sizeOf(value) < TOGETHER;

/** Nodes of a value, counted up to `TOGETHER`. */
function sizeOf(value: unknown, most = TOGETHER): number {
  if (typeof value !== 'object' || value === null) return 1;
  const members: unknown[] = Array.isArray(value) ? value : Object.values(value);
  if (members.length >= most) return most;
  let size = 1;
  for (const member of members) {
    size += sizeOf(member, most - size);
    if (size >= most) return most;
  }
  return size;
}

/** `key:`; undefined for a key that needs a line of its own. */
function headOf(key: string): string | undefined {
  const member: Record<string, unknown> = {};
  setOwn(member, key, 0);
  const line = stringify(member, YAML_STYLE);
  return line.endsWith(': 0\n') && !line.startsWith('? ') ? line.slice(0, -3) : undefined;
}

/** The lines of a map or list where they stand. Texts look different at the left edge: there they are, or below a name. */
function placed(value: object, { indent, first }: Place): string {
  if (indent === '') return stringify(value, YAML_STYLE);
  const lines = stringify({ x: value }, YAML_STYLE).slice('x:\n'.length);
  const more = indent.slice(2);
  const all = more === '' ? lines : lines.replaceAll(/^(?=[^\n])/gm, more);
  return first + all.slice(indent.length);
}
