/** What becomes of an object that a webhook or policy has changed: decoded, pruned and defaulted as its kind wants it. */
import type { ResourceInfo } from '../../../api/kinds/resource.ts';
import { deepEqual } from '../../../api/meta/deep-equal.ts';
import { apiVersionOf } from '../../../api/meta/gvk.ts';
import type { UnstructuredObject } from '../../../api/meta/object.ts';
import { isJsonObject } from '../../../api/meta/own-property.ts';
import { internalError } from '../../../api/meta/status.ts';
import { applyDefaults, dropNulls } from '../../../api/schema/defaults.ts';
import { dropEmpty } from '../../../api/schema/drop-empty.ts';
import { pruneUnknown } from '../../../api/schema/prune.ts';
import { decodeErrors } from '../../../api/schema/validate.ts';
import type { AdmissionAttributes } from '../plugin.ts';

/**
 * Makes the object decodable again, in place: unknown fields out (they are returned), nulls out, defaults in. Objects of
 * a subresource's own kind are left as they are. Throws ApiError 500 when its kind cannot hold it.
 */
export function normalizeMutated(info: ResourceInfo, object: UnstructuredObject): readonly string[] {
  if (object.apiVersion !== apiVersionOf(info) || object.kind !== info.kind) return [];
  const { custom } = info.strategy;
  if (!isJsonObject(object.metadata)) object.metadata = {};
  const undecodable = decodeErrors(info.schema, object, info);
  if (undecodable !== undefined) throw internalError(undecodable);
  const unknown = pruneUnknown(info.schema, object, { custom });
  dropNulls(info.schema, object, { custom });
  if (!custom) dropEmpty(info.schema, object);
  applyDefaults(info.schema, object);
  info.setDefaults?.(object);
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
  const { managedFields } = next.metadata as { managedFields?: unknown };
  const known = before.metadata.managedFields;
  if (deepEqual(managedFields, known)) return;
  const problem = managedFieldsProblem(managedFields);
  if (problem === undefined) return;
  if (known === undefined) delete next.metadata.managedFields;
  else next.metadata.managedFields = known;
  attributes.warn(
    `.metadata.managedFields was in an invalid state after admission; this could be caused by an outdated mutating admission controller; please fix your requests: ${problem}`,
  );
}

function managedFieldsProblem(value: unknown): string | undefined {
  if (value === undefined) return undefined;
  if (!Array.isArray(value)) return 'managedFields must be a list';
  for (const [i, entry] of value.entries()) {
    if (!isJsonObject(entry)) return `managedFields[${i}] must be an object`;
    const { operation, fieldsType, fieldsV1 } = entry;
    if (operation !== 'Apply' && operation !== 'Update') return `invalid operation type \`${String(operation ?? '')}\``;
    if (fieldsType !== 'FieldsV1') return `invalid fieldsType \`${String(fieldsType ?? '')}\``;
    if (fieldsV1 !== undefined && !isJsonObject(fieldsV1)) return `managedFields[${i}].fieldsV1 must be an object`;
  }
  return undefined;
}
