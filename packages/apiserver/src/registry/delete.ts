/** DELETE of one object: preconditions, admission, then what the effect says. */

import type { UnstructuredObject } from '@coracle/apimachinery/meta/object';
import { conflict } from '@coracle/apimachinery/meta/status';
import type { ResourceInfo } from '@coracle/apimachinery/types/resource';
import type { Companion, WriteCheck } from '../admission/plugin.ts';
import type { Decision, StoredObject } from '../cache/object-store.ts';
import { type DeleteOptions, deletionDecision, deletionEffect, saysNothingNew } from './graceful-deletion.ts';
import { isLargeObject, writtenDecision } from './large-write.ts';
import { uidConflict } from './uid-conflict.ts';
import { storedForm, viewWritten } from './versioned-view.ts';
import { ObjectMoved, runChecks } from './write-call.ts';
import type { Registry, WriteCall } from './write-contract.ts';
import { type WriteTarget, writeNewest } from './write-newest.ts';
import { companionWrites, writeObject } from './write-object.ts';

export interface DeleteResult {
  /** True when the object is gone; false when it waits for finalizers or its grace period. */
  readonly removed: boolean;
  readonly object: Readonly<UnstructuredObject>;
  readonly stored: StoredObject | undefined;
}

type DeleteCall = WriteCall & { readonly options: DeleteOptions };

/** Throws ApiError: 404, 409 when a precondition fails, or what admission says. */
export const deleteObject = (registry: Registry, call: DeleteCall): Promise<DeleteResult> =>
  writeNewest(registry, call, { attempt: (target) => attemptDelete(registry, call, target) });

async function attemptDelete(
  registry: Registry,
  call: DeleteCall,
  { key, current, old }: WriteTarget,
): Promise<DeleteResult> {
  const { info, name, options } = call;
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
  let decision = deletionDecision(effect, current, marked);
  if (decision.type !== 'keep' && isLargeObject(current.bytes)) decision = await writtenDecision(decision);
  const decide = (latest: StoredObject | undefined): Decision => {
    if (latest?.revision !== current.revision) throw new ObjectMoved();
    runChecks(checks);
    return decision;
  };
  const stored = await writeObject(registry, { info, key, decide }, companionWrites(registry, companions));
  return { removed, object: await viewWritten(info, stored!), stored };
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
