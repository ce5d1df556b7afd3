/** Validation of LimitRanges (pkg/apis/core/validation, ValidateLimitRange). */
import { checkQualifiedName } from '@coracle/apimachinery/meta/name-rules';
import type { FieldError } from '@coracle/apimachinery/meta/status';
import type { Steps } from '@coracle/apimachinery/meta/steps';
import {
  compareQuantity,
  exceeds,
  formatQuantity,
  type Quantity,
  readQuantity,
} from '@coracle/apimachinery/quantity/quantity';
import { type JsonObject, objectAt, objectsAt, textAt } from '@coracle/apimachinery/types/read-value';
import {
  duplicate,
  faults,
  forbidden,
  invalid,
  newValidation,
  required,
  sortedKeys,
  sortedTexts,
  type Validation,
  validateEach,
  validateNested,
} from '@coracle/apimachinery/validation/field-errors';
import { checkContainerResourceName, checkResourceName, mayOvercommit } from './resource-names.ts';

const TYPES: readonly string[] = ['Pod', 'Container', 'PersistentVolumeClaim'];
const ONE: Quantity = { nano: 1_000_000_000n, format: 'DecimalSI' };

/** The five lists of one limit, by resource. */
type Bounds = Readonly<
  Record<'min' | 'max' | 'default' | 'defaultRequest' | 'maxLimitRequestRatio', Quantity | undefined>
>;

export function* validateLimitRange(object: JsonObject): Steps<readonly FieldError[]> {
  const checking = newValidation();
  const { errors } = checking;
  const seen = new Set<string>();
  const validateRules = (limit: JsonObject, i: number) => {
    const at = `spec.limits[${i}]`;
    const type = textAt(limit, 'type');
    errors.push(...checkType(type, `${at}.type`));
    if (seen.has(type)) errors.push(duplicate(`${at}.type`, type));
    seen.add(type);
    return validateLimit(checking, limit, { type, at });
  };
  yield* validateNested(checking, objectsAt(object, 'spec', 'limits'), validateRules, LIMIT);
  return errors;
}

/** What a limit counts as, beside the amounts in it; and what its bounds of one resource do. */
const LIMIT = 10;
const BOUNDS = 3;

function checkType(type: string, field: string): FieldError[] {
  const errors = faults(field, type, checkQualifiedName(type));
  if (errors.length > 0 || type.includes('/') || TYPES.includes(type)) return errors;
  return [invalid(field, type, 'must be a standard limit type or fully qualified')];
}

function* validateLimit(
  checking: Validation,
  limit: JsonObject,
  { type, at }: { readonly type: string; readonly at: string },
): Steps<void> {
  const { errors } = checking;
  const checkName = type === 'Pod' || type === 'Container' ? checkContainerResourceName : checkResourceName;
  const names = new Set<string>();
  function* take(list: keyof Bounds): Steps<void> {
    yield* validateEach(checking, yield* sortedKeys(objectAt(limit, list)), (name) => {
      names.add(name);
      return checkName(name, `${at}.${list}[${name}]`);
    });
  }
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
  const compare = (name: string): FieldError[] => compareBounds(name, boundsOf(limit, name, isPod), at);
  yield* validateEach(checking, yield* sortedTexts([...names]), compare, BOUNDS);
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
