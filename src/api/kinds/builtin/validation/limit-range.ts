/** Validation of LimitRanges (pkg/apis/core/validation, ValidateLimitRange). */
import { checkQualifiedName } from '../../../meta/name-rules.ts';
import type { FieldError } from '../../../meta/status.ts';
import { Pace, type Steps } from '../../../meta/steps.ts';
import { compareQuantity, formatQuantity, type Quantity } from '../../../quantity/quantity.ts';
import { type JsonObject, objectAt, objectsAt, textAt } from '../read-value.ts';
import { duplicate, forbidden, invalid, type Judging, judgeEach, required, type Stops } from './field-errors.ts';
import {
  checkContainerResourceName,
  checkResourceName,
  exceeds,
  mayOvercommit,
  readQuantity,
} from './resource-names.ts';

const TYPES: readonly string[] = ['Pod', 'Container', 'PersistentVolumeClaim'];
const ONE: Quantity = { nano: 1_000_000_000n, format: 'DecimalSI' };

/** The five lists of one limit, by resource. */
type Bounds = Readonly<
  Record<'min' | 'max' | 'default' | 'defaultRequest' | 'maxLimitRequestRatio', Quantity | undefined>
>;

export function* validateLimitRange(object: JsonObject): Steps<readonly FieldError[]> {
  const judging: Judging = { errors: [], pace: new Pace() };
  const { errors, pace } = judging;
  const seen = new Set<string>();
  for (const [i, limit] of objectsAt(object, 'spec', 'limits').entries()) {
    if (pace.due(LIMIT)) yield;
    const at = `spec.limits[${i}]`;
    const type = textAt(limit, 'type');
    errors.push(...checkType(type, `${at}.type`));
    if (seen.has(type)) errors.push(duplicate(`${at}.type`, type));
    seen.add(type);
    yield* validateLimit(judging, limit, { type, at });
  }
  return errors;
}

/** What a limit counts as, beside the amounts in it. */
const LIMIT = 10;

function checkType(type: string, field: string): FieldError[] {
  const errors = checkQualifiedName(type).map((detail) => invalid(field, type, detail));
  if (errors.length > 0 || type.includes('/') || TYPES.includes(type)) return errors;
  return [invalid(field, type, 'must be a standard limit type or fully qualified')];
}

function* validateLimit(
  judging: Judging,
  limit: JsonObject,
  { type, at }: { readonly type: string; readonly at: string },
): Steps<void> {
  const { errors } = judging;
  const checkName = type === 'Pod' || type === 'Container' ? checkContainerResourceName : checkResourceName;
  const names = new Set<string>();
  const take = (list: keyof Bounds): Stops =>
    judgeEach(judging, Object.keys(objectAt(limit, list)).sort(), (name) => {
      names.add(name);
      return checkName(name, `${at}.${list}[${name}]`);
    });
  const isPod = type === 'Pod';
  yield* take('max');
  yield* take('min');
  for (const list of ['default', 'defaultRequest'] as const) {
    if (!isPod) yield* take(list);
    else if (Object.keys(objectAt(limit, list)).length > 0) {
      errors.push(forbidden(`${at}.${list}`, "may not be specified when `type` is 'Pod'"));
    }
  }
  if (type === 'PersistentVolumeClaim') {
    const { min, max } = boundsOf(limit, 'storage', isPod);
    if (!min && !max) {
      const detail = 'either minimum or maximum storage value is required, but neither was provided';
      errors.push(required(`${at}.limits`, detail));
    }
  }
  yield* take('maxLimitRequestRatio');
  yield* judgeEach(judging, [...names].sort(), (name) => compareBounds(name, boundsOf(limit, name, isPod), at));
}

function boundsOf(limit: JsonObject, name: string, isPod: boolean): Bounds {
  const of = (list: keyof Bounds): Quantity | undefined => {
    const amounts = objectAt(limit, list);
    return Object.hasOwn(amounts, name) ? readQuantity(amounts[name]) : undefined;
  };
  return {
    min: of('min'),
    max: of('max'),
    default: isPod ? undefined : of('default'),
    defaultRequest: isPod ? undefined : of('defaultRequest'),
    maxLimitRequestRatio: of('maxLimitRequestRatio'),
  };
}

function compareBounds(name: string, bounds: Bounds, at: string): FieldError[] {
  const { min, max, default: limit, defaultRequest: request, maxLimitRequestRatio: ratio } = bounds;
  const errors: FieldError[] = [];
  const text = (amount: Quantity | undefined): string => (amount ? formatQuantity(amount) : '');
  const refuse = (list: keyof Bounds, value: Quantity | undefined, detail: string): void => {
    errors.push(invalid(`${at}.${list}[${name}]`, text(value), detail));
  };
  if (exceeds(min, max)) refuse('min', min, `min value ${text(min)} is greater than max value ${text(max)}`);
  if (exceeds(min, request)) {
    const detail = `min value ${text(min)} is greater than default request value ${text(request)}`;
    refuse('defaultRequest', request, detail);
  }
  if (exceeds(request, max)) {
    refuse('defaultRequest', request, `default request value ${text(request)} is greater than max value ${text(max)}`);
  }
  if (exceeds(request, limit)) {
    const detail = `default request value ${text(request)} is greater than default limit value ${text(limit)}`;
    refuse('defaultRequest', request, detail);
  }
  // Upstream shows the bound here, not the value that breaks it.
  if (exceeds(min, limit))
    refuse('default', min, `min value ${text(min)} is greater than default value ${text(limit)}`);
  if (exceeds(limit, max))
    refuse('default', max, `default value ${text(limit)} is greater than max value ${text(max)}`);
  if (exceeds(ONE, ratio)) refuse('maxLimitRequestRatio', ratio, `ratio ${text(ratio)} is less than 1`);
  if (ratio && min && max) {
    const most = Number(max.nano) / Number(min.nano);
    if (Number(ratio.nano) / 1e9 > most) {
      const detail = `ratio ${text(ratio)} is greater than max/min = ${most.toFixed(6)}`;
      refuse('maxLimitRequestRatio', ratio, detail);
    }
  }
  if (!mayOvercommit(name) && limit && request && compareQuantity(limit, request) !== 0) {
    const detail = `default value ${text(limit)} must equal to defaultRequest value ${text(request)} in ${name}`;
    refuse('defaultRequest', request, detail);
  }
  return errors;
}
