import { parseApiVersion } from './gvk.ts';
import {
  byteLength,
  checkLabelName,
  checkLabelValue,
  checkName,
  checkQualifiedName,
  type NameRule,
} from './name-rules.ts';
import type { ManagedFieldsEntry, ObjectMeta, OwnerReference } from './object.ts';
import type { FieldError } from './status.ts';

/** Keys and values of all annotations together, in bytes. */
export const ANNOTATIONS_LIMIT = 256 * 1024;

const isPrintable = (text: string): boolean => /^[\p{L}\p{M}\p{N}\p{P}\p{S} ]*$/u.test(text);

interface MetaOptions {
  readonly namespaced: boolean;
  readonly names: NameRule;
  readonly custom?: boolean;
}

/**
 * The rules every object's metadata obeys after names were generated (apimachinery's ValidateObjectMeta). The shapes of
 * the fields are taken as checked already.
 */
export function validateObjectMeta(meta: Readonly<ObjectMeta>, options: MetaOptions): FieldError[] {
  const errors: FieldError[] = [];
  const invalid = invalidIn(errors);
  if (meta.generateName) {
    for (const text of checkName(meta.generateName, options.names, { prefix: true })) {
      invalid('metadata.generateName', meta.generateName, text);
    }
  }
  if (!meta.name) {
    errors.push({ type: 'FieldValueRequired', field: 'metadata.name', detail: 'name or generateName is required' });
  } else {
    for (const text of checkName(meta.name, options.names)) invalid('metadata.name', meta.name, text);
  }
  if (options.namespaced) {
    if (!meta.namespace) errors.push({ type: 'FieldValueRequired', field: 'metadata.namespace' });
    else for (const text of checkLabelName(meta.namespace)) invalid('metadata.namespace', meta.namespace, text);
  } else if (meta.namespace) {
    errors.push({ type: 'FieldValueForbidden', field: 'metadata.namespace', detail: 'not allowed on this type' });
  }
  if (meta.generation !== undefined && meta.generation < 0) {
    invalid('metadata.generation', meta.generation, 'must be greater than or equal to 0');
  }
  if (meta.labels) validateLabels(meta.labels, 'metadata.labels', errors);
  if (meta.annotations) checkAnnotations(meta.annotations, 'metadata.annotations', errors);
  if (meta.ownerReferences) ownerErrors(meta.ownerReferences, errors);
  if (meta.finalizers) finalizerErrors(meta.finalizers, errors);
  // Custom resources are warned instead.
  if (options.custom === false) {
    for (const value of unqualifiedFinalizers(meta)) invalid('metadata.finalizers', value, UNQUALIFIED_FINALIZER);
  }
  if (meta.managedFields) managedFieldsMistakes(meta.managedFields, errors);
  return errors;
}

/** Adds to one list: spread as arguments, some hundred thousand mistakes would not fit on the stack. */
const invalidIn =
  (errors: FieldError[]) =>
  (field: string, value: unknown, detail: string): void => {
    errors.push({ type: 'FieldValueInvalid', field, value, detail });
  };

/** Label keys and values; `field` is the path of the map. */
function validateLabels(labels: Readonly<Record<string, string>>, field: string, errors: FieldError[]): void {
  const invalid = invalidIn(errors);
  for (const key of Object.keys(labels)) {
    const value = labels[key]!;
    for (const detail of checkQualifiedName(key)) invalid(field, key, detail);
    for (const detail of checkLabelValue(value)) invalid(field, value, detail);
  }
}

/** Adds what is wrong with annotations, one by one: keys (case does not matter) and the total size. */
function checkAnnotations(annotations: Readonly<Record<string, string>>, field: string, errors: FieldError[]): void {
  const invalid = invalidIn(errors);
  let bytes = 0;
  for (const key of Object.keys(annotations)) {
    const value = annotations[key]!;
    bytes += byteLength(key) + byteLength(value);
    for (const detail of checkQualifiedName(key.toLowerCase())) invalid(field, key, detail);
  }
  if (bytes > ANNOTATIONS_LIMIT) {
    errors.push({ type: 'FieldValueTooLong', field, detail: `may not be more than ${ANNOTATIONS_LIMIT} bytes` });
  }
}

