import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fieldErrorBody } from '../../../meta/status.ts';
import { builtinResource } from '../builtin-resources.ts';

const info = builtinResource({ group: 'autoscaling', version: 'v2', resource: 'horizontalpodautoscalers' })!;
const target = (value: object): object => ({ target: { type: 'AverageValue', ...value } });
const metric = { metric: { name: 'm' } };
const of = (spec: object, old?: object): string[] => {
  const whole = (more: object) => ({
    apiVersion: 'autoscaling/v2',
    spec: { maxReplicas: 3, scaleTargetRef: { kind: 'Deployment', name: 'd' }, ...more },
  });
  return (info.validate?.(whole(spec), old && whole(old)) ?? []).map((e) => `${e.field}: ${fieldErrorBody(e)}`);
};
const at = 'spec.metrics[0]';

for (const [one, wanted] of [
  [{ type: 'Pods', pods: { ...metric, ...target({ averageValue: '1' }) } }, []],
  [
    { type: '' },
    [
      `${at}.type: Required value: must specify a metric source type`,
      `${at}.type: Unsupported value: "": supported values: "ContainerResource", "External", "Object", "Pods", "Resource"`,
    ],
  ],
  [{ type: 'Pods' }, [`${at}.pods: Required value: must populate information for the given metric source`]],
  [
    { type: 'Pods', pods: { ...metric, ...target({}) }, resource: {} },
    [
      `${at}.pods.target.averageValue: Required value: must specify a positive target averageValue`,
      `${at}.resource: Forbidden: must populate the given metric source only`,
    ],
  ],
  [
    { type: 'Resource', resource: { name: 'cpu', ...target({ type: 'X', averageUtilization: 0 }) } },
    [
      `${at}.resource.target.type: Invalid value: "X": must be either Utilization, Value, or AverageValue`,
      `${at}.resource.target.averageUtilization: Invalid value: 0: must be greater than 0`,
    ],
  ],
  [
    { type: 'Resource', resource: { name: '', ...target({}) } },
    [
      `${at}.resource.name: Required value: must specify a resource name`,
      `${at}.resource.target.averageUtilization: Required value: must set either a target raw value or a target utilization`,
    ],
  ],
  [
    { type: 'ContainerResource', containerResource: { name: 'cpu', ...target({ averageValue: '0' }) } },
    [
      `${at}.containerResource.container: Required value: must specify a container`,
      `${at}.containerResource.target.averageValue: Invalid value: "0": must be positive`,
    ],
  ],
  [
    { type: 'External', external: { metric: { name: 'a/b' }, ...target({ averageValue: '1', value: '1' }) } },
    [
      `${at}.external.metric.name: Invalid value: "a/b": may not contain '/'`,
      `${at}.external.target.value: Forbidden: may not set both a target value for metric and a per-pod target`,
    ],
  ],
  [
    { type: 'Object', object: { ...metric, ...target({ value: '1' }) } },
    [`${at}.object.describedObject.kind: Required value`, `${at}.object.describedObject.name: Required value`],
  ],
] as const) {
  test(`a metric ${JSON.stringify(one).slice(0, 80)}`, () => assert.deepEqual(of({ metrics: [one] }), wanted));
}

// S-348
// Compat Types, P2, yes: rules of metrics and behavior of autoscalers
test('how fast an autoscaler goes', () => {
  const policies = [{ type: 'Pods', value: 1, periodSeconds: 1 }];
  const up = (scaleUp: object): string[] => of({ behavior: { scaleUp } });
  assert.deepEqual(up({ policies }), []);
  assert.deepEqual(up({ policies: [], stabilizationWindowSeconds: 3601, selectPolicy: 'X', tolerance: '-1' }), [
    'spec.behavior.scaleUp.stabilizationWindowSeconds: Invalid value: 3601: must be less than or equal to 3600',
    'spec.behavior.scaleUp.selectPolicy: Unsupported value: "X": supported values: "Disabled", "Max", "Min"',
    'spec.behavior.scaleUp.policies: Required value: must specify at least one Policy',
    'spec.behavior.scaleUp.tolerance: Invalid value: "-1": must be greater than or equal to 0',
  ]);
  assert.deepEqual(up({ policies: [{ type: 'X', value: 0, periodSeconds: 1801 }] }), [
    'spec.behavior.scaleUp.policies[0].type: Unsupported value: "X": supported values: "Percent", "Pods"',
    'spec.behavior.scaleUp.policies[0].value: Invalid value: 0: must be greater than zero',
    'spec.behavior.scaleUp.policies[0].periodSeconds: Invalid value: 1801: must be less than or equal to 1800',
  ]);
});

test('no Pods at all: only what had none before, and only by metrics that can tell', () => {
  const none = {
    minReplicas: 0,
    metrics: [{ type: 'Resource', resource: { name: 'cpu', ...target({ averageValue: '1' }) } }],
  };
  const detail = 'must specify at least one Object or External metric to support scaling to zero replicas';
  const forbidden = `spec.metrics: Forbidden: ${detail}`;
  assert.deepEqual(of(none), ['spec.minReplicas: Invalid value: 0: must be greater than or equal to 1', forbidden]);
  assert.deepEqual(of(none, { minReplicas: 0 }), [forbidden]);
});

test('one way of scaling that is described shows both', () => {
  const object: Record<string, unknown> = {
    apiVersion: 'autoscaling/v2',
    spec: { maxReplicas: 3, behavior: { scaleDown: { stabilizationWindowSeconds: 60 } } },
  };
  info.setDefaults?.(object);
  const percent = { type: 'Percent', value: 100, periodSeconds: 15 };
  assert.deepEqual((object['spec'] as Record<string, unknown>)['behavior'], {
    scaleUp: {
      stabilizationWindowSeconds: 0,
      selectPolicy: 'Max',
      policies: [{ type: 'Pods', value: 4, periodSeconds: 15 }, percent],
    },
    scaleDown: { stabilizationWindowSeconds: 60, selectPolicy: 'Max', policies: [percent] },
  });
});
