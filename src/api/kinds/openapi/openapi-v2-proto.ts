/**
 * The Swagger 2.0 document in gnostic's protobuf form (google/gnostic, openapi_v2.Document), the only form that
 * client-go's `OpenAPISchema()` asks for: helm, argo-cd and old kubectl depend on it. Field numbers are those of
 * OpenAPIv2.proto; messages and fields that our documents never use are left out.
 */
import protobuf from 'protobufjs/minimal.js';
import { isJsonObject, type JsonObject } from '../../meta/own-property.ts';

type Writer = protobuf.Writer;

/** Media types under which the bytes are known, the one clients ask for first. */
export const OPENAPI_V2_PROTO_TYPES = [
  'application/com.github.proto-openapi.spec.v2.v1.0+protobuf',
  'application/com.github.proto-openapi.spec.v2@v1.0+protobuf',
] as const;

/** How one JSON member is written. */
type Encode = (writer: Writer, field: number, value: unknown) => void;

type MessageName =
  | 'document'
  | 'info'
  | 'apiKey'
  | 'pathItem'
  | 'operation'
  | 'bodyParameter'
  | 'queryParameter'
  | 'pathParameter'
  | 'response'
  | 'schema';

interface Message {
  readonly fields: Readonly<Record<string, readonly [number, Encode]>>;
  /** Field of `repeated NamedAny vendor_extension`, for members that begin with `x-`. */
  readonly extensions?: number;
}

/** Wire types in a tag. */
const VARINT = 0;
const FIXED64 = 1;
const BYTES = 2;

const tag = (writer: Writer, field: number, wire: number): Writer => writer.uint32((field << 3) | wire);

const text: Encode = (writer, field, value) => {
  tag(writer, field, BYTES).string(String(value));
};

const flag: Encode = (writer, field, value) => {
  if (value === true) tag(writer, field, VARINT).bool(true);
};

const double: Encode = (writer, field, value) => {
  tag(writer, field, FIXED64).double(Number(value));
};

const integer: Encode = (writer, field, value) => {
  tag(writer, field, VARINT).int64(Number(value));
};

/** A message whose members `write` puts down. */
function nested(writer: Writer, field: number, write: () => void): void {
  tag(writer, field, BYTES).fork();
  write();
  writer.ldelim();
}

const each =
  (encode: Encode): Encode =>
  (writer, field, value) => {
    if (Array.isArray(value)) for (const item of value) encode(writer, field, item);
  };

/** gnostic Any: the value as YAML text, of which JSON is a part. */
const any: Encode = (writer, field, value) => {
  nested(writer, field, () => text(writer, 2, `${JSON.stringify(value)}\n`));
};

/** A map as repeated pairs {name = 1, value = 2}. */
const pairs =
  (encode: Encode): Encode =>
  (writer, field, value) => {
    if (!isJsonObject(value)) return;
    for (const [name, entry] of Object.entries(value)) {
      nested(writer, field, () => {
        text(writer, 1, name);
        encode(writer, 2, entry);
      });
    }
  };

/** A message that only wraps its value in field `inner`. */
const wrapped =
  (inner: number, encode: Encode): Encode =>
  (writer, field, value) => {
    nested(writer, field, () => encode(writer, inner, value));
  };

/** Looked up when used, so that messages may hold each other. */
const message =
  (name: MessageName): Encode =>
  (writer, field, value) => {
    if (isJsonObject(value)) nested(writer, field, () => writeMessage(writer, MESSAGES[name], value));
  };

function writeMessage(writer: Writer, { fields, extensions }: Message, value: JsonObject): void {
  for (const [key, member] of Object.entries(value)) {
    if (member === undefined) continue;
    const known = Object.hasOwn(fields, key) ? fields[key] : undefined;
    if (known !== undefined) known[1](writer, known[0], member);
    else if (extensions !== undefined && key.startsWith('x-')) pairs(any)(writer, extensions, { [key]: member });
  }
}

const additionalProperties: Encode = (writer, field, value) => {
  nested(writer, field, () => {
    // A oneof: false must be written too, or neither branch would be set.
    if (typeof value === 'boolean') tag(writer, 2, VARINT).bool(value);
    else message('schema')(writer, 1, value);
  });
};