function ownerErrors(owners: readonly OwnerReference[], errors: FieldError[]): void {
  const field = 'metadata.ownerReferences';
  const invalid = invalidIn(errors);
  let controller = '';
  for (const owner of owners) {
    const { group, version } = parseApiVersion(owner.apiVersion ?? '');
    if (version === '' || version.includes('/'))
      invalid(`${field}.apiVersion`, owner.apiVersion ?? '', 'version must not be empty');
    for (const key of ['kind', 'name', 'uid'] as const) {
      if (!owner[key]) invalid(`${field}.${key}`, owner[key] ?? '', 'must not be empty');
    }
    if (group === '' && version === 'v1' && owner.kind === 'Event') {
      invalid(field, owner, '/v1, Kind=Event is disallowed from being an owner');
    }
    if (!owner.controller) continue;
    const current = `${owner.kind}/${owner.name}`;
    if (controller === '') controller = current;
    else {
      const detail = `Only one reference can have Controller set to true. Found "true" in references for ${controller} and ${current}`;
      invalid(field, owners, detail);
    }
  }
}

const STANDARD_FINALIZERS = new Set(['kubernetes', 'orphan', 'foregroundDeletion']);
export const UNQUALIFIED_FINALIZER = 'name is neither a standard finalizer name nor is it fully qualified';

/** True for a finalizer without a domain that is none of the standard ones. */
export const isUnqualifiedFinalizer = (name: string): boolean =>
  !name.includes('/') && !STANDARD_FINALIZERS.has(name) && checkQualifiedName(name).length === 0;

/** Finalizers without a domain, which two writers may come to share by accident. */
export const unqualifiedFinalizers = (meta: Readonly<ObjectMeta>): string[] =>
  (meta.finalizers ?? []).filter(isUnqualifiedFinalizer);

function finalizerErrors(finalizers: readonly string[], errors: FieldError[]): void {
  const field = 'metadata.finalizers';
  const invalid = invalidIn(errors);
  for (const value of finalizers) for (const detail of checkQualifiedName(value)) invalid(field, value, detail);
  if (finalizers.includes('orphan') && finalizers.includes('foregroundDeletion')) {
    invalid(field, finalizers, 'finalizer orphan and foregroundDeletion cannot be both set');
  }
}

/** What is wrong with entries of `metadata.managedFields`, each by itself. What is found is added to `errors`. */
export function managedFieldsMistakes(
  entries: readonly ManagedFieldsEntry[],
  errors: FieldError[] = [],
): readonly FieldError[] {
  const invalid = invalidIn(errors);
  for (const [i, entry] of entries.entries()) {
    const field = `metadata.managedFields[${i}]`;
    if (entry.operation !== 'Apply' && entry.operation !== 'Update') {
      invalid(`${field}.operation`, entry.operation ?? '', 'must be `Apply` or `Update`');
    }
    if (entry.fieldsType && entry.fieldsType !== 'FieldsV1') {
      invalid(`${field}.fieldsType`, entry.fieldsType, 'must be `FieldsV1`');
    }
    for (const error of validateFieldManager(entry.manager ?? '', `${field}.manager`)) errors.push(error);
    if (entry.subresource && entry.subresource.length > 256) {
      const detail = 'may not be more than 256 bytes';
      errors.push({ type: 'FieldValueTooLong', field: `${field}.subresource`, detail });
    }
  }
  return errors;
}

/** Wrong characters of one name that are reported: an answer tells no more mistakes, and a name may have a million. */
const MOST_CHARACTERS = 1000;

/** A manager name: at most 128 bytes, printable. */
export function validateFieldManager(manager: string, field: string): FieldError[] {
  const errors: FieldError[] = [];
  if (byteLength(manager) > 128) {
    errors.push({ type: 'FieldValueTooLong', field, detail: 'may not be more than 128 bytes' });
  }
  if (isPrintable(manager)) return errors;
  let position = 0;
  for (const char of manager) {
    if (errors.length > MOST_CHARACTERS) break;
    if (!isPrintable(char)) {
      const number = char.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0');
      const detail = `invalid character U+${number} (at position ${position})`;
      errors.push({ type: 'FieldValueInvalid', field, value: manager, detail });
    }
    position += byteLength(char);
  }
  return errors;
}
