/**
 * The walls between an object's parts on update: the main endpoint leaves status alone, `/status` leaves the rest
 * alone, and only `/finalize` touches a namespace's spec.finalizers.
 */

import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import type { ObjectMeta, UnstructuredObject } from '@coracle/apimachinery/meta/object';
import type { FieldError } from '@coracle/apimachinery/meta/status';
import type { ResourceInfo } from '@coracle/apimachinery/types/resource';
import { isSigningRequest, keepRequestParts } from './certificate-requests.ts';
import { movesGeneration } from './generation.ts';
import { keepSystemMetadata, systemMetadataErrors } from './object-metadata.ts';
import { preparePodPart, writesPodPart } from './pod-subresources.ts';

/** True for the core Namespace, whose spec.finalizers delay its deletion. */
export const isNamespace = (info: Pick<ResourceInfo, 'group' | 'resource'>): boolean =>
  info.group === '' && info.resource === 'namespaces';

/** Returns what may be stored of `object` when written through `subresource` over `old`. May reuse `object`. */
export function prepareUpdate(
  info: ResourceInfo,
  change: {
    readonly subresource: string;
    readonly object: UnstructuredObject;
    readonly old: Readonly<UnstructuredObject>;
    /** Takes what the metadata says that it may not. */
    readonly errors?: FieldError[];
  },
): UnstructuredObject {
  const { subresource, object, old } = change;
  const next =
    subresource === 'status' && !isSigningRequest(info)
      ? prepareStatus(info, object, old)
      : writesPodPart(subresource)
        ? preparePodPart(info, change)
        : isSigningRequest(info)
          ? keepRequestParts(subresource, change)
          : prepareMain(info, change);
  change.errors?.push(...systemMetadataErrors(next.metadata, old.metadata));
  keepSystemMetadata(next.metadata, old.metadata);
  // A client that leaves the version out (or patches it away) means the one it was read at.
  if (old.metadata.resourceVersion !== undefined) next.metadata.resourceVersion = old.metadata.resourceVersion;
  // A binding writes the node past the strategy of Pods, where upstream moves the generation (pod/storage/storage.go).
  const counts = info.strategy.generation !== 'none' && subresource !== 'binding';
  if (counts && movesGeneration(info, next, old)) {
    next.metadata.generation = (old.metadata.generation ?? 0) + 1;
  }
  return next;
}

function prepareMain(info: ResourceInfo, change: Parameters<typeof prepareUpdate>[1]): UnstructuredObject {
  const { subresource, object, old } = change;
  // A binding sets the pod's node and its PodScheduled condition in one write.
  if (info.strategy.statusSubresource && subresource !== 'binding') {
    if (old['status'] === undefined) delete object['status'];
    else object['status'] = cloneJson(old['status']);
  }
  if (isNamespace(info) && subresource !== 'finalize') {
    const oldSpec = old['spec'] as { finalizers?: string[] } | undefined;
    const spec = (object['spec'] ?? {}) as { finalizers?: string[] };
    if (oldSpec?.finalizers === undefined) delete spec.finalizers;
    else spec.finalizers = [...oldSpec.finalizers];
    object['spec'] = spec;
  }
  return object;
}

function prepareStatus(
  info: ResourceInfo,
  object: UnstructuredObject,
  old: Readonly<UnstructuredObject>,
): UnstructuredObject {
  const next = cloneJson(old) as UnstructuredObject;
  if (object['status'] === undefined) delete next['status'];
  else next['status'] = object['status'];
  if (info.strategy.statusMetadata === 'accept') next.metadata = keptByStatus(info, object.metadata, old.metadata);
  else if (object.metadata.managedFields !== undefined) next.metadata.managedFields = object.metadata.managedFields;
  // Namespace and name were checked against the URL; a body may leave the namespace out.
  copyMeta(next.metadata, old.metadata, 'namespace');
  return next;
}

/** Two kinds guard a part of their metadata from writes through `/status`. */
function keptByStatus(info: ResourceInfo, metadata: ObjectMeta, old: Readonly<ObjectMeta>): ObjectMeta {
  if (info.group === '' && info.resource === 'pods') delete metadata.deletionTimestamp;
  const field =
    info.group === 'apps' && info.resource === 'deployments'
      ? 'labels'
      : info.group === '' && info.resource === 'pods'
        ? 'ownerReferences'
        : undefined;
  if (field === undefined) return metadata;
  const { [field]: _sent, ...kept } = metadata;
  return old[field] === undefined ? kept : { ...kept, [field]: cloneJson(old[field]) };
}

function copyMeta(target: ObjectMeta, source: Readonly<ObjectMeta>, field: 'namespace'): void {
  if (source[field] === undefined) delete target[field];
  else target[field] = source[field];
}
