/**
 * Long lists in a form that is not stored (Table, metadata only, protobuf, YAML, indented JSON): made of some objects at a
 * time, with others served between them. What is held at once is the answer, and never the objects it was made of.
 */

import { joinBytes } from '@coracle/apimachinery/meta/join-bytes';
import { prettySteps } from '@coracle/apimachinery/meta/pretty-steps';
import { finish, inPieces } from '@coracle/apimachinery/meta/steps';
import { parseJsonInPieces, parseStored } from '@coracle/apimachinery/schema/parse-json';
import { nextTurn } from '@coracle/runtime/clock/next-turn';
import type { ApiResponse } from '@coracle/runtime/http/seam';
import type { StoredObject } from '../cache/object-store.ts';
import { type MessageInParts, protobufInParts } from '../kinds/protobuf/documents.ts';
import type { Representation } from './negotiation.ts';
import { JSON_HEADERS, NEWLINE, PROTOBUF_HEADERS, YAML_HEADERS } from './responses.ts';
import { yamlSteps } from './yaml-steps.ts';

/** Bytes of stored objects that are made into one part of the answer. */
const PART = 128 * 1024;
/** Bytes of objects that make a list a long one. */
const LONG = 64 * 1024;

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** A list as JSON, but for its items: `head` is a JSON object of the other members, `member` the name of the last one. */
export interface ListOutline {
  readonly head: Readonly<Record<string, unknown>> & { readonly kind: string; readonly apiVersion: string };
  readonly member: 'items' | 'rows';
  /** Goes before `items`: has converted what takes long to convert. */
  readonly prepare: (some: readonly StoredObject[]) => Promise<void> | undefined;
  /** The JSON of some items with a comma between two, and `before` and `after` around them. */
  readonly items: (some: readonly StoredObject[], around: Around) => Uint8Array;
}

export interface Around {
  readonly before: string;
  readonly after: string;
}

/** True when a list of these objects is to be made in parts. */
export function isLong(items: readonly StoredObject[]): boolean {
  let bytes = 0;
  for (const item of items) {
    bytes += item.size;
    if (bytes > LONG) return true;
  }
  return false;
}

/** The list; there is at least one item. Rejects with the signal's reason when the client has gone. */
export async function longList(
  items: readonly StoredObject[],
  { outline, representation, signal }: { outline: ListOutline; representation: Representation; signal: AbortSignal },
): Promise<ApiResponse> {
  const form = formOf(outline, representation);
  const { member } = outline;
  const around = form.wrapped ? { before: `{"${member}":[`, after: ']}' } : { before: '', after: '' };
  const parts: Uint8Array[] = [];
  for (let from = 0; from < items.length; ) {
    const some = partFrom(items, from);
    from += some.length;
    signal.throwIfAborted();
    const loading = some.length === 1 ? some[0]!.load(nextTurn) : undefined;
    if (loading) await loading;
    const preparing = outline.prepare(some);
    if (preparing) await preparing;
    const made = form.part(outline.items(some, around));
    parts.push(made instanceof Promise ? await made : made);
    await nextTurn();
  }
  return { status: 200, headers: form.headers, body: form.whole(parts) };
}

/** Neighbours that are small together; a large one alone. */
function partFrom(items: readonly StoredObject[], from: number): readonly StoredObject[] {
  let bytes = 0;
  let to = from;
  while (to < items.length) {
    bytes += items[to]!.size;
    if (bytes > PART && to > from) break;
    to++;
  }
  return items.slice(from, to);
}

interface ListForm {
  readonly headers: Readonly<Record<string, string>>;
  /** Its parts are read as documents: a list of some items. */
  readonly wrapped: boolean;
  part(json: Uint8Array): Uint8Array | Promise<Uint8Array>;
  whole(parts: readonly Uint8Array[]): Uint8Array[];
}

function formOf({ head, member }: ListOutline, { encoding, pretty }: Representation): ListForm {
  if (encoding === 'yaml') return yamlForm(head, member);
  const message = encoding === 'protobuf' ? protobufInParts(head) : undefined;
  if (message) return protobufForm(head, message);
  return pretty ? prettyForm(head, member) : plainForm(head, member);
}

const plainForm = (head: object, member: string): ListForm => ({
  headers: JSON_HEADERS,
  wrapped: false,
  part: (json) => json,
  whole: (parts) => [
    encoder.encode(`${JSON.stringify(head).slice(0, -1)},"${member}":[`),
    ...separated(parts, encoder.encode(',')),
    encoder.encode(']}'),
    NEWLINE,
  ],
});

const protobufForm = (head: Readonly<Record<string, unknown>>, message: MessageInParts): ListForm => ({
  headers: PROTOBUF_HEADERS,
  wrapped: true,
  part: (json) =>
    // JSON.parse is quicker than what can stop, and done soon enough with all but a large object.
    json.length > PART + LONG
      ? largePart(message, json)
      : message.part(parseStored(decoder.decode(json)) as Record<string, unknown>),
  // The items of every list follow its metadata.
  whole: (parts) => message.whole([message.part(head), ...parts]),
});

async function largePart(message: MessageInParts, json: Uint8Array): Promise<Uint8Array> {
  const { value } = await parseJsonInPieces(json, nextTurn, { wideIntegers: true });
  return joined(await inPieces(message.partSteps(value as Record<string, unknown>), nextTurn), { before: 0, after: 0 });
}

/** A list of some items is their text between two others: the lines of the whole but for its first and last. */
function prettyForm(head: object, member: string): ListForm {
  const before = encoder.encode(`{\n  "${member}": [\n`).length;
  const after = encoder.encode('\n  ]\n}').length;
  return {
    headers: JSON_HEADERS,
    wrapped: true,
    async part(json) {
      const { value } = await parseJsonInPieces(json, nextTurn, { wideIntegers: true });
      return joined(await inPieces(prettySteps(value), nextTurn), { before, after });
    },
    whole: (parts) => [
      encoder.encode(`${JSON.stringify(head, null, 2).slice(0, -2)},\n  "${member}": [\n`),
      ...separated(parts, encoder.encode(',\n')),
      encoder.encode('\n  ]\n}'),
    ],
  };
}

function yamlForm(head: object, member: string): ListForm {
  const before = encoder.encode(`${member}:\n`);
  return {
    headers: YAML_HEADERS,
    wrapped: true,
    async part(json) {
      const { value } = await parseJsonInPieces(json, nextTurn, { wideIntegers: true });
      return joined(await inPieces(yamlSteps(value), nextTurn), { before: before.length, after: 0 });
    },
    whole(parts) {
      return [...finish(yamlSteps(head)), before, ...parts];
    },
  };
}

/** The bytes of the parts without the first and the last ones. */
function joined(
  parts: readonly Uint8Array[],
  without: { readonly before: number; readonly after: number },
): Uint8Array {
  const bytes = joinBytes(parts);
  return bytes.subarray(without.before, bytes.length - without.after);
}

function separated(parts: readonly Uint8Array[], separator: Uint8Array): Uint8Array[] {
  return parts.flatMap((part, i) => (i === 0 ? [part] : [separator, part]));
}
