/**
 * JSON of large documents in steps and in parts, with others served in between: indented as JSON.stringify does it with two
 * blanks, or compact. What is small is written by JSON.stringify itself, so that most of a document costs no more than there.
 */
import { nodesLeft } from './small.ts';
import type { Steps } from './steps.ts';
import { TextParts } from './text-parts.ts';

/** Nodes written in one go. */
const TOGETHER = 500;

/** The bytes of `JSON.stringify(value, null, 2)`, in parts; a JSON value. */
export function* prettySteps(value: unknown): Steps<Uint8Array[]> {
  return yield* partsOf(value, 2);
}

/** The bytes of `JSON.stringify(value)`, in parts; a JSON value. */
export function* compactSteps(value: unknown): Steps<Uint8Array[]> {
  return yield* partsOf(value, 0);
}

function* partsOf(value: unknown, blanks: 0 | 2): Steps<Uint8Array[]> {
  const out = new TextParts();
  yield* write(value, '', { blanks, out });
  return out.end();
}

interface Output {
  readonly blanks: 0 | 2;
  readonly out: TextParts;
}

function* write(value: unknown, indent: string, output: Output): Steps<void> {
  const { blanks, out } = output;
  if (nodesLeft(value, TOGETHER) >= 0) {
    const text = JSON.stringify(value, null, blanks) ?? 'null';
    if (out.put(indent === '' ? text : text.replaceAll('\n', `\n${indent}`))) yield;
    return;
  }
  yield;
  const inside = blanks === 0 ? '' : `${indent}  `;
  const [begin, next, last, colon] =
    blanks === 0 ? ['', ',', '', ':'] : [`\n${inside}`, `,\n${inside}`, `\n${indent}`, ': '];
  const isList = Array.isArray(value);
  let separator = (isList ? '[' : '{') + begin;
  for (const key of isList ? value.keys() : Object.keys(value as object)) {
    const member: unknown = (value as Record<string | number, unknown>)[key];
    if (member === undefined && !isList) continue;
    if (out.put(isList ? separator : `${separator}${JSON.stringify(key)}${colon}`)) yield;
    yield* write(member, inside, output);
    separator = next;
  }
  if (out.put(`${last}${isList ? ']' : '}'}`)) yield;
}
