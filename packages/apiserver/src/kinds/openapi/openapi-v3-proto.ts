/**
 * OpenAPI 3.0 documents in gnostic's protobuf form (google/gnostic, openapi_v3.Document). Field numbers are those of
 * OpenAPIv3.proto; messages and fields that our documents never use are left out, as are defaults that are objects or
 * lists, for which the message has no room.
 */
import { isJsonObject, type JsonObject } from '@coracle/apimachinery/meta/own-property';
import {
  any,
  double,
  type Encode,
  each,
  encodeMessage,
  flag,
  integer,
  type Message,
  messagesOf,
  nested,
  pairs,
  tag,
  text,
  VARINT,
  wrapped,
} from './gnostic-writer.ts';

/** Media types under which the bytes are known, the one clients ask for first. */
export const OPENAPI_V3_PROTO_TYPES = [
  'application/com.github.proto-openapi.spec.v3.v1.0+protobuf',
  'application/com.github.proto-openapi.spec.v3@v1.0+protobuf',
] as const;

type MessageName =
  | 'document'
  | 'info'
  | 'components'
  | 'securityScheme'
  | 'pathItem'
  | 'operation'
  | 'parameter'
  | 'requestBody'
  | 'response'
  | 'mediaType'
  | 'schema'
  | 'reference';

const message = messagesOf<MessageName>(() => MESSAGES);

/** SchemaOrReference. */
const schema: Encode = (writer, field, value) => {
  if (!isJsonObject(value)) return;
  nested(writer, field, () => {
    if (value['$ref'] === undefined) message('schema')(writer, 1, value);
    else message('reference')(writer, 2, value);
  });
};

const additionalProperties: Encode = (writer, field, value) => {
  nested(writer, field, () => {
    // A oneof: false must be written too, or neither branch would be set.
    if (typeof value === 'boolean') tag(writer, 2, VARINT).bool(value);
    else schema(writer, 1, value);
  });
};

/** DefaultType: a number, a truth value or a text. */
const defaultValue: Encode = (writer, field, value) => {
  const [inner, encode]: readonly [number, Encode] | readonly [] =
    typeof value === 'number'
      ? [1, double]
      : typeof value === 'boolean'
        ? [2, (w, f, v) => void tag(w, f, VARINT).bool(v === true)]
        : typeof value === 'string'
          ? [3, text]
          : [];
  if (inner !== undefined && encode !== undefined) nested(writer, field, () => encode(writer, inner, value));
};

/** Maps that are messages of their own: pairs in field 1. */
const map = (encode: Encode): Encode => wrapped(1, pairs(encode));

const content = map(message('mediaType'));
const schemas = map(schema);
const parameters = each(wrapped(1, message('parameter')));

const MESSAGES: Readonly<Record<MessageName, Message>> = {
  document: {
    fields: {
      openapi: [1, text],
      info: [2, message('info')],
      paths: [4, map(message('pathItem'))],
      components: [5, message('components')],
    },
    extensions: 9,
  },
  info: { fields: { title: [1, text], description: [2, text], version: [6, text] } },
  components: { fields: { schemas: [1, schemas], securitySchemes: [7, map(wrapped(1, message('securityScheme')))] } },
  securityScheme: { fields: { type: [1, text], description: [2, text], name: [3, text], in: [4, text] } },
  pathItem: {
    fields: {
      get: [4, message('operation')],
      put: [5, message('operation')],
      post: [6, message('operation')],
      delete: [7, message('operation')],
      options: [8, message('operation')],
      head: [9, message('operation')],
      patch: [10, message('operation')],
      parameters: [13, parameters],
    },
    extensions: 14,
  },
  operation: {
    fields: {
      tags: [1, each(text)],
      description: [3, text],
      operationId: [5, text],
      parameters: [6, parameters],
      requestBody: [7, wrapped(1, message('requestBody'))],
      // Responses: pairs in field 2, for field 1 is the default one.
      responses: [8, wrapped(2, pairs(wrapped(1, message('response'))))],
    },
    extensions: 13,
  },
  parameter: {
    fields: { name: [1, text], in: [2, text], description: [3, text], required: [4, flag], schema: [10, schema] },
    extensions: 14,
  },
  requestBody: { fields: { description: [1, text], content: [2, content], required: [3, flag] }, extensions: 4 },
  response: { fields: { description: [1, text], content: [3, content] }, extensions: 5 },
  mediaType: { fields: { schema: [1, schema] }, extensions: 5 },
  schema: {
    fields: {
      nullable: [1, flag],
      example: [7, any],
      title: [9, text],
      multipleOf: [10, double],
      maximum: [11, double],
      exclusiveMaximum: [12, flag],
      minimum: [13, double],
      exclusiveMinimum: [14, flag],
      maxLength: [15, integer],
      minLength: [16, integer],
      pattern: [17, text],
      maxItems: [18, integer],
      minItems: [19, integer],
      uniqueItems: [20, flag],
      maxProperties: [21, integer],
      minProperties: [22, integer],
      required: [23, each(text)],
      enum: [24, each(any)],
      type: [25, text],
      allOf: [26, each(schema)],
      oneOf: [27, each(schema)],
      anyOf: [28, each(schema)],
      not: [29, message('schema')],
      items: [30, wrapped(1, schema)],
      properties: [31, schemas],
      additionalProperties: [32, additionalProperties],
      default: [33, defaultValue],
      description: [34, text],
      format: [35, text],
    },
    extensions: 36,
  },
  reference: { fields: { $ref: [1, text] } },
};

/** The bytes of a document as `openApiV3` builds it. */
export const encodeOpenApiV3 = (document: JsonObject): Uint8Array => encodeMessage(MESSAGES.document, document);
