/**
 * The halves of an update that ask nobody, as plain functions: what they are given is all they know, so that they run on any
 * thread. Between them stands the mutating admission, behind them the validating one.
 */

import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import type { ManagedFieldsEntry, ObjectMeta, UnstructuredObject } from '@coracle/apimachinery/meta/object';
import { conflict, type FieldError, invalid, STALE_RESOURCE_VERSION } from '@coracle/apimachinery/meta/status';
import { emptyToNull } from '@coracle/apimachinery/schema/empty-to-null';
import type { ResourceInfo } from '@coracle/apimachinery/types/resource';
import { updateStrategyOf } from '@coracle/apimachinery/types/strategy';
import { invalid as invalidValue } from '@coracle/apimachinery/validation/field-errors';
import type { Decision } from '../cache/object-store.ts';
import { finishedDeleting } from './graceful-deletion.ts';
import { applyKindDefaults, dropEmptyMetadata, validateObject } from './normalize-input.ts';
import { dedupeOwnerReferences, matchName, matchNamespace, newFinalizerErrors } from './object-metadata.ts';
import { prepareUpdate } from './prepare-update.ts';
import { storedUidConflict } from './uid-conflict.ts';
import { storedForm } from './versioned-view.ts';
import type { Admitted, BegunUpdate, NextObject, StageServices, UpdateFacts } from './write-contract.ts';
import { warnAboutUpdate } from './write-warnings.ts';

type Old = Readonly<UnstructuredObject>;

/** From the wanted object to what may be stored of it, owned by whoever changes it. A promise where a webhook converts. */
export function beginUpdate(
  services: StageServices,
  facts: UpdateFacts,
  { old, next }: { readonly old: Old; readonly next: NextObject },
): BegunUpdate | Promise<BegunUpdate> {
  const begin = (wanted: UnstructuredObject) => beginWanted(services, facts, { old, wanted });
  const wanting = next(old);
  return wanting instanceof Promise ? wanting.then(begin) : begin(wanting);
}

function beginWanted(
  { fields, clock }: StageServices,
  facts: UpdateFacts,
  { old, wanted }: { readonly old: Old; readonly wanted: UnstructuredObject },
): BegunUpdate | Promise<BegunUpdate> {
  const { info, subresource, manager, tracked, warn } = facts;
  // What was merged from a configuration lacks the defaults of its lists, and lies there as it was written: only with
  // them, and in canonical form, is what differs a change (FieldManager.Apply upstream).
  if (tracked) applyKindDefaults(info, wanted);
  checkPreconditions(facts, wanted, old);
  // Before admission: nobody comes to own what a plug-in adds. Before validation: `[{}]` means "forget everything".
  const track = (changed: UnstructuredObject): void | Promise<void> =>
    fields?.track({ info, subresource, manager, live: old, now: clock.now() }, changed);
  const errors: FieldError[] = [];
  const prepared = (isTracked: boolean): UnstructuredObject => {
    const { managedFields } = wanted.metadata;
    const object = prepareUpdate(info, { subresource, object: wanted, old, errors });
    // An apply may leave an object that nobody owns a field of.
    if (isTracked) setOwners(object, managedFields);
    dedupeOwnerReferences(object.metadata, facts.patch ? 'made' : 'sent', warn);
    return object;
  };
  const { pinned } = facts;
  if (tracked) return { object: prepared(true), errors, pinned };
  // What a custom kind's strategy throws away is owned all the same, unless it says so (`metadata` and `spec` of status).
  if (info.strategy.custom) {
    const begin = (): BegunUpdate => ({ object: prepared(true), errors, pinned });
    const tracking = track(wanted);
    return tracking ? tracking.then(begin) : begin();
  }
  const begun: BegunUpdate = { object: prepared(false), errors, pinned };
  const tracking = track(begun.object);
  return tracking ? tracking.then(() => begun) : begun;
}

