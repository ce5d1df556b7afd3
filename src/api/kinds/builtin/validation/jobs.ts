/** Validation of Jobs and CronJobs (batch/validation). */
import { deepEqual, equalSteps } from '../../../meta/deep-equal.ts';
import { checkDomainPath, checkLabelName } from '../../../meta/name-rules.ts';
import type { FieldError } from '../../../meta/status.ts';
import type { Steps } from '../../../meta/steps.ts';
import { isObject, isTrueAt, type JsonObject, numberAt, objectAt, textAt, valueAt } from '../read-value.ts';
import { judgeSelectorField } from './admission-rules.ts';
import { scheduleError } from './cron.ts';
import {
  type GroupValidators,
  IMMUTABLE,
  invalid,
  type Judging,
  judgeImmutable,
  newJudging,
  nonNegative,
  oneOf,
  required,
  tooLong,
  unsupported,
  unsupportedInOrder,
} from './field-errors.ts';
import { judgeFailurePolicy, judgeSuccessPolicy } from './job-policies.ts';
import { isTrueOf, judgeJobStatus } from './job-status.ts';
import { timeZoneErrors } from './time-zone.ts';
import { judgeMatch, judgeTemplate, keepsStatus, mismatch, selects } from './workload-parts.ts';

const COUNTS = [
  ...['parallelism', 'completions', 'activeDeadlineSeconds', 'backoffLimit', 'ttlSecondsAfterFinished'],
  ...['backoffLimitPerIndex', 'maxFailedIndexes'],
];
const MOST_INDEXES = 100_000;
/** Where there are more than the most of above. */
const MOST_OF_MANY = 10_000;
const LONGEST_MANAGER = 63;
const ENDING = ['OnFailure', 'Never'];
const REPLACEMENTS = ['Failed', 'TerminatingOrFailed'];

const isIndexed = (spec: unknown): boolean => textAt(spec, 'completionMode') === 'Indexed';
const countAt = (spec: unknown, field: string): number | undefined => {
  const value = valueAt(spec, field);
  return typeof value === 'number' ? value : undefined;
};

/** Judges a JobSpec at `path`, in a Job or in the template of one; its selector is judged by those. */
function* judgeJobSpec(judging: Judging, spec: JsonObject, { path, before }: Place): Steps<void> {
  const { errors } = judging;
  for (const field of COUNTS) errors.push(...nonNegative(spec, field, `${path}.${field}`));
  errors.push(...indexErrors(spec, path), ...managerErrors(spec, path));
  const policy = valueAt(spec, 'podFailurePolicy');
  if (isObject(policy)) yield* judgeFailurePolicy(judging, spec, `${path}.podFailurePolicy`);
  if (isObject(valueAt(spec, 'successPolicy'))) {
    const at = `${path}.successPolicy`;
    if (isIndexed(spec)) yield* judgeSuccessPolicy(judging, spec, at);
    else errors.push(invalid(at, valueAt(spec, 'successPolicy'), 'requires indexed completion mode'));
  }
  const replacement = valueAt(spec, 'podReplacementPolicy');
  const replacements = isObject(policy) ? ['Failed'] : REPLACEMENTS;
  if (typeof replacement === 'string' && !replacements.includes(replacement)) {
    errors.push(unsupported(`${path}.podReplacementPolicy`, replacement, replacements));
  }
  const template = valueAt(spec, 'template');
  yield* judgeTemplate(judging, template, { path: `${path}.template`, before: valueAt(before, 'template') });
  errors.push(...restartErrors(spec, `${path}.template.spec.restartPolicy`));
}

interface Place {
  readonly path: string;
  readonly before: unknown;
}

