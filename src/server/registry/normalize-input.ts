/** From a decoded document to an object of its kind: unknown fields out, nulls out, defaults in. */
import type { ResourceInfo } from '../../api/kinds/resource.ts';
import type { ObjectMeta, UnstructuredObject } from '../../api/meta/object.ts';
import { type FieldError, invalid } from '../../api/meta/status.ts';
import type { Steps } from '../../api/meta/steps.ts';
import { validateObjectMeta } from '../../api/meta/validate-object-meta.ts';
import { applyDefaults, dropNulls } from '../../api/schema/defaults.ts';
import { pruneUnknown } from '../../api/schema/prune.ts';
import { validateSchema } from '../../api/schema/validate.ts';

interface NormalizeOptions {
  readonly dropStatus?: boolean;
  readonly withoutDefaults?: boolean;
}

/**
 * Normalises `object` in place and returns the paths of fields that its kind does not have. Order matters for custom
 * resources: prune, drop nulls of non-nullable fields, default.
 */
export function normalizeInput(
  info: ResourceInfo,
  object: UnstructuredObject,
  options: NormalizeOptions = {},
): string[] {
  const custom = info.strategy.custom;
  const unknown = pruneUnknown(info.schema, object, { custom });
  dropNulls(info.schema, object, { custom });
  complete(info, object, options);
  return unknown;
}

/** The same in steps, for large objects. */
export function* normalizeSteps(
  info: ResourceInfo,
  object: UnstructuredObject,
  options: NormalizeOptions = {},
): Steps<string[]> {
  const custom = info.strategy.custom;
  const unknown = pruneUnknown(info.schema, object, { custom });
  yield;
  dropNulls(info.schema, object, { custom });
  yield;
  complete(info, object, options);
  return unknown;
}

function complete(info: ResourceInfo, object: UnstructuredObject, options: NormalizeOptions): void {
  if (typeof object.metadata !== 'object' || object.metadata === null) object.metadata = {};
  if (options.dropStatus) delete object['status'];
  if (!options.withoutDefaults) applyKindDefaults(info, object);
}

/** Schema defaults, then the kind's own. Safe to repeat. */
export function applyKindDefaults(info: ResourceInfo, object: UnstructuredObject): void {
  applyDefaults(info.schema, object);
  info.setDefaults?.(object);
  dropEmptyMetadata(object.metadata);
}

/** Empty lists and maps of metadata are not shown. `managedFields: []` is no state but a wish: it is left to tracking. */
function dropEmptyMetadata(metadata: ObjectMeta): void {
  if (isEmpty(metadata.labels)) delete metadata.labels;
  if (isEmpty(metadata.annotations)) delete metadata.annotations;
  if (metadata.finalizers?.length === 0) delete metadata.finalizers;
  if (metadata.ownerReferences?.length === 0) delete metadata.ownerReferences;
}

function isEmpty(map: object | undefined): boolean {
  if (map === undefined) return false;
  for (const key in map) if (Object.hasOwn(map, key)) return false;
  return true;
}

/** Throws ApiError 422 with one cause per wrong field. */
export function validateObject(
  info: ResourceInfo,
  object: UnstructuredObject,
  old?: Readonly<UnstructuredObject>,
  more: readonly FieldError[] = [],
): void {
  const errors: FieldError[] = [
    ...more,
    ...typeMetaErrors(info, object),
    ...metadataErrors(info, object),
    ...schemaErrors(info, object, old),
    ...(info.validate?.(object, old) ?? []),
  ];
  if (errors.length > 0) throw invalid(info, object.metadata.name ?? '', errors);
}

/** The same in steps, for large objects. */
export function* validateSteps(
  info: ResourceInfo,
  object: UnstructuredObject,
  old?: Readonly<UnstructuredObject>,
  more: readonly FieldError[] = [],
): Steps<void> {
  const found = [more, typeMetaErrors(info, object), metadataErrors(info, object)];
  yield;
  found.push(schemaErrors(info, object, old));
  yield;
  found.push(info.validate?.(object, old) ?? []);
  yield;
  const errors = found.flat();
  if (errors.length > 0) throw invalid(info, object.metadata.name ?? '', errors);
}

const metadataErrors = (info: ResourceInfo, object: UnstructuredObject): FieldError[] =>
  validateObjectMeta(object.metadata, {
    namespaced: info.namespaced,
    names: info.strategy.names,
    // The two API servers beside kube-apiserver's own have never asked for qualified finalizers.
    custom: info.strategy.custom || info.group === 'apiextensions.k8s.io' || info.group === 'apiregistration.k8s.io',
  });

const schemaErrors = (
  info: ResourceInfo,
  object: UnstructuredObject,
  old: Readonly<UnstructuredObject> | undefined,
): readonly FieldError[] =>
  info.validateSchema?.(object, old) ?? validateSchema(info.schema, object, { custom: info.strategy.custom });

/** Custom resources learn of a wrong kind from validation; built-in kinds fail to decode before they come here. */
function typeMetaErrors(info: ResourceInfo, object: UnstructuredObject): FieldError[] {
  if (object.kind === info.kind) return [];
  return [{ type: 'FieldValueInvalid', field: 'kind', value: object.kind, detail: `must be ${info.kind}` }];
}
