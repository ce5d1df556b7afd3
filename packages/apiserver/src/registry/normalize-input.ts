/** From a decoded document to an object of its kind: unknown fields out, nulls out, defaults in. */

import type { ObjectMeta, UnstructuredObject } from '@coracle/apimachinery/meta/object';
import { type FieldError, invalid } from '@coracle/apimachinery/meta/status';
import { validateObjectMeta } from '@coracle/apimachinery/meta/validate-object-meta';
import { applyDefaults, dropNulls } from '@coracle/apimachinery/schema/defaults';
import { dropEmpty } from '@coracle/apimachinery/schema/drop-empty';
import { pruneUnknown } from '@coracle/apimachinery/schema/prune';
import { validateSchema } from '@coracle/apimachinery/schema/validate';
import type { ResourceInfo } from '@coracle/apimachinery/types/resource';
import { updateStrategyOf, type ValidationAbout } from '@coracle/apimachinery/types/strategy';
import { invalid as invalidField } from '@coracle/apimachinery/validation/field-errors';

interface NormalizeOptions {
  readonly dropStatus?: boolean;
  readonly withoutDefaults?: boolean;
  /** An applied configuration speaks of what it sets to null. */
  readonly keepNulls?: boolean;
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
  if (!options.keepNulls) dropNulls(info.schema, object, { custom });
  if (typeof object.metadata !== 'object' || object.metadata === null) object.metadata = {};
  if (options.dropStatus) delete object['status'];
  if (!options.withoutDefaults) applyKindDefaults(info, object);
  return unknown;
}

/**
 * Schema defaults, then the kind's own. To Go an empty field of a built-in kind that it would leave out is one that nobody
 * has set: `dnsPolicy: ''` asks for the default. Safe to repeat.
 */
export function applyKindDefaults(info: ResourceInfo, object: UnstructuredObject): void {
  if (!info.strategy.custom) dropEmpty(info.schema, object);
  applyDefaults(info.schema, object);
  info.strategy.setDefaults?.(object);
  dropEmptyMetadata(info, object.metadata);
}

/**
 * Empty lists and maps of metadata are not shown. `managedFields: []` is no state but a request, which is left to tracking;
 * of a custom kind nobody hears it, because its metadata is written out and read again before anybody looks.
 */
export function dropEmptyMetadata({ strategy }: ResourceInfo, metadata: ObjectMeta): void {
  if (strategy.custom && metadata.managedFields?.length === 0) delete metadata.managedFields;
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

/** What a write knows about itself; `more` are mistakes found before. */
interface ObjectValidation extends ValidationAbout {
  readonly more?: readonly FieldError[];
}

/** Throws ApiError 422 with one cause per wrong field. */
export function validateObject(
  info: ResourceInfo,
  object: UnstructuredObject,
  old?: Readonly<UnstructuredObject>,
  about: ObjectValidation = {},
): void {
  const { group, namespaced, schema, strategy } = info;
  const { more = [], subresource = '' } = about;
  const { kind, metadata } = object;
  const { name = '' } = metadata;
  // Of an object of another kind nothing else is said, and it goes by its own name. Custom resources learn of it here;
  // built-in kinds fail to decode before.
  if (kind !== info.kind)
    throw invalid({ group, kind }, name, [...more, invalidField('kind', kind, `must be ${info.kind}`)]);
  const metaErrors = validateObjectMeta(metadata, {
    namespaced,
    names: strategy.names,
    // The two API servers beside kube-apiserver's own have never asked for qualified finalizers.
    custom: strategy.server === 'extension',
  });
  const asked =
    strategy.validateSchema?.(object, old, { ...about, before: metaErrors }) ??
    validateSchema(schema, object, { custom: strategy.custom });
  const ruled =
    (old === undefined
      ? strategy.validate?.(object)
      : updateStrategyOf(strategy, subresource).validateUpdate?.(object, old)) ?? [];
  const errors: FieldError[] = [...more, ...metaErrors, ...unreported(info, asked, ruled), ...ruled];
  if (errors.length > 0) throw invalid(info, name, errors);
}

/**
 * What the schema of a built-in kind misses and the rules of the kind do not tell of: theirs are upstream's words, and
 * its types ask for nothing by themselves.
 */
function unreported(
  info: ResourceInfo,
  asked: readonly FieldError[],
  ruled: readonly FieldError[],
): readonly FieldError[] {
  if (info.strategy.custom || ruled.length === 0 || !asked.some(isMissing)) return asked;
  const reported = new Set<string>();
  for (const { field } of ruled.slice(0, MOST_REPORTED)) {
    for (
      let end = field.length;
      end > 0;
      end = Math.max(field.lastIndexOf('.', end - 1), field.lastIndexOf('[', end - 1))
    ) {
      reported.add(field.slice(0, end));
    }
  }
  return asked.filter((error) => !(isMissing(error) && reported.has(error.field)));
}

/** An answer shows no more mistakes than these. */
const MOST_REPORTED = 1000;
const isMissing = ({ type }: FieldError): boolean => type === 'FieldValueRequired';
