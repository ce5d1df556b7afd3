/**
 * The Swagger 2.0 document in gnostic's protobuf form (google/gnostic, openapi_v2.Document), the only form that
 * client-go's `OpenAPISchema()` asks for: helm, argo-cd and old kubectl depend on it. Field numbers are those of
 * OpenAPIv2.proto; messages and fields that our documents never use are left out.
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
export const OPENAPI_V2_PROTO_TYPES = [
  'application/com.github.proto-openapi.spec.v2.v1.0+protobuf',
  'application/com.github.proto-openapi.spec.v2@v1.0+protobuf',
] as const;

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

const message = messagesOf<MessageName>(() => MESSAGES);

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
      options: [6, message('operation')],
      head: [7, message('operation')],
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
      example: [30, any],
    },
    extensions: 31,
  },
};

/** The bytes of a Swagger 2.0 document as `openApiV2` builds it. */
export const encodeOpenApiV2 = (document: JsonObject): Uint8Array => encodeMessage(MESSAGES.document, document);
