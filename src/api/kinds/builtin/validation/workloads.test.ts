import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseApiVersion } from '../../../meta/gvk.ts';
import { fieldErrorBody } from '../../../meta/status.ts';
import { builtinResource } from '../builtin-resources.ts';

const judge = (apiVersion: string, resource: string, object: object): string[] => {
  const info = builtinResource({ ...parseApiVersion(apiVersion), resource }) ?? assert.fail();
  return [...(info.validate?.(object as never) ?? [])].map((error) => `${error.field}: ${fieldErrorBody(error)}`);
};
const template = { metadata: { labels: { a: 'b' } }, spec: { containers: [{ name: 'c', image: 'i' }] } };
const spec = { selector: { matchLabels: { a: 'b' } }, template };

// Compat Types, P2, yes: rules of workloads, disruption budgets and autoscalers
test('a Deployment: strategy, deadlines', () => {
  const of = (more: object): string[] => judge('apps/v1', 'deployments', { spec: { ...spec, ...more } });
  assert.deepEqual(of({}), []);
  assert.deepEqual(of({ strategy: { type: 'X' } }), [
    'spec.strategy: Unsupported value: {"Type":"X","RollingUpdate":null}: supported values: "Recreate", "RollingUpdate"',
  ]);
  assert.deepEqual(of({ strategy: { type: 'Recreate', rollingUpdate: {} } }), [
    "spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'",
  ]);
  const rolling = (rollingUpdate: object) => of({ strategy: { type: 'RollingUpdate', rollingUpdate } });
  assert.deepEqual(rolling({ maxUnavailable: 0, maxSurge: '0%' }), [
    'spec.strategy.rollingUpdate.maxUnavailable: Invalid value: 0: may not be 0 when `maxSurge` is 0',
  ]);
  assert.deepEqual(rolling({ maxUnavailable: '101%', maxSurge: 1 }), [
    'spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "101%": must not be greater than 100%',
  ]);
  assert.deepEqual(of({ minReadySeconds: 5, progressDeadlineSeconds: 5 }), [
    'spec.progressDeadlineSeconds: Invalid value: 5: must be greater than minReadySeconds',
  ]);
});

test('templates of what keeps its Pods have no deadline; an empty selector is told of by its owner', () => {
  const late = { ...spec, template: { ...template, spec: { ...template.spec, activeDeadlineSeconds: 1 } } };
  assert.deepEqual(judge('apps/v1', 'daemonsets', { spec: late }), [
    'spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in DaemonSet is not Supported',
  ]);
  assert.deepEqual(judge('apps/v1', 'statefulsets', { spec: { ...spec, selector: {} } }), [
    'spec.selector: Invalid value: {}: empty selector is invalid for statefulset',
  ]);
});

test('a ReplicationController selects its own template', () => {
  const of = (more: object): string[] => judge('v1', 'replicationcontrollers', { spec: { template, ...more } });
  assert.deepEqual(of({ selector: { a: 'b' } }), []);
  assert.deepEqual(of({ selector: {} }), ['spec.selector: Required value']);
  assert.deepEqual(of({ selector: { a: 'c' } }), [
    'spec.template.metadata.labels: Invalid value: {"a":"b"}: `selector` does not match template `labels`',
  ]);
});

test('a PodDisruptionBudget: shares of the whole, a known policy, a selector that can be', () => {
  const of = (budget: object): string[] => judge('policy/v1', 'poddisruptionbudgets', { spec: budget });
  assert.deepEqual(of({ minAvailable: '100%' }), []);
  assert.deepEqual(of({ minAvailable: '101%', unhealthyPodEvictionPolicy: 'X' }), [
    'spec.minAvailable: Invalid value: "101%": must not be greater than 100%',
    'spec.unhealthyPodEvictionPolicy: Unsupported value: "X": supported values: "AlwaysAllow", "IfHealthyBudget"',
  ]);
  assert.match(
    of({ maxUnavailable: 'x' }).join(),
    /^spec\.maxUnavailable: Invalid value: "x": a valid percent string must /,
  );
  assert.equal(of({ minAvailable: 1, selector: { matchLabels: { 'a b': 'c' } } }).length, 1);
});

