import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fieldErrorBody } from '../../../meta/status.ts';
import { builtinResource } from '../builtin-resources.ts';

const judge = (resource: string, object: object, old?: object): string[] => {
  const info = builtinResource({ group: 'batch', version: 'v1', resource }) ?? assert.fail();
  const found = info.validate?.(object as never, old as never) ?? [];
  return found.map((error) => `${error.field}: ${fieldErrorBody(error)}`);
};
const LABELS = {
  'controller-uid': 'u',
  'job-name': 'j',
  'batch.kubernetes.io/controller-uid': 'u',
  'batch.kubernetes.io/job-name': 'j',
};
const pods = { restartPolicy: 'Never', containers: [{ name: 'c', image: 'i' }] };
const template = { metadata: { labels: LABELS }, spec: pods };
const selector = { matchLabels: { 'batch.kubernetes.io/controller-uid': 'u' } };
const job = (spec: object = {}, status: object = {}): object => ({
  metadata: { name: 'j', uid: 'u' },
  spec: { selector, template, ...spec },
  status,
});
const indexed = { completionMode: 'Indexed', completions: 3, parallelism: 3 };

for (const [spec, wanted] of [
  [{}, []],
  [
    { template: { ...template, spec: { ...pods, restartPolicy: 'Always' } } },
    ['spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"'],
  ],
  [
    { activeDeadlineSeconds: -1 },
    ['spec.activeDeadlineSeconds: Invalid value: -1: must be greater than or equal to 0'],
  ],
  [{ completionMode: 'Indexed' }, ['spec.completions: Required value: when completion mode is Indexed']],
  [{ completionMode: 'X' }, ['spec.completionMode: Unsupported value: "X": supported values: "NonIndexed", "Indexed"']],
  [{ backoffLimitPerIndex: 1 }, ['spec.backoffLimitPerIndex: Invalid value: 1: requires indexed completion mode']],
  [
    { ...indexed, maxFailedIndexes: 4, backoffLimitPerIndex: 1 },
    ['spec.maxFailedIndexes: Invalid value: 4: must be less than or equal to completions'],
  ],
  [
    { podFailurePolicy: { rules: [{ action: 'FailIndex', onExitCodes: { operator: 'In', values: [2, 0, 2] } }] } },
    [
      'spec.podFailurePolicy.rules[0].action: Invalid value: "FailIndex": requires the backoffLimitPerIndex to be set',
      'spec.podFailurePolicy.rules[0].onExitCodes.values[1]: Invalid value: 0: must not be 0 for the In operator',
      'spec.podFailurePolicy.rules[0].onExitCodes.values[2]: Duplicate value: 2',
      'spec.podFailurePolicy.rules[0].onExitCodes.values: Invalid value: [2,0,2]: must be ordered',
    ],
  ],
  [
    { podFailurePolicy: { rules: [{ action: '' }] } },
    [
      'spec.podFailurePolicy.rules[0].action: Required value: valid values: ["Count" "FailIndex" "FailJob" "Ignore"]',
      'spec.podFailurePolicy.rules[0]: Invalid value: specifying one of OnExitCodes and OnPodConditions is required',
    ],
  ],
  [
    { ...indexed, successPolicy: { rules: [{ succeededIndexes: '2,1' }, { succeededCount: 4 }, {}] } },
    [
      'spec.successPolicy.rules[0].succeededIndexes: Invalid value: "2,1": error parsing succeededIndexes: non-increasing order, previous: 2, current: 1',
      'spec.successPolicy.rules[1].succeededCount: Invalid value: 4: must be less than or equal to 3 (the number of specified completions)',
      'spec.successPolicy.rules[2]: Required value: at least one of succeededCount or succeededIndexes must be specified',
    ],
  ],
  [{ managedBy: 'x' }, ['spec.managedBy: Invalid value: "x": must be a domain-prefixed path (such as "acme.io/foo")']],
  [
    { selector: { matchLabels: { a: 'b' } }, template: { ...template, metadata: { labels: { ...LABELS, a: 'b' } } } },
    ['spec.selector: Invalid value: {"matchLabels":{"a":"b"}}: `selector` not auto-generated'],
  ],
] as const) {
  test(`a Job with ${JSON.stringify(spec).slice(0, 70)}`, () => {
    assert.deepEqual(judge('jobs', job(spec)), wanted);
  });
}

// S-348
test('what of a Job may change', () => {
  const of = (now: object, before: object): string[] => judge('jobs', now, before);
  assert.deepEqual(of(job({ ...indexed, completions: 2, parallelism: 2 }), job(indexed)), []);
  assert.deepEqual(of(job({ ...indexed, completions: 2 }), job(indexed)), [
    'spec.completions: Invalid value: 2: can only be modified in tandem with spec.parallelism',
  ]);
  assert.deepEqual(of(job({ completions: 2 }), job({ completions: 1 })), [
    'spec.completions: Invalid value: 2: field is immutable',
  ]);
  const placed = (spec: object) => ({ ...template, spec: { ...pods, ...spec } });
  const waiting = { suspend: true };
  const elsewhere = placed({ nodeSelector: { a: 'b' }, affinity: { nodeAffinity: {} } });
  assert.deepEqual(of(job({ ...waiting, template: elsewhere }), job(waiting)), []);
  assert.deepEqual(of(job({ ...waiting, template }), job({ ...waiting, template: elsewhere })), []);
  assert.equal(of(job({ template: elsewhere }), job()).length, 1);
  assert.equal(of(job({ ...waiting, template: placed({ hostNetwork: true }) }), job(waiting)).length, 1);
});

