/** What becomes of an object that a webhook or policy has changed: decoded, pruned and defaulted as its kind wants it. */

import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import type { ManagedFieldsEntry, UnstructuredObject } from '@coracle/apimachinery/meta/object';
import { isJsonObject } from '@coracle/apimachinery/meta/own-property';
import { fieldErrorBody, internalError } from '@coracle/apimachinery/meta/status';
import { managedFieldsMistakes } from '@coracle/apimachinery/meta/validate-object-meta';
import { decodeProblem } from '@coracle/apimachinery/schema/decode-errors';
import { applyDefaults, dropNulls } from '@coracle/apimachinery/schema/defaults';
import { dropEmpty } from '@coracle/apimachinery/schema/drop-empty';
import { pruneUnknown } from '@coracle/apimachinery/schema/prune';
import type { ResourceInfo } from '@coracle/apimachinery/types/resource';
import type { AdmissionAttributes } from '../plugin.ts';

/**
 * Makes the object decodable again as one of `info`, in place: unknown fields out (they are returned), nulls out, defaults
 * in. Throws ApiError 500 when its kind cannot hold it.
 */
export function normalizeMutated(info: ResourceInfo, object: UnstructuredObject): readonly string[] {
  const { custom } = info.strategy;
  // The options of a connection have no metadata.
  const hasMetadata = custom || info.schema.properties?.['metadata'] !== undefined;
  if (hasMetadata && !isJsonObject(object.metadata)) object.metadata = {};
  // Of a custom resource the types are validated with the rest of it.
  const undecodable = decodeProblem(info.decodeSchema ?? info.schema, object);
  if (undecodable !== undefined) throw internalError(undecodable);
  const unknown = pruneUnknown(info.schema, object, { custom });
  dropNulls(info.schema, object, { custom });
  if (!custom) dropEmpty(info.schema, object);
  applyDefaults(info.schema, object);
  info.strategy.setDefaults?.(object);
  return unknown;
}

/** Puts `next` into the attributes' object, which others hold on to. */
export function replaceObject(attributes: AdmissionAttributes, next: UnstructuredObject): void {
  const object = attributes.object!;
  keepManagedFields(attributes, object, next);
  for (const key of Object.keys(object)) delete object[key];
  Object.assign(object, next);
}

/** Ownership that admission has damaged is put back, with a word to the client. */
function keepManagedFields(
  attributes: AdmissionAttributes,
  before: UnstructuredObject,
  next: UnstructuredObject,
): void {
  // The options of a connection have no metadata.
  if (!isJsonObject(next.metadata)) return;
  const { managedFields } = next.metadata as { managedFields?: unknown };
  const known = before.metadata?.managedFields;
  if (deepEqual(managedFields, known)) return;
  const problem = managedFieldsProblem(managedFields);
  if (problem === undefined) return;
  if (known === undefined) delete next.metadata.managedFields;
  else next.metadata.managedFields = known;
  attributes.warn(
    `.metadata.managedFields was in an invalid state after admission; this could be caused by an outdated mutating admission controller; please fix your requests: ${problem}`,
  );
}

/** Validated one by one first, then as they are decoded (managedfields.ValidateManagedFields). */
function managedFieldsProblem(value: unknown): string | undefined {
  if (value === undefined) return undefined;
  if (!Array.isArray(value) || !value.every(isJsonObject)) return 'managedFields must be a list of objects';
  const entries = value as readonly ManagedFieldsEntry[];
  const mistakes = managedFieldsMistakes(entries).map((error) => `${error.field}: ${fieldErrorBody(error)}`);
  if (mistakes.length > 0) return mistakes.length === 1 ? mistakes[0] : `[${mistakes.join(', ')}]`;
  for (const [i, { apiVersion, fieldsType, fieldsV1 }] of entries.entries()) {
    if (!apiVersion) return 'apiVersion must not be empty';
    if (!fieldsType) return `missing fieldsType in managed fields entry ${i}`;
    if (fieldsV1 !== undefined && !isJsonObject(fieldsV1)) return `managedFields[${i}].fieldsV1 must be an object`;
  }
  return undefined;
}
