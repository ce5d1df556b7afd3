import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type FieldError, fieldErrorBody } from '../../../../../apimachinery/src/meta/status.ts';
import { validateLimitRange } from './limit-range.ts';
import { validateResourceQuota } from './resource-quota.ts';

const lines = (errors: readonly FieldError[]): string[] =>
  errors.map((error) => `${error.field}: ${fieldErrorBody(error)}`);

test('validateLimitRange(): upstream’s answers', () => {
  const cases: [limits: object[], wanted: string[]][] = [
    [
      [
        {
          type: 'Container',
          max: { cpu: '2', 'hugepages-2Mi': '4Mi', 'example.com/gpu': '1' },
          min: { cpu: '100m' },
          default: { cpu: '1' },
          defaultRequest: { cpu: '500m' },
          maxLimitRequestRatio: { cpu: '10' },
        },
        { type: 'Pod', max: { memory: '1Gi' } },
        { type: 'PersistentVolumeClaim', min: { storage: '1Gi' }, max: { storage: '2Gi' } },
      ],
      [],
    ],
    [
      [{ type: 'Machine', max: { apples: '1' } }, { type: '' }],
      [
        'spec.limits[0].type: Invalid value: "Machine": must be a standard limit type or fully qualified',
        'spec.limits[0].max[apples]: Invalid value: "apples": must be a standard resource type or fully qualified',
        'spec.limits[1].type: Invalid value: "": name part must be non-empty',
        `spec.limits[1].type: Invalid value: "": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')`,
      ],
    ],
    [
      [{ type: 'Pod', default: { cpu: '1' }, defaultRequest: { cpu: '1' } }, { type: 'Pod' }],
      [
        "spec.limits[0].default: Forbidden: may not be specified when `type` is 'Pod'",
        "spec.limits[0].defaultRequest: Forbidden: may not be specified when `type` is 'Pod'",
        'spec.limits[1].type: Duplicate value: "Pod"',
      ],
    ],
    [
      [{ type: 'Container', max: { storage: '1' } }],
      ['spec.limits[0].max[storage]: Invalid value: "storage": must be a standard resource for containers'],
    ],
    [
      [{ type: 'PersistentVolumeClaim', max: { cpu: '1' } }],
      [
        'spec.limits[0].limits: Required value: either minimum or maximum storage value is required, but neither was provided',
      ],
    ],
    [
      [
        {
          type: 'Container',
          min: { cpu: '2' },
          max: { cpu: '1' },
          default: { cpu: '3' },
          defaultRequest: { cpu: '4' },
        },
      ],
      [
        'spec.limits[0].min[cpu]: Invalid value: "2": min value 2 is greater than max value 1',
        'spec.limits[0].defaultRequest[cpu]: Invalid value: "4": default request value 4 is greater than max value 1',
        'spec.limits[0].defaultRequest[cpu]: Invalid value: "4": default request value 4 is greater than default limit value 3',
        'spec.limits[0].default[cpu]: Invalid value: "1": default value 3 is greater than max value 1',
      ],
    ],
    [
      [{ type: 'Container', min: { cpu: '2' }, default: { cpu: '1' }, defaultRequest: { cpu: '500m' } }],
      [
        'spec.limits[0].defaultRequest[cpu]: Invalid value: "500m": min value 2 is greater than default request value 500m',
        'spec.limits[0].default[cpu]: Invalid value: "2": min value 2 is greater than default value 1',
      ],
    ],
    [
      [
        {
          type: 'Pod',
          min: { cpu: '250m' },
          max: { cpu: '1' },
          maxLimitRequestRatio: { cpu: '5', memory: '900m' },
        },
      ],
      [
        'spec.limits[0].maxLimitRequestRatio[cpu]: Invalid value: "5": ratio 5 is greater than max/min = 4.000000',
        'spec.limits[0].maxLimitRequestRatio[memory]: Invalid value: "900m": ratio 900m is less than 1',
      ],
    ],
    [
      [{ type: 'Container', default: { 'example.com/gpu': '2' }, defaultRequest: { 'example.com/gpu': '1' } }],
      [
        'spec.limits[0].defaultRequest[example.com/gpu]: Invalid value: "1": default value 2 must equal to defaultRequest value 1 in example.com/gpu',
      ],
    ],
  ];
  for (const [limits, wanted] of cases) assert.deepEqual(lines(validateLimitRange({ spec: { limits } })), wanted);
});

test('validateResourceQuota(): upstream’s answers', () => {
  const selector = (...matchExpressions: object[]) => ({ scopeSelector: { matchExpressions } });
  const cases: [spec: object, wanted: string[], before?: object][] = [
    [{ hard: { cpu: '1', 'count/vms.example.com': '2', 'requests.storage': '1Gi', pods: '0' } }, []],
    [
      { hard: { bananas: '1', pods: '1500m', secrets: '-1', storage: '1Gi', 'example.com/gpu': '100m' } },
      [
        'spec.hard[bananas]: Invalid value: "bananas": must be a standard resource type or fully qualified',
        'spec.hard[bananas]: Invalid value: "bananas": must be a standard resource for quota',
        'spec.hard[example.com/gpu]: Invalid value: "100m": must be an integer',
        'spec.hard[pods]: Invalid value: "1500m": must be an integer',
        'spec.hard[secrets]: Invalid value: "-1": must be greater than or equal to 0',
        'spec.hard[storage]: Invalid value: "storage": must be a standard resource for quota',
      ],
    ],
    [{ hard: { pods: '1' }, scopes: ['BestEffort'] }, []],
    [
      { hard: { pods: '1', cpu: '1' }, scopes: ['BestEffort', 'Sometimes'] },
      [
        'spec.scopes: Invalid value: ["BestEffort","Sometimes"]: unsupported scope applied to resource',
        'spec.scopes: Invalid value: ["BestEffort","Sometimes"]: unsupported scope',
      ],
    ],
    [
      { scopes: ['Terminating', 'NotTerminating'] },
      ['spec.scopes: Invalid value: ["Terminating","NotTerminating"]: conflicting scopes'],
    ],
    [selector({ scopeName: 'PriorityClass', operator: 'In', values: ['high'] }), []],
    [
      selector(
        { scopeName: 'Sometimes', operator: 'Exists' },
        { scopeName: 'Terminating', operator: 'In' },
        { scopeName: 'PriorityClass', operator: 'DoesNotExist', values: ['a'] },
        { scopeName: 'PriorityClass', operator: 'Maybe' },
      ),
      [
        'spec.scopeSelector.matchExpressions.scopeName: Invalid value: "Sometimes": unsupported scope',
        `spec.scopeSelector.matchExpressions.operator: Invalid value: "In": must be 'Exist' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity`,
        "spec.scopeSelector.matchExpressions.values: Required value: must be at least one value when `operator` is 'In' or 'NotIn' for scope selector",
        `spec.scopeSelector.matchExpressions.values: Invalid value: ["a"]: must be no value when \`operator\` is 'Exist' or 'DoesNotExist' for scope selector`,
        'spec.scopeSelector.matchExpressions.operator: Invalid value: "Maybe": not a valid selector operator',
      ],
    ],
    [{ scopes: ['Terminating'] }, ['spec.scopes: Invalid value: ["Terminating"]: field is immutable'], {}],
    [{ scopes: ['NotBestEffort', 'Terminating'] }, [], { scopes: ['Terminating', 'NotBestEffort'] }],
  ];
  for (const [spec, wanted, before] of cases) {
    assert.deepEqual(lines(validateResourceQuota({ spec }, before && { spec: before })), wanted);
  }
});
