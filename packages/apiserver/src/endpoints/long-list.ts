/**
 * Long lists in a form that is not stored (Table, metadata only, protobuf, YAML, indented JSON): made of some objects at a
 * time, with others served between them. What is held at once is the answer, and never the objects it was made of.
 */

import { nextTurn } from '@coracle/runtime/clock/next-turn';
import type { ApiResponse } from '@coracle/runtime/http/seam';
import type { StoredObject } from '../cache/object-store.ts';
import { encodeMessage, envelopeParts } from '../kinds/protobuf/documents.ts';
import { type DocumentForm, inForm, writeForm } from './document-forms.ts';
import type { Exchange } from './exchange.ts';
import { haveBytes } from './list-size.ts';
import type { Representation } from './negotiation.ts';
import { JSON_HEADERS, NEWLINE, PROTOBUF_HEADERS, YAML_HEADERS } from './responses.ts';

/** Bytes of stored objects that are made into one part of the answer; those of more make a list a long one. */
const PART = 64 * 1024;

const encoder = new TextEncoder();

/** A list as JSON, but for its items: `head` is a JSON object of the other members, `member` the name of the last one. */
export interface ListOutline {
  readonly head: Readonly<Record<string, unknown>> & { readonly kind: string; readonly apiVersion: string };
  readonly member: 'items' | 'rows';
  /** Goes before `items`: has converted what takes long to convert. */
  readonly prepare: (some: readonly StoredObject[]) => Promise<void> | undefined;
  /** The JSON of some items with a comma between two, and `before` and `after` around them. */
  readonly items: (some: readonly StoredObject[], around: ListEnvelope) => Uint8Array;
}

export interface ListEnvelope {
  readonly before: string;
  readonly after: string;
}

/** True when a list of these objects is to be made in parts. */
export const isLong = (items: readonly StoredObject[]): boolean => haveBytes(items, PART + 1);

/** The list; there is at least one item. Rejects with the signal's reason when the client has gone. */
export async function longList(
  { request, writeElsewhere }: Pick<Exchange, 'request' | 'writeElsewhere'>,
  items: readonly StoredObject[],
  { outline, representation }: { readonly outline: ListOutline; readonly representation: Representation },
): Promise<ApiResponse> {
  const form = formOf(outline, representation);
  const { member } = outline;
  const around = form.type ? { before: `{"${member}":[`, after: ']}' } : { before: '', after: '' };
  const parts: Uint8Array[] = [];
  for (let from = 0; from < items.length; ) {
    const some = partFrom(items, from);
    from += some.length;
    request.signal.throwIfAborted();
    const loading = some.length === 1 ? some[0]!.load(nextTurn) : undefined;
    if (loading) await loading;
    const preparing = outline.prepare(some);
    if (preparing) await preparing;
    const json = outline.items(some, around);
    const whole = form.type === undefined ? json : (await inForm({ json, form: form.type }, writeElsewhere))!;
    parts.push(whole.subarray(form.before ?? 0, whole.length - (form.after ?? 0)));
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
  /** Of its parts, which are documents then: a list of some items. Absent = JSON. */
  readonly type?: DocumentForm;
  /** Bytes of a part that are not put into the whole: what stands around its items. */
  readonly before?: number;
  readonly after?: number;
  whole(parts: readonly Uint8Array[]): Uint8Array[];
}

function formOf({ head, member }: ListOutline, { encoding, pretty }: Representation): ListForm {
  if (encoding === 'yaml') return yamlForm(head, member);
  const message = encoding === 'protobuf' ? encodeMessage(head, head) : undefined;
  if (message) return protobufForm(head, message);
  return pretty ? prettyForm(head, member) : plainForm(head, member);
}

const plainForm = (head: object, member: string): ListForm => ({
  headers: JSON_HEADERS,
  whole: (parts) => [
    encoder.encode(`${JSON.stringify(head).slice(0, -1)},"${member}":[`),
    ...separated(parts, encoder.encode(',')),
    encoder.encode(']}'),
    NEWLINE,
  ],
});

const protobufForm = ({ apiVersion, kind }: ListOutline['head'], head: Uint8Array): ListForm => ({
  headers: PROTOBUF_HEADERS,
  type: { type: 'protobuf-part', apiVersion, kind },
  // The items of every list follow its metadata.
  whole: (parts) => envelopeParts({ apiVersion, kind }, [head, ...parts]),
});

/** A list of some items is their text between two others: the lines of the whole but for its first and last. */
const prettyForm = (head: object, member: string): ListForm => ({
  headers: JSON_HEADERS,
  type: { type: 'indented' },
  before: `{\n  "${member}": [\n`.length,
  after: '\n  ]\n}'.length,
  whole: (parts) => [
    encoder.encode(`${JSON.stringify(head, null, 2).slice(0, -2)},\n  "${member}": [\n`),
    ...separated(parts, encoder.encode(',\n')),
    encoder.encode('\n  ]\n}'),
  ],
});

function yamlForm(head: object, member: string): ListForm {
  const before = encoder.encode(`${member}:\n`);
  const json = encoder.encode(JSON.stringify(head));
  return {
    headers: YAML_HEADERS,
    type: { type: 'yaml' },
    before: before.length,
    whole: (parts) => [writeForm({ json, form: { type: 'yaml' } })!, before, ...parts],
  };
}

const separated = (parts: readonly Uint8Array[], separator: Uint8Array): Uint8Array[] =>
  parts.flatMap((part, i) => (i === 0 ? [part] : [separator, part]));
