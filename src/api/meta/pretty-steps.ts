/** Indented JSON in steps: what JSON.stringify says with two blanks, with others served in between. */
import type { Steps } from './steps.ts';

/** Characters joined into one part, and written between two stops. */
const PART = 64 * 1024;
/** Nodes written in one go. */
const TOGETHER = 500;

const encoder = new TextEncoder();

/** The bytes of `JSON.stringify(value, null, 2)`, in parts; a JSON value. */
export function* prettySteps(value: unknown): Steps<Uint8Array[]> {
  const out: Output = { parts: [], texts: [], size: 0 };
  yield* write(value, '', out);
  flush(out);
  return out.parts;
}

interface Output {
  readonly parts: Uint8Array[];
  texts: string[];
  size: number;
}

function flush(out: Output): void {
  out.parts.push(encoder.encode(out.texts.join('')));
  out.texts = [];
  out.size = 0;
}

function* put(out: Output, text: string): Steps<void> {
  out.texts.push(text);
  out.size += text.length;
  if (out.size < PART) return;
  flush(out);
  yield;
}

function* write(value: unknown, indent: string, out: Output): Steps<void> {
  if (nodesLeft(value, TOGETHER) >= 0) {
    const text = JSON.stringify(value, null, 2) ?? 'null';
    yield* put(out, indent === '' ? text : text.replaceAll('\n', `\n${indent}`));
    return;
  }
  const inside = `${indent}  `;
  const isList = Array.isArray(value);
  let separator = isList ? '[\n' : '{\n';
  for (const key of isList ? value.keys() : Object.keys(value as object)) {
    const member: unknown = (value as Record<string | number, unknown>)[key];
    if (member === undefined && !isList) continue;
    yield* put(out, isList ? separator + inside : `${separator}${inside}${JSON.stringify(key)}: `);
    yield* write(member, inside, out);
    separator = ',\n';
  }
  yield* put(out, `\n${indent}${isList ? ']' : '}'}`);
}

/** What is left of so many nodes; below zero for a value of more. */
function nodesLeft(value: unknown, most: number): number {
  if (typeof value !== 'object' || value === null) return most - 1;
  const members: unknown[] = Array.isArray(value) ? value : Object.values(value);
  let left = most - 1;
  if (members.length > left) return -1;
  for (const member of members) {
    if (left < 0) break;
    left = nodesLeft(member, left);
  }
  return left;
}
