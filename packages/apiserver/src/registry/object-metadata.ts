/** The metadata that belongs to the server: set on create, kept on update, never taken from a client. */

import { formatTime, type ObjectMeta, type UnstructuredObject } from '@coracle/apimachinery/meta/object';
import { badRequest, type FieldError, invalid } from '@coracle/apimachinery/meta/status';
import { stableText } from '@coracle/apimachinery/schema/list-types';
import type { ResourceInfo } from '@coracle/apimachinery/types/resource';
import { forbidden, invalid as invalidField } from '@coracle/apimachinery/validation/field-errors';

/**
 * Removes what a client may not set on create (rest.WipeObjectMetaSystemFields). Upstream forgets the end of an object in
 * the handler of POST, which an apply does not pass.
 */
export function wipeSystemMetadata(
  metadata: ObjectMeta,
  { applied = false }: { readonly applied?: boolean } = {},
): void {
  delete metadata.uid;
  delete metadata.creationTimestamp;
  if (!applied) {
    delete metadata.deletionTimestamp;
    delete metadata.deletionGracePeriodSeconds;
  }
  delete metadata.managedFields;
  delete (metadata as { selfLink?: string }).selfLink;
}

/** Fills uid, creationTimestamp and the first generation. An object that tries another name keeps its uid. */
export function fillSystemMetadata(info: ResourceInfo, metadata: ObjectMeta, now: number): void {
  metadata.uid ??= crypto.randomUUID();
  metadata.creationTimestamp = formatTime(now);
  if (info.strategy.generation !== 'none') metadata.generation = 1;
}

/** A kind that does not count its generations keeps the one it was sent. Throws ApiError 422 when that is below zero. */
export function checkGeneration(info: ResourceInfo, { name = '', generation }: ObjectMeta): void {
  if (generation === undefined || generation >= 0) return;
  throw invalid(info, name, [invalidField('metadata.generation', generation, 'must be greater than or equal to 0')]);
}

const KEPT = ['uid', 'creationTimestamp', 'deletionTimestamp', 'deletionGracePeriodSeconds', 'generation'] as const;

/**
 * What an update may not say of the metadata that the server keeps: another uid, or that an object is being deleted
 * which is not (ValidateObjectMetaAccessorUpdate, after rest.BeforeUpdate has put back what it puts back silently).
 */
export function systemMetadataErrors(metadata: Readonly<ObjectMeta>, old: Readonly<ObjectMeta>): FieldError[] {
  const immutable = [
    ...(metadata.uid ? (['uid'] as const) : []),
    ...(old.deletionTimestamp === undefined ? (['deletionTimestamp'] as const) : []),
    'deletionGracePeriodSeconds' as const,
  ];
  return immutable
    .filter((name) => (metadata[name] ?? undefined) !== undefined && metadata[name] !== old[name])
    .map((name) => invalidField(`metadata.${name}`, metadata[name], 'field is immutable'));
}

/** Puts the stored system metadata back over whatever an update carried. */
export function keepSystemMetadata(metadata: ObjectMeta, old: Readonly<ObjectMeta>): void {
  const target = metadata as Record<string, unknown>;
  for (const field of KEPT) {
    if (old[field] === undefined) delete target[field];
    else target[field] = old[field];
  }
  delete target['selfLink'];
  if (metadata.managedFields === undefined && old.managedFields !== undefined) {
    metadata.managedFields = [...old.managedFields];
  }
}

/** Throws ApiError 400 when the body names another namespace than the URL; fills it in when empty. */
export function matchNamespace(metadata: ObjectMeta, namespace: string): void {
  if (namespace === '') delete metadata.namespace;
  else if (!metadata.namespace) metadata.namespace = namespace;
  else if (metadata.namespace !== namespace) {
    throw badRequest('the namespace of the provided object does not match the namespace sent on the request');
  }
}

/** Throws ApiError 400 when the body of a PUT or PATCH names another object than the URL. */
export function matchName(metadata: ObjectMeta, name: string): void {
  if (!metadata.name) {
    throw badRequest(`the name of the object (${name} based on URL) was undeterminable: name must be provided`);
  }
  if (metadata.name !== name) {
    throw badRequest(`the name of the object (${metadata.name}) does not match the name on the URL (${name})`);
  }
}

/** When owner references are looked at: as they were sent, or as a patch or admission has made them. */
type Moment = 'sent' | 'made';

/** Drops exact duplicates of owner references and says so (dedupOwnerReferencesAndAddWarning upstream). */
export function dedupeOwnerReferences(metadata: ObjectMeta, moment: Moment, warn: (text: string) => void): void {
  const references = metadata.ownerReferences;
  if (!Array.isArray(references) || references.length < 2) return;
  const kept: typeof references = [];
  const duplicates: string[] = [];
  const seen = new Set<string>();
  for (const reference of references) {
    const text = stableText(reference);
    if (seen.has(text)) duplicates.push(String(reference.uid));
    else kept.push(reference);
    seen.add(text);
  }
  if (duplicates.length === 0) return;
  metadata.ownerReferences = kept;
  const when = moment === 'made' ? ' after mutating admission happens' : '';
  warn(
    `.metadata.ownerReferences contains duplicate entries${when}; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: ${duplicates.join(', ')}`,
  );
}

/** A terminating object takes no new finalizers. */
export function newFinalizerErrors(object: UnstructuredObject, old: Readonly<UnstructuredObject>): FieldError[] {
  if (old.metadata.deletionTimestamp === undefined) return [];
  const before = new Set(old.metadata.finalizers ?? []);
  const added = (object.metadata.finalizers ?? []).filter((finalizer) => !before.has(finalizer));
  if (added.length === 0) return [];
  const found = `[]string{${added.map((finalizer) => JSON.stringify(finalizer)).join(', ')}}`;
  const detail = `no new finalizers can be added if the object is being deleted, found new finalizers ${found}`;
  return [forbidden('metadata.finalizers', detail)];
}