function indexErrors(spec: JsonObject, path: string): FieldError[] {
  const mode = valueAt(spec, 'completionMode');
  const [completions, parallelism] = [countAt(spec, 'completions'), countAt(spec, 'parallelism')];
  const [perIndex, failed] = [countAt(spec, 'backoffLimitPerIndex'), countAt(spec, 'maxFailedIndexes')];
  const errors: FieldError[] = [];
  const refuse = (field: string, value: unknown, detail: string): void => {
    errors.push(invalid(`${path}.${field}`, value, detail));
  };
  if (failed !== undefined && perIndex === undefined) {
    errors.push(required(`${path}.backoffLimitPerIndex`, 'when maxFailedIndexes is specified'));
  }
  if (typeof mode === 'string' && mode !== 'NonIndexed' && mode !== 'Indexed') {
    errors.push(unsupportedInOrder(`${path}.completionMode`, mode, ['NonIndexed', 'Indexed']));
  }
  if (mode !== 'Indexed') {
    if (mode != null && mode !== 'NonIndexed') return errors;
    if (perIndex !== undefined) refuse('backoffLimitPerIndex', perIndex, 'requires indexed completion mode');
    if (failed !== undefined) refuse('maxFailedIndexes', failed, 'requires indexed completion mode');
    return errors;
  }
  if (completions === undefined) {
    errors.push(required(`${path}.completions`, 'when completion mode is Indexed'));
  }
  if ((parallelism ?? 0) > MOST_INDEXES) {
    const detail = `must be less than or equal to ${MOST_INDEXES} when completion mode is Indexed`;
    refuse('parallelism', parallelism, detail);
  }
  if (completions !== undefined && failed !== undefined && failed > completions) {
    refuse('maxFailedIndexes', failed, 'must be less than or equal to completions');
  }
  if ((failed ?? 0) > MOST_INDEXES) {
    refuse('maxFailedIndexes', failed, `must be less than or equal to ${MOST_INDEXES}`);
  }
  if ((completions ?? 0) <= MOST_INDEXES || perIndex === undefined) return errors;
  const many = `must be less than or equal to ${MOST_OF_MANY} when completions are above ${MOST_INDEXES} and used with backoff limit per index`;
  if (failed === undefined) {
    const detail = `must be specified when completions is above ${MOST_INDEXES}`;
    errors.push(required(`${path}.maxFailedIndexes`, detail));
  }
  if ((parallelism ?? 0) > MOST_OF_MANY) refuse('parallelism', parallelism, many);
  if ((failed ?? 0) > MOST_OF_MANY) refuse('maxFailedIndexes', failed, many);
  return errors;
}

function managerErrors(spec: JsonObject, path: string): FieldError[] {
  const manager = valueAt(spec, 'managedBy');
  const at = `${path}.managedBy`;
  if (typeof manager !== 'string') return [];
  if (manager === '') return [required(at)];
  const errors = checkDomainPath(manager).map((detail) => invalid(at, manager, detail));
  return manager.length > LONGEST_MANAGER ? [...errors, tooLong(at, LONGEST_MANAGER)] : errors;
}

/** Pods of a Job come to an end; `Always` is what a template has that says nothing. */
function restartErrors(spec: JsonObject, at: string): FieldError[] {
  const policy = textAt(spec, 'template', 'spec', 'restartPolicy');
  if (policy === '' || policy === 'Always') return [required(at, 'valid values: "OnFailure", "Never"')];
  if (!ENDING.includes(policy)) return [unsupportedInOrder(at, policy, ENDING)];
  if (policy === 'Never' || !isObject(valueAt(spec, 'podFailurePolicy'))) return [];
  return [invalid(at, policy, 'only "Never" is supported when podFailurePolicy is specified')];
}

const LEGACY = '';
const PREFIX = 'batch.kubernetes.io/';

/** The labels by which a Job finds its Pods are those that it was given, unless it says that they are its own. */
function* judgeGenerated(judging: Judging, job: JsonObject): Steps<void> {
  const { errors } = judging;
  const selector = valueAt(job, 'spec', 'selector');
  if (isTrueAt(job, 'spec', 'manualSelector') || !isObject(selector)) return;
  const [uid, name] = [textAt(job, 'metadata', 'uid'), textAt(job, 'metadata', 'name')];
  const labels = objectAt(job, 'spec', 'template', 'metadata', 'labels');
  const wanted: Record<string, string> = {};
  for (const prefix of [LEGACY, PREFIX]) {
    wanted[`${prefix}controller-uid`] = uid;
    wanted[`${prefix}job-name`] = name;
  }
  if (uid === '') errors.push(required('metadata.uid'));
  for (const [key, value] of Object.entries(wanted)) {
    const at = `spec.template.metadata.labels[${key}]`;
    if (!Object.hasOwn(labels, key)) errors.push(required(at, `must be '${value}'`));
    else if (labels[key] !== value) errors.push(invalid(at, labels, `must be '${value}'`));
  }
  if (yield* selects(judging, selector, wanted)) return;
  errors.push(invalid('spec.selector', selector, '`selector` not auto-generated'));
}