test('a HorizontalPodAutoscaler: at least one replica, no less than the least', () => {
  const scaleTargetRef = { kind: 'K', name: 'n' };
  const of = (more: object) =>
    judge('autoscaling/v2', 'horizontalpodautoscalers', { spec: { scaleTargetRef, ...more } });
  assert.deepEqual(of({ maxReplicas: 2, minReplicas: 1 }), []);
  assert.deepEqual(of({ maxReplicas: 0 }), ['spec.maxReplicas: Invalid value: 0: must be greater than 0']);
  assert.deepEqual(of({ maxReplicas: 1, minReplicas: 2 }), [
    'spec.maxReplicas: Invalid value: 1: must be greater than or equal to `minReplicas`',
  ]);
});

test('a ClusterRole that is made of others says of which', () => {
  assert.deepEqual(judge('rbac.authorization.k8s.io/v1', 'clusterroles', { aggregationRule: {} }), [
    'aggregationRule.clusterRoleSelectors: Required value: at least one clusterRoleSelector required if aggregationRule is non-nil',
  ]);
});

const change = (apiVersion: string, resource: string, object: object, old: object): string[] => {
  const info = builtinResource({ ...parseApiVersion(apiVersion), resource }) ?? assert.fail();
  const found = info.validate?.(object as never, old as never) ?? [];
  return found.map((error) => `${error.field}: ${fieldErrorBody(error)}`);
};

test('a StatefulSet: its Pods mount the claims that it makes; how it updates and what it keeps', () => {
  const mounting = (name: string): object => ({
    ...template,
    spec: { containers: [{ name: 'c', image: 'i', volumeMounts: [{ name, mountPath: '/d' }] }] },
  });
  const of = (more: object): string[] => judge('apps/v1', 'statefulsets', { spec: { ...spec, ...more } });
  const claim = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } };
  const volumeClaimTemplates = [{ metadata: { name: 'data' }, spec: claim }];
  assert.deepEqual(of({ template: mounting('data'), volumeClaimTemplates }), []);
  assert.deepEqual(of({ template: mounting('other'), volumeClaimTemplates }), [
    'spec.template.spec.containers[0].volumeMounts[0].name: Not found: "other"',
  ]);
  assert.deepEqual(of({ podManagementPolicy: 'X', ordinals: { start: -1 } }), [
    "spec.podManagementPolicy: Invalid value: \"X\": must be 'OrderedReady' or 'Parallel'",
    'spec.ordinals.start: Invalid value: -1: must be greater than or equal to 0',
  ]);
  assert.deepEqual(of({ updateStrategy: { type: 'OnDelete', rollingUpdate: { partition: 1 } } }), [
    'spec.updateStrategy.rollingUpdate: Invalid value: {"Partition":1}: only allowed for updateStrategy \'RollingUpdate\'',
  ]);
  assert.deepEqual(of({ updateStrategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 0 } } }), [
    'spec.updateStrategy.rollingUpdate.maxUnavailable: Invalid value: 0: cannot be 0',
  ]);
  assert.deepEqual(of({ persistentVolumeClaimRetentionPolicy: { whenDeleted: 'Retain', whenScaled: 'X' } }), [
    'spec.persistentVolumeClaimRetentionPolicy.whenScaled: Unsupported value: "X": supported values: "Retain", "Delete"',
  ]);
});

