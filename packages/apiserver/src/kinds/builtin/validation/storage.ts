/** Validation of StorageClasses. */

import { equalSteps } from '@coracle/apimachinery/meta/deep-equal';
import { byteLength, checkQualifiedName } from '@coracle/apimachinery/meta/name-rules';
import type { FieldError } from '@coracle/apimachinery/meta/status';
import type { Steps } from '@coracle/apimachinery/meta/steps';
import { type JsonObject, objectAt, objectsAt, textAt, textsAt, valueAt } from '@coracle/apimachinery/types/read-value';
import {
  duplicate,
  faults,
  forbidden,
  type GroupValidators,
  immutable,
  invalid,
  newValidation,
  oneOf,
  required,
  requiredText,
  sortedTexts,
  tooLong,
  type Validation,
  validateEach,
  validateNested,
} from '@coracle/apimachinery/validation/field-errors';

/** Fields whose change is forbidden in these words. */
function* validateKept(
  { errors, pace }: Validation,
  { object, old, fields }: { object: JsonObject; old: JsonObject; fields: readonly string[] },
): Steps<void> {
  for (const field of fields) {
    const same = yield* equalSteps(valueAt(object, field), valueAt(old, field), pace);
    if (!same) errors.push(forbidden(field, `updates to ${field} are forbidden.`));
  }
}

const LONGEST_PARAMETERS = 256 * 1024;
const MOST_PARAMETERS = 512;

/** The name of who makes volumes, or changes them. */
const nameErrors = (name: string, at: string): FieldError[] =>
  requiredText(at, name, (text) => checkQualifiedName(text.toLowerCase()));

function parameterErrors(object: JsonObject): FieldError[] {
  const at = 'parameters';
  const entries = Object.entries(objectAt(object, at));
  if (entries.length > MOST_PARAMETERS) return [tooLong(at, MOST_PARAMETERS)];
  const errors = entries.some(([key]) => key === '') ? [invalid(at, '', 'field can not be empty.')] : [];
  const size = entries.reduce((sum, [key, value]) => sum + byteLength(key) + byteLength(String(value)), 0);
  return size > LONGEST_PARAMETERS ? [...errors, tooLong(at, LONGEST_PARAMETERS)] : errors;
}

/** Validates the places in which volumes of a class may lie. */
function* validateTopologies(checking: Validation, object: JsonObject): Steps<void> {
  const { errors } = checking;
  const known = new Set<string>();
  yield* validateNested(checking, objectsAt(object, 'allowedTopologies'), function* (term, i) {
    const at = `allowedTopologies[${i}].matchLabelExpressions`;
    const values = new Map<string, string>();
    yield* validateNested(checking, objectsAt(term, 'matchLabelExpressions'), function* (one, j) {
      const key = textAt(one, 'key');
      const listed = textsAt(one, 'values');
      const seen = new Set<string>();
      if (listed.length === 0) errors.push(required(`${at}[${j}].values`));
      yield* validateEach(checking, listed, (value, k) => {
        const isTwice = seen.has(value);
        seen.add(value);
        return isTwice ? [duplicate(`${at}[${j}].values[${k}]`, value)] : [];
      });
      errors.push(...faults(`${at}[${j}].key`, key, checkQualifiedName(key)));
      if (values.has(key)) errors.push(duplicate(`${at}[${j}].key`, key));
      values.set(key, JSON.stringify(yield* sortedTexts([...seen])));
    });
    const whole = JSON.stringify(yield* sortedTexts([...values].map((pair) => pair.join())));
    if (known.has(whole)) errors.push(duplicate(at, ''));
    known.add(whole);
  });
}

function* validateStorageClass(object: JsonObject, old?: JsonObject): Steps<readonly FieldError[]> {
  const checking = newValidation();
  const { errors } = checking;
  if (old === undefined) {
    errors.push(...nameErrors(textAt(object, 'provisioner'), 'provisioner'), ...parameterErrors(object));
    errors.push(
      ...oneOf(object, { name: 'reclaimPolicy', path: 'reclaimPolicy' }, ['Delete', 'Retain']),
      ...oneOf(object, { name: 'volumeBindingMode', path: 'volumeBindingMode' }, ['Immediate', 'WaitForFirstConsumer']),
    );
    yield* validateTopologies(checking, object);
    return errors;
  }
  yield* validateKept(checking, { object, old, fields: ['parameters', 'provisioner', 'reclaimPolicy'] });
  errors.push(...immutable({ object, old, path: 'volumeBindingMode' }));
  return errors;
}

export const STORAGE_VALIDATORS: GroupValidators = {
  storageclasses: validateStorageClass,
};
