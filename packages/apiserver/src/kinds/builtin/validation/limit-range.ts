/** Validation of LimitRanges (pkg/apis/core/validation, ValidateLimitRange). */
import { checkQualifiedName } from '@coracle/apimachinery/meta/name-rules';
import type { FieldError } from '@coracle/apimachinery/meta/status';
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
  forbidden,
  invalid,
  invalidEach,
  required,
  sortedKeys,
  validateEach,
  validateNested,
} from '@coracle/apimachinery/validation/field-errors';
import { checkContainerResourceName, checkResourceName, mayOvercommit } from './resource-names.ts';

const TYPES: readonly string[] = ['Pod', 'Container', 'PersistentVolumeClaim'];
const ONE: Quantity = { nano: 1_000_000_000n, format: 'DecimalSI' };

type BoundName = 'min' | 'max' | 'default' | 'defaultRequest' | 'maxLimitRequestRatio';
/** The five lists of one limit, by resource. */
type Bounds = Readonly<Record<BoundName, Quantity | undefined>>;

export function validateLimitRange(object: JsonObject): readonly FieldError[] {
  const errors: FieldError[] = [];
  const seen = new Set<string>();
  validateNested(errors, objectsAt(object, 'spec', 'limits'), (limit, i) => {
    const at = `spec.limits[${i}]`;
    const type = textAt(limit, 'type');
    errors.push(...checkType(type, `${at}.type`));
    if (seen.has(type)) errors.push(duplicate(`${at}.type`, type));
    seen.add(type);
    validateLimit(errors, limit, { type, at });
  });
  return errors;
}

function checkType(type: string, field: string): FieldError[] {
  const errors = invalidEach(field, type, checkQualifiedName(type));
  if (errors.length > 0 || type.includes('/') || TYPES.includes(type)) return errors;
  return [invalid(field, type, 'must be a standard limit type or fully qualified')];
}

function validateLimit(
  errors: FieldError[],
  limit: JsonObject,
  { type, at }: { readonly type: string; readonly at: string },
): void {
  const checkName = type === 'Pod' || type === 'Container' ? checkContainerResourceName : checkResourceName;
  const names = new Set<string>();
  function take(list: BoundName): void {
    validateEach(errors, sortedKeys(objectAt(limit, list)), (name) => {
      names.add(name);
      return checkName(name, `${at}.${list}[${name}]`);
    });
  }
  const isPod = type === 'Pod';
  take('max');
  take('min');
  for (const list of ['default', 'defaultRequest'] as const) {
    if (!isPod) take(list);
    else if (Object.keys(objectAt(limit, list)).length > 0) {
      errors.push(forbidden(`${at}.${list}`, "may not be specified when `type` is 'Pod'"));
    }
  }
  const { min, max } = boundsOf(limit, 'storage', isPod);
  if (type === 'PersistentVolumeClaim' && !min && !max) {
    const detail = 'either minimum or maximum storage value is required, but neither was provided';
    errors.push(required(`${at}.limits`, detail));
  }
  take('maxLimitRequestRatio');
  validateEach(errors, [...names].sort(), (name) => compareBounds(name, boundsOf(limit, name, isPod), at));
}

function boundsOf(limit: JsonObject, name: string, isPod: boolean): Bounds {
  const of = (list: BoundName): Quantity | undefined => {
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

type Order = readonly [less: BoundName, more: BoundName, list: BoundName, shown: BoundName, words: string];

/** What may not exceed what, in upstream's order; the list that is named then, and whose value is shown: a bound, or what breaks it. */
const ORDERS: readonly Order[] = [
  ['min', 'max', 'min', 'min', 'min value|max value'],
  ['min', 'defaultRequest', 'defaultRequest', 'defaultRequest', 'min value|default request value'],
  ['defaultRequest', 'max', 'defaultRequest', 'defaultRequest', 'default request value|max value'],
  ['defaultRequest', 'default', 'defaultRequest', 'defaultRequest', 'default request value|default limit value'],
  ['min', 'default', 'default', 'min', 'min value|default value'],
  ['default', 'max', 'default', 'max', 'default value|max value'],
];

function compareBounds(name: string, bounds: Bounds, at: string): FieldError[] {
  const { min, max, default: limit, defaultRequest: request, maxLimitRequestRatio: ratio } = bounds;
  const errors: FieldError[] = [];
  const text = (amount: Quantity | undefined): string => (amount ? formatQuantity(amount) : '');
  const refuse = (list: BoundName, value: Quantity | undefined, detail: string): void => {
    errors.push(invalid(`${at}.${list}[${name}]`, text(value), detail));
  };
  for (const [less, more, list, shown, words] of ORDERS) {
    if (!exceeds(bounds[less], bounds[more])) continue;
    const [one, other] = words.split('|');
    refuse(list, bounds[shown], `${one} ${text(bounds[less])} is greater than ${other} ${text(bounds[more])}`);
  }
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
