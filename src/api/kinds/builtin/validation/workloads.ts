/** Validation of apps, batch and policy. */
import { deepEqual } from '../../../meta/deep-equal.ts';
import type { FieldError } from '../../../meta/status.ts';
import type { Steps } from '../../../meta/steps.ts';
import { isObject, type JsonObject, objectAt, textAt, valueAt } from '../read-value.ts';
import { validateConditions } from './conditions.ts';
import { scheduleError } from './cron.ts';
import {
  forbidden,
  type GroupValidators,
  immutable,
  invalid,
  nonNegative,
  oneOf,
  required,
  validateSelector,
} from './field-errors.ts';
import { validatePodSpec } from './pod-spec.ts';

function validateTemplate(object: JsonObject, restartPolicies: readonly string[]): Steps<FieldError[]> {
  return validatePodSpec(valueAt(object, 'spec', 'template', 'spec'), { path: 'spec.template.spec', restartPolicies });
}

/** What Deployments, ReplicaSets, StatefulSets and DaemonSets have in common. */
function* validateWorkload(object: JsonObject, old?: JsonObject): Steps<FieldError[]> {
  return [
    ...nonNegative(object, 'spec.replicas'),
    ...validateSelector(object),
    ...(yield* validateTemplate(object, ['Always'])),
    ...(old === undefined ? [] : immutable({ object, old, path: 'spec.selector' })),
  ];
}

const STATEFUL_SET_FIXED =
  "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";
const STATEFUL_SET_FREE = [
  'replicas',
  'ordinals',
  'template',
  'updateStrategy',
  'revisionHistoryLimit',
  'persistentVolumeClaimRetentionPolicy',
  'minReadySeconds',
];

function* validateStatefulSet(object: JsonObject, old?: JsonObject): Steps<readonly FieldError[]> {
  const errors = [
    ...nonNegative(object, 'spec.replicas'),
    ...validateSelector(object),
    ...(yield* validateTemplate(object, ['Always'])),
  ];
  if (old === undefined) return errors;
  const fixed = (set: JsonObject): JsonObject =>
    Object.fromEntries(Object.entries(objectAt(set, 'spec')).filter(([field]) => !STATEFUL_SET_FREE.includes(field)));
  return deepEqual(fixed(object), fixed(old)) ? errors : [...errors, forbidden('spec', STATEFUL_SET_FIXED)];
}

function* validateJob(object: JsonObject, old?: JsonObject): Steps<readonly FieldError[]> {
  const fixed = ['spec.completions', 'spec.selector', 'spec.completionMode'];
  return [
    ...['spec.parallelism', 'spec.completions', 'spec.backoffLimit', 'spec.ttlSecondsAfterFinished'].flatMap((path) =>
      nonNegative(object, path),
    ),
    ...(yield* validateTemplate(object, ['OnFailure', 'Never'])),
    ...(old === undefined ? [] : fixed.flatMap((path) => immutable({ object, old, path }))),
    ...(old === undefined || valueAt(old, 'spec', 'suspend') === true
      ? []
      : immutable({ object, old, path: 'spec.template' })),
  ];
}

function validateSchedule(schedule: string): FieldError[] {
  const wrong = schedule.includes('TZ') ? undefined : scheduleError(schedule);
  return wrong === undefined ? [] : [invalid('spec.schedule', schedule, wrong)];
}

function* validateCronJob(object: JsonObject): Steps<readonly FieldError[]> {
  const schedule = textAt(object, 'spec', 'schedule');
  return [
    ...(schedule === '' ? [required('spec.schedule')] : validateSchedule(schedule)),
    ...(schedule.includes('TZ')
      ? [invalid('spec.schedule', schedule, 'cannot use TZ or CRON_TZ in schedule, use timeZone field instead')]
      : []),
    ...oneOf(objectAt(object, 'spec'), { name: 'concurrencyPolicy', path: 'spec.concurrencyPolicy' }, [
      'Allow',
      'Forbid',
      'Replace',
    ]),
    ...(yield* validatePodSpec(valueAt(object, 'spec', 'jobTemplate', 'spec', 'template', 'spec'), {
      path: 'spec.jobTemplate.spec.template.spec',
      restartPolicies: ['OnFailure', 'Never'],
    })),
  ];
}

function validateControllerRevision(object: JsonObject, old?: JsonObject): readonly FieldError[] {
  return [
    ...(valueAt(object, 'data') == null ? [required('data', 'data is mandatory')] : []),
    ...nonNegative(object, 'revision'),
    ...(old === undefined ? [] : immutable({ object, old, path: 'data' })),
  ];
}

function validateBudget(object: JsonObject): readonly FieldError[] {
  const spec = valueAt(object, 'spec');
  const status = validateConditions(objectAt(object, 'status'), 'status');
  const isSet = (field: string): boolean => valueAt(spec, field) !== undefined && valueAt(spec, field) !== null;
  if (isObject(spec) && isSet('minAvailable') && isSet('maxUnavailable')) {
    return [invalid('spec', spec, 'minAvailable and maxUnavailable cannot be both set'), ...status];
  }
  return [...nonNegative(object, 'spec.minAvailable'), ...nonNegative(object, 'spec.maxUnavailable'), ...status];
}

export const APPS_VALIDATORS: GroupValidators = {
  deployments: validateWorkload,
  replicasets: validateWorkload,
  daemonsets: validateWorkload,
  statefulsets: validateStatefulSet,
  controllerrevisions: validateControllerRevision,
};

export const BATCH_VALIDATORS: GroupValidators = { jobs: validateJob, cronjobs: validateCronJob };
export const POLICY_VALIDATORS: GroupValidators = { poddisruptionbudgets: validateBudget };
