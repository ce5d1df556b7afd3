/** Answers in protobuf: objects, lists and watch frames as pure functions over JSON values. */
import protobuf from 'protobufjs/minimal.js';
import type { Schema } from '../../schema/schema.ts';
import { wrapEnvelope } from './envelope.ts';
import { planOf } from './message-plan.ts';
import { STRING, tag } from './value-codecs.ts';
import { BYTES } from './wire-input.ts';
import { wireSchemaOf } from './wire-schemas.ts';
import { writeMessage } from './write-message.ts';

export const PROTOBUF = 'application/vnd.kubernetes.protobuf';

type Document = Readonly<Record<string, unknown>>;

/**
 * The enveloped message of any document with a protobuf form: built-in kinds and their lists, Status, options, reviews,
 * Scale, PartialObjectMetadata(List). Undefined for the others (custom resources, Table).
 */
export function encodeProtobuf(document: Document): Uint8Array | undefined {
  const { apiVersion, kind } = typeOf(document);
  const schema = wireSchemaOf({ apiVersion, kind });
  return schema && wrapEnvelope({ apiVersion, kind, message: encodeMessage(schema, document) });
}

/**
 * One event of a watch: four bytes of length (big-endian), then WatchEvent{type=1, object=2 {raw=1}}. The event itself
 * has no magic prefix, `object` (an enveloped document) does.
 */
export function encodeWatchFrame(type: string, object: Uint8Array): Uint8Array {
  const writer = protobuf.Writer.create();
  writer.uint32(tag(1, BYTES));
  STRING.write(writer, type);
  writer.uint32(tag(2, BYTES)).fork().uint32(tag(1, BYTES)).bytes(object).ldelim();
  const event = writer.finish();
  const frame = new Uint8Array(4 + event.length);
  new DataView(frame.buffer).setUint32(0, event.length);
  frame.set(event, 4);
  return frame;
}

function encodeMessage(schema: Schema, document: Document): Uint8Array {
  const writer = protobuf.Writer.create();
  writeMessage(writer, planOf(schema), document);
  return writer.finish();
}

const typeOf = (document: Document): { apiVersion: string; kind: string } => ({
  apiVersion: String(document['apiVersion'] ?? ''),
  kind: String(document['kind'] ?? ''),
});
