/** DELETE of one object: preconditions, admission, then what the effect says. */

import type { UnstructuredObject } from '@coracle/apimachinery/meta/object';
import { conflict, notFound } from '@coracle/apimachinery/meta/status';
import { type ResourceInfo, storagePrefix } from '@coracle/apimachinery/types/resource';
import { nextTurn } from '@coracle/runtime/clock/next-turn';
import type { Companion, WriteCheck } from '../admission/plugin.ts';
import type { Decision, StoredObject, StoreKey } from '../cache/object-store.ts';
import { type DeleteOptions, type DeletionEffect, deletionEffect, saysNothingNew } from './graceful-deletion.ts';
import { isLargeObject } from './large-write.ts';
import { refuseWhenDurable } from './refuse-when-durable.ts';
import { uidConflict } from './uid-conflict.ts';
import { prepareViews, storedForm, viewObject } from './versioned-view.ts';
import { MAX_CONFLICT_RETRIES, ObjectMoved, runChecks } from './write-call.ts';
import type { Registry, WriteCall } from './write-contract.ts';
import { companionWrites, writeObject } from './write-object.ts';
import { writtenDecision } from './written-decision.ts';

export interface DeleteResult {
  /** True when the object is gone; false when it waits for finalizers or its grace period. */
  readonly removed: boolean;
  readonly object: Readonly<UnstructuredObject>;
  readonly stored: StoredObject | undefined;
}

/** Throws ApiError: 404, 409 when a precondition fails, or what admission says. */
export async function deleteObject(
  registry: Registry,
  call: WriteCall & { readonly options: DeleteOptions },
): Promise<DeleteResult> {
  const key: StoreKey = { prefix: storagePrefix(call.info), namespace: call.namespace, name: call.name };
  return refuseWhenDurable(registry.store, key, () => repeatDelete(registry, call, key));
}

async function repeatDelete(
  registry: Registry,
  call: WriteCall & { readonly options: DeleteOptions },
  key: StoreKey,
): Promise<DeleteResult> {
  for (let attempt = 1; ; attempt++) {
    const current = registry.store.peek(key);
    if (!current) throw notFound(call.info, call.name);
    try {
      return await attemptDelete(registry, call, { key, current });
    } catch (error) {
      if (!(error instanceof ObjectMoved)) throw error;
      if (attempt >= MAX_CONFLICT_RETRIES) throw conflict(call.info, call.name);
    }
  }
}

async function attemptDelete(
  registry: Registry,
  call: WriteCall & { readonly options: DeleteOptions },
  { key, current }: { key: StoreKey; current: StoredObject },
): Promise<DeleteResult> {
  const { info, name, options } = call;
  const loading = current.load(nextTurn);
  if (loading) await loading;
  const before = prepareViews(info, [current], { again: false });
  if (before) await before;
  const old = viewObject(info, current);
  checkDeletePreconditions(info, old, options);
  // Before admission (Store.Delete): what changes nothing needs no leave.
  if (saysNothingNew(info, old, options)) return { removed: false, object: old, stored: current };
  const checks: WriteCheck[] = [];
  const companions: Companion[] = [];
  const subject = { name, object: undefined, oldObject: old, checks, companions };
  const mutating = call.admission.mutate('DELETE', subject);
  if (mutating) await mutating;
  const validating = call.admission.validate('DELETE', subject);
  if (validating) await validating;

  const effect = deletionEffect(info, old, { options, now: registry.clock.now() });
  const removed = effect.type === 'remove';
  if (call.dryRun) {
    return { removed, object: effect.type === 'mark' ? effect.object : old, stored: undefined };
  }
  const pending = effect.type === 'mark' ? storedForm(info, effect.object) : undefined;
  const marked = pending instanceof Promise ? await pending : pending;
  let decision = decisionOf(effect, current, marked);
  if (isLargeObject(current.bytes)) decision = await writtenDecision(decision, nextTurn);
  const decide = (latest: StoredObject | undefined): Decision => {
    if (latest?.revision !== current.revision) throw new ObjectMoved();
    runChecks(checks);
    return decision;
  };
  const stored = await writeObject(registry, { info, key, decide }, companionWrites(registry, companions));
  const after = prepareViews(info, [stored], { again: false });
  if (after) await after;
  return { removed, object: viewObject(info, stored!), stored };
}

function decisionOf(effect: DeletionEffect, current: StoredObject, marked: UnstructuredObject | undefined): Decision {
  switch (effect.type) {
    case 'remove':
      return { type: 'delete', object: current.object as UnstructuredObject };
    case 'mark':
      return { type: 'put', object: marked! };
    case 'already-terminating':
      return { type: 'keep' };
    default:
      return effect satisfies never;
  }
}

/** Throws ApiError 409 when the object is another, or in another state, than the options say. */
export function checkDeletePreconditions(
  info: ResourceInfo,
  old: Readonly<UnstructuredObject>,
  options: Pick<DeleteOptions, 'preconditions'>,
): void {
  const { uid, resourceVersion } = options.preconditions ?? {};
  const { name = '', uid: foundUid = '', resourceVersion: foundVersion = '' } = old.metadata;
  const isUidWrong = uid !== undefined && uid !== foundUid;
  if (!isUidWrong && (resourceVersion === undefined || resourceVersion === foundVersion)) return;
  // Those whose deletion is more than one step word their conflicts by themselves.
  if (info.strategy.beginDeletion ?? info.strategy.isHeld) {
    if (isUidWrong) throw uidConflict(info, name, { wanted: uid, found: foundUid });
    throw conflict(
      info,
      name,
      `Precondition failed: ResourceVersion in precondition: ${resourceVersion}, ResourceVersion in object meta: ${foundVersion}`,
    );
  }
  // rest.BeforeDelete names the kind where all others name the resource.
  throw conflict(
    { group: info.group, resource: info.kind },
    name,
    isUidWrong
      ? `the UID in the precondition (${uid}) does not match the UID in record (${foundUid}). The object might have been deleted and then recreated`
      : `the ResourceVersion in the precondition (${resourceVersion}) does not match the ResourceVersion in record (${foundVersion}). The object might have been modified`,
  );
}
