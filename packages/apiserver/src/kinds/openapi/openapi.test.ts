import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Schema } from '../../../../apimachinery/src/schema/schema.ts';
import { builtinSchema } from '../../../../apimachinery/src/types/builtin-types.ts';
import type { ResourceInfo } from '../../../../apimachinery/src/types/resource.ts';
import { builtinResources } from '../builtin/builtin-resources.ts';
import { rootSchemaOf } from '../custom/crd-schema.ts';
import { openApiV2 } from './openapi-v2.ts';
import { openApiV3, openApiV3Discovery, openApiV3Hash, openApiV3Paths } from './openapi-v3.ts';
import { readEnums } from './texts/type-texts.ts';

// biome-ignore lint/suspicious/noExplicitAny: documents are walked as the open JSON they are.
type Doc = any;

const all = builtinResources();
const pods = all.find((info) => info.resource === 'pods')!;
const foo: ResourceInfo = {
  ...pods,
  group: 'example.com',
  version: 'v1',
  resource: 'foos',
  singular: 'foo',
  kind: 'Foo',
  listKind: 'FooList',
  subresources: [
    { name: 'scale', kind: 'Scale', group: 'autoscaling', version: 'v1', verbs: ['get', 'update', 'patch'] },
  ],
  strategy: { ...pods.strategy, custom: true },
  schema: {
    type: 'object',
    properties: {
      metadata: { type: 'object' },
      spec: {
        type: 'object',
        required: ['size'],
        properties: {
          size: { type: 'integer', nullable: true, default: 3 },
          port: { 'x-kubernetes-int-or-string': true },
          either: { anyOf: [{ type: 'string' }, { type: 'integer' }] },
          open: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true, properties: { a: { type: 'string' } } },
          list: { type: 'array', items: { type: 'string' }, 'x-kubernetes-list-type': 'set' },
        },
      },
    },
  },
};

const custom = (schema: Schema): ResourceInfo => ({ ...foo, schema, selectableFields: {} });

/** Every `$ref` of a document. */
function refs(document: unknown): Set<string> {
  const found = new Set<string>();
  JSON.stringify(document, (key, value: unknown) => {
    if (key === '$ref' && typeof value === 'string') found.add(value);
    return value;
  });
  return found;
}

test('no document refers to what it does not define', async () => {
  for (const [path, members] of openApiV3Paths([...all, foo])) {
    const document: Doc = members.length > 0 ? await openApiV3(members) : openApiV3Discovery(all, path);
    for (const ref of refs(document)) {
      assert.ok(document.components.schemas[ref.slice('#/components/schemas/'.length)], ref);
    }
  }
  const document: Doc = await openApiV2([...all, foo]);
  for (const ref of refs(document)) assert.ok(document.definitions[ref.slice('#/definitions/'.length)], ref);
});

// Compat Discovery, version, OpenAPI, P0, yes: OpenAPI v3: kinds, actions, list and patch extensions, `fieldValidation`
//   on PATCH
test('kubectl finds fieldValidation and the kind on PATCH, in both dialects', async () => {
  for (const document of [await openApiV3([pods]), await openApiV2([pods])] as Doc[]) {
    const patch = document.paths['/api/v1/namespaces/{namespace}/pods/{name}'].patch;
    assert.deepEqual(patch['x-kubernetes-group-version-kind'], { group: '', version: 'v1', kind: 'Pod' });
    assert.equal(patch['x-kubernetes-action'], 'patch');
    const names = patch.parameters.map((parameter: Doc) => parameter.name);
    for (const name of ['fieldValidation', 'dryRun', 'fieldManager', 'force']) assert.ok(names.includes(name), name);
  }
});

