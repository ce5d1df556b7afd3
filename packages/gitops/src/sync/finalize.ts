/**
 * What becomes of the objects of a sync that is deleted; the table of cases and their ends is in docs/gitops.md. One call
 * is one pass: it says what is left, and who calls decides whether to come back.
 */

import type { Clock } from '@coracle/runtime/clock/clock';
import { deleteObjects } from '../apply/delete-objects.ts';
import type { Inventory } from '../apply/inventory.ts';
import type { KindCatalog } from '../apply/kind-catalog.ts';
import type { Target } from '../apply/target.ts';
import type { ObjectRef, SyncError } from '../kinds/kinds.ts';
import { keyOfRef, refId, refOf, refText } from '../plan/object-ref.ts';
import { ownershipOf, releasePatch } from '../plan/ownership.ts';
import { applySetId } from '../status/apply-set.ts';
import { PART_OF } from '../status/metadata-keys.ts';
import { apiSyncError, errorResource, syncError } from '../status/sync-error.ts';
import type { SyncIdentity } from '../status/sync-identity.ts';

export interface FinalizeOptions {
  readonly sync: SyncIdentity;
  readonly target: Target;
  readonly inventory: Inventory;
  readonly catalog: KindCatalog;
  readonly reconcileMs: number;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly onStep?: (step: 'shrink-inventory') => void;
}

/** Deletes every object, dependents first, and waits until they are gone. Returns what stands in the way; empty = done. */
export async function destroyObjects(options: FinalizeOptions): Promise<SyncError[]> {
  const { inventory, catalog, signal, reconcileMs } = options;
  const refs = (await inventory.read(signal)) ?? (await labelled(options));
  const { errors, going, gone } = await deleteObjects({
    ...options,
    refs,
    staying: [],
    commit: '',
    kinds: () => catalog.kinds(signal),
    propagation: 'Foreground',
    finalWaitMs: reconcileMs,
  });
  // The next pass asks for what is left alone.
  options.onStep?.('shrink-inventory');
  if (gone.size > 0)
    await inventory.write(
      refs.filter((ref) => !gone.has(refId(ref))),
      signal,
    );
  const late = going.map((ref) =>
    syncError(2009, `failed to wait for ${refText(ref)}: reconcile timeout`, [errorResource(ref)]),
  );
  return [...errors, ...late];
}

/** Takes the metadata of the sync off every object that it still manages. Returns what stands in the way; empty = done. */
export async function releaseObjects(options: FinalizeOptions): Promise<SyncError[]> {
  const { sync, target, inventory, catalog, signal } = options;
  const refs = (await inventory.read(signal)) ?? (await labelled(options));
  const kinds = await catalog.kinds(signal);
  const errors: SyncError[] = [];
  for (const ref of refs) {
    const type = kinds.byRef(ref);
    if (type === undefined) continue;
    try {
      if (type === 'unknown') throw new Error(`the server does not say whether it serves ${ref.kind} of ${ref.group}`);
      const live = await target.get(type, keyOfRef(ref), signal);
      if (!live || ownershipOf(live, ref, sync).by === 'other') continue;
      const patch = releasePatch(live, sync);
      if (patch) await target.merge(type, keyOfRef(ref), patch, signal);
    } catch (error) {
      signal.throwIfAborted();
      errors.push(apiSyncError(error, `failed to release ${refText(ref)}`, [errorResource(ref)]));
    }
  }
  return errors;
}

/** Without an inventory: what carries the label of the sync, as far as its account may see. */
async function labelled({ sync, target, catalog, signal }: FinalizeOptions): Promise<ObjectRef[]> {
  const { listable } = await catalog.kinds(signal);
  const labelSelector = `${PART_OF}=${applySetId(sync)}`;
  const refs: ObjectRef[] = [];
  for (const type of listable) {
    if (sync.kind === 'RepoSync' && !type.namespaced) continue;
    try {
      const { items } = await target.client.list(type, {
        labelSelector,
        signal,
        metadataOnly: true,
        ...(sync.kind === 'RepoSync' && { namespace: sync.namespace }),
      });
      for (const { metadata } of items) {
        const ref = refOf({
          apiVersion: type.group === '' ? type.version : `${type.group}/${type.version}`,
          kind: type.kind,
          metadata,
        });
        const live = await target.get(type, keyOfRef(ref), signal);
        if (live && ownershipOf(live, ref, sync).by === 'us') refs.push(ref);
      }
    } catch {
      // What it may not see it did not make.
      signal.throwIfAborted();
    }
  }
  return refs;
}