// Compat Types, P2, yes: rules of Jobs and CronJobs, of what of them may change and of the status of a Job
test('what the status of a Job may say', () => {
  const when = (type: string) => ({ type, status: 'True' });
  const at = '2030-01-01T00:00:00Z';
  const done = { startTime: at, completionTime: at, conditions: [when('SuccessCriteriaMet'), when('Complete')] };
  const of = (status: object, before: object = {}, spec: object = {}): string[] =>
    judge('jobs', job(spec, status), job(spec, before));
  for (const [status, before, wanted] of [
    [done, {}, []],
    [{ conditions: [when('Custom')], startTime: at }, {}, []],
    [
      { startTime: at, conditions: [when('Failed')] },
      {},
      ['status.conditions: Invalid value: cannot set Failed=True condition without the FailureTarget=true condition'],
    ],
    [{ ready: 1 }, {}, ['status.ready: Invalid value: 1: cannot set more ready pods than active']],
    [{ failed: 1 }, { failed: 2 }, ['status.failed: Invalid value: 1: cannot decrease the failed counter']],
    [{ ...done, active: 1 }, done, ['status.active: Invalid value: 1: active>0 is invalid for finished job']],
    [{}, { startTime: at }, ['status.startTime: Required value: startTime cannot be removed for unsuspended job']],
    [
      { completedIndexes: '1' },
      {},
      [
        'status.completedIndexes: Invalid value: "1": cannot set non-empty completedIndexes when non-indexed completion mode',
      ],
    ],
  ] as const) {
    assert.deepEqual(of(status, before), wanted);
  }
  const perIndex = { ...indexed, backoffLimitPerIndex: 1 };
  assert.deepEqual(of({ completedIndexes: '0-1', failedIndexes: '1,2' }, {}, perIndex), [
    'status.failedIndexes: Invalid value: "1,2": failedIndexes and completedIndexes overlap at index: 1',
  ]);
});

// S-348
test('a CronJob: its name, its schedule, its zone, its Jobs', () => {
  const of = (spec: object, name = 'c', old?: object): string[] => {
    const whole = (more: object): object => ({
      metadata: { name },
      spec: { schedule: '* * * * *', jobTemplate: { spec: { template: { spec: pods } } }, ...more },
    });
    return judge('cronjobs', whole(spec), old && whole(old));
  };
  assert.deepEqual(of({}), []);
  assert.deepEqual(of({ timeZone: 'Europe/Berlin' }), []);
  assert.deepEqual(of({}, 'c'.repeat(53)), [
    `metadata.name: Invalid value: "${'c'.repeat(53)}": must be no more than 52 characters`,
  ]);
  assert.deepEqual(of({ timeZone: 'Nowhere' }), ['spec.timeZone: Invalid value: "Nowhere": unknown time zone Nowhere']);
  for (const zone of ['US/Eastern', 'Etc/GMT+5', 'UTC', 'GMT0', 'EST5EDT', 'W-SU', 'Asia/Kolkata', 'Asia/Calcutta']) {
    assert.deepEqual(of({ timeZone: zone }), [], zone);
  }
  for (const zone of ['America/new_york', 'us/Eastern', 'utc', 'Gmt', '+01:00', 'IST', 'Etc/Unknown']) {
    assert.match(of({ timeZone: zone }).join(), /unknown time zone/, zone);
  }
  assert.deepEqual(of({ timeZone: '' }), [
    'spec.timeZone: Invalid value: "": timeZone must be nil or non-empty string',
  ]);
  assert.deepEqual(of({ startingDeadlineSeconds: -1, failedJobsHistoryLimit: -1 }), [
    'spec.startingDeadlineSeconds: Invalid value: -1: must be greater than or equal to 0',
    'spec.failedJobsHistoryLimit: Invalid value: -1: must be greater than or equal to 0',
  ]);
  const zoned = 'CRON_TZ=UTC * * * * *';
  assert.deepEqual(of({ schedule: zoned }), [
    `spec.schedule: Invalid value: "${zoned}": cannot use TZ or CRON_TZ in schedule, use timeZone field instead`,
  ]);
  assert.deepEqual(of({ schedule: zoned, suspend: true }, 'c', { schedule: zoned }), []);
  assert.deepEqual(of({ schedule: zoned, timeZone: 'UTC' }, 'c', { schedule: zoned }), [
    `spec.schedule: Invalid value: "${zoned}": cannot use both timeZone field and TZ or CRON_TZ in schedule`,
  ]);
  const jobTemplate = { spec: { manualSelector: true, selector: {}, template: { spec: pods } } };
  assert.deepEqual(of({ jobTemplate }), [
    'spec.jobTemplate.spec.selector: Invalid value: {}: `selector` will be auto-generated',
    'spec.jobTemplate.spec.manualSelector: Unsupported value: true: supported values: "nil", "false"',
  ]);
});
