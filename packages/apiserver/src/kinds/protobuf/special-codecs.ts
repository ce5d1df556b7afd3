/**
 * Go types whose JSON form differs from their message: `"2Gi"` is Quantity{string=1}, a port is IntOrString. Field
 * numbers are those of the generated.proto files of apimachinery and apiextensions.
 */

import { isJsonObject } from '@coracle/apimachinery/meta/own-property';
import { parseJson } from '@coracle/apimachinery/schema/parse-json';
import type protobuf from 'protobufjs/minimal.js';
import { startsEnvelope } from './envelope.ts';
import { BOOL, type Codec, INT32, INT64, STRING, tag } from './value-codecs.ts';
import { BYTES, VARINT, type WireInput } from './wire-input.ts';

export interface SpecialSources {
  /** The codec of a named type, for the schemas inside JSONSchemaPropsOr*. */
  codecOf(definition: string): Codec;
  /** Decodes the bytes of a RawExtension that carry the magic prefix. */
  embedded(bytes: Uint8Array, input: WireInput): unknown;
}

/** The codec of a type with a JSON form of its own, undefined for ordinary messages. */
export function specialCodec(definition: string, sources: SpecialSources): Codec | undefined {
  switch (definition.slice(definition.lastIndexOf('.') + 1)) {
    case 'Quantity':
      return QUANTITY;
    case 'Time':
      return timeCodec(0);
    case 'MicroTime':
      return timeCodec(6);
    case 'IntOrString':
      return INT_OR_STRING;
    case 'FieldsV1':
      return rawJson(jsonOrText);
    case 'JSON':
      return rawJson(json);
    case 'RawExtension':
      return rawJson((bytes, input) => (startsEnvelope(bytes) ? sources.embedded(bytes, input) : json(bytes)));
    case 'JSONSchemaPropsOrArray':
      return schemaOrList(definition, sources, { item: () => propsCodec(definition, sources) });
    case 'JSONSchemaPropsOrStringArray':
      return schemaOrList(definition, sources, { item: () => STRING });
    case 'JSONSchemaPropsOrBool':
      return schemaOrBool(definition, sources);
    default:
      return undefined;
  }
}

/** Reads the fields of a small message, skipping the others. */
function readFields(
  input: WireInput,
  end: number,
  fields: Readonly<Record<number, { readonly codec: Codec; readonly take: (value: unknown) => void }>>,
): void {
  input.fields(end, (number, wire) => {
    const field = fields[number];
    if (field === undefined) return input.skip(wire, end);
    input.expectWire(wire, field.codec.wire);
    const valueEnd = wire === BYTES ? input.valueEnd(end) : 0;
    field.take(field.codec.read(input, valueEnd, undefined));
  });
}

const QUANTITY: Codec = {
  wire: BYTES,
  read(input, end) {
    let text = '';
    readFields(input, end, { 1: { codec: STRING, take: (value) => (text = value as string) } });
    return text === '' ? '0' : text;
  },
  write(writer, value) {
    writer.fork().uint32(tag(1, BYTES));
    STRING.write(writer, String(value));
    writer.ldelim();
  },
  empty: () => '0',
};

const INT_OR_STRING: Codec = {
  wire: BYTES,
  read(input, end) {
    let isText = false;
    let int = 0;
    let text = '';
    readFields(input, end, {
      1: { codec: INT64, take: (value) => (isText = value === 1) },
      2: { codec: INT32, take: (value) => (int = value as number) },
      3: { codec: STRING, take: (value) => (text = value as string) },
    });
    return isText ? text : int;
  },
  write(writer, value) {
    const isText = typeof value === 'string';
    writer
      .fork()
      .uint32(tag(1, VARINT))
      .int64(isText ? 1 : 0)
      .uint32(tag(2, VARINT));
    INT32.write(writer, isText ? 0 : value);
    writer.uint32(tag(3, BYTES));
    STRING.write(writer, isText ? value : '');
    writer.ldelim();
  },
  empty: () => 0,
};

/** The years 1 to 9999: what RFC 3339 can write and Go reads back. */
const FIRST_SECOND = -62_135_596_800;
const LAST_SECOND = 253_402_300_799;

