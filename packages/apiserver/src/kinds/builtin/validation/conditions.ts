/** Conditions of the common type (metav1.Condition), where upstream validates them: not every kind that has some does. */
import { checkQualifiedName } from '@coracle/apimachinery/meta/name-rules';
import type { FieldError } from '@coracle/apimachinery/meta/status';
import { type JsonObject, numberAt, objectsAt, textAt } from '@coracle/apimachinery/types/read-value';
import {
  duplicate,
  faults,
  invalid,
  required,
  tooLong,
  unsupported,
  validateEach,
} from '@coracle/apimachinery/validation/field-errors';

const STATUSES = ['False', 'True', 'Unknown'];
const REASON = /^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$/;
const REASON_RULE =
  "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')";
const MAX_REASON = 1024;
const MAX_MESSAGE = 32_768;

/** Every mistake in the conditions below `holder.conditions` (metav1validation.ValidateConditions). */
export function validateConditions(errors: FieldError[], holder: JsonObject, path: string): void {
  const seen = new Set<string>();
  const validateOne = (condition: JsonObject, i: number): FieldError[] => {
    const at = `${path}.conditions[${i}]`;
    const type = textAt(condition, 'type');
    const twice = seen.has(type) ? [duplicate(`${at}.type`, type)] : [];
    seen.add(type);
    return [...twice, ...validateCondition(condition, at)];
  };
  validateEach(errors, objectsAt(holder, 'conditions'), validateOne);
}

function validateCondition(condition: JsonObject, at: string): FieldError[] {
  const type = textAt(condition, 'type');
  const status = textAt(condition, 'status');
  const reason = textAt(condition, 'reason');
  const generation = numberAt(condition, 'observedGeneration');
  const errors = faults(`${at}.type`, type, checkQualifiedName(type));
  if (!STATUSES.includes(status)) errors.push(unsupported(`${at}.status`, status, STATUSES));
  if (generation < 0) {
    errors.push(invalid(`${at}.observedGeneration`, generation, 'must be greater than or equal to zero'));
  }
  if (textAt(condition, 'lastTransitionTime') === '') errors.push(required(`${at}.lastTransitionTime`));
  if (reason === '') errors.push(required(`${at}.reason`));
  else if (!REASON.test(reason)) errors.push(invalid(`${at}.reason`, reason, REASON_RULE));
  if (reason.length > MAX_REASON) errors.push(tooLong(`${at}.reason`, MAX_REASON));
  if (textAt(condition, 'message').length > MAX_MESSAGE) errors.push(tooLong(`${at}.message`, MAX_MESSAGE));
  return errors;
}
