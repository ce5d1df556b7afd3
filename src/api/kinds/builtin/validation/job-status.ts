/** What may be said in the status of a Job, and what of it stays said (batch/validation, ValidateJobStatusUpdate). */
import { deepEqual } from '../../../meta/deep-equal.ts';
import type { Steps } from '../../../meta/steps.ts';
import {
  isObject,
  isTrueAt,
  type JsonObject,
  listAt,
  numberAt,
  objectsAt,
  textAt,
  textsAt,
  valueAt,
} from '../read-value.ts';
import { duplicate, invalid, type Judging, judgeEach, required } from './field-errors.ts';
import { commonIndex, indexCount } from './job-indexes.ts';
import { counterErrors } from './workload-parts.ts';

const TERMINAL = ['Failed', 'Complete', 'FailureTarget'];

/** Whether a Job has a condition of this type that is true. */
export const isTrueOf = (job: JsonObject, type: string): boolean =>
  objectsAt(job, 'status', 'conditions').some(
    (one) => textAt(one, 'type') === type && textAt(one, 'status') === 'True',
  );
const isFinished = (job: JsonObject): boolean => isTrueOf(job, 'Complete') || isTrueOf(job, 'Failed');
const timeAt = (job: JsonObject, field: string): string => textAt(job, 'status', field);
const statusAt = (job: JsonObject, field: string): unknown => valueAt(job, 'status', field) ?? null;

/** Judges a status that differs from the one before: rules hold for what has changed. */
export function* judgeJobStatus(judging: Judging, job: JsonObject, old: JsonObject): Steps<void> {
  const { errors } = judging;
  errors.push(...counterErrors(job, { counters: ['active', 'succeeded', 'failed', 'ready', 'terminating'] }));
  yield* judgeUncounted(judging, job);
  const conditions = (detail: string): unknown => errors.push(invalid('status.conditions', undefined, detail));
  judgeConditions(job, old, conditions);
  judgeTimes(judging, job, old);
  judgeCounts(judging, job, old);
  judgeIndexes(judging, job, old);
  for (const type of [...TERMINAL, 'SuccessCriteriaMet']) {
    const kind = type === 'SuccessCriteriaMet' ? '' : 'terminal ';
    if (isTrueOf(old, type) && !isTrueOf(job, type)) conditions(`cannot disable the ${kind}${type}=True condition`);
  }
  if (isTrueOf(old, 'Complete') && !isTrueOf(old, 'SuccessCriteriaMet') && isTrueOf(job, 'SuccessCriteriaMet')) {
    conditions('cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions');
  }
}

function* judgeUncounted(judging: Judging, job: JsonObject): Steps<void> {
  const seen = new Set<string>();
  for (const list of ['succeeded', 'failed']) {
    const at = `status.uncountedTerminatedPods.${list}`;
    yield* judgeEach(judging, textsAt(job, 'status', 'uncountedTerminatedPods', list), (uid, i) => {
      if (uid === '') return [invalid(`${at}[${i}]`, uid, 'must not be empty')];
      if (seen.has(uid)) return [duplicate(`${at}[${i}]`, uid)];
      seen.add(uid);
      return [];
    });
  }
}

function judgeConditions(job: JsonObject, old: JsonObject, refuse: (detail: string) => unknown): void {
  const changed = (type: string): boolean => isTrueOf(job, type) !== isTrueOf(old, type);
  const [isComplete, hasFailed] = [isTrueOf(job, 'Complete'), isTrueOf(job, 'Failed')];
  const [willFail, isMet] = [isTrueOf(job, 'FailureTarget'), isTrueOf(job, 'SuccessCriteriaMet')];
  if ((changed('Complete') || changed('Failed')) && isComplete && hasFailed) {
    refuse('cannot set Complete=True and Failed=true conditions');
  }
  if ((changed('Complete') || changed('FailureTarget')) && isComplete && willFail) {
    refuse('cannot set Complete=True and FailureTarget=true conditions');
  }
  if (changed('Failed') && hasFailed && !willFail) {
    refuse('cannot set Failed=True condition without the FailureTarget=true condition');
  }
  if (changed('Complete') && isComplete && !isMet) {
    refuse('cannot set Complete=True condition without the SuccessCriteriaMet=true condition');
  }
  if (isMet && hasFailed) refuse('cannot set SuccessCriteriaMet=True and Failed=true conditions');
  if (isMet && willFail) refuse('cannot set SuccessCriteriaMet=True and FailureTarget=true conditions');
  if (isObject(valueAt(job, 'spec', 'successPolicy')) && !isMet && isComplete) {
    refuse('cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True');
  }
}

