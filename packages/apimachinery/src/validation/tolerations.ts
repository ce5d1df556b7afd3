/** Tolerations (pkg/apis/core/validation, ValidateTolerations). */
import { checkLabelValue, checkQualifiedName } from '../meta/name-rules.ts';
import type { FieldError } from '../meta/status.ts';
import { type JsonObject, textAt, valueAt } from '../types/read-value.ts';
import { invalid, invalidEach, oneOf } from './field-errors.ts';

const EFFECTS = ['NoSchedule', 'PreferNoSchedule', 'NoExecute'];

/** One toleration of a Pod. */
export function validateToleration(toleration: JsonObject, path: string): FieldError[] {
  const key = textAt(toleration, 'key');
  const operator = textAt(toleration, 'operator') || 'Equal';
  const value = textAt(toleration, 'value');
  const effect = textAt(toleration, 'effect');
  const errors: FieldError[] = [];
  if (key === '' && operator !== 'Exists') {
    const detail = 'operator must be Exists when `key` is empty, which means "match all values and all keys"';
    errors.push(invalid(`${path}.operator`, operator, detail));
  } else if (key !== '') errors.push(...invalidEach(`${path}.key`, key, checkQualifiedName(key)));
  if (valueAt(toleration, 'tolerationSeconds') != null && effect !== 'NoExecute') {
    errors.push(invalid(`${path}.effect`, effect, "effect must be 'NoExecute' when `tolerationSeconds` is set"));
  }
  errors.push(...oneOf(toleration, { name: 'operator', path: `${path}.operator` }, ['Equal', 'Exists', 'Lt', 'Gt']));
  if (operator === 'Exists' && value !== '') {
    errors.push(invalid(`${path}.operator`, toleration, "value must be empty when `operator` is 'Exists'"));
  }
  if (operator === 'Equal') {
    const details = checkLabelValue(value);
    if (details.length > 0) errors.push(invalid(`${path}.operator`, value, details.join(';')));
  }
  if (effect !== '') errors.push(...oneOf(toleration, { name: 'effect', path: `${path}.effect` }, EFFECTS));
  return errors;
}
