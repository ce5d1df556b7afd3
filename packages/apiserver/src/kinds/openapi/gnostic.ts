/**
 * OpenAPI documents in gnostic's protobuf form (google/gnostic, openapi_v2.Document and openapi_v3.Document): the only form
 * that client-go's `OpenAPISchema()` asks for, on which helm, argo-cd and old kubectl depend. `gnostic-messages.json` has the
 * messages. Maps are repeated pairs, values of any type are YAML text, members that begin with `x-` have a field of their own.
 */
import { isJsonObject, type JsonObject } from '@coracle/apimachinery/meta/own-property';
import protobuf from 'protobufjs/minimal.js';
import tables from './gnostic-messages.json' with { type: 'json' };

type Writer = protobuf.Writer;
/** Writes one JSON member. */
type Encode = (writer: Writer, field: number, value: unknown) => void;
/** The name of a message or of an encoding, or what holds one. */
type Encoding = string | readonly (string | number | Encoding)[];

interface Message {
  readonly fields: ReadonlyMap<string, readonly [field: number, encode: Encode]>;
  /** Field of `repeated NamedAny vendor_extension`, for members that begin with `x-`. */
  readonly extensions: number | undefined;
}

/** Media types under which the bytes are known, the one clients ask for first. */
const typesOf = (spec: string) => [`${spec}.v1.0+protobuf`, `${spec}@v1.0+protobuf`] as const;
export const OPENAPI_V2_PROTO_TYPES = typesOf('application/com.github.proto-openapi.spec.v2');
export const OPENAPI_V3_PROTO_TYPES = typesOf('application/com.github.proto-openapi.spec.v3');

const VARINT = 0;
const FIXED64 = 1;
const BYTES = 2;

const tag = (writer: Writer, field: number, wire: number): Writer => writer.uint32((field << 3) | wire);

function nested(writer: Writer, field: number, write: () => void): void {
  tag(writer, field, BYTES).fork();
  write();
  writer.ldelim();
}

const text: Encode = (writer, field, value) => void tag(writer, field, BYTES).string(String(value));
const bool: Encode = (writer, field, value) => void tag(writer, field, VARINT).bool(value === true);
const double: Encode = (writer, field, value) => void tag(writer, field, FIXED64).double(Number(value));
/** The value as YAML text, of which JSON is a part. */
const any: Encode = (writer, field, value) =>
  nested(writer, field, () => text(writer, 2, `${JSON.stringify(value)}\n`));

const SCALARS: Readonly<Record<string, Encode>> = {
  text,
  any,
  double,
  integer: (writer, field, value) => void tag(writer, field, VARINT).int64(Number(value)),
  /** False is left out. */
  flag: (writer, field, value) => {
    if (value === true) bool(writer, field, value);
  },
  /** DefaultType has no room for objects and lists. */
  scalar: (writer, field, value) => {
    if (typeof value === 'number') nested(writer, field, () => double(writer, 1, value));
    else if (typeof value === 'boolean') nested(writer, field, () => bool(writer, 2, value));
    else if (typeof value === 'string') nested(writer, field, () => text(writer, 3, value));
  },
};

const pairs =
  (encode: Encode): Encode =>
  (writer, field, value) => {
    for (const [name, entry] of Object.entries(isJsonObject(value) ? value : {})) {
      nested(writer, field, () => {
        text(writer, 1, name);
        encode(writer, 2, entry);
      });
    }
  };
const anyPairs = pairs(any);

function writeMessage(writer: Writer, { fields, extensions }: Message, value: JsonObject): void {
  for (const [key, member] of Object.entries(value)) {
    if (member === undefined) continue;
    const known = fields.get(key);
    if (known !== undefined) known[1](writer, known[0], member);
    else if (extensions !== undefined && key.startsWith('x-')) anyPairs(writer, extensions, { [key]: member });
  }
}

/** The encoder of whole documents by the messages of one version. */
function encoderOf(table: Readonly<Record<string, { fields: object; extensions?: number }>>) {
  const message =
    (name: string): Encode =>
    (writer, field, value) => {
      if (isJsonObject(value)) nested(writer, field, () => writeMessage(writer, messages.get(name)!, value));
    };
  const named: Readonly<Record<string, Encode>> = {
    ...SCALARS,
    schemaOrReference: (writer, field, value) => {
      if (isJsonObject(value)) (value['$ref'] === undefined ? schema : reference)(writer, field, value);
    },
    /** ParametersItem > Parameter > BodyParameter, or NonBodyParameter > query or path parameter. */
    parameterByPlace: (writer, field, value) => {
      const place = isJsonObject(value) ? value['in'] : undefined;
      (place === 'body' ? inBody : place === 'query' ? inQuery : inPath)(writer, field, value);
    },
  };
  function encoding(of: Encoding): Encode {
    if (typeof of === 'string') return named[of] ?? message(of);
    const inner = encoding(of.at(-1) as Encoding);
    switch (of[0]) {
      case 'in':
        return (writer, field, value) => nested(writer, field, () => inner(writer, of[1] as number, value));
      case 'each':
        return (writer, field, value) => {
          if (Array.isArray(value)) for (const item of value) inner(writer, field, item);
        };
      case 'map':
        return pairs(inner);
      default:
        // A oneof: false must be written too, or neither branch would be set.
        return (writer, field, value) =>
          nested(writer, field, () => (typeof value === 'boolean' ? bool(writer, 2, value) : inner(writer, 1, value)));
    }
  }
  const [schema, reference] = [encoding(['in', 1, 'schema']), encoding(['in', 2, 'reference'])];
  const inBody = encoding(['in', 1, ['in', 1, 'bodyParameter']]);
  const inQuery = encoding(['in', 1, ['in', 2, ['in', 3, 'queryParameter']]]);
  const inPath = encoding(['in', 1, ['in', 2, ['in', 4, 'pathParameter']]]);
  const messages = new Map<string, Message>();
  for (const [name, { fields, extensions }] of Object.entries(table)) {
    const encoded = Object.entries(fields).map(
      ([key, [field, of]]) => [key, [field as number, encoding(of as Encoding)]] as const,
    );
    messages.set(name, { fields: new Map(encoded), extensions });
  }
  return (document: JsonObject): Uint8Array => {
    const writer = protobuf.Writer.create();
    writeMessage(writer, messages.get('document')!, document);
    return writer.finish();
  };
}

/** The bytes of a Swagger 2.0 document as `openApiV2` builds it. */
export const encodeOpenApiV2 = encoderOf(tables.v2);
/** The bytes of a document as `openApiV3` builds it. */
export const encodeOpenApiV3 = encoderOf(tables.v3);
