import assert from 'node:assert/strict';
import { test } from 'node:test';
import { builtinResource, builtinResources } from '../../../apiserver/src/kinds/builtin/builtin-resources.ts';
import { parseApiVersion } from '../meta/gvk.ts';
import { applyDefaults } from '../schema/defaults.ts';
import { validateSchema } from '../schema/validate.ts';

type Json = Record<string, unknown>;

const HOLLOW_AUTOSCALER: Json = {
  spec: { scaleTargetRef: {} },
  status: { desiredReplicas: 0, currentMetrics: null },
};

function resourceOf(apiVersion: string, resource: string) {
  return builtinResource({ ...parseApiVersion(apiVersion), resource }) ?? assert.fail(resource);
}

function filled(apiVersion: string, resource: string, object: Json): Json {
  const copy = structuredClone(object);
  applyDefaults(resourceOf(apiVersion, resource).schema, copy);
  return copy;
}

// S-260
// Compat Writing, P1, yes: fields that Go always writes (`status: {}`, counters of 0) are always shown and never asked
//   for Note: ScaleIO volumes without a secretRef are valid, as upstream
test('what Go always writes is there though nobody sent it', () => {
  const cases: [string, string, Json, Json][] = [
    ['apps/v1', 'deployments', {}, { status: {} }],
    ['apps/v1', 'replicasets', {}, { status: { replicas: 0 } }],
    [
      'apps/v1',
      'statefulsets',
      { status: { conditions: [] } },
      { status: { conditions: [], replicas: 0, availableReplicas: 0 } },
    ],
    [
      'policy/v1',
      'poddisruptionbudgets',
      { status: { disruptionsAllowed: 3 } },
      { spec: {}, status: { disruptionsAllowed: 3, currentHealthy: 0, desiredHealthy: 0, expectedPods: 0 } },
    ],
    [
      'v1',
      'replicationcontrollers',
      { spec: { template: { spec: { containers: [] } } } },
      { spec: { template: { metadata: {}, spec: { containers: [] } } }, status: { replicas: 0 } },
    ],
    ['scheduling.k8s.io/v1', 'priorityclasses', {}, { value: 0 }],
    ['storage.k8s.io/v1', 'csinodes', {}, { spec: { drivers: null } }],
    [
      'events.k8s.io/v1',
      'events',
      {},
      {
        deprecatedSource: {},
        regarding: {},
        eventTime: null,
        deprecatedFirstTimestamp: null,
        deprecatedLastTimestamp: null,
      },
    ],
    ['rbac.authorization.k8s.io/v1', 'clusterroles', {}, { rules: null }],
    ['v1', 'limitranges', {}, { spec: { limits: null } }],
    ['autoscaling/v2', 'horizontalpodautoscalers', {}, HOLLOW_AUTOSCALER],
    ['discovery.k8s.io/v1', 'endpointslices', { ports: [] }, { ports: [], endpoints: null }],
    // A time is null where it says `omitempty` alone; in metadata it is left out.
    [
      'v1',
      'pods',
      { status: { conditions: [{ type: 'Ready', status: 'True' }] } },
      { status: { conditions: [{ type: 'Ready', status: 'True', lastProbeTime: null, lastTransitionTime: null }] } },
    ],
    [
      'v1',
      'services',
      { status: { conditions: [{ type: 'A', status: 'True' }] } },
      { status: { conditions: [{ type: 'A', status: 'True', reason: '', message: '', lastTransitionTime: null }] } },
    ],
  ];
  for (const [apiVersion, resource, object, wanted] of cases) {
    const { status: got = {}, ...rest } = filled(apiVersion, resource, object);
    const { status = {}, ...spec } = wanted;
    assert.deepEqual(rest, spec, resource);
    const { loadBalancer: _, ...shown } = got as Json;
    assert.deepEqual(shown, status, resource);
  }
});

// S-260
test('what has a zero need not be sent', () => {
  const missing = (apiVersion: string, resource: string, object: Json): string[] => {
    const { schema } = resourceOf(apiVersion, resource);
    return validateSchema(schema, object, { custom: false }).map(({ type, field }) => `${type} ${field}`);
  };
  assert.deepEqual(missing('apps/v1', 'daemonsets', { status: { conditions: [] } }), []);
  assert.deepEqual(missing('storage.k8s.io/v1', 'csinodes', { metadata: {} }), []);
  assert.deepEqual(missing('resource.k8s.io/v1', 'resourceclaims', { spec: {} }), []);
  // The zero of a name is no name.
  assert.deepEqual(missing('resource.k8s.io/v1', 'resourceslices', { spec: { driver: 'd', pool: {} } }), [
    'FieldValueRequired spec.pool.name',
    'FieldValueRequired spec.pool.resourceSliceCount',
  ]);
});

// S-260
test('every zero belongs to a field that its type has', () => {
  // Reading the properties of a type throws where the table names something else.
  const seen = new Set<unknown>();
  const walk = (schema: unknown): void => {
    if (typeof schema !== 'object' || schema === null || seen.has(schema)) return;
    seen.add(schema);
    const { properties, items, additionalProperties } = schema as Json;
    for (const one of Object.values((properties as Json | undefined) ?? {})) walk(one);
    walk(items);
    walk(additionalProperties);
  };
  for (const { schema } of builtinResources()) walk(schema);
  assert.ok(seen.size > 500, String(seen.size));
});
