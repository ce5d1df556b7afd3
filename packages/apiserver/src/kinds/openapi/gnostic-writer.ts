/**
 * How gnostic (google/gnostic) writes a JSON document as a protobuf message: what both of its OpenAPI forms
 * share. Maps are repeated pairs, values of any type are YAML text, members that begin with `x-` have a field of their own.
 */

import { isJsonObject, type JsonObject } from '@coracle/apimachinery/meta/own-property';
import protobuf from 'protobufjs/minimal.js';

type Writer = protobuf.Writer;

/** How one JSON member is written. */
export type Encode = (writer: Writer, field: number, value: unknown) => void;
/** One message: its fields by the members of the JSON object. */
export interface Message {
  readonly fields: Readonly<Record<string, readonly [number, Encode]>>;
  /** Field of `repeated NamedAny vendor_extension`, for members that begin with `x-`. */
  readonly extensions?: number;
}

/** Wire type of numbers and truth values in a tag. */
export const VARINT = 0;
const FIXED64 = 1;
const BYTES = 2;

/** Begins a field. */
export const tag = (writer: Writer, field: number, wire: number): Writer => writer.uint32((field << 3) | wire);

/** A string. */
export const text: Encode = (writer, field, value) => {
  tag(writer, field, BYTES).string(String(value));
};

/** A bool; false is left out. */
export const flag: Encode = (writer, field, value) => {
  if (value === true) tag(writer, field, VARINT).bool(true);
};

/** A double. */
export const double: Encode = (writer, field, value) => {
  tag(writer, field, FIXED64).double(Number(value));
};

/** An int64. */
export const integer: Encode = (writer, field, value) => {
  tag(writer, field, VARINT).int64(Number(value));
};

/** A message whose members `write` puts down. */
export function nested(writer: Writer, field: number, write: () => void): void {
  tag(writer, field, BYTES).fork();
  write();
  writer.ldelim();
}

/** A repeated field. */
export const each =
  (encode: Encode): Encode =>
  (writer, field, value) => {
    if (Array.isArray(value)) for (const item of value) encode(writer, field, item);
  };

/** gnostic Any: the value as YAML text, of which JSON is a part. */
export const any: Encode = (writer, field, value) => {
  nested(writer, field, () => text(writer, 2, `${JSON.stringify(value)}\n`));
};

/** A map as repeated pairs {name = 1, value = 2}. */
export const pairs = (encode: Encode): Encode => {
  const pair =
    (name: string): Encode =>
    (writer, field, entry) =>
      nested(writer, field, () => {
        text(writer, 1, name);
        encode(writer, 2, entry);
      });
  return (writer, field, value) => {
    if (isJsonObject(value)) for (const [name, entry] of Object.entries(value)) pair(name)(writer, field, entry);
  };
};

/** A message that only wraps its value in field `inner`. */
export const wrapped =
  (inner: number, encode: Encode): Encode =>
  (writer, field, value) =>
    nested(writer, field, () => encode(writer, inner, value));

/**
 * An encoder of the messages in a table, by name. The table is asked when a message is written, so that messages may hold
 * each other.
 */
export const messagesOf =
  <Name extends string>(table: () => Readonly<Record<Name, Message>>) =>
  (name: Name): Encode =>
  (writer, field, value) => {
    if (isJsonObject(value)) nested(writer, field, () => writeMessage(writer, table()[name], value));
  };

function writeMessage(writer: Writer, { fields, extensions }: Message, value: JsonObject): void {
  for (const [key, member] of Object.entries(value)) {
    if (member === undefined) continue;
    const known = Object.hasOwn(fields, key) ? fields[key] : undefined;
    if (known !== undefined) known[1](writer, known[0], member);
    else if (extensions !== undefined && key.startsWith('x-')) pairs(any)(writer, extensions, { [key]: member });
  }
}

/** The bytes of a whole document. */
export function encodeMessage(message: Message, document: JsonObject): Uint8Array {
  const writer = protobuf.Writer.create();
  writeMessage(writer, message, document);
  return writer.finish();
}
