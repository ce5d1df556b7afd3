/** When a Job counts as failed or as done before its time (batch/validation). */
import { goQuoteAll } from '../../../meta/go-text.ts';
import { checkQualifiedName } from '../../../meta/name-rules.ts';
import type { FieldError } from '../../../meta/status.ts';
import type { Steps } from '../../../meta/steps.ts';
import { isObject, type JsonObject, listAt, numberAt, objectsAt, textAt, valueAt } from '../read-value.ts';
import {
  duplicate,
  faults,
  invalid,
  type Judging,
  judgeEach,
  judgeNested,
  required,
  tooLong,
  tooMany,
  unsupported,
} from './field-errors.ts';
import { indexCount } from './job-indexes.ts';

const MOST_RULES = 20;
const MOST_VALUES = 255;
const MOST_PATTERNS = 20;
const LONGEST_INDEXES = 64 * 1024;
const ACTIONS = ['Count', 'FailIndex', 'FailJob', 'Ignore'];
const OPERATORS = ['In', 'NotIn'];
const STATUSES = ['False', 'True', 'Unknown'];

/** A text out of a few, which has to be there. */
function choice(value: string, at: string, supported: readonly string[]): FieldError[] {
  if (value === '') return [required(at, `valid values: ${goQuoteAll(supported)}`)];
  return supported.includes(value) ? [] : [unsupported(at, value, supported)];
}

/** Judges the rules by which a Job fails. */
export function* judgeFailurePolicy(judging: Judging, spec: JsonObject, path: string): Steps<void> {
  const at = `${path}.rules`;
  const rules = objectsAt(spec, 'podFailurePolicy', 'rules');
  const { errors } = judging;
  if (rules.length > MOST_RULES) errors.push(tooMany(at, rules.length, MOST_RULES));
  const names = new Set<string>();
  for (const list of ['containers', 'initContainers']) {
    for (const one of objectsAt(spec, 'template', 'spec', list)) names.add(textAt(one, 'name'));
  }
  const hasIndexes = valueAt(spec, 'backoffLimitPerIndex') != null;
  yield* judgeNested(judging, rules, function* (rule, i) {
    const place = `${at}[${i}]`;
    const action = textAt(rule, 'action');
    errors.push(...choice(action, `${place}.action`, ACTIONS));
    if (action === 'FailIndex' && !hasIndexes) {
      errors.push(invalid(`${place}.action`, action, 'requires the backoffLimitPerIndex to be set'));
    }
    const codes = valueAt(rule, 'onExitCodes');
    const patterns = objectsAt(rule, 'onPodConditions');
    if (isObject(codes)) yield* judgeCodes(judging, codes, { at: `${place}.onExitCodes`, names });
    const list = `${place}.onPodConditions`;
    if (patterns.length > MOST_PATTERNS) errors.push(tooMany(list, patterns.length, MOST_PATTERNS));
    yield* judgeEach(judging, patterns, (pattern, j) => {
      const type = textAt(pattern, 'type');
      return [
        ...faults(`${list}[${j}].type`, type, checkQualifiedName(type)),
        ...choice(textAt(pattern, 'status'), `${list}[${j}].status`, STATUSES),
      ];
    });
    if (isObject(codes) === patterns.length > 0) {
      const [how, what] = isObject(codes) ? ['both', 'not supported'] : ['one of', 'required'];
      errors.push(invalid(place, undefined, `specifying ${how} OnExitCodes and OnPodConditions is ${what}`));
    }
  });
}

function* judgeCodes(
  judging: Judging,
  codes: JsonObject,
  { at, names }: { readonly at: string; readonly names: ReadonlySet<string> },
): Steps<void> {
  const { errors } = judging;
  const operator = textAt(codes, 'operator');
  const container = valueAt(codes, 'containerName');
  const values = listAt(codes, 'values');
  errors.push(...choice(operator, `${at}.operator`, OPERATORS));
  if (typeof container === 'string' && !names.has(container)) {
    const detail = 'must be one of the container or initContainer names in the pod template';
    errors.push(invalid(`${at}.containerName`, container, detail));
  }
  if (values.length === 0) errors.push(invalid(`${at}.values`, values, 'at least one value is required'));
  else if (values.length > MOST_VALUES) errors.push(tooMany(`${at}.values`, values.length, MOST_VALUES));
  const seen = new Set<unknown>();
  let isOrdered = true;
  yield* judgeEach(judging, values, (value, i) => {
    const place = `${at}.values[${i}]`;
    const found: FieldError[] = [];
    if (operator === 'In' && value === 0) found.push(invalid(place, 0, 'must not be 0 for the In operator'));
    if (seen.has(value)) found.push(duplicate(place, value));
    seen.add(value);
    if (i > 0 && Number(values[i - 1]) > Number(value)) isOrdered = false;
    return found;
  });
  if (!isOrdered) errors.push(invalid(`${at}.values`, values, 'must be ordered'));
}

/** Judges the rules by which an indexed Job is done. */
export function* judgeSuccessPolicy(judging: Judging, spec: JsonObject, path: string): Steps<void> {
  const at = `${path}.rules`;
  const rules = objectsAt(spec, 'successPolicy', 'rules');
  const { errors } = judging;
  if (rules.length === 0) {
    errors.push(required(at, 'at least one rules must be specified when the successPolicy is specified'));
  }
  if (rules.length > MOST_RULES) errors.push(tooMany(at, rules.length, MOST_RULES));
  const completions = numberAt(spec, 'completions');
  yield* judgeEach(judging, rules, (rule, i) => successErrors(rule, `${at}[${i}]`, completions));
}

function successErrors(rule: JsonObject, at: string, completions: number): FieldError[] {
  const [count, indexes] = [valueAt(rule, 'succeededCount'), valueAt(rule, 'succeededIndexes')];
  const errors: FieldError[] = [];
  let total: number | undefined;
  if (typeof indexes === 'string') {
    const place = `${at}.succeededIndexes`;
    if (indexes.length > LONGEST_INDEXES) errors.push(tooLong(place, LONGEST_INDEXES));
    const read = indexCount(indexes, completions);
    if (read.fault !== undefined) {
      errors.push(invalid(place, indexes, `error parsing succeededIndexes: ${read.fault}`));
    }
    total = read.total;
  }
  if (typeof count !== 'number') {
    const detail = 'at least one of succeededCount or succeededIndexes must be specified';
    return total === undefined ? [required(at, detail)] : errors;
  }
  const place = `${at}.succeededCount`;
  const atMost = (most: number, what: string): unknown =>
    count > most && errors.push(invalid(place, count, `must be less than or equal to ${most} (the number of ${what})`));
  if (count < 0) errors.push(invalid(place, count, 'must be greater than or equal to 0'));
  atMost(completions, 'specified completions');
  if (total !== undefined) atMost(total, 'indexes in the specified succeededIndexes field');
  return errors;
}
