/** Validation of StorageClasses. */

import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import { byteLength, checkQualifiedName } from '@coracle/apimachinery/meta/name-rules';
import type { FieldError } from '@coracle/apimachinery/meta/status';
import { type JsonObject, objectAt, objectsAt, textAt, textsAt, valueAt } from '@coracle/apimachinery/types/read-value';
import {
  duplicate,
  faults,
  forbidden,
  immutable,
  invalid,
  oneOf,
  required,
  requiredText,
  tooLong,
  validateEach,
  validateNested,
} from '@coracle/apimachinery/validation/field-errors';

/** Fields whose change is forbidden in these words. */
function validateKept(
  errors: FieldError[],
  { object, old, fields }: { object: JsonObject; old: JsonObject; fields: readonly string[] },
): void {
  for (const field of fields) {
    const same = deepEqual(valueAt(object, field), valueAt(old, field));
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
function validateTopologies(errors: FieldError[], object: JsonObject): void {
  const known = new Set<string>();
  validateNested(errors, objectsAt(object, 'allowedTopologies'), (term, i) => {
    const at = `allowedTopologies[${i}].matchLabelExpressions`;
    const values = new Map<string, string>();
    validateNested(errors, objectsAt(term, 'matchLabelExpressions'), (one, j) => {
      const key = textAt(one, 'key');
      const listed = textsAt(one, 'values');
      const seen = new Set<string>();
      if (listed.length === 0) errors.push(required(`${at}[${j}].values`));
      validateEach(errors, listed, (value, k) => {
        const isTwice = seen.has(value);
        seen.add(value);
        return isTwice ? [duplicate(`${at}[${j}].values[${k}]`, value)] : [];
      });
      errors.push(...faults(`${at}[${j}].key`, key, checkQualifiedName(key)));
      if (values.has(key)) errors.push(duplicate(`${at}[${j}].key`, key));
      values.set(key, JSON.stringify([...seen].sort()));
    });
    const whole = JSON.stringify([...values].map((pair) => pair.join()).sort());
    if (known.has(whole)) errors.push(duplicate(at, ''));
    known.add(whole);
  });
}

export function validateStorageClass(object: JsonObject, old?: JsonObject): readonly FieldError[] {
  const errors: FieldError[] = [];
  if (old === undefined) {
    errors.push(...nameErrors(textAt(object, 'provisioner'), 'provisioner'), ...parameterErrors(object));
    errors.push(
      ...oneOf(object, { name: 'reclaimPolicy', path: 'reclaimPolicy' }, ['Delete', 'Retain']),
      ...oneOf(object, { name: 'volumeBindingMode', path: 'volumeBindingMode' }, ['Immediate', 'WaitForFirstConsumer']),
    );
    validateTopologies(errors, object);
    return errors;
  }
  validateKept(errors, { object, old, fields: ['parameters', 'provisioner', 'reclaimPolicy'] });
  errors.push(...immutable({ object, old, path: 'volumeBindingMode' }));
  return errors;
}
