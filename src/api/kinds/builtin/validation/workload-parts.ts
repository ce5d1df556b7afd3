/** What the kinds that make Pods have in common: selector, template, counters of their status (apps/validation). */
import { deepEqual } from '../../../meta/deep-equal.ts';
import type { FieldError } from '../../../meta/status.ts';
import type { Steps } from '../../../meta/steps.ts';
import { judgeAnnotations, judgeLabelMap } from '../../../meta/validate-object-meta.ts';
import {
  isObject,
  type JsonObject,
  listAt,
  numberAt,
  objectAt,
  objectsAt,
  textAt,
  textsAt,
  valueAt,
} from '../read-value.ts';
import { judgeSelectorField } from './admission-rules.ts';
import { forbidden, invalid, type Judging, judgeEach, nonNegative, required, unsupported } from './field-errors.ts';
import { judgePodSpec } from './pod-spec.ts';

/** Where a template stands, what stood there before, and the volumes that its owner adds. */
export interface TemplateRules {
  readonly path: string;
  readonly before?: unknown;
  readonly claims?: readonly JsonObject[];
}

/** Judges a PodTemplateSpec; upstream names labels and annotations without `metadata`. */
export function* judgeTemplate(
  judging: Judging,
  template: unknown,
  { path, before, claims = [] }: TemplateRules,
): Steps<void> {
  const { errors, pace } = judging;
  const metadata = objectAt(template, 'metadata');
  // What comes here has the types of its schema.
  const texts = (field: string) => objectAt(metadata, field) as Readonly<Record<string, string>>;
  yield* judgeLabelMap(texts('labels'), `${path}.labels`, errors, pace);
  yield* judgeAnnotations(texts('annotations'), `${path}.annotations`, errors, pace);
  const spec = valueAt(template, 'spec');
  yield* judgePodSpec(judging, spec, { path: `${path}.spec`, claims, before: valueAt(before, 'spec') });
  if (listAt(spec, 'ephemeralContainers').length > 0) {
    errors.push(forbidden(`${path}.spec.ephemeralContainers`, 'ephemeral containers not allowed in pod template'));
  }
}

/** Pods that are kept are started again whenever they end, and have no deadline. */
export function keptPodErrors(spec: unknown, at: string, owner: string): FieldError[] {
  const errors: FieldError[] = [];
  const policy = textAt(spec, 'restartPolicy');
  if (policy !== '' && policy !== 'Always') errors.push(unsupported(`${at}.restartPolicy`, policy, ['Always']));
  if (valueAt(spec, 'activeDeadlineSeconds') != null) {
    const detail = `activeDeadlineSeconds in ${owner} is not Supported`;
    errors.push(forbidden(`${at}.activeDeadlineSeconds`, detail));
  }
  return errors;
}

/** A workload's selector must be there, and must select its own template. */
export function* judgeOwnSelector(judging: Judging, spec: unknown, owner: string): Steps<void> {
  const { errors } = judging;
  const selector = valueAt(spec, 'selector');
  if (!isObject(selector)) {
    // Of a DaemonSet upstream asks nothing but that it selects something.
    if (owner !== 'daemonset') errors.push(required('spec.selector'));
    errors.push(mismatch(valueAt(spec, 'template', 'metadata', 'labels')));
    return;
  }
  const found = errors.length;
  yield* judgeSelectorField(judging, spec, { field: 'selector', at: 'spec' });
  const isEmpty = ['matchLabels', 'matchExpressions'].every((field) => {
    const part = valueAt(selector, field);
    return Object.keys(isObject(part) || Array.isArray(part) ? part : {}).length === 0;
  });
  if (isEmpty) errors.push(invalid('spec.selector', selector, `empty selector is invalid for ${owner}`));
  // What cannot be read selects nothing, and is told of already.
  if (errors.length > found) return;
  yield* judgeMatch(judging, selector, valueAt(spec, 'template', 'metadata', 'labels'));
}

