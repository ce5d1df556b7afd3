/** Answers in protobuf: objects, lists and watch frames as pure functions over JSON values. */

import type { Steps } from '@coracle/apimachinery/meta/steps';
import type { Schema } from '@coracle/apimachinery/schema/schema';
import protobuf from 'protobufjs/minimal.js';
import { envelopeAround, wrapEnvelope } from './envelope.ts';
import { planOf } from './message-plan.ts';
import { messageSteps } from './message-steps.ts';
import { StepOutput } from './step-output.ts';
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

/** A document of one type that is encoded member by member: what a message holds may be written in parts. */
export interface MessageInParts {
  /** Some members of the document, or some items of its list. Parts stand in the order of the fields' numbers. */
  part(members: Document): Uint8Array;
  /** The same in steps, where there may be much of it. */
  partSteps(members: Document): Steps<Uint8Array[]>;
  /** The parts, enveloped. */
  whole(parts: readonly Uint8Array[]): Uint8Array[];
}

/** As `encodeProtobuf`, for a long list. */
export function protobufInParts(type: {
  readonly apiVersion: string;
  readonly kind: string;
}): MessageInParts | undefined {
  const schema = wireSchemaOf(type);
  if (schema === undefined) return undefined;
  return {
    part: (members) => encodeMessage(schema, members),
    *partSteps(members) {
      const out = new StepOutput();
      yield* messageSteps(out, planOf(schema), members);
      out.close();
      return out.parts;
    },
    whole(parts) {
      let length = 0;
      for (const part of parts) length += part.length;
      const { before, after } = envelopeAround({ ...type, length });
      return [before, ...parts, after];
    },
  };
}

/** As `encodeProtobuf`, in steps and in parts, for a large document. */
export function* protobufSteps(document: Document): Steps<Uint8Array[] | undefined> {
  const message = protobufInParts(typeOf(document));
  return message?.whole(yield* message.partSteps(document));
}

/**
 * One event of a watch: four bytes of length (big-endian), then WatchEvent{type=1, object=2 {raw=1}}. The event itself
 * has no magic prefix, the object (an enveloped document, in parts) does.
 */
export function encodeWatchFrame(type: string, ...object: readonly Uint8Array[]): Uint8Array {
  const length = object.reduce((sum, part) => sum + part.length, 0);
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
  let at = 4 + head.length + raw.length;
  for (const part of object) {
    frame.set(part, at);
    at += part.length;
  }
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