function* validateJob(job: JsonObject, old?: JsonObject): Steps<readonly FieldError[]> {
  const judging = newJudging();
  const { errors, pace } = judging;
  const spec = objectAt(job, 'spec');
  const before = valueAt(old, 'spec');
  if (old === undefined) yield* judgeGenerated(judging, job);
  if (old === undefined || !(yield* equalSteps(spec, before, pace))) {
    yield* judgeJobSpec(judging, spec, { path: 'spec', before });
    yield* judgeJobSelector(judging, spec);
    if (old === undefined) errors.push(...hostNameErrors(job));
    else yield* judgeJobUpdate(judging, job, old);
  }
  if (old !== undefined && !keepsStatus(job, old)) yield* judgeJobStatus(judging, job, old);
  return errors;
}

function* judgeJobSelector(judging: Judging, spec: JsonObject): Steps<void> {
  const selector = valueAt(spec, 'selector');
  const labels = valueAt(spec, 'template', 'metadata', 'labels');
  if (isObject(selector)) {
    yield* judgeSelectorField(judging, spec, { field: 'selector', at: 'spec' });
    yield* judgeMatch(judging, selector, labels);
  } else judging.errors.push(required('spec.selector'), mismatch(labels));
}

/** The Pods of an indexed Job are called after their index. */
function hostNameErrors(job: JsonObject): FieldError[] {
  const [name, completions] = [textAt(job, 'metadata', 'name'), numberAt(job, 'spec', 'completions')];
  if (!isIndexed(valueAt(job, 'spec')) || completions <= 0) return [];
  const last = `${name}-${completions - 1}`;
  if (checkLabelName(last).length === 0) return [];
  return [invalid('metadata.name', name, `will not able to create pod with invalid DNS label: ${last}`)];
}

function* judgeJobUpdate(judging: Judging, job: JsonObject, old: JsonObject): Steps<void> {
  const [spec, before] = [objectAt(job, 'spec'), objectAt(old, 'spec')];
  judging.errors.push(...completionErrors(spec, before));
  yield* judgeImmutable(judging, { object: job, old, path: 'spec.selector' });
  const now = valueAt(spec, 'template');
  const was = mayMove(old) ? moved(now, valueAt(before, 'template')) : valueAt(before, 'template');
  if (!(yield* equalSteps(now, was, judging.pace))) judging.errors.push(invalid('spec.template', now, IMMUTABLE));
  for (const field of ['completionMode', 'podFailurePolicy', 'backoffLimitPerIndex', 'managedBy', 'successPolicy']) {
    yield* judgeImmutable(judging, { object: job, old, path: `spec.${field}` });
  }
}

/** An indexed Job may be made larger and smaller. */
function completionErrors(spec: JsonObject, before: JsonObject): FieldError[] {
  const at = 'spec.completions';
  const [now, was] = [countAt(spec, 'completions'), countAt(before, 'completions')];
  if (now === was) return [];
  if (!isIndexed(spec)) return [invalid(at, now ?? null, IMMUTABLE)];
  if (now === undefined || now === countAt(spec, 'parallelism')) return [];
  return [invalid(at, now, 'can only be modified in tandem with spec.parallelism')];
}

/** Whether a Job waits, so that its Pods may be sent elsewhere and be given more. */
function mayMove(job: JsonObject): boolean {
  if (!isTrueAt(job, 'spec', 'suspend')) return false;
  return valueAt(job, 'status', 'startTime') == null || isTrueOf(job, 'Suspended');
}

