/** A schema as wire fields: number -> property and codec. Compiled when a type is first met, then kept. */

import { isJsonObject, type JsonObject } from '@coracle/apimachinery/meta/own-property';
import type { Schema } from '@coracle/apimachinery/schema/schema';
import { oncePerSchema } from '@coracle/apimachinery/schema/schema-reach';
import { rangeOf } from '@coracle/apimachinery/schema/settle-numbers';
import { builtinSchema } from '@coracle/apimachinery/types/builtin-types';
import { keepsZero } from '@coracle/apimachinery/types/kept-zeros';
import { unwrapEnvelope } from './envelope.ts';
import { codecOfFields, readMessage, writeMessage } from './messages.ts';
import { specialCodec } from './special-codecs.ts';
import {
  BASE64,
  BOOL,
  type Codec,
  DOUBLE,
  INT32,
  INT64,
  type MessagePlan,
  STRING,
  type WireField,
  wideInt64,
} from './value-codecs.ts';
import { BYTES, type WireInput } from './wire-input.ts';
import { wireSchemaOf } from './wire-schemas.ts';

/** The plan of an object schema with field numbers. Properties without a number are not on the wire. */
export const planOf = oncePerSchema(compile);

type Tree = Map<number, WireField | Tree>;

function compile(schema: Schema): MessagePlan {
  const tree: Tree = new Map();
  const keep = keepsZero(schema);
  const add = (property: string, path: readonly number[]): void => {
    const member = schema.properties?.[property];
    if (member === undefined) return;
    let node = tree;
    for (const number of path.slice(0, -1)) {
      const child = node.get(number);
      const inner: Tree = child instanceof Map ? child : new Map();
      node.set(number, inner);
      node = inner;
    }
    const name = `${schema['x-coracle-name']}.${property}`;
    node.set(path.at(-1)!, fieldOf(name, property, { schema: member, keepZero: keep(property) }));
  };
  for (const [property, number] of Object.entries(schema['x-coracle-proto'] ?? {})) add(property, [number]);
  for (const [property, path] of Object.entries(schema['x-coracle-proto-inline'] ?? {})) add(property, path);
  return sorted(tree);
}

const sorted = (tree: Tree): MessagePlan =>
  new Map(
    [...tree]
      .sort(([a], [b]) => a - b)
      .map(([number, field]) => [number, field instanceof Map ? { kind: 'inline', plan: sorted(field) } : field]),
  );

const isInt64 = ({ type, format }: Schema): boolean => type === 'integer' && format === 'int64';

/** How an int64 of this field is read; undefined where code of ours counts with it. */
function wideCodec(field: string): Codec | undefined {
  if (rangeOf(field, 0n) === 'counted') return undefined;
  return wideInt64((value) => rangeOf(field, value) === 'kept');
}

/** Fields of a named slice type (Verbs), which Go's protobuf makes a message of its own. */
const WRAPPED_LISTS: ReadonlySet<string> = new Set(['io.k8s.apimachinery.pkg.apis.meta.v1.APIResource.verbs']);

function fieldOf(
  name: string,
  property: string,
  { schema, keepZero }: { readonly schema: Schema; readonly keepZero: boolean },
): WireField {
  const wide = wideCodec(name);
  if (wide !== undefined && isInt64(schema)) return { kind: 'one', property, codec: wide, keepZero };
  if (wide !== undefined && schema.items && isInt64(schema.items)) return { kind: 'list', property, codec: wide };
  if (!isSpecial(schema) && !WRAPPED_LISTS.has(name)) {
    if (schema.type === 'array') return { kind: 'list', property, codec: codecOf(schema.items ?? {}) };
    if (typeof schema.additionalProperties === 'object') {
      return { kind: 'map', property, codec: codecOf(schema.additionalProperties) };
    }
  }
  return { kind: 'one', property, codec: codecOf(schema), keepZero };
}

const isSpecial = (schema: Schema): boolean =>
  schema['x-coracle-name'] !== undefined && special(schema['x-coracle-name']) !== undefined;

const special = (definition: string): Codec | undefined =>
  specialCodec(definition, {
    codecOf: (name) => messageCodec(builtinSchema(name)),
    embedded: readEmbedded,
  });

/** A whole object inside a RawExtension. Throws when its kind is unknown. */
function readEmbedded(bytes: Uint8Array, outer: WireInput): JsonObject {
  const { apiVersion, kind, message } = unwrapEnvelope(bytes);
  const schema = wireSchemaOf({ apiVersion, kind });
  if (schema === undefined) throw new Error(`no kind ${kind} is known in version ${apiVersion}`);
  const target: JsonObject = { kind, apiVersion };
  return readMessage(outer.inner(message), { plan: planOf(schema), end: message.length, target });
}

function codecOf(schema: Schema): Codec {
  const name = schema['x-coracle-name'];
  const own = name === undefined ? undefined : special(name);
  if (own !== undefined) return own;
  switch (schema.type) {
    case 'string':
      return schema.format === 'byte' ? BASE64 : STRING;
    case 'boolean':
      return BOOL;
    case 'integer':
      return schema.format === 'int64' ? INT64 : INT32;
    case 'number':
      return DOUBLE;
    case 'array':
      return wrappedList(codecOf(schema.items ?? {}));
    case 'object':
      return messageCodec(schema);
    default:
      throw new Error(`schema ${name ?? ''} says nothing about its form on the wire`);
  }
}

const messageCodec = (schema: Schema): Codec => ({
  wire: BYTES,
  read: (input, end, earlier) =>
    readMessage(input, { plan: planOf(schema), end, target: isJsonObject(earlier) ? earlier : {} }),
  write(writer, value) {
    writer.fork();
    if (isJsonObject(value)) writeMessage(writer, planOf(schema), value);
    writer.ldelim();
  },
  empty: () => ({}),
});

/** A list as one value: Go's named slice types (ExtraValue, Verbs) are messages {items=1}. */
const wrappedList = (item: Codec): Codec =>
  codecOfFields(new Map([[1, { kind: 'list', property: 'items', codec: item }]]), {
    read: ({ items = [] }) => items,
    write: (items) => ({ items }),
    empty: () => [],
  });
