import assert from 'node:assert/strict';
import { test } from 'node:test';
import protobuf from 'protobufjs';
import { builtinResources } from '../builtin/builtin-resources.ts';
import { encodeOpenApiV2 } from './gnostic.ts';
import { openApiV2 } from './openapi-v2.ts';

/** The part of the message that a reader of definitions and operations needs. */
const READER = protobuf
  .parse(`
  syntax = "proto3";
  message Any { string yaml = 2; }
  message NamedAny { string name = 1; Any value = 2; }
  message Info { string title = 1; string version = 2; }
  message TypeItem { repeated string value = 1; }
  message ItemsItem { repeated Schema schema = 1; }
  message AdditionalPropertiesItem { oneof oneof { Schema schema = 1; bool boolean = 2; } }
  message NamedSchema { string name = 1; Schema value = 2; }
  message Properties { repeated NamedSchema additional_properties = 1; }
  message Schema {
    string _ref = 1; string format = 2; string description = 4; double maximum = 7; int64 max_length = 11;
    repeated string required = 19; repeated Any enum = 20; AdditionalPropertiesItem additional_properties = 21;
    TypeItem type = 22; ItemsItem items = 23; Properties properties = 25; repeated NamedAny vendor_extension = 31;
  }
  message BodyParameter { string name = 2; string in = 3; bool required = 4; Schema schema = 5; }
  message Query { string in = 2; string name = 4; string type = 6; }
  message Path { bool required = 1; string in = 2; string name = 4; string type = 5; }
  message NonBody { oneof oneof { Query query = 3; Path path = 4; } }
  message Parameter { oneof oneof { BodyParameter body = 1; NonBody non_body = 2; } }
  message ParametersItem { oneof oneof { Parameter parameter = 1; } }
  message SchemaItem { oneof oneof { Schema schema = 1; } }
  message Response { string description = 1; SchemaItem schema = 2; }
  message ResponseValue { oneof oneof { Response response = 1; } }
  message NamedResponseValue { string name = 1; ResponseValue value = 2; }
  message Responses { repeated NamedResponseValue response_code = 1; }
  message Operation {
    string operation_id = 5; repeated string consumes = 7; repeated ParametersItem parameters = 8;
    Responses responses = 9; repeated NamedAny vendor_extension = 13;
  }
  message PathItem { Operation get = 2; Operation options = 6; Operation head = 7; Operation patch = 8; repeated ParametersItem parameters = 9; }
  message NamedPathItem { string name = 1; PathItem value = 2; }
  message Paths { repeated NamedPathItem path = 2; }
  message Definitions { repeated NamedSchema additional_properties = 1; }
  message Document { string swagger = 1; Info info = 2; Paths paths = 8; Definitions definitions = 9; }
`)
  .root.lookupType('Document');

// biome-ignore lint/suspicious/noExplicitAny: the decoded message is walked as the open JSON it is.
const decode = (document: Record<string, unknown>): any =>
  READER.toObject(READER.decode(encodeOpenApiV2(document)), { longs: Number });

// biome-ignore lint/suspicious/noExplicitAny: see above.
const named = (list: any[], name: string): any => list.find((entry) => entry.name === name)?.value;

// Compat Discovery, version, OpenAPI, P1, yes: OpenAPI v2 in JSON and protobuf, custom kinds included
test('every definition and path of the document comes back', async () => {
  const document = await openApiV2(builtinResources());
  const decoded = decode(document);
  assert.equal(decoded.swagger, '2.0');
  // biome-ignore lint/suspicious/noExplicitAny: see above.
  const names = (list: any[]): string[] => list.map((entry) => entry.name);
  assert.deepEqual(names(decoded.definitions.additionalProperties), Object.keys(document['definitions'] as object));
  assert.deepEqual(names(decoded.paths.path), Object.keys(document['paths'] as object));
});

test('a definition keeps its fields, references and extensions', async () => {
  const { definitions } = decode(await openApiV2(builtinResources()));
  const spec = named(definitions.additionalProperties, 'io.k8s.api.core.v1.PodSpec');
  assert.deepEqual(spec.type, { value: ['object'] });
  assert.deepEqual(spec.required, ['containers']);
  const containers = named(spec.properties.additionalProperties, 'containers');
  assert.deepEqual(
    containers.items.schema,
    [{ Ref: '#/definitions/io.k8s.api.core.v1.Container' }].map(({ Ref }) => ({ _ref: Ref })),
  );
  assert.equal(named(containers.vendorExtension, 'x-kubernetes-patch-merge-key').yaml, '"name"\n');
  assert.equal(named(containers.vendorExtension, 'x-kubernetes-list-map-keys').yaml, '["name"]\n');
  const limits = named(
    named(definitions.additionalProperties, 'io.k8s.api.core.v1.ResourceRequirements').properties.additionalProperties,
    'limits',
  );
  assert.equal(limits.additionalProperties.schema._ref, '#/definitions/io.k8s.apimachinery.pkg.api.resource.Quantity');
});

test('an operation keeps its parameters, answers and kind', async () => {
  const { paths } = decode(await openApiV2(builtinResources()));
  const item = named(paths.path, '/api/v1/namespaces/{namespace}/pods/{name}');
  assert.deepEqual(
    // biome-ignore lint/suspicious/noExplicitAny: see above.
    item.parameters.map((entry: any) => entry.parameter.nonBody.path.name),
    ['namespace', 'name'],
  );
  const [body, ...query] = item.patch.parameters;
  assert.equal(body.parameter.body.schema._ref, '#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.Patch');
  // biome-ignore lint/suspicious/noExplicitAny: see above.
  assert.ok(query.some((entry: any) => entry.parameter.nonBody.query.name === 'fieldValidation'));
  assert.equal(
    named(item.get.responses.responseCode, '200').response.schema.schema._ref,
    '#/definitions/io.k8s.api.core.v1.Pod',
  );
  const proxy = named(paths.path, '/api/v1/nodes/{name}/proxy');
  assert.deepEqual(
    [proxy.head.operationId, proxy.options.operationId],
    ['connectCoreV1HeadNodeProxy', 'connectCoreV1OptionsNodeProxy'],
  );
  const gvk = named(item.patch.vendorExtension, 'x-kubernetes-group-version-kind').yaml;
  assert.deepEqual(JSON.parse(gvk), { group: '', kind: 'Pod', version: 'v1' });
});

test('numbers, enums and false survive', () => {
  const decoded = decode({
    definitions: { A: { maximum: 0.5, maxLength: 9_007_199_254_740_991, enum: ['a', 1], additionalProperties: false } },
  });
  const schema = named(decoded.definitions.additionalProperties, 'A');
  assert.deepEqual([schema.maximum, schema.maxLength], [0.5, 9_007_199_254_740_991]);
  assert.deepEqual(schema.enum, [{ yaml: '"a"\n' }, { yaml: '1\n' }]);
  assert.deepEqual(schema.additionalProperties, { boolean: false });
});