// Compat Discovery, version, OpenAPI, P1, yes: fields with a few values say which (`enum`), in both dialects
test('fields with a few values say which, in both dialects, for kubectl explain and generated clients', async () => {
  const v3: Doc = await openApiV3(all.filter(({ group }) => group === ''));
  const v2: Doc = await openApiV2(all);
  for (const schemas of [v3.components.schemas, v2.definitions]) {
    const { protocol } = schemas['io.k8s.api.core.v1.ContainerPort'].properties;
    assert.deepEqual(protocol.enum, ['SCTP', 'TCP', 'UDP']);
    assert.match(protocol.description, /\n\nPossible enum values:\n - `"SCTP"`\n - `"TCP"`\n - `"UDP"`$/);
    const { accessModes, allocatedResourceStatuses } =
      schemas['io.k8s.api.core.v1.PersistentVolumeClaimStatus'].properties;
    assert.deepEqual(accessModes.items.enum.at(-1), 'ReadWriteOncePod');
    assert.equal(allocatedResourceStatuses.additionalProperties.enum.length, 5);
    assert.equal(schemas['io.k8s.api.core.v1.Lifecycle'].properties.stopSignal.enum.length, 65);
    assert.equal(schemas['io.k8s.api.core.v1.HostPathVolumeSource'].properties.type.enum[0], '');
  }
  assert.equal(builtinSchema('io.k8s.api.core.v1.ContainerPort').properties?.['protocol']?.enum, undefined);
});

test('values are reported text fields that are there, in order', () => {
  for (const [name, fields] of readEnums())
    for (const [field, { part, values }] of fields) {
      const schema = builtinSchema(name).properties?.[field];
      const own = part === 'itself' ? schema : (schema?.[part] as Schema | undefined);
      assert.equal(own?.type, 'string', `${name}.${field}`);
      assert.deepEqual(values, [...new Set(values)].sort(), `${name}.${field}`);
    }
});

// Compat Discovery, version, OpenAPI, P2, yes: the words that upstream's own command-line tests look for in OpenAPI v2
test('Swagger 2.0 has the words that upstream greps for', async () => {
  const text = JSON.stringify(await openApiV2([...all]));
  for (const words of ['list of returned', 'List of services', 'Watch for changes to the described resources']) {
    assert.ok(text.includes(words), words);
  }
});

test('paths and actions of a namespaced resource', async () => {
  const { paths }: Doc = await openApiV3([pods]);
  assert.equal(paths['/api/v1/pods'].get['x-kubernetes-action'], 'list');
  assert.equal(paths['/api/v1/namespaces/{namespace}/pods'].delete['x-kubernetes-action'], 'deletecollection');
  assert.equal(paths['/api/v1/namespaces/{namespace}/pods/{name}/exec'].post['x-kubernetes-action'], 'connect');
  assert.equal(
    paths['/api/v1/namespaces/{namespace}/pods/{name}/eviction'].post['x-kubernetes-group-version-kind'].kind,
    'Eviction',
  );
  const ids = Object.values(paths).flatMap((item: Doc) =>
    Object.values(item).map((operation: Doc) => operation.operationId as string | undefined),
  );
  const named = ids.filter((id) => id !== undefined);
  assert.equal(new Set(named).size, named.length);
});

