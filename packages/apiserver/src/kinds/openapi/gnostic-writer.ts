/**
 * How gnostic (google/gnostic) writes a JSON document as a protobuf message: the steps that both of its OpenAPI forms
 * share. Maps are repeated pairs, values of any type are YAML text, members that begin with `x-` have a field of their own.
 */

import { isJsonObject, type JsonObject } from '@coracle/apimachinery/meta/own-property';
import { nodesLeft } from '@coracle/apimachinery/meta/small';
import type { Steps } from '@coracle/apimachinery/meta/steps';
import protobuf from 'protobufjs/minimal.js';
import { StepOutput } from '../protobuf/step-output.ts';

type Writer = protobuf.Writer;

/** How one JSON member is written. */
export interface Encode {
  (writer: Writer, field: number, value: unknown): void;
  /** The same for a large value, in steps. Absent where no value is long in writing. */
  steps?: EncodeSteps;
}
type EncodeSteps = (out: StepOutput, field: number, value: unknown) => Steps<void>;

/** An encoding that has both. */
export const inSteps = (encode: Encode, steps: EncodeSteps): Encode =>
  Object.assign(((writer, field, value) => encode(writer, field, value)) satisfies Encode, { steps });

/** Nodes written in one go. */
const TOGETHER = 500;

/** Writes a member in steps where it is a large one. */
export function* memberSteps(
  out: StepOutput,
  encode: Encode,
  { field, value }: { readonly field: number; readonly value: unknown },
): Steps<void> {
  const left = nodesLeft(value, TOGETHER);
  if (encode.steps !== undefined && left < 0) {
    yield;
    yield* encode.steps(out, field, value);
    return;
  }
  encode(out.writer, field, value);
  if (out.due(TOGETHER - Math.max(left, 0))) yield;
}

/** As `nested`. */
export function nestedSteps(out: StepOutput, field: number, write: (inner: StepOutput) => Steps<void>): Steps<void> {
  tag(out.writer, field, BYTES);
  return out.nested(write);
}

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
export const each = (encode: Encode): Encode =>
  inSteps(
    (writer, field, value) => {
      if (Array.isArray(value)) for (const item of value) encode(writer, field, item);
    },
    function* (out, field, value) {
      if (Array.isArray(value)) for (const item of value) yield* memberSteps(out, encode, { field, value: item });
    },
  );

/** gnostic Any: the value as YAML text, of which JSON is a part. */
export const any: Encode = (writer, field, value) => {
  nested(writer, field, () => text(writer, 2, `${JSON.stringify(value)}\n`));
};

/** A map as repeated pairs {name = 1, value = 2}. */
export const pairs = (encode: Encode): Encode => {
  const pair = (name: string): Encode =>
    inSteps(
      (writer, field, entry) =>
        nested(writer, field, () => {
          text(writer, 1, name);
          encode(writer, 2, entry);
        }),
      (out, field, entry) =>
        nestedSteps(out, field, function* (inner) {
          text(inner.writer, 1, name);
          yield* memberSteps(inner, encode, { field: 2, value: entry });
        }),
    );
  return inSteps(
    (writer, field, value) => {
      if (isJsonObject(value)) for (const [name, entry] of Object.entries(value)) pair(name)(writer, field, entry);
    },
    function* (out, field, value) {
      if (!isJsonObject(value)) return;
      for (const name of Object.keys(value)) yield* memberSteps(out, pair(name), { field, value: value[name] });
    },
  );
};

/** A message that only wraps its value in field `inner`. */
export const wrapped = (inner: number, encode: Encode): Encode =>
  inSteps(
    (writer, field, value) => nested(writer, field, () => encode(writer, inner, value)),
    (out, field, value) => nestedSteps(out, field, (below) => memberSteps(below, encode, { field: inner, value })),
  );

/**
 * An encoder of the messages in a table, by name. The table is asked when a message is written, so that messages may hold
 * each other.
 */
export const messagesOf =
  <Name extends string>(table: () => Readonly<Record<Name, Message>>) =>
  (name: Name): Encode =>
    inSteps(
      (writer, field, value) => {
        if (isJsonObject(value)) nested(writer, field, () => writeMessage(writer, table()[name], value));
      },
      function* (out, field, value) {
        if (isJsonObject(value)) yield* nestedSteps(out, field, (inner) => messageSteps(inner, table()[name], value));
      },
    );

function writeMessage(writer: Writer, { fields, extensions }: Message, value: JsonObject): void {
  for (const [key, member] of Object.entries(value)) {
    if (member === undefined) continue;
    const known = Object.hasOwn(fields, key) ? fields[key] : undefined;
    if (known !== undefined) known[1](writer, known[0], member);
    else if (extensions !== undefined && key.startsWith('x-')) pairs(any)(writer, extensions, { [key]: member });
  }
}

/** As `writeMessage`. */
function* messageSteps(out: StepOutput, { fields, extensions }: Message, value: JsonObject): Steps<void> {
  for (const key of Object.keys(value)) {
    const member = value[key];
    if (member === undefined) continue;
    const known = Object.hasOwn(fields, key) ? fields[key] : undefined;
    if (known !== undefined) yield* memberSteps(out, known[1], { field: known[0], value: member });
    else if (extensions !== undefined && key.startsWith('x-')) {
      pairs(any)(out.writer, extensions, { [key]: member });
    }
  }
}

/** The bytes of a whole document. */
export function encodeMessage(message: Message, document: JsonObject): Uint8Array {
  const writer = protobuf.Writer.create();
  writeMessage(writer, message, document);
  return writer.finish();
}

/** The same in steps and in parts. */
export function* encodeMessageSteps(message: Message, document: JsonObject): Steps<Uint8Array[]> {
  const out = new StepOutput();
  yield* messageSteps(out, message, document);
  out.close();
  return out.parts;
}
