/**
 * Validation of one custom object: its schema, then its rules. On an update what was not touched is not validated anew
 * (ratcheting), so that a definition can become stricter while objects live.
 */

import { jsonKind } from '@coracle/apimachinery/meta/go-text';
import { isJsonObject } from '@coracle/apimachinery/meta/own-property';
import type { FieldError, FieldErrorType } from '@coracle/apimachinery/meta/status';
import { embeddedErrors, hasEmbedded } from '@coracle/apimachinery/schema/embedded-resource';
import type { Schema } from '@coracle/apimachinery/schema/schema';
import { validateSchema } from '@coracle/apimachinery/schema/validate';
import { valueAt } from '@coracle/apimachinery/types/read-value';
import type { ResourceStrategy } from '@coracle/apimachinery/types/strategy';
import { invalid } from '@coracle/apimachinery/validation/field-errors';
import { createRuleCheck } from './rules.ts';

/** Errors after which the values can not be trusted to have the types that rules were compiled for. */
const BLOCKING: ReadonlySet<FieldErrorType> = new Set<FieldErrorType>([
  'FieldValueNotSupported',
  'FieldValueRequired',
  'FieldValueTooLong',
  'FieldValueTooMany',
  'FieldValueTypeInvalid',
]);

/** A definition speaks of two fields of the metadata; all others are validated as metadata and by nothing else. */
const MISPLACED_METADATA = /^metadata\.(?!(?:name|generateName)$)/;

const isBlocking = ({ type }: FieldError): boolean => BLOCKING.has(type);

const NOT_CHECKED: FieldError = invalid(
  '<nil>',
  null,
  'some validation rules were not checked because the object was invalid; correct the existing errors to complete validation',
);

type JsonObject = Readonly<Record<string, unknown>>;

/** The check of one version; rules are compiled when an object first comes. */
export function createCustomValidation(
  schema: Schema,
  { scale }: { readonly scale: ScalePaths | undefined },
): NonNullable<ResourceStrategy['validateSchema']> {
  const checkRules = createRuleCheck(schema);
  const hasInside = hasEmbedded(schema);
  return (object, old, about = {}) => {
    const isStatus = about.subresource === 'status';
    const found = validateSchema(schema, object, { custom: true, ...(old !== undefined && { old }) });
    const reported = found.filter(({ field }) => !MISPLACED_METADATA.test(field));
    const errors = isStatus ? reported.map(seenFromStatus) : reported;
    if (scale !== undefined) errors.push(...scaleErrors(object, scale, isStatus));
    if (hasInside && !isStatus) {
      for (const error of embeddedErrors(object, schema, { path: '', whole: false })) errors.push(error);
    }
    if (checkRules === undefined) return errors;
    if (errors.some(isBlocking) || about.before?.some(isBlocking)) return [...errors, NOT_CHECKED];
    return [...errors, ...checkRules(object, old, about.warn)];
  };
}

/** A write of the status is validated by the status's schema alone: texts name fields from there. */
function seenFromStatus(error: FieldError): FieldError {
  const { field, detail = '' } = error;
  if (field === '<nil>') return { ...error, field: 'status', detail: detail.replace(/"status\.?/, '"') };
  if (!detail.startsWith(`${field} in body`)) return error;
  return { ...error, detail: detail.replace(/^status\.?/, '') };
}

export interface ScalePaths {
  readonly specReplicasPath: string;
  readonly statusReplicasPath: string;
  readonly labelSelectorPath?: string;
}

/** What the scale subresource could not show. */
function scaleErrors(object: JsonObject, scale: ScalePaths, isStatus: boolean): FieldError[] {
  const errors = isStatus ? [] : replicaErrors(object, scale.specReplicasPath);
  errors.push(...replicaErrors(object, scale.statusReplicasPath));
  const selector = scale.labelSelectorPath;
  if (selector !== undefined) {
    const problem = accessorProblem(object, selector, 'string');
    if (problem !== undefined) errors.push(invalid(selector, '', problem));
  }
  return errors;
}

function replicaErrors(object: JsonObject, path: string): FieldError[] {
  const wrong = (value: unknown, detail: string): FieldError[] => [invalid(path, value, detail)];
  const problem = accessorProblem(object, path, 'integer');
  if (problem !== undefined) return wrong(0, problem);
  const count = valueAt(object, ...stepsOf(path)) ?? 0;
  // What a double cannot hold is a bigint here (`wideIntegers`), and no count of replicas either way.
  if ((typeof count !== 'number' && typeof count !== 'bigint') || count === 0) return [];
  if (count < 0) return wrong(count, 'should be a non-negative integer');
  return count > 2 ** 31 - 1 ? wrong(count, `should be less than or equal to ${2 ** 31 - 1}`) : [];
}

const stepsOf = (path: string): string[] => path.replace(/^\./, '').split('.');

/** Why the value at a path can not be had as a `wanted`; undefined when it can. */
function accessorProblem(object: JsonObject, path: string, wanted: 'integer' | 'string'): string | undefined {
  const steps = stepsOf(path);
  let at: unknown = object;
  for (const [i, step] of steps.entries()) {
    if (at === null || at === undefined) return undefined;
    if (!isJsonObject(at)) return `.${steps.slice(0, i).join('.')}: expected map, got ${jsonKind(at)}`;
    if (!Object.hasOwn(at, step)) return undefined;
    at = at[step];
  }
  const fits = wanted === 'string' ? typeof at === 'string' : typeof at === 'bigint' || Number.isInteger(at);
  return fits ? undefined : `.${steps.join('.')}: expected ${wanted}, got ${at === null ? 'null' : jsonKind(at)}`;
}