// Compat Discovery, version, OpenAPI, P1, yes: paths, operation ids, tags, actions, media types, answers and parameters
//   of OpenAPI v2 agree with the swagger.json of Kubernetes 1.20 on all shared paths, but for what changed since
test('clients that are made from the document find the old watches, proxies, logs and discovery by their names', async () => {
  const { paths }: Doc = await openApiV2([...all, foo]);
  const watch = (path: string): unknown[] => {
    const { get } = paths[path];
    return [get.operationId, get['x-kubernetes-action'], get.responses['200'].schema.$ref.split('.').at(-1)];
  };
  const event = (id: string, action: string): unknown[] => [id, action, 'WatchEvent'];
  const namespaced = '/api/v1/watch/namespaces/{namespace}/pods';
  assert.deepEqual(watch(namespaced), event('watchCoreV1NamespacedPodList', 'watchlist'));
  assert.deepEqual(watch(`${namespaced}/{name}`), event('watchCoreV1NamespacedPod', 'watch'));
  assert.deepEqual(watch('/api/v1/watch/pods'), event('watchCoreV1PodListForAllNamespaces', 'watchlist'));
  assert.deepEqual(watch('/api/v1/watch/nodes'), event('watchCoreV1NodeList', 'watchlist'));
  assert.equal(paths['/api/v1/watch/componentstatuses'], undefined);
  assert.equal(paths['/apis/example.com/v1/watch/foos'], undefined);
  assert.ok(paths['/api/v1/pods'].get.produces.includes('application/json;stream=watch'));

  const pod = '/api/v1/namespaces/{namespace}/pods/{name}';
  const inside = paths[`${pod}/proxy/{path}`];
  assert.deepEqual(Object.keys(inside).sort(), [
    ...['delete', 'get', 'head', 'options', 'parameters', 'patch', 'post', 'put'],
  ]);
  assert.equal(inside.head.operationId, 'connectCoreV1HeadNamespacedPodProxyWithPath');
  const named = (path: string, method: string): string[] =>
    (paths[path][method].parameters ?? []).map(({ name }: Doc) => name);
  assert.ok(named(`${pod}/log`, 'get').includes('tailLines'));
  assert.ok(named(`${pod}/exec`, 'get').includes('command'));
  assert.deepEqual(named(`${pod}/portforward`, 'post'), ['ports']);
  assert.ok(named(pod, 'get').includes('pretty'));
  assert.equal(paths[`${pod}`].patch.consumes[0], 'application/json-patch+json');
  assert.deepEqual(Object.keys(paths[pod].delete.responses), ['200', '202', '401']);

  assert.equal(paths['/api/v1/namespaces/{namespace}/pods'].delete.operationId, 'deleteCoreV1CollectionNamespacedPod');
  assert.deepEqual(paths['/apis/apps/v1/namespaces/{namespace}/deployments'].get.tags, ['apps_v1']);
  const roles = '/apis/rbac.authorization.k8s.io/v1/';
  assert.deepEqual(paths[roles].get.tags, ['rbacAuthorization_v1']);
  assert.equal(paths[roles].get.operationId, 'getRbacAuthorizationV1APIResources');
  assert.equal(paths['/apis/apps/'].get.operationId, 'getAppsAPIGroup');
  assert.equal(paths['/version/'].get.operationId, 'getCodeVersion');
  assert.equal(paths['/apis/example.com/'], undefined);
});

test('operation ids are unique over the whole API', async () => {
  const ids = new Set<string>();
  for (const item of Object.values(((await openApiV2([...all, foo])) as Doc).paths) as Doc[]) {
    for (const operation of Object.values(item) as Doc[]) {
      if (operation.operationId === undefined) continue;
      assert.ok(!ids.has(operation.operationId), operation.operationId);
      ids.add(operation.operationId);
    }
  }
});

test('patch metadata is where strategic merge looks for it', async () => {
  const v3: Doc = await openApiV3(all.filter((info) => info.group === 'apps'));
  const { schemas } = v3.components;
  const containers = schemas['io.k8s.api.core.v1.PodSpec'].properties.containers;
  assert.equal(containers['x-kubernetes-patch-merge-key'], 'name');
  assert.equal(containers['x-kubernetes-list-type'], 'map');
  const strategy = schemas['io.k8s.api.apps.v1.DeploymentSpec'].properties.strategy;
  assert.equal(strategy['x-kubernetes-patch-strategy'], 'retainKeys');
  assert.deepEqual(strategy.allOf, [{ $ref: '#/components/schemas/io.k8s.api.apps.v1.DeploymentStrategy' }]);
  assert.deepEqual(schemas['io.k8s.api.apps.v1.Deployment']['x-kubernetes-group-version-kind'], [
    { group: 'apps', version: 'v1', kind: 'Deployment' },
  ]);
});

// Compat Discovery, version, OpenAPI, P1, yes: definitions of custom kinds: names, injected fields, what Swagger cannot
//   say
test('a custom kind is published under its reversed group with the common fields', async () => {
  const definition = ((await openApiV3([foo])) as Doc).components.schemas['com.example.v1.Foo'];
  assert.deepEqual(Object.keys(definition.properties), ['apiVersion', 'kind', 'metadata', 'spec']);
  assert.deepEqual(definition.properties.metadata.allOf, [
    { $ref: '#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta' },
  ]);
  assert.deepEqual(definition['x-kubernetes-group-version-kind'], [
    { group: 'example.com', kind: 'Foo', version: 'v1' },
  ]);
  const { size, port, either } = definition.properties.spec.properties;
  assert.deepEqual(size, { default: 3, type: 'integer', nullable: true });
  assert.deepEqual(port.anyOf, [{ type: 'integer' }, { type: 'string' }]);
  assert.equal(either.anyOf.length, 2);
  const patch = ((await openApiV3([foo])) as Doc).paths['/apis/example.com/v1/namespaces/{namespace}/foos/{name}']
    .patch;
  assert.equal(patch.requestBody.content['application/strategic-merge-patch+json'], undefined);
});