/** The template of before, with what may change of it as it is now. */
function moved(now: unknown, was: unknown): unknown {
  if (!isObject(was)) return was;
  const [spec, before] = [objectAt(now, 'spec'), objectAt(was, 'spec')];
  const next: Record<string, unknown> = { ...before };
  for (const field of ['nodeSelector', 'tolerations', 'schedulingGates']) next[field] = spec[field];
  const affinity = { ...objectAt(before, 'affinity'), nodeAffinity: valueAt(spec, 'affinity', 'nodeAffinity') };
  next['affinity'] = deepEqual(affinity, {}) && !isObject(spec['affinity']) ? undefined : affinity;
  for (const list of ['containers', 'initContainers']) {
    const [containers, others] = [before[list], spec[list]];
    if (!Array.isArray(containers) || !Array.isArray(others)) continue;
    next[list] = containers.map((one, i) => ({ ...one, resources: valueAt(others[i], 'resources') }));
  }
  const metadata: Record<string, unknown> = { ...objectAt(was, 'metadata') };
  for (const field of ['labels', 'annotations']) metadata[field] = valueAt(now, 'metadata', field);
  const isBare = !isObject(valueAt(now, 'metadata')) && deepEqual(metadata, {});
  return { ...was, metadata: isBare ? undefined : metadata, spec: next };
}

const LONGEST_NAME = 52;

function* validateCronJob(object: JsonObject, old?: JsonObject): Steps<readonly FieldError[]> {
  const judging = newJudging();
  const { errors, pace } = judging;
  const spec = objectAt(object, 'spec');
  const before = valueAt(old, 'spec');
  const name = textAt(object, 'metadata', 'name');
  if (old === undefined || !(yield* equalSteps(spec, before, pace))) yield* judgeCronSpec(judging, spec, before);
  if (old === undefined && name.length > LONGEST_NAME) {
    errors.push(invalid('metadata.name', name, `must be no more than ${LONGEST_NAME} characters`));
  }
  return errors;
}

function* judgeCronSpec(judging: Judging, spec: JsonObject, before: unknown): Steps<void> {
  const { errors } = judging;
  const zone = valueAt(spec, 'timeZone');
  errors.push(...scheduleErrors(spec, textAt(before, 'schedule').includes('TZ')));
  const count = (field: string): FieldError[] => nonNegative(spec, field, `spec.${field}`);
  errors.push(...count('startingDeadlineSeconds'));
  if (zone !== valueAt(before, 'timeZone')) errors.push(...timeZoneErrors(zone, 'spec.timeZone'));
  const concurrency = { name: 'concurrencyPolicy', path: 'spec.concurrencyPolicy' };
  errors.push(...oneOf(spec, concurrency, ['Allow', 'Forbid', 'Replace']));
  const path = 'spec.jobTemplate.spec';
  const job = objectAt(spec, 'jobTemplate', 'spec');
  yield* judgeJobSpec(judging, job, { path, before: valueAt(before, 'jobTemplate', 'spec') });
  const selector = valueAt(job, 'selector');
  if (isObject(selector)) errors.push(invalid(`${path}.selector`, selector, '`selector` will be auto-generated'));
  if (isTrueAt(job, 'manualSelector')) {
    errors.push(unsupportedInOrder(`${path}.manualSelector`, true, ['nil', 'false']));
  }
  for (const field of ['successfulJobsHistoryLimit', 'failedJobsHistoryLimit']) errors.push(...count(field));
}

/** Zones within the schedule were let in once, and stay where they are. */
function scheduleErrors(spec: JsonObject, hadZone: boolean): FieldError[] {
  const at = 'spec.schedule';
  const schedule = textAt(spec, 'schedule');
  if (schedule === '') return [required(at)];
  const hasZone = schedule.includes('TZ');
  const wrong = hasZone ? undefined : scheduleError(schedule);
  const errors = wrong === undefined ? [] : [invalid(at, schedule, wrong)];
  if (!hasZone) return errors;
  if (!hadZone) {
    const detail = 'cannot use TZ or CRON_TZ in schedule, use timeZone field instead';
    errors.push(invalid(at, schedule, detail));
  } else if (valueAt(spec, 'timeZone') != null) {
    errors.push(invalid(at, schedule, 'cannot use both timeZone field and TZ or CRON_TZ in schedule'));
  }
  return errors;
}

export const BATCH_VALIDATORS: GroupValidators = { jobs: validateJob, cronjobs: validateCronJob };