function judgeTimes({ errors }: Judging, job: JsonObject, old: JsonObject): void {
  const [start, end] = [timeAt(job, 'startTime'), timeAt(job, 'completionTime')];
  const [wasStart, wasEnd] = [timeAt(old, 'startTime'), timeAt(old, 'completionTime')];
  const at = 'status.completionTime';
  const isComplete = isTrueOf(job, 'Complete');
  if (isComplete !== isTrueOf(old, 'Complete') || end !== wasEnd) {
    if (end !== '' && !isComplete) {
      errors.push(invalid(at, end, 'cannot set completionTime when there is no Complete=True condition'));
    }
    if (end === '' && isComplete) errors.push(required(at, 'completionTime is required for Complete jobs'));
  }
  const moved = start !== wasStart || end !== wasEnd;
  if (moved && start !== '' && end !== '' && Date.parse(end) < Date.parse(start)) {
    errors.push(invalid(at, end, 'completionTime cannot be set before startTime'));
  }
  const isNothing = isTrueAt(job, 'spec', 'suspend') && valueAt(job, 'spec', 'completions') === 0;
  const finished = isFinished(job);
  if ((finished !== isFinished(old) || start !== wasStart) && !isNothing && start === '' && finished) {
    errors.push(required('status.startTime', 'startTime is required for finished job'));
  }
  if (end !== '' && wasEnd !== '' && end !== wasEnd) errors.push(invalid(at, end, 'completionTime cannot be mutated'));
  if (wasStart !== '' && start !== wasStart && !isTrueAt(job, 'spec', 'suspend')) {
    errors.push(required('status.startTime', 'startTime cannot be removed for unsuspended job'));
  }
}

function judgeCounts({ errors }: Judging, job: JsonObject, old: JsonObject): void {
  const changed = (field: string): boolean => !deepEqual(statusAt(job, field), statusAt(old, field));
  const count = (one: JsonObject, field: string): number => numberAt(one, 'status', field);
  const finished = isFinished(job);
  const hasEnded = finished !== isFinished(old);
  for (const field of ['active', 'terminating']) {
    const value = count(job, field);
    if (!finished || value <= 0 || !(hasEnded || changed(field))) continue;
    errors.push(invalid(`status.${field}`, value, `${field}>0 is invalid for finished job`));
  }
  const uncounted = statusAt(job, 'uncountedTerminatedPods');
  const holds = listAt(uncounted, 'failed').length + listAt(uncounted, 'succeeded').length;
  if (finished && holds > 0 && (hasEnded || changed('uncountedTerminatedPods'))) {
    const detail = 'uncountedTerminatedPods needs to be empty for finished job';
    errors.push(invalid('status.uncountedTerminatedPods', uncounted, detail));
  }
  if ((changed('ready') || changed('active')) && count(job, 'ready') > count(job, 'active')) {
    errors.push(invalid('status.ready', count(job, 'ready'), 'cannot set more ready pods than active'));
  }
  const isIndexed = textAt(job, 'spec', 'completionMode') === 'Indexed';
  for (const field of isIndexed ? ['failed'] : ['failed', 'succeeded']) {
    if (count(job, field) >= count(old, field)) continue;
    errors.push(invalid(`status.${field}`, count(job, field), `cannot decrease the ${field} counter`));
  }
}

function judgeIndexes({ errors }: Judging, job: JsonObject, old: JsonObject): void {
  const changed = (field: string): boolean => statusAt(job, field) !== statusAt(old, field);
  const [completed, failed] = [timeAt(job, 'completedIndexes'), statusAt(job, 'failedIndexes')];
  const completions = valueAt(job, 'spec', 'completions');
  const hasLimit = valueAt(job, 'spec', 'backoffLimitPerIndex') != null;
  const fault = (text: string): string | undefined =>
    typeof completions === 'number' ? indexCount(text, completions).fault : undefined;
  const [completedAt, failedAt] = ['status.completedIndexes', 'status.failedIndexes'];
  const refuse = (at: string, value: unknown, detail: string): unknown => errors.push(invalid(at, value, detail));
  const wrong = fault(completed);
  if (changed('completedIndexes')) {
    if (wrong !== undefined) refuse(completedAt, completed, `error parsing completedIndexes: ${wrong}`);
    if (completed !== '' && textAt(job, 'spec', 'completionMode') !== 'Indexed') {
      refuse(completedAt, completed, 'cannot set non-empty completedIndexes when non-indexed completion mode');
    }
  }
  if (typeof failed !== 'string') return;
  const wrongToo = fault(failed);
  if (changed('failedIndexes')) {
    if (hasLimit && wrongToo !== undefined) refuse(failedAt, failed, `error parsing failedIndexes: ${wrongToo}`);
    if (!hasLimit) refuse(failedAt, failed, 'cannot set non-null failedIndexes when backoffLimitPerIndex is null');
  }
  const isNew = changed('failedIndexes') || changed('completedIndexes');
  if (!isNew || typeof completions !== 'number' || wrong !== undefined || wrongToo !== undefined) return;
  const common = commonIndex(completed, failed);
  if (common !== undefined) refuse(failedAt, failed, `failedIndexes and completedIndexes overlap at index: ${common}`);
}
