import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Schema } from '../schema/schema.ts';
import { builtinKindOf, builtinSchema, builtinTypeName, builtinTypeNames, hasBuiltinType } from './builtin-types.ts';

const core = (name: string): Schema => builtinSchema(`io.k8s.api.core.v1.${name}`);
const property = (schema: Schema, ...path: string[]): Schema => {
  let node = schema;
  for (const step of path) node = (step === '[]' ? node.items : node.properties?.[step]) ?? assert.fail(step);
  return node;
};

test('builtinSchema() gives one shared node for each name', () => {
  assert.equal(core('Pod'), core('Pod'));
  assert.equal(property(core('Pod'), 'spec'), core('PodSpec'));
  assert.throws(() => core('Nonsense'), /no built-in type is called io\.k8s\.api\.core\.v1\.Nonsense/);
  assert.equal(hasBuiltinType('io.k8s.api.core.v1.constructor'), false);
});

// Compat Types, P0, yes: list keys, merge keys, strategies of every built-in list
test('list keys, merge keys and strategies survive the encoding', () => {
  const ports = property(core('Container'), 'ports');
  assert.deepEqual(ports['x-kubernetes-list-map-keys'], ['containerPort', 'protocol']);
  assert.equal(ports['x-kubernetes-patch-merge-key'], 'containerPort');
  assert.equal(property(ports, '[]', 'protocol').default, 'TCP');
  assert.equal(property(core('PodSpec'), 'volumes')['x-kubernetes-patch-strategy'], 'merge,retainKeys');
  assert.equal(property(core('PodSpec'), 'tolerations')['x-kubernetes-list-type'], 'atomic');
  assert.equal(property(core('NodeSpec'), 'podCIDRs')['x-kubernetes-list-type'], 'set');
  const deployment = builtinSchema('io.k8s.api.apps.v1.DeploymentSpec');
  assert.equal(property(deployment, 'strategy')['x-kubernetes-patch-strategy'], 'retainKeys');
  assert.equal(property(deployment, 'selector')['x-kubernetes-map-type'], 'atomic');
  assert.equal(property(core('PersistentVolumeSpec'), 'claimRef')['x-kubernetes-map-type'], 'granular');
  assert.equal(property(core('PodSpec'), 'nodeSelector')['x-kubernetes-map-type'], 'atomic');
});

test('scalars with a form of their own', () => {
  assert.equal(core('ResourceRequirements').properties?.['limits']?.additionalProperties instanceof Object, true);
  assert.equal(builtinSchema('io.k8s.apimachinery.pkg.api.resource.Quantity')['x-kubernetes-int-or-string'], true);
  assert.equal(property(core('ServicePort'), 'targetPort')['x-kubernetes-int-or-string'], true);
  assert.equal(property(core('Pod'), 'metadata', 'creationTimestamp').format, 'date-time');
  const secret = property(core('Secret'), 'data').additionalProperties as Schema;
  assert.equal(secret.format, 'byte');
  assert.equal(property(core('ContainerPort'), 'containerPort').format, 'int32');
});

test('protobuf numbers, also through inlined messages', () => {
  assert.equal(core('Pod')['x-coracle-proto']?.['spec'], 2);
  assert.deepEqual(core('Volume')['x-coracle-proto-inline']?.['secret'], [2, 6]);
  assert.deepEqual(core('EphemeralContainer')['x-coracle-proto-inline']?.['image'], [1, 2]);
  assert.deepEqual(core('Probe')['x-coracle-proto-inline']?.['grpc'], [1, 4]);
  const rule = builtinSchema('io.k8s.api.admissionregistration.v1.NamedRuleWithOperations');
  assert.deepEqual(rule['x-coracle-proto-inline']?.['scope'], [2, 2, 4]);
});

// S-021
test('every type decodes, and every field is on the wire or names the object', () => {
  const offWire = new Set(['apiVersion', 'kind']);
  for (const name of builtinTypeNames()) {
    const schema = builtinSchema(name);
    assert.equal(schema['x-coracle-name'], name);
    if (name.endsWith('version.Info')) continue;
    for (const field of Object.keys(schema.properties ?? {})) {
      const known = schema['x-coracle-proto']?.[field] ?? schema['x-coracle-proto-inline']?.[field];
      assert.ok(known !== undefined || offWire.has(field), `${name}.${field}`);
    }
    const paths = [
      ...Object.values(schema['x-coracle-proto'] ?? {}).map(String),
      ...Object.values(schema['x-coracle-proto-inline'] ?? {}).map((path) => path.join('.')),
    ];
    assert.equal(new Set(paths).size, paths.length, `${name} uses a field number twice`);
  }
});

test('a type that holds itself is a cycle', () => {
  const props = builtinSchema('io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps');
  assert.equal(property(props, 'not'), props);
  assert.equal(property(props, 'allOf').items, props);
});

test('names of inherited properties are not fields', () => {
  for (const name of ['constructor', '__proto__', 'toString']) {
    assert.equal(core('Pod').properties?.[name], undefined, name);
  }
});

test('kinds and definitions name each other', () => {
  assert.equal(builtinTypeName({ group: 'apps', version: 'v1', kind: 'Deployment' }), 'io.k8s.api.apps.v1.Deployment');
  assert.equal(builtinTypeName({ group: 'apps', version: 'v1', kind: 'Pod' }), undefined);
  assert.deepEqual(builtinKindOf('io.k8s.api.core.v1.Pod'), {
    group: '',
    version: 'v1',
    kind: 'Pod',
    everyGroup: false,
  });
  assert.equal(builtinKindOf('io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions')?.everyGroup, true);
  assert.equal(builtinKindOf('io.k8s.api.core.v1.PodSpec'), undefined);
});