/** The template's own labels are such that the selector finds its Pods. */
export function* judgeMatch(judging: Judging, selector: JsonObject, labels: unknown): Steps<void> {
  if (!(yield* selects(judging, selector, labels))) judging.errors.push(mismatch(labels));
}

/** What is said of a template that its owner does not select; without a selector it selects nothing. */
export const mismatch = (labels: unknown): FieldError =>
  invalid('spec.template.metadata.labels', labels ?? null, '`selector` does not match template `labels`');

/** Whether a label selector finds what has these labels. */
export function* selects(judging: Judging, selector: JsonObject, labels: unknown): Steps<boolean> {
  const wanted = objectAt(selector, 'matchLabels');
  let matches = true;
  const none = { errors: [], pace: judging.pace };
  yield* judgeEach(none, Object.keys(wanted), (key) => {
    if (valueAt(labels, key) !== wanted[key]) matches = false;
    return [];
  });
  yield* judgeEach(none, objectsAt(selector, 'matchExpressions'), (one) => {
    const value = valueAt(labels, textAt(one, 'key'));
    const isListed = typeof value === 'string' && textsAt(one, 'values').includes(value);
    const operator = textAt(one, 'operator');
    const meets =
      operator === 'In'
        ? isListed
        : operator === 'NotIn'
          ? !isListed
          : (operator === 'Exists') === (value !== undefined);
    if (!meets) matches = false;
    return [];
  });
  return matches;
}

/** Counters of a status: none is negative, and of these none is larger than that. */
export function counterErrors(
  object: JsonObject,
  { counters, limits = [] }: { readonly counters: readonly string[]; readonly limits?: readonly Limit[] },
): FieldError[] {
  const status = valueAt(object, 'status');
  const errors = counters.flatMap((counter) => nonNegative(object, `status.${counter}`));
  for (const [counter, most, shown = most] of limits) {
    const value = numberAt(status, counter);
    if (value <= numberAt(status, most)) continue;
    errors.push(invalid(`status.${counter}`, value, `cannot be greater than ${shown}`));
  }
  return errors;
}

/** A counter, the one that bounds it, and what upstream calls that. */
export type Limit = readonly [counter: string, most: string, shown?: string];

/** How often names collided only grows. */
export function collisionErrors(object: JsonObject, old: JsonObject): FieldError[] {
  const [now, before] = [object, old].map((one) => numberAt(one, 'status', 'collisionCount'));
  return now! < before! ? [invalid('status.collisionCount', now, 'cannot be decremented')] : [];
}

const PERCENT = /^[0-9]+%$/;
const PERCENT_RULE =
  "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')";

/** Whether an amount is nothing; what is no amount counts as nothing, too. */
export const isNone = (amount: unknown): boolean =>
  typeof amount === 'string' ? !PERCENT.test(amount) || Number.parseInt(amount, 10) === 0 : !amount;

/** A number from 0 on, or a percentage. */
export function amountErrors(amount: unknown, at: string): FieldError[] {
  if (typeof amount === 'number') {
    return amount < 0 ? [invalid(at, amount, 'must be greater than or equal to 0')] : [];
  }
  return typeof amount === 'string' && !PERCENT.test(amount) ? [invalid(at, amount, PERCENT_RULE)] : [];
}

/** No more than the whole. */
export function shareErrors(amount: unknown, at: string): FieldError[] {
  const isMore = typeof amount === 'string' && PERCENT.test(amount) && Number.parseInt(amount, 10) > 100;
  return isMore ? [invalid(at, amount, 'must not be greater than 100%')] : [];
}

/** Whether a write leaves the status as it was: only its own subresource has it judged. */
export const keepsStatus = (object: JsonObject, old: JsonObject | undefined): boolean =>
  old === undefined || deepEqual(valueAt(object, 'status') ?? null, valueAt(old, 'status') ?? null);