// Compat Types, P1, yes: a workload without a selector, StatefulSets with names, services and claims that cannot be
test('a new StatefulSet: names that its Pods can have, claims that can be made; what is stored may stay', () => {
  const set = { metadata: { name: 'a.b' }, spec: { ...spec, serviceName: 'S', volumeClaimTemplates: [{}] } };
  const found = judge('apps/v1', 'statefulsets', set);
  assert.deepEqual(
    found.map((text) => text.slice(0, text.indexOf('a lowercase') + 1 || undefined)),
    [
      'metadata.name: Invalid value: "a.b": must not contain dots',
      'spec.volumeClaimTemplates[0].spec.accessModes: Required value: at least 1 access mode is required',
      'spec.volumeClaimTemplates[0].spec.resources[storage]: Required value',
      'spec.serviceName: Invalid value: "S": a',
    ],
  );
  const larger = { ...set, spec: { ...set.spec, replicas: 2, revisionHistoryLimit: -1 } };
  assert.deepEqual(change('apps/v1', 'statefulsets', larger, set), []);
});

test('a DaemonSet: how it updates', () => {
  const of = (updateStrategy: object): string[] =>
    judge('apps/v1', 'daemonsets', { spec: { ...spec, updateStrategy } });
  const rolling = (rollingUpdate: object) => of({ type: 'RollingUpdate', rollingUpdate });
  assert.deepEqual(rolling({ maxUnavailable: 1, maxSurge: 0 }), []);
  assert.deepEqual(rolling({ maxUnavailable: 1, maxSurge: 1 }), [
    'spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: 1: may not be set when maxUnavailable is non-zero',
  ]);
  assert.deepEqual(rolling({ maxUnavailable: 0, maxSurge: '0%' }), [
    'spec.updateStrategy.rollingUpdate.maxUnavailable: Required value: cannot be 0 when maxSurge is 0',
  ]);
  assert.deepEqual(of({ type: 'X' }), [
    'spec.updateStrategy: Unsupported value: {"Type":"X","RollingUpdate":null}: supported values: "RollingUpdate", "OnDelete"',
  ]);
});

test('templates: labels that are some, a selector that finds them, Pods that are started again', () => {
  const of = (more: object): string[] => judge('apps/v1', 'deployments', { spec: { ...spec, ...more } });
  const labelled = { ...template, metadata: { labels: { a: 'b', 'c c': 'd' } } };
  assert.match(of({ template: labelled })[0] ?? '', /^spec\.template\.labels: Invalid value: "c c": name part must/);
  assert.deepEqual(of({ selector: { matchExpressions: [{ key: 'a', operator: 'NotIn', values: ['b'] }] } }), [
    'spec.template.metadata.labels: Invalid value: {"a":"b"}: `selector` does not match template `labels`',
  ]);
  assert.deepEqual(of({ template: { ...template, spec: { ...template.spec, restartPolicy: 'Never' } } }), [
    'spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"',
  ]);
});

test('counters of a status: not negative, not more than there are, judged where they change', () => {
  const negative = 'must be greater than or equal to 0';
  for (const [resource, status, wanted] of [
    ['deployments', { unavailableReplicas: -1 }, [`status.unavailableReplicas: Invalid value: -1: ${negative}`]],
    [
      'deployments',
      { replicas: 1, readyReplicas: 1, availableReplicas: 2 },
      [
        'status.availableReplicas: Invalid value: 2: cannot be greater than status.replicas',
        'status.availableReplicas: Invalid value: 2: cannot be greater than readyReplicas',
      ],
    ],
    [
      'replicasets',
      { fullyLabeledReplicas: 1 },
      ['status.fullyLabeledReplicas: Invalid value: 1: cannot be greater than status.replicas'],
    ],
    [
      'statefulsets',
      { replicas: 2, availableReplicas: 1 },
      ['status.availableReplicas: Invalid value: 1: cannot be greater than status.readyReplicas'],
    ],
    ['daemonsets', { numberReady: -1 }, [`status.numberReady: Invalid value: -1: ${negative}`]],
  ] as const) {
    assert.deepEqual(change('apps/v1', resource, { spec, status }, { spec, status: {} }), wanted);
    assert.deepEqual(change('apps/v1', resource, { spec, status }, { spec, status }), []);
  }
  const collided = change('apps/v1', 'deployments', { spec, status: {} }, { spec, status: { collisionCount: 1 } });
  assert.deepEqual(collided, ['status.collisionCount: Invalid value: 0: cannot be decremented']);
});
