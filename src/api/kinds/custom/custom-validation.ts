/**
 * Validation of one custom object: its schema, then its rules. On an update what was not touched is not judged anew
 * (ratcheting), so that a definition can become stricter while objects live.
 */
import { isJsonObject } from '../../meta/own-property.ts';
import type { FieldError, FieldErrorType } from '../../meta/status.ts';
import type { Schema } from '../../schema/schema.ts';
import { validateSchema } from '../../schema/validate.ts';
import type { ResourceInfo } from '../resource.ts';
import { createRuleCheck } from './rules.ts';

/** Errors after which the values can not be trusted to have the types that rules were compiled for. */
const BLOCKING: ReadonlySet<FieldErrorType> = new Set<FieldErrorType>([
  'FieldValueRequired',
  'FieldValueTooLong',
  'FieldValueTooMany',
  'FieldValueTypeInvalid',
]);

const NOT_CHECKED: FieldError = {
  type: 'FieldValueInvalid',
  field: '<nil>',
  value: null,
  detail:
    'some validation rules were not checked because the object was invalid; correct the existing errors to complete validation',
};

/** The check of one version; rules are compiled when an object first comes. */
export function createCustomValidation(
  schema: Schema,
  { scale }: { readonly scale: { readonly specReplicasPath: string } | undefined },
): NonNullable<ResourceInfo['validateSchema']> {
  const checkRules = createRuleCheck(schema);
  return (object, old) => {
    const errors = validateSchema(schema, object, { custom: true, ...(old !== undefined && { old }) });
    if (scale !== undefined) errors.push(...scaleErrors(object, scale.specReplicasPath));
    if (checkRules === undefined) return errors;
    if (errors.some(({ type }) => BLOCKING.has(type))) return [...errors, NOT_CHECKED];
    return [...errors, ...checkRules(object, old)];
  };
}

/** Replica counts that the scale subresource could not show. */
function scaleErrors(object: Readonly<Record<string, unknown>>, path: string): FieldError[] {
  let at: unknown = object;
  for (const part of path.split('.').filter((step) => step !== '')) at = isJsonObject(at) ? at[part] : undefined;
  if (typeof at !== 'number') return [];
  const field = path.slice(1);
  const wrong = (detail: string): FieldError[] => [{ type: 'FieldValueInvalid', field, value: at, detail }];
  if (at < 0) return wrong('should be a non-negative integer');
  return at > 2 ** 31 - 1 ? wrong(`should be less than or equal to ${2 ** 31 - 1}`) : [];
}