/** The whole object as it is to be stored, validated; `object` may be reused. Throws ApiError 400 and 422. */
export function completeUpdate(
  now: number,
  facts: UpdateFacts,
  update: { readonly object: UnstructuredObject; readonly old: Old } & Admitted,
): UnstructuredObject {
  const { info, subresource, warn } = facts;
  const { old, isRewritten } = update;
  const errors = [...update.errors];
  let { object } = update;
  if (isRewritten) {
    // A webhook is bound by the same walls as a client, and what it changes of the spec is a new generation.
    matchNamespace(object.metadata, facts.namespace);
    matchName(object.metadata, facts.name);
    const owners = object.metadata.managedFields ?? update.owners;
    object = prepareUpdate(info, { subresource, object, old, errors });
    dedupeOwnerReferences(object.metadata, 'made', warn);
    setOwners(object, owners);
  }
  if (update.isSameGeneration && !isRewritten && old.metadata.generation !== undefined)
    object.metadata.generation = old.metadata.generation;
  // A custom object was completed when it was read. What it keeps of the stored one (its status, or all but that) may lie
  // in another version and gets no defaults of this one, unless a webhook has changed something.
  if (info.strategy.custom && !isRewritten) dropEmptyMetadata(info, object.metadata);
  else applyKindDefaults(info, object);
  // After tracking: nobody comes to own what the server sets or counts.
  updateStrategyOf(info.strategy, subresource).prepareForUpdate?.(object, old, { now });
  if (facts.tracked) keepOwnerTimes(object, old);
  errors.push(...newFinalizerErrors(object, old));
  validateObject(info, object, old, { subresource, warn, more: errors });
  warnAboutUpdate(facts, object, old);
  return object;
}

function setOwners(object: UnstructuredObject, owners: ObjectMeta['managedFields']): void {
  if (owners) object.metadata.managedFields = owners;
  else delete object.metadata.managedFields;
}

/**
 * Takes, in place, the owners of `old` where nothing but their times is new: who applies `paused: false` again changes
 * nothing, because the object does not keep it (upstream's IgnoreManagedFieldsTimestampsTransformer).
 */
function keepOwnerTimes(object: UnstructuredObject, old: Readonly<UnstructuredObject>): void {
  const { managedFields } = object.metadata;
  const before = old.metadata.managedFields;
  if (managedFields === undefined || managedFields.length !== before?.length) return;
  for (const [i, entry] of managedFields.entries()) {
    if (!deepEqual(timeless(entry), timeless(before[i]!))) return;
  }
  object.metadata.managedFields = before;
  if (!deepEqual(object, old)) object.metadata.managedFields = managedFields;
}

const timeless = (entry: Readonly<ManagedFieldsEntry>): unknown => ({ ...entry, time: undefined });

interface Update {
  readonly object: UnstructuredObject;
  readonly old: Old;
  /** As it is stored. */
  readonly current: Old;
}

/** What the store is given of a completed object. A promise only where a webhook converts. */
export function updateDecision(info: ResourceInfo, update: Update): Decision | Promise<Decision> {
  const { object } = update;
  if (!info.strategy.custom) emptyToNull(info.schema, object);
  const form = storedForm(info, object);
  return form instanceof Promise ? form.then((made) => decide(info, update, made)) : decide(info, update, form);
}

/** Nothing changed: nothing is written. The last finalizer is gone: the object goes in the same request. */
function decide(info: ResourceInfo, { object, old, current }: Update, form: UnstructuredObject): Decision {
  // Watchers see the state that was there last; what the request asked for was never stored.
  if (finishedDeleting(info, object)) return { type: 'delete', object: current as UnstructuredObject };
  if (!deepEqual(object, old)) return { type: 'put', object: form };
  // An object that lies in another version, or without today's defaults, is written anew: that is how data migrates.
  const isViewed = info.view !== undefined || info.remote !== undefined;
  return !isViewed || deepEqual(form, current) ? { type: 'keep' } : { type: 'put', object: form };
}

/** True when an update says which state it was made from: `0` says as little as nothing (Store.Update upstream). */
export const namesVersion = (resourceVersion: string | undefined): resourceVersion is string =>
  Boolean(resourceVersion) && resourceVersion !== '0';

function checkPreconditions(call: UpdateFacts, wanted: UnstructuredObject, old: Readonly<UnstructuredObject>): void {
  const { info, name } = call;
  const { uid, resourceVersion } = wanted.metadata;
  // A patch names no object to compare with before: what it makes of the uid is validated with all else.
  if (uid && uid !== old.metadata.uid && !call.patch)
    throw storedUidConflict(call, { wanted: uid, found: old.metadata.uid ?? '' });
  if (namesVersion(resourceVersion)) {
    if (resourceVersion !== old.metadata.resourceVersion) throw conflict(info, name, STALE_RESOURCE_VERSION);
  } else if ((!call.tracked || resourceVersion === '0') && !info.strategy.allowUnconditionalUpdate) {
    // Of the resource, not the kind: the store says so, which knows nothing else (Store.Update upstream).
    throw invalid({ group: info.group, kind: info.resource }, name, [
      invalidValue('metadata.resourceVersion', 0, 'must be specified for an update'),
    ]);
  }
}