test('a custom kind that is called as a type of Kubernetes has a name of its own where all share one document', async () => {
  const pod = { ...foo, group: 'core.api.k8s.io', resource: 'pods', kind: 'Pod', listKind: 'PodList' };
  const { definitions, paths } = (await openApiV2([pod, pods])) as Doc;
  const name = 'io.k8s.api.core.v1.Pod';
  for (const kind of [name, `${name}List`]) {
    assert.equal(definitions[kind]['x-kubernetes-group-version-kind'][0].group, '', kind);
    assert.equal(definitions[`${kind}_v2`]['x-kubernetes-group-version-kind'][0].group, 'core.api.k8s.io', kind);
  }
  const answer = (path: string) => paths[path].get.responses['200'].schema.$ref;
  assert.equal(answer('/apis/core.api.k8s.io/v1/pods'), `#/definitions/${name}List_v2`);
  assert.equal(answer('/api/v1/pods'), `#/definitions/${name}List`);
  assert.ok(((await openApiV3([pod])) as Doc).components.schemas[name], 'a document of its own');
});

test('Swagger 2.0 drops what it cannot express', async () => {
  const { size, port, either, open, list } = ((await openApiV2([foo])) as Doc).definitions['com.example.v1.Foo']
    .properties.spec.properties;
  assert.deepEqual(size, {});
  assert.deepEqual(port, { 'x-kubernetes-int-or-string': true });
  assert.deepEqual(either, {});
  assert.deepEqual(open, { 'x-kubernetes-preserve-unknown-fields': true });
  assert.equal(list['x-kubernetes-list-type'], 'set');
  const inV2 = async (spec: Schema): Promise<Doc> =>
    ((await openApiV2([custom({ type: 'object', properties: { spec } })])) as Doc).definitions['com.example.v1.Foo']
      .properties.spec;
  const nullable: Schema = { type: 'object', nullable: true, properties: { a: { type: 'string' } } };
  assert.deepEqual(await inV2(nullable), {});
  assert.deepEqual(
    (await inV2({ type: 'object', required: ['n', 's'], properties: { n: nullable, s: { type: 'string' } } })).required,
    ['s'],
  );
  assert.equal('required' in (await inV2({ type: 'object', required: ['x'], additionalProperties: nullable })), false);
  assert.equal('type' in (await inV2({ type: 'array' })), false);
});

// S-271: Custom kinds are published in Swagger 2.0 as apiextensions publishes them.
// Compat Discovery, version, OpenAPI, P1, yes: Swagger 2.0 of custom kinds as apiextensions publishes it: open,
//   nullable and embedded nodes, `example`
test('Swagger 2.0 says nothing of a kind that may hold anything: kubectl would refuse the rest', async () => {
  const definition = async (schema: Schema): Promise<Doc> =>
    ((await openApiV2([custom(schema)])) as Doc).definitions['com.example.v1.Foo'];
  const schema: Schema = {
    type: 'object',
    description: 'anything',
    'x-kubernetes-preserve-unknown-fields': true,
    properties: { spec: { type: 'object' } },
  };
  assert.deepEqual(await definition(schema), {
    type: 'object',
    'x-kubernetes-group-version-kind': [{ group: 'example.com', kind: 'Foo', version: 'v1' }],
  });
});