/** ParametersItem > Parameter > BodyParameter, or NonBodyParameter > query or path parameter. */
const parameter: Encode = (writer, field, value) => {
  const place = isJsonObject(value) ? value['in'] : undefined;
  nested(writer, field, () =>
    nested(writer, 1, () => {
      if (place === 'body') message('bodyParameter')(writer, 1, value);
      else if (place === 'query') nested(writer, 2, () => message('queryParameter')(writer, 3, value));
      else nested(writer, 2, () => message('pathParameter')(writer, 4, value));
    }),
  );
};

/** Responses > NamedResponseValue > ResponseValue > Response. */
const responses: Encode = (writer, field, value) => {
  nested(writer, field, () => pairs(wrapped(1, message('response')))(writer, 1, value));
};

const apiKeys = pairs(wrapped(2, message('apiKey')));
const requirements = each(wrapped(1, pairs(wrapped(1, each(text)))));

const MESSAGES: Readonly<Record<MessageName, Message>> = {
  document: {
    fields: {
      swagger: [1, text],
      info: [2, message('info')],
      paths: [8, wrapped(2, pairs(message('pathItem')))],
      definitions: [9, wrapped(1, pairs(message('schema')))],
      security: [12, requirements],
      securityDefinitions: [13, wrapped(1, apiKeys)],
    },
    extensions: 16,
  },
  info: { fields: { title: [1, text], version: [2, text], description: [3, text] } },
  apiKey: { fields: { type: [1, text], name: [2, text], in: [3, text], description: [4, text] } },
  pathItem: {
    fields: {
      get: [2, message('operation')],
      put: [3, message('operation')],
      post: [4, message('operation')],
      delete: [5, message('operation')],
      patch: [8, message('operation')],
      parameters: [9, each(parameter)],
    },
    extensions: 10,
  },
  operation: {
    fields: {
      tags: [1, each(text)],
      description: [3, text],
      operationId: [5, text],
      produces: [6, each(text)],
      consumes: [7, each(text)],
      parameters: [8, each(parameter)],
      responses: [9, responses],
      schemes: [10, each(text)],
    },
    extensions: 13,
  },
  bodyParameter: {
    fields: {
      description: [1, text],
      name: [2, text],
      in: [3, text],
      required: [4, flag],
      schema: [5, message('schema')],
    },
    extensions: 6,
  },
  queryParameter: {
    fields: {
      required: [1, flag],
      in: [2, text],
      description: [3, text],
      name: [4, text],
      type: [6, text],
      uniqueItems: [20, flag],
    },
    extensions: 23,
  },
  pathParameter: {
    fields: {
      required: [1, flag],
      in: [2, text],
      description: [3, text],
      name: [4, text],
      type: [5, text],
      uniqueItems: [19, flag],
    },
    extensions: 22,
  },
  response: {
    fields: {
      description: [1, text],
      schema: [2, wrapped(1, message('schema'))],
    },
    extensions: 5,
  },
  schema: {
    fields: {
      $ref: [1, text],
      format: [2, text],
      title: [3, text],
      description: [4, text],
      default: [5, any],
      multipleOf: [6, double],
      maximum: [7, double],
      exclusiveMaximum: [8, flag],
      minimum: [9, double],
      exclusiveMinimum: [10, flag],
      maxLength: [11, integer],
      minLength: [12, integer],
      pattern: [13, text],
      maxItems: [14, integer],
      minItems: [15, integer],
      uniqueItems: [16, flag],
      maxProperties: [17, integer],
      minProperties: [18, integer],
      required: [19, each(text)],
      enum: [20, each(any)],
      additionalProperties: [21, additionalProperties],
      type: [22, wrapped(1, text)],
      items: [23, wrapped(1, message('schema'))],
      properties: [25, wrapped(1, pairs(message('schema')))],
    },
    extensions: 31,
  },
};

/** The bytes of a Swagger 2.0 document as `openApiV2` builds it. */
export function encodeOpenApiV2(document: JsonObject): Uint8Array {
  const writer = protobuf.Writer.create();
  writeMessage(writer, MESSAGES.document, document);
  return writer.finish();
}
