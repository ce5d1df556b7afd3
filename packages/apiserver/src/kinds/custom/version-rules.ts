/** Rules of one version of a definition beside its schema: subresources, columns, selectable fields. */
import type { FieldError } from '@coracle/apimachinery/meta/status';
import { duplicate, invalid, required } from '@coracle/apimachinery/validation/field-errors';
import type { CrdColumn, CrdSubresources, RawSchema } from './crd.ts';
import { MAX_SELECTABLE_FIELDS } from './crd-tolerance.ts';
import { findFieldPath } from './field-path.ts';
import { typeText } from './structural-rules.ts';

const COLUMN_TYPES = ['boolean', 'date', 'integer', 'number', 'string'];
const COLUMN_FORMATS = ['byte', 'date', 'date-time', 'double', 'float', 'int32', 'int64', 'password'];

function simplePathErrors(path: string, field: string): FieldError[] {
  return path.startsWith('.') ? [] : [invalid(field, path, 'must be a simple json path starting with .')];
}

/** Errors of a printer column. */
export function columnErrors(column: CrdColumn, at: string): FieldError[] {
  const errors: FieldError[] = [];
  if (!column.name) errors.push(required(`${at}.name`));
  const types = `must be one of ${COLUMN_TYPES.join(',')}`;
  if (!column.type) errors.push(required(`${at}.type`, types));
  else if (!COLUMN_TYPES.includes(column.type)) errors.push(invalid(`${at}.type`, column.type, types));
  if (column.format && !COLUMN_FORMATS.includes(column.format)) {
    errors.push(invalid(`${at}.format`, column.format, `must be one of ${COLUMN_FORMATS.join(',')}`));
  }
  // The name of the field in the older versions of the API, which is the one upstream reports.
  if (!column.jsonPath) errors.push(required(`${at}.JSONPath`));
  else errors.push(...simplePathErrors(column.jsonPath, `${at}.JSONPath`));
  return errors;
}

/** Errors of the scale subresource's paths. */
export function subresourceErrors(subresources: CrdSubresources | undefined, at: string): FieldError[] {
  const scale = subresources?.scale;
  if (scale === undefined) return [];
  const errors: FieldError[] = [];
  const check = (name: string, path: string | undefined, roots: readonly string[], where: string): void => {
    const field = `${at}.scale.${name}`;
    if (!path) {
      if (name !== 'labelSelectorPath') errors.push(required(field));
      return;
    }
    const wrong = simplePathErrors(path, field);
    if (wrong.length === 0 && !roots.some((root) => path.startsWith(root))) {
      wrong.push(invalid(field, path, `should be a json path under ${where}`));
    }
    errors.push(...wrong);
  };
  check('specReplicasPath', scale.specReplicasPath, ['.spec.'], '.spec');
  check('statusReplicasPath', scale.statusReplicasPath, ['.status.'], '.status');
  check('labelSelectorPath', scale.labelSelectorPath, ['.spec.', '.status.'], 'either .spec or .status');
  return errors;
}

/** Errors of the fields that a selector may name. */
export function selectableFieldErrors(
  fields: readonly { readonly jsonPath: string }[],
  schema: RawSchema,
  { at, many }: { readonly at: string; readonly many: boolean },
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
  if (seen.size > MAX_SELECTABLE_FIELDS && !many) {
    errors.push({
      type: 'FieldValueTooMany',
      field: at,
      value: seen.size,
      detail: `must have at most ${MAX_SELECTABLE_FIELDS} items`,
    });
  }
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
