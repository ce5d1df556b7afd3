/** Messages between the wire and JSON objects, along their plans. Unknown numbers are skipped, as proto2 has it. */
import { getOwn, isJsonObject, type JsonObject, setOwn } from '@coracle/apimachinery/meta/own-property';
import type protobuf from 'protobufjs/minimal.js';
import { type Codec, type MessagePlan, STRING, tag, type WireField } from './value-codecs.ts';
import { BYTES, type WireInput } from './wire-input.ts';

interface Site {
  readonly plan: MessagePlan;
  readonly end: number;
  readonly target: JsonObject;
}

/** Reads up to `end` into `target` and returns it. Throws an Error when the bytes do not fit the plan, or nest too deep. */
export const readMessage = (input: WireInput, site: Site): JsonObject => input.nested(() => readFields(input, site));

/** The same for what is no level of its own: a type that is one value in JSON. */
function readFields(input: WireInput, { plan, end, target }: Site): JsonObject {
  input.fields(end, (number, wire) => {
    const field = plan.get(number);
    if (field === undefined) input.skip(wire, end);
    else readField(input, { field, wire, end, target });
  });
  return target;
}

function readField(
  input: WireInput,
  { field, wire, end, target }: Omit<Site, 'plan'> & { readonly field: WireField; readonly wire: number },
): void {
  if (field.kind === 'inline') {
    input.expectWire(wire, BYTES);
    readMessage(input, { plan: field.plan, end: input.valueEnd(end), target });
    return;
  }
  const { codec, property } = field;
  if (field.kind === 'one') {
    input.expectWire(wire, codec.wire);
    const value = readValue(input, { codec, end, earlier: target[property] });
    if (value === undefined || (!field.keepZero && value === codec.zero)) delete target[property];
    else target[property] = value;
  } else if (field.kind === 'list') {
    target[property] ??= [];
    const list = target[property] as unknown[];
    if (wire === BYTES && codec.wire !== BYTES) {
      // Several numbers packed into one value.
      const packedEnd = input.valueEnd(end);
      while (input.position < packedEnd) list.push(codec.read(input, packedEnd, undefined));
      if (input.position !== packedEnd) throw new Error('packed numbers cross the end of their value');
      return;
    }
    input.expectWire(wire, codec.wire);
    list.push(readValue(input, { codec, end }) ?? codec.empty());
  } else {
    input.expectWire(wire, BYTES);
    target[property] ??= {};
    readEntry(input, { codec, end: input.valueEnd(end), target: target[property] as JsonObject });
  }
}

/** {key=1, value=2}; keys are strings everywhere in the API. */
function readEntry(input: WireInput, { codec, end, target }: Omit<Site, 'plan'> & { readonly codec: Codec }): void {
  let key = '';
  let value: unknown;
  input.fields(end, (number, wire) => {
    if (number > 2) return input.skip(wire, end);
    input.expectWire(wire, number === 1 ? BYTES : codec.wire);
    if (number === 1) key = input.string(input.valueEnd(end));
    else value = readValue(input, { codec, end });
  });
  setOwn(target, key, value ?? codec.empty());
}

function readValue(
  input: WireInput,
  { codec, end, earlier }: { readonly codec: Codec; readonly end: number; readonly earlier?: unknown },
): unknown {
  if (codec.wire !== BYTES) return codec.read(input, end, earlier);
  const valueEnd = input.valueEnd(end);
  const value = codec.read(input, valueEnd, earlier);
  if (input.position !== valueEnd) throw new Error('a value ends before its announced length');
  return value;
}

/**
 * Writes the fields of `object`, in the order of their numbers. What is absent or null is not written, and values of a wrong
 * type are written as zero.
 */
export function writeMessage(writer: protobuf.Writer, plan: MessagePlan, object: Readonly<JsonObject>): void {
  for (const [number, field] of plan) {
    if (field.kind === 'inline') {
      if (!holdsAny(field.plan, object)) continue;
      writer.uint32(tag(number, BYTES)).fork();
      writeMessage(writer, field.plan, object);
      writer.ldelim();
      continue;
    }
    const { kind, codec, property } = field;
    const value = getOwn(object, property) ?? null;
    if (kind === 'one' && value !== null) {
      writer.uint32(tag(number, codec.wire));
      codec.write(writer, value);
    } else if (kind === 'list' && Array.isArray(value)) {
      for (const item of value) {
        writer.uint32(tag(number, codec.wire));
        codec.write(writer, item);
      }
    } else if (kind === 'map' && isJsonObject(value)) {
      for (const key of Object.keys(value)) {
        writer.uint32(tag(number, BYTES)).fork().uint32(tag(1, BYTES));
        STRING.write(writer, key);
        writer.uint32(tag(2, codec.wire));
        codec.write(writer, value[key]);
        writer.ldelim();
      }
    }
  }
}

/** True when one of the fields is set that Go keeps in a struct of their own. */
const holdsAny = (plan: MessagePlan, object: Readonly<JsonObject>): boolean =>
  [...plan.values()].some((field) =>
    field.kind === 'inline' ? holdsAny(field.plan, object) : (getOwn(object, field.property) ?? null) !== null,
  );

/** A type that JSON writes otherwise than as an object of its fields, or with all of them optional. */
export const codecOfFields = (
  plan: MessagePlan,
  form: {
    /** What the fields that were there are in JSON. undefined = JSON leaves the value out. */
    readonly read: (fields: JsonObject, input: WireInput) => unknown;
    readonly write: (value: unknown) => Readonly<JsonObject>;
    readonly empty: Codec['empty'];
  },
): Codec => ({
  wire: BYTES,
  read: (input, end) => form.read(readFields(input, { plan, end, target: {} }), input),
  write(writer, value) {
    writer.fork();
    writeMessage(writer, plan, form.write(value));
    writer.ldelim();
  },
  empty: form.empty,
});
