/** Validation of ControllerRevisions and PodDisruptionBudgets. */

import type { FieldError } from '@coracle/apimachinery/meta/status';
import { isObject, type JsonObject, objectAt, valueAt } from '@coracle/apimachinery/types/read-value';
import {
  invalid,
  nonNegative,
  oneOf,
  required,
  validateImmutable,
} from '@coracle/apimachinery/validation/field-errors';
import { validateSelectorField } from './admission-rules.ts';
import { validateConditions } from './conditions.ts';

const PERCENT = /^[0-9]+%$/;
const PERCENT_RULE =
  "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')";

/** A number from 0 on, or a percentage. */
function amountErrors(amount: unknown, at: string): FieldError[] {
  if (typeof amount === 'number') {
    return amount < 0 ? [invalid(at, amount, 'must be greater than or equal to 0')] : [];
  }
  return typeof amount === 'string' && !PERCENT.test(amount) ? [invalid(at, amount, PERCENT_RULE)] : [];
}

/** No more than the whole. */
function shareErrors(amount: unknown, at: string): FieldError[] {
  const isMore = typeof amount === 'string' && PERCENT.test(amount) && Number.parseInt(amount, 10) > 100;
  return isMore ? [invalid(at, amount, 'must not be greater than 100%')] : [];
}

export function validateControllerRevision(object: JsonObject, old?: JsonObject): readonly FieldError[] {
  const errors: FieldError[] = [];
  if (valueAt(object, 'data') == null) errors.push(required('data', 'data is mandatory'));
  errors.push(...nonNegative(object, 'revision'));
  if (old !== undefined) validateImmutable(errors, { object, old, path: 'data' });
  return errors;
}

export function validateBudget(object: JsonObject): readonly FieldError[] {
  const errors: FieldError[] = [];
  const spec = valueAt(object, 'spec');
  const isSet = (field: string): boolean => valueAt(spec, field) !== undefined && valueAt(spec, field) !== null;
  if (isObject(spec) && isSet('minAvailable') && isSet('maxUnavailable')) {
    errors.push(invalid('spec', spec, 'minAvailable and maxUnavailable cannot be both set'));
  }
  for (const field of isSet('minAvailable') && isSet('maxUnavailable') ? [] : ['minAvailable', 'maxUnavailable']) {
    const amount = valueAt(spec, field);
    errors.push(...amountErrors(amount, `spec.${field}`), ...shareErrors(amount, `spec.${field}`));
  }
  validateSelectorField(errors, spec, { field: 'selector', at: 'spec' });
  const policy = { name: 'unhealthyPodEvictionPolicy', path: 'spec.unhealthyPodEvictionPolicy' };
  errors.push(...oneOf(spec, policy, ['AlwaysAllow', 'IfHealthyBudget']));
  validateConditions(errors, objectAt(object, 'status'), 'status');
  return errors;
}
