import assert from 'node:assert/strict';
import { test } from 'node:test';
import protobuf from 'protobufjs';
import { builtinResources } from '../builtin/builtin-resources.ts';
import { encodeOpenApiV3 } from './gnostic.ts';
import { openApiV3 } from './openapi-v3.ts';

/** The part of gnostic's openapi_v3.Document that our documents use. */
const READER = protobuf
  .parse(`
  syntax = "proto3";
  message Any { string yaml = 2; }
  message NamedAny { string name = 1; Any value = 2; }
  message Info { string title = 1; string version = 6; }
  message Reference { string _ref = 1; }
  message SchemaOrReference { oneof oneof { Schema schema = 1; Reference reference = 2; } }
  message NamedSchema { string name = 1; SchemaOrReference value = 2; }
  message Schemas { repeated NamedSchema additional_properties = 1; }
  message Items { repeated SchemaOrReference schema_or_reference = 1; }
  message Additional { oneof oneof { SchemaOrReference schema_or_reference = 1; bool boolean = 2; } }
  message DefaultType { oneof oneof { double number = 1; bool boolean = 2; string string = 3; } }
  message Schema {
    bool nullable = 1; double maximum = 11; int64 max_length = 15; repeated string required = 23; repeated Any enum = 24;
    string type = 25; repeated SchemaOrReference all_of = 26; repeated SchemaOrReference one_of = 27; Items items = 30;
    Schemas properties = 31; Additional additional_properties = 32; DefaultType default = 33; string description = 34;
    string format = 35; repeated NamedAny specification_extension = 36;
  }
  message SecurityScheme { string type = 1; string name = 3; string in = 4; }
  message SecuritySchemeOrReference { oneof oneof { SecurityScheme security_scheme = 1; } }
  message NamedSecurityScheme { string name = 1; SecuritySchemeOrReference value = 2; }
  message SecuritySchemes { repeated NamedSecurityScheme additional_properties = 1; }
  message Components { Schemas schemas = 1; SecuritySchemes security_schemes = 7; }
  message MediaType { SchemaOrReference schema = 1; }
  message NamedMediaType { string name = 1; MediaType value = 2; }
  message MediaTypes { repeated NamedMediaType additional_properties = 1; }
  message Parameter { string name = 1; string in = 2; bool required = 4; SchemaOrReference schema = 10; }
  message ParameterOrReference { oneof oneof { Parameter parameter = 1; } }
  message RequestBody { MediaTypes content = 2; bool required = 3; }
  message RequestBodyOrReference { oneof oneof { RequestBody request_body = 1; } }
  message Response { string description = 1; MediaTypes content = 3; }
  message ResponseOrReference { oneof oneof { Response response = 1; } }
  message NamedResponse { string name = 1; ResponseOrReference value = 2; }
  message Responses { repeated NamedResponse response_or_reference = 2; }
  message Operation {
    string operation_id = 5; repeated ParameterOrReference parameters = 6; RequestBodyOrReference request_body = 7;
    Responses responses = 8; repeated NamedAny specification_extension = 13;
  }
  message PathItem { Operation get = 4; Operation post = 6; Operation patch = 10; repeated ParameterOrReference parameters = 13; }
  message NamedPathItem { string name = 1; PathItem value = 2; }
  message Paths { repeated NamedPathItem path = 1; }
  message Document { string openapi = 1; Info info = 2; Paths paths = 4; Components components = 5; }
`)
  .root.lookupType('Document');

const document = await openApiV3(builtinResources().filter(({ group }) => group === 'apps'));
// biome-ignore lint/suspicious/noExplicitAny: the decoded message is walked as the open JSON it is.
const decoded: any = READER.toObject(READER.decode(encodeOpenApiV3(document)), { longs: Number });
// biome-ignore lint/suspicious/noExplicitAny: see above.
const named = (list: any[], name: string): any => list.find((entry) => entry.name === name)?.value;
// biome-ignore lint/suspicious/noExplicitAny: see above.
const names = (list: any[]): string[] => list.map((entry) => entry.name);

test('every schema and path of the document comes back', () => {
  assert.equal(decoded.openapi, '3.0.0');
  assert.equal(decoded.info.title, 'Kubernetes');
  const { schemas } = document['components'] as { schemas: object };
  assert.deepEqual(names(decoded.components.schemas.additionalProperties), Object.keys(schemas));
  assert.deepEqual(names(decoded.paths.path), Object.keys(document['paths'] as object));
});

test('a schema keeps its fields, references, defaults and extensions', () => {
  const schemas = decoded.components.schemas.additionalProperties;
  const { schema: spec } = named(schemas, 'io.k8s.api.core.v1.PodSpec');
  assert.equal(spec.type, 'object');
  assert.deepEqual(spec.required, ['containers']);
  const { schema: containers } = named(spec.properties.additionalProperties, 'containers');
  assert.equal(containers.type, 'array');
  const [item] = containers.items.schemaOrReference;
  const reference = item.reference ?? item.schema.allOf[0].reference;
  assert.equal(reference._ref, '#/components/schemas/io.k8s.api.core.v1.Container');
  assert.equal(named(containers.specificationExtension, 'x-kubernetes-patch-merge-key').yaml, '"name"\n');
});

test('operations name their bodies, answers, parameters and kinds', () => {
  const path = named(decoded.paths.path, '/apis/apps/v1/namespaces/{namespace}/deployments');
  const { post } = path;
  assert.deepEqual(names(post.requestBody.requestBody.content.additionalProperties), ['*/*']);
  assert.deepEqual(names(post.responses.responseOrReference), ['200', '201', '202', '401']);
  assert.match(named(post.specificationExtension, 'x-kubernetes-group-version-kind').yaml, /"kind":"Deployment"/);
  assert.ok(post.parameters.some((one: { parameter: { name: string } }) => one.parameter.name === 'dryRun'));
  assert.equal(path.parameters[0].parameter.name, 'namespace');
  assert.equal(path.parameters[0].parameter.required, true);
});
