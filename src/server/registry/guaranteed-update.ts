/**
 * Read, change, compare and swap, again on conflict: what PUT, PATCH and the writing subresources share
 * (storage.GuaranteedUpdate). Admission runs outside the store, so the swap checks that nobody wrote in between.
 */
import { type ResourceInfo, storagePrefix } from '../../api/kinds/resource.ts';
import { deepEqual } from '../../api/meta/deep-equal.ts';
import type { UnstructuredObject } from '../../api/meta/object.ts';
import { type ApiError, conflict, invalid, notFound, STALE_RESOURCE_VERSION } from '../../api/meta/status.ts';
import type { Decision, StoredObject, StoreKey } from '../cache/object-store.ts';
import { finishedDeleting } from './graceful-deletion.ts';
import { applyKindDefaults, validateObject } from './normalize-input.ts';
import { dedupeOwnerReferences, newFinalizerErrors } from './object-metadata.ts';
import { writesPodPart } from './pod-subresources.ts';
import { prepareUpdate } from './prepare-update.ts';
import { storedForm, viewObject } from './versioned-view.ts';
import { MAX_CONFLICT_RETRIES, ObjectMoved, type Registry, type WriteCall, type WriteResult } from './write-call.ts';

export interface UpdateCall extends WriteCall {
  /** Builds the wanted object (normalised, fresh) from the current one. Called once per attempt; may throw ApiError. */
  readonly next: (current: Readonly<UnstructuredObject>) => UnstructuredObject;
  /** What to do when there is no such object; absent = 404. */
  readonly create?: () => Promise<WriteResult>;
  /** True when the caller wants exactly the state it names: a write in between is a conflict, not a reason to repeat. */
  readonly pinned: boolean;
  /** True for PATCH: a missing resourceVersion is the one the patch was computed on. */
  readonly patch?: boolean;
  /** True when `next` has set managedFields itself (apply). */
  readonly tracked?: boolean;
}

/** Throws ApiError: 404, 409 (stale resourceVersion, uid, or too many conflicts), 422, or what admission says. */
export async function guaranteedUpdate(registry: Registry, call: UpdateCall): Promise<WriteResult> {
  const { info } = call;
  const key: StoreKey = { prefix: storagePrefix(info), namespace: call.namespace, name: call.name };
  for (let attempt = 1; ; attempt++) {
    const current = registry.store.peek(key);
    if (!current) {
      if (call.create) return call.create();
      throw notFound(info, call.name);
    }
    try {
      return await attemptUpdate(registry, call, { key, current });
    } catch (error) {
      if (!(error instanceof ObjectMoved)) throw error;
      if (call.pinned || attempt >= MAX_CONFLICT_RETRIES) throw conflict(info, call.name);
    }
  }
}

async function attemptUpdate(
  registry: Registry,
  call: UpdateCall,
  { key, current }: { key: StoreKey; current: StoredObject },
): Promise<WriteResult> {
  const { info, subresource, name } = call;
  const old = viewObject(info, current);
  const wanted = call.next(old);
  checkPreconditions(call, wanted, old);
  const object = prepareUpdate(info, { subresource, object: wanted, old });
  dedupeOwnerReferences(object.metadata, call.warn);
  // Before admission: nobody comes to own what a plug-in adds. Before validation: `[{}]` means "forget everything".
  if (!call.tracked) {
    registry.fields?.track({ info, subresource, manager: call.manager, live: old, now: registry.clock.now() }, object);
  }
  // Awaited only when there is something to wait for: without it, reading and writing are one step nobody can get into.
  const mutating = call.admission.mutate('UPDATE', { name, object, oldObject: old });
  if (mutating) await mutating;
  applyKindDefaults(info, object);
  // These change what an update of a pod may not: the kind judges the result, not the difference.
  const partial = subresource === 'binding' || writesPodPart(subresource);
  validateObject(info, object, partial ? undefined : old, newFinalizerErrors(object, old));
  const validating = call.admission.validate('UPDATE', { name, object, oldObject: old });
  if (validating) await validating;
  if (call.dryRun) return { created: false, object, stored: undefined };

  const decision = decide(info, object, old);
  const stored = await registry.store.write(key, (latest) => {
    if (latest?.revision !== current.revision) throw new ObjectMoved();
    return decision;
  });
  return { created: false, object: viewObject(info, stored!), stored };
}

/** Nothing changed: nothing is written. The last finalizer is gone: the object goes in the same request. */
function decide(info: ResourceInfo, object: UnstructuredObject, old: Readonly<UnstructuredObject>): Decision {
  const state = storedForm(info, object);
  if (finishedDeleting(info, object)) return { type: 'delete', object: state };
  return deepEqual(object, old) ? { type: 'keep' } : { type: 'put', object: state };
}

function checkPreconditions(call: UpdateCall, wanted: UnstructuredObject, old: Readonly<UnstructuredObject>): void {
  const { info, name } = call;
  const { uid, resourceVersion } = wanted.metadata;
  if (uid && uid !== old.metadata.uid) throw uidConflict(info, name, { wanted: uid, found: old.metadata.uid ?? '' });
  if (resourceVersion) {
    if (resourceVersion !== old.metadata.resourceVersion) throw conflict(info, name, STALE_RESOURCE_VERSION);
  } else if (!call.patch && !info.strategy.unconditionalUpdate) {
    throw invalid(info, name, [
      {
        type: 'FieldValueInvalid',
        field: 'metadata.resourceVersion',
        value: 0,
        detail: 'must be specified for an update',
      },
    ]);
  }
}

/** 409 because the caller meant another incarnation of the name. */
export const uidConflict = (
  info: ResourceInfo,
  name: string,
  { wanted, found }: { readonly wanted: string; readonly found: string },
): ApiError =>
  conflict(info, name, `Precondition failed: UID in precondition: ${wanted}, UID in object meta: ${found}`);
