/**
 * Go types whose JSON form differs from their message: `"2Gi"` is Quantity{string=1}, a port is IntOrString. Field
 * numbers are those of the generated.proto files of apimachinery and apiextensions.
 */

import { isJsonObject } from '@coracle/apimachinery/meta/own-property';
import { parseJson } from '@coracle/apimachinery/schema/parse-json';
import { startsEnvelope } from './envelope.ts';
import { codecOfFields } from './messages.ts';
import { BOOL, BYTE_STRING, type Codec, INT32, INT64, STRING, type WireField } from './value-codecs.ts';
import type { WireInput } from './wire-input.ts';

interface SpecialSources {
  /** The codec of a named type, for the schemas inside JSONSchemaPropsOr*. */
  codecOf(definition: string): Codec;
  /** Decodes the bytes of a RawExtension that carry the magic prefix. */
  embedded(bytes: Uint8Array, input: WireInput): unknown;
}

/** The codec of a type with a JSON form of its own, undefined for ordinary messages. */
export function specialCodec(definition: string, sources: SpecialSources): Codec | undefined {
  const dot = definition.lastIndexOf('.');
  const props = (): Codec => sources.codecOf(`${definition.slice(0, dot)}.JSONSchemaProps`);
  switch (definition.slice(dot + 1)) {
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
      return schemaOrList(props(), props());
    case 'JSONSchemaPropsOrStringArray':
      return schemaOrList(props(), STRING);
    case 'JSONSchemaPropsOrBool':
      return schemaOrBool(props());
    default:
      return undefined;
  }
}

/** Fields of a small message, numbered from 1, each as it was sent. */
const fields = (codecs: Readonly<Record<string, Codec>>): Map<number, WireField> =>
  new Map(
    Object.entries(codecs).map(([property, codec], i): [number, WireField] => [
      i + 1,
      { kind: 'one', property, codec, keepZero: true },
    ]),
  );

const QUANTITY = codecOfFields(fields({ text: STRING }), {
  read: ({ text }) => text || '0',
  write: (value) => ({ text: String(value) }),
  empty: () => '0',
});

const INT_OR_STRING = codecOfFields(fields({ type: INT64, int: INT32, text: STRING }), {
  read: ({ type, int = 0, text = '' }) => (type === 1 ? text : int),
  write: (value) =>
    typeof value === 'string' ? { type: 1, int: 0, text: value } : { type: 0, int: value ?? 0, text: '' },
  empty: () => 0,
});

/** The years 1 to 9999: what RFC 3339 can write and Go reads back. */
const FIRST_SECOND = -62_135_596_800;
const LAST_SECOND = 253_402_300_799;
const TIME = fields({ seconds: INT64, nanos: INT32 });

/** An empty message is the zero time, which JSON shows as null. Time has whole seconds, MicroTime six decimals. */
const timeCodec = (decimals: 0 | 6): Codec =>
  codecOfFields(TIME, {
    read(time) {
      if (Object.keys(time).length === 0) return undefined;
      const { seconds = 0, nanos = 0 } = time as { seconds?: number; nanos?: number };
      if (seconds > LAST_SECOND || seconds < FIRST_SECOND) throw new Error(`time ${seconds} s is out of range`);
      const text = new Date(seconds * 1000).toISOString().slice(0, 19);
      const micros = Math.floor(Math.min(Math.max(nanos, 0), 999_999_999) / 1000);
      return decimals === 0 ? `${text}Z` : `${text}.${String(micros).padStart(6, '0')}Z`;
    },
    write(value) {
      const ms = typeof value === 'string' ? Date.parse(value) : Number.NaN;
      if (Number.isNaN(ms)) return {};
      const fraction = /\.([0-9]+)/.exec(value as string)?.[1] ?? '';
      const nanos = decimals === 0 ? 0 : Number(fraction.padEnd(6, '0').slice(0, 6)) * 1000;
      return { seconds: Math.floor(ms / 1000), nanos };
    },
    empty: () => null,
  });

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

const RAW = fields({ raw: BYTE_STRING });

/** JSON text in field 1. A RawExtension may carry a whole enveloped object instead. */
const rawJson = (parse: (bytes: Uint8Array, input: WireInput) => unknown): Codec =>
  codecOfFields(RAW, {
    read: ({ raw }, input) => (raw instanceof Uint8Array && raw.length > 0 ? parse(raw, input) : undefined),
    write: (value) => (value === undefined ? {} : { raw: encoder.encode(JSON.stringify(value)) }),
    empty: () => null,
  });

/** {schema=1, list=2}: the list when it has members. */
const schemaOrList = (schema: Codec, item: Codec): Codec =>
  codecOfFields(fields({ schema }).set(2, { kind: 'list', property: 'list', codec: item }), {
    read: ({ schema, list }) => list ?? schema,
    write: (value) => (Array.isArray(value) ? { list: value } : isJsonObject(value) ? { schema: value } : {}),
    empty: () => null,
  });

/** {allows=1, schema=2}: the schema when there is one. */
const schemaOrBool = (schema: Codec): Codec =>
  codecOfFields(fields({ allows: BOOL, schema }), {
    read: ({ allows = false, schema }) => schema ?? allows,
    write: (value) => ({ allows: value !== false, ...(isJsonObject(value) && { schema: value }) }),
    empty: () => false,
  });