// S-271
test('an embedded object has the fields of every object and an example stays', async () => {
  const schema = rootSchemaOf({
    type: 'object',
    properties: {
      spec: {
        type: 'object',
        properties: {
          template: {
            type: 'object',
            'x-kubernetes-embedded-resource': true,
            required: ['spec'],
            properties: { spec: { type: 'object' }, metadata: { type: 'object' } },
          },
          open: {
            type: 'object',
            'x-kubernetes-embedded-resource': true,
            'x-kubernetes-preserve-unknown-fields': true,
          },
          word: { type: 'string', example: { any: ['value'] } },
        },
      },
    },
  });
  const v3 = ((await openApiV3([custom(schema)])) as Doc).components.schemas['com.example.v1.Foo'].properties.spec
    .properties;
  assert.deepEqual(Object.keys(v3.template.properties).sort(), ['apiVersion', 'kind', 'metadata', 'spec']);
  assert.deepEqual(v3.template.required, ['spec', 'kind', 'apiVersion']);
  assert.deepEqual(v3.open.required, ['kind', 'apiVersion']);
  assert.deepEqual(v3.template.properties.metadata.allOf, [
    { $ref: '#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta' },
  ]);
  assert.deepEqual(v3.word.example, { any: ['value'] });
  const v2 = ((await openApiV2([custom(schema)])) as Doc).definitions['com.example.v1.Foo'].properties.spec.properties;
  assert.deepEqual(v2.template.required, ['spec', 'kind', 'apiVersion']);
  assert.deepEqual(v2.open, {
    'x-kubernetes-embedded-resource': true,
    'x-kubernetes-preserve-unknown-fields': true,
  });
});

// S-271
// Compat Discovery, version, OpenAPI, P2, yes: lists of custom kinds name their selectable fields
test('a list says which fields of its items can be selected by, as its kind does', async () => {
  const schemas = ((await openApiV3([{ ...foo, selectableFields: { 'spec.size': () => '' } }])) as Doc).components
    .schemas;
  for (const name of ['com.example.v1.Foo', 'com.example.v1.FooList']) {
    assert.deepEqual(schemas[name]['x-kubernetes-selectable-fields'], [{ fieldPath: 'spec.size' }], name);
  }
});

// Compat Discovery, version, OpenAPI, P2, yes: OpenAPI v3 documents for `api`, `apis`, `apis/GROUP`, `version`,
//   `.well-known/openid-configuration`, `openid/v1/jwks`
test('paths of discovery have documents of their own, and those of group versions begin with theirs', async () => {
  const names = ['api', 'apis', 'apis/apps', 'version', '.well-known/openid-configuration', 'openid/v1/jwks'];
  const known = openApiV3Paths([...all, foo]);
  for (const name of names) assert.deepEqual(known.get(name), [], name);
  assert.ok(!known.has(`apis/${foo.group}`), 'groups of custom kinds have none');
  const operations = names.map((name) => {
    const { paths } = openApiV3Discovery(all, name) as Doc;
    assert.deepEqual(Object.keys(paths), [`/${name}/`]);
    const { operationId, tags, responses } = paths[`/${name}/`].get;
    const schema = Object.values<Doc>(responses['200'].content)[0].schema;
    return [operationId, tags[0], Object.keys(responses['200'].content).length, schema.$ref?.split('.').at(-1)];
  });
  assert.deepEqual(operations, [
    ['getCoreAPIVersions', 'core', 3, 'APIVersions'],
    ['getAPIVersions', 'apis', 3, 'APIGroupList'],
    ['getAppsAPIGroup', 'apps', 3, 'APIGroup'],
    ['getCodeVersion', 'version', 1, 'Info'],
    ['getServiceAccountIssuerOpenIDConfiguration', 'WellKnown', 1, undefined],
    ['getServiceAccountIssuerOpenIDKeyset', 'openid', 1, undefined],
  ]);
  assert.equal(openApiV3Discovery(all, 'apis/none'), undefined);
  const deployments = all.filter(({ group }) => group === 'apps');
  const first = Object.entries<Doc>(((await openApiV3(deployments)) as Doc).paths)[0]!;
  assert.deepEqual([first[0], first[1].get.operationId], ['/apis/apps/v1/', 'getAppsV1APIResources']);
  assert.ok(!('/apis/example.com/v1/' in ((await openApiV3([foo])) as Doc).paths));
});

test('the hash of a document is stable, and another one for another schema', async () => {
  assert.match(await openApiV3Hash([foo]), /^[0-9A-F]{128}$/);
  assert.equal(await openApiV3Hash([foo]), await openApiV3Hash([foo]));
  const changed = { ...foo, schema: { type: 'object' as const } };
  assert.notEqual(await openApiV3Hash([changed]), await openApiV3Hash([foo]));
});
