/** Answers in protobuf: objects, lists and watch frames as pure functions over JSON values. */

import protobuf from 'protobufjs/minimal.js';
import { envelopeAround, wrapEnvelope } from './envelope.ts';
import { planOf } from './message-plan.ts';
import { writeMessage } from './messages.ts';
import { STRING, tag } from './value-codecs.ts';
import { BYTES } from './wire-input.ts';
import { wireSchemaOf } from './wire-schemas.ts';

export const PROTOBUF = 'application/vnd.kubernetes.protobuf';

type Document = Readonly<Record<string, unknown>>;

/**
 * The enveloped message of any document with a protobuf form: built-in kinds and their lists, Status, options, reviews,
 * Scale, PartialObjectMetadata(List). Undefined for the others (custom resources, Table).
 */
export function encodeProtobuf(document: Document): Uint8Array | undefined {
  const apiVersion = String(document['apiVersion'] ?? '');
  const kind = String(document['kind'] ?? '');
  const message = encodeMessage({ apiVersion, kind }, document);
  return message && wrapEnvelope({ apiVersion, kind, message });
}

/**
 * Some members of a document of that type as a message without its envelope: a message may be written in parts, which stand
 * in the order of the fields' numbers. Undefined for a type without a protobuf form.
 */
export function encodeMessage(type: DocumentType, members: Document): Uint8Array | undefined {
  const schema = wireSchemaOf(type);
  if (schema === undefined) return undefined;
  const writer = protobuf.Writer.create();
  writeMessage(writer, planOf(schema), members);
  return writer.finish();
}

/** The parts of a message of that type, enveloped. */
export function envelopeParts(type: DocumentType, parts: readonly Uint8Array[]): Uint8Array[] {
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  const { before, after } = envelopeAround({ apiVersion: type.apiVersion, kind: type.kind, length });
  return [before, ...parts, after];
}

interface DocumentType {
  readonly apiVersion: string;
  readonly kind: string;
}

/**
 * One event of a watch: four bytes of length (big-endian), then WatchEvent{type=1, object=2 {raw=1}}. The event itself
 * has no magic prefix, the object (an enveloped document) does.
 */
export function encodeWatchFrame(type: string, object: Uint8Array): Uint8Array {
  const { length } = object;
  const raw = protobuf.Writer.create().uint32(tag(1, BYTES)).uint32(length).finish();
  const writer = protobuf.Writer.create().uint32(tag(1, BYTES));
  STRING.write(writer, type);
  const head = writer
    .uint32(tag(2, BYTES))
    .uint32(raw.length + length)
    .finish();
  const event = head.length + raw.length + length;
  const frame = new Uint8Array(4 + event);
  new DataView(frame.buffer).setUint32(0, event);
  frame.set(head, 4);
  frame.set(raw, 4 + head.length);
  frame.set(object, 4 + head.length + raw.length);
  return frame;
}