/** An empty message is the zero time, which JSON shows as null. Time has whole seconds, MicroTime six decimals. */
function timeCodec(decimals: 0 | 6): Codec {
  return {
    wire: BYTES,
    read(input, end) {
      if (input.position === end) return undefined;
      let seconds = 0;
      let nanos = 0;
      readFields(input, end, {
        1: { codec: INT64, take: (value) => (seconds = value as number) },
        2: { codec: INT32, take: (value) => (nanos = value as number) },
      });
      if (seconds > LAST_SECOND || seconds < FIRST_SECOND) throw new Error(`time ${seconds} s is out of range`);
      const text = new Date(seconds * 1000).toISOString().slice(0, 19);
      const micros = Math.floor(Math.min(Math.max(nanos, 0), 999_999_999) / 1000);
      return decimals === 0 ? `${text}Z` : `${text}.${String(micros).padStart(6, '0')}Z`;
    },
    write(writer, value) {
      const ms = typeof value === 'string' ? Date.parse(value) : Number.NaN;
      writer.fork();
      if (!Number.isNaN(ms)) {
        writer.uint32(tag(1, VARINT)).int64(Math.floor(ms / 1000));
        const fraction = /\.([0-9]+)/.exec(value as string)?.[1] ?? '';
        writer.uint32(tag(2, VARINT)).int32(decimals === 0 ? 0 : Number(fraction.padEnd(6, '0').slice(0, 6)) * 1000);
      }
      writer.ldelim();
    },
    empty: () => null,
  };
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();

const json = (bytes: Uint8Array): unknown => parseJson(bytes, { wideIntegers: true }).value;

/**
 * What is no JSON comes out as the text that it is: upstream reads an owned set only when it tracks fields, and there
 * leaves out of account what it cannot read.
 */
function jsonOrText(bytes: Uint8Array): unknown {
  try {
    return json(bytes);
  } catch {
    return decoder.decode(bytes);
  }
}

/** JSON text in field 1. A RawExtension may carry a whole enveloped object instead. */
function rawJson(parse: (bytes: Uint8Array, input: WireInput) => unknown): Codec {
  return {
    wire: BYTES,
    read(input, end) {
      let value: unknown;
      input.fields(end, (number, wire) => {
        if (number !== 1) return input.skip(wire, end);
        input.expectWire(wire, BYTES);
        const bytes = input.bytes(input.valueEnd(end));
        if (bytes.length > 0) value = parse(bytes, input);
      });
      return value;
    },
    write(writer, value) {
      writer.fork();
      if (value !== undefined) writer.uint32(tag(1, BYTES)).bytes(encoder.encode(JSON.stringify(value)));
      writer.ldelim();
    },
    empty: () => null,
  };
}

/** `...v1.JSONSchemaPropsOrBool` -> the codec of `...v1.JSONSchemaProps`. */
const propsCodec = (definition: string, sources: SpecialSources): Codec =>
  sources.codecOf(definition.slice(0, definition.lastIndexOf('.')).concat('.JSONSchemaProps'));

/** {schema=1, list=2}: the list when it has members. */
function schemaOrList(definition: string, sources: SpecialSources, { item }: { item: () => Codec }): Codec {
  return {
    wire: BYTES,
    read(input, end) {
      let schema: unknown;
      const list: unknown[] = [];
      readFields(input, end, {
        1: { codec: propsCodec(definition, sources), take: (value) => (schema = value) },
        2: { codec: item(), take: (value) => void list.push(value) },
      });
      return list.length > 0 ? list : schema;
    },
    write(writer, value) {
      writer.fork();
      if (Array.isArray(value)) writeEach(writer, { codec: item(), values: value });
      else if (isJsonObject(value)) writeSchema(writer, { codec: propsCodec(definition, sources), value, number: 1 });
      writer.ldelim();
    },
    empty: () => null,
  };
}

/** {allows=1, schema=2}: the schema when there is one. */
function schemaOrBool(definition: string, sources: SpecialSources): Codec {
  return {
    wire: BYTES,
    read(input, end) {
      let schema: unknown;
      let allows: unknown = false;
      readFields(input, end, {
        1: { codec: BOOL, take: (value) => (allows = value) },
        2: { codec: propsCodec(definition, sources), take: (value) => (schema = value) },
      });
      return schema ?? allows;
    },
    write(writer, value) {
      writer
        .fork()
        .uint32(tag(1, VARINT))
        .bool(value !== false);
      if (isJsonObject(value)) writeSchema(writer, { codec: propsCodec(definition, sources), value, number: 2 });
      writer.ldelim();
    },
    empty: () => false,
  };
}

function writeSchema(
  writer: protobuf.Writer,
  { codec, value, number }: { readonly codec: Codec; readonly value: unknown; readonly number: number },
): void {
  writer.uint32(tag(number, BYTES));
  codec.write(writer, value);
}

function writeEach(
  writer: protobuf.Writer,
  { codec, values }: { readonly codec: Codec; readonly values: readonly unknown[] },
): void {
  for (const value of values) {
    writer.uint32(tag(2, BYTES));
    codec.write(writer, value);
  }
}
