/** Rules of one version of a definition beside its schema and `definition-rules.json`: selectable fields, the root of a schema with a status. */
import type { FieldError } from '@coracle/apimachinery/meta/status';
import { duplicate, invalid, required, tooMany } from '@coracle/apimachinery/validation/field-errors';
import type { RawSchema } from './crd.ts';
import { findFieldPath } from './field-path.ts';
import { typeText } from './structural-rules.ts';

const MAX_SELECTABLE_FIELDS = 8;

/** Errors of the fields that a selector may name. */
export function selectableFieldErrors(
  fields: readonly { readonly jsonPath: string }[],
  schema: RawSchema,
  at: string,
): FieldError[] {
  const errors: FieldError[] = [];
  const seen = new Set<string>();
  for (const [i, { jsonPath }] of fields.entries()) {
    const field = `${at}[${i}].jsonPath`;
    if (!jsonPath) {
      errors.push(required(field));
      continue;
    }
    const found = findFieldPath(schema, jsonPath, { allowBrackets: false });
    if ('problem' in found) {
      errors.push(invalid(field, jsonPath, `is an invalid path: ${found.problem}`));
      continue;
    }
    if (found.steps[0] === 'metadata') errors.push(invalid(field, jsonPath, 'must not point to fields in metadata'));
    if (!['string', 'boolean', 'integer'].includes(typeText(found.schema))) {
      const detail =
        'must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.';
      errors.push(invalid(field, jsonPath, detail));
    }
    if (seen.has(found.path)) errors.push(duplicate(field, jsonPath));
    seen.add(found.path);
  }
  if (seen.size > MAX_SELECTABLE_FIELDS) errors.push(tooMany(at, seen.size, MAX_SELECTABLE_FIELDS));
  return errors;
}

/** Keywords of a root whose status may be looked at alone. */
const ALLOWED_AT_ROOT = (
  'description type format title maximum exclusiveMaximum minimum exclusiveMinimum maxLength minLength pattern maxItems ' +
  'minItems uniqueItems multipleOf required items properties externalDocs example x-kubernetes-preserve-unknown-fields ' +
  'x-kubernetes-validations'
).split(' ');

/** With a status subresource, the root may only say what is not lost when status is looked at alone. */
export function rootKeywordErrors(schema: RawSchema, path: string): FieldError[] {
  const said = Object.keys(schema).filter((key) => ![undefined, null, '', false].includes(schema[key] as null));
  if (said.includes('type') && schema['type'] !== 'object') {
    const detail =
      'only "object" is allowed as the type at the root of the schema if the status subresource is enabled';
    return [invalid(`${path}.type`, schema['type'], detail)];
  }
  const others = said.filter((key) => !ALLOWED_AT_ROOT.includes(key));
  if (others.length === 0) return [];
  const detail = `only [${ALLOWED_AT_ROOT.join(' ')}] fields are allowed at the root of the schema if the status subresource is enabled`;
  return [invalid(path, others, detail)];
}
