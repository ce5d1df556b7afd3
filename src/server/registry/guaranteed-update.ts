/**
 * Read, change, compare and swap, again on conflict: what PUT, PATCH and the writing subresources share
 * (storage.GuaranteedUpdate). Admission runs outside the store, so the swap checks that nobody wrote in between.
 */
import { type ResourceInfo, storagePrefix } from '../../api/kinds/resource.ts';
import { equalSteps } from '../../api/meta/deep-equal.ts';
import type { ObjectMeta, UnstructuredObject } from '../../api/meta/object.ts';
import {
  type ApiError,
  conflict,
  type FieldError,
  type GroupResource,
  invalid,
  notFound,
  STALE_RESOURCE_VERSION,
} from '../../api/meta/status.ts';
import { inPieces, Pace, type Pause, runSteps, type Steps } from '../../api/meta/steps.ts';
import { emptyToNull } from '../../api/schema/empty-to-null.ts';
import { nextTurn } from '../../base/clock/next-turn.ts';
import type { WriteCheck } from '../admission/plugin.ts';
import type { Decision, StoredObject, StoreKey } from '../cache/object-store.ts';
import { finishedDeleting } from './graceful-deletion.ts';
import { isLargeObject } from './large-write.ts';
import {
  applyKindDefaults,
  applyKindDefaultsSteps,
  dropEmptyMetadata,
  validateObject,
  validateSteps,
} from './normalize-input.ts';
import { dedupeOwnerReferences, matchName, matchNamespace, newFinalizerErrors } from './object-metadata.ts';
import { keepOwnerTimes } from './owner-times.ts';
import { writesPodPart } from './pod-subresources.ts';
import { prepareUpdate } from './prepare-update.ts';
import { refuseWhenDurable } from './refuse-when-durable.ts';
import { writeObject } from './service-addresses.ts';
import { countsTemplates, keepTemplateGeneration } from './template-generation.ts';
import { prepareViews, storedForm, viewObject } from './versioned-view.ts';
import {
  type AdmissionSubject,
  MAX_CONFLICT_RETRIES,
  ObjectMoved,
  type Registry,
  runChecks,
  type WriteCall,
  type WriteResult,
} from './write-call.ts';
import { warnAboutUpdate, warnAboutUpdateSteps } from './write-warnings.ts';
import { writtenDecision } from './written-decision.ts';

export interface UpdateCall extends WriteCall {
  /** Builds the wanted object (normalised, fresh) from the current one. Called once per attempt; may throw ApiError. */
  readonly next: (
    current: Readonly<UnstructuredObject>,
    pause: Pause | undefined,
  ) => UnstructuredObject | Promise<UnstructuredObject>;
  /** What to do when there is no such object; absent = 404. */
  readonly create?: () => Promise<WriteResult>;
  /** True when the caller wants exactly the state it names: a write in between is a conflict, not a reason to repeat. */
  readonly pinned: boolean;
  /** True for PATCH. */
  readonly patch?: boolean;
  /** True when `next` has set managedFields itself (apply). */
  readonly tracked?: boolean;
}

/** Throws ApiError: 404, 409 (stale resourceVersion, uid, or too many conflicts), 422, or what admission says. */
export async function guaranteedUpdate(registry: Registry, call: UpdateCall): Promise<WriteResult> {
  const { info, namespace, name } = call;
  const key: StoreKey = { prefix: storagePrefix(info), namespace, name };
  return refuseWhenDurable(registry.store, key, () => repeatUpdate(registry, call, key));
}

async function repeatUpdate(registry: Registry, call: UpdateCall, key: StoreKey): Promise<WriteResult> {
  const { info } = call;
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
  // A small patch of a large object is a large write, too.
  const pause = call.pause ?? (isLargeObject(current.bytes) ? nextTurn : undefined);
  const loading = pause && current.load(pause);
  if (loading) await loading;
  const before = prepareViews(info, [current], { again: false });
  if (before) await before;
  const old = viewObject(info, current);
  if (pause) await pause();
  const next = call.next(old, pause);
  const wanted = next instanceof Promise ? await next : next;
  // What was merged from a configuration lacks the defaults of its lists, and lies there as it was written: only with
  // them, and in canonical form, is what differs a change (FieldManager.Apply upstream).
  if (call.tracked && pause) await inPieces(applyKindDefaultsSteps(info, wanted), pause);
  else if (call.tracked) applyKindDefaults(info, wanted);
  if (pause) await pause();
  checkPreconditions(call, wanted, old);
  // Before admission: nobody comes to own what a plug-in adds. Before validation: `[{}]` means "forget everything".
  const track = (changed: UnstructuredObject): void | Promise<void> => {
    const change = { info, subresource, manager: call.manager, live: old, now: registry.clock.now(), pause };
    return registry.fields?.track(change, changed);
  };
  // What a custom kind's strategy throws away is owned all the same, unless it says so (`metadata` and `spec` of status).
  const isTrackedAsSent = !call.tracked && info.strategy.custom;
  const trackingSent = isTrackedAsSent && track(wanted);
  if (trackingSent) await trackingSent;
  const applied = wanted.metadata.managedFields;
  const errors: FieldError[] = [];
  const prepare = (changed: UnstructuredObject) =>
    runSteps(prepareUpdate(info, { subresource, object: changed, old, errors }), pause);
  const preparing = prepare(wanted);
  let object = preparing instanceof Promise ? await preparing : preparing;
  // An apply may leave an object that nobody owns a field of.
  if (call.tracked || isTrackedAsSent) setOwners(object, applied);
  dedupeOwnerReferences(object.metadata, call.patch ? 'made' : 'sent', call.warn);
  if (!call.tracked && !isTrackedAsSent) {
    const tracking = track(object);
    if (tracking) await tracking;
  }
  if (pause) await pause();
  // Awaited only when there is something to wait for: without it, reading and writing are one step nobody can get into.
  const owners = object.metadata.managedFields;
  const subject: AdmissionSubject = { name, object, oldObject: old, pause };
  const mutating = call.admission.mutate('UPDATE', subject);
  if (mutating) await mutating;
  if (subject.rewritten) {
    // A webhook is bound by the same walls as a client, and what it changes of the spec is a new generation.
    matchNamespace(object.metadata, call.namespace);
    matchName(object.metadata, name);
    const rewritten = object.metadata.managedFields ?? owners;
    object = await prepare(object);
    dedupeOwnerReferences(object.metadata, 'made', call.warn);
    setOwners(object, rewritten);
  }
  if (subject.sameGeneration && !subject.rewritten && old.metadata.generation !== undefined)
    object.metadata.generation = old.metadata.generation;
  // A custom object was completed when it was read. What it keeps of the stored one (its status, or all but that) may lie
  // in another version and gets no defaults of this one, unless a webhook has changed something.
  const isComplete = info.strategy.custom && !subject.rewritten;
  if (isComplete) dropEmptyMetadata(info, object.metadata);
  else if (pause) await inPieces(applyKindDefaultsSteps(info, object), pause);
  else applyKindDefaults(info, object);
  // After tracking: nobody comes to own what the server sets or counts.
  info.prepareUpdate?.(object, old, { now: registry.clock.now(), subresource });
  const counting = countsTemplates(info) && runSteps(keepTemplateGeneration(object, old), pause);
  if (counting) await counting;
  const keeping = call.tracked ? runSteps(keepOwnerTimes(object, old), pause) : undefined;
  if (keeping) await keeping;
  if (pause) await pause();
  // These change what an update of a pod may not: the kind judges the result, not the difference.
  const partial = subresource === 'binding' || writesPodPart(subresource);
  for (const error of newFinalizerErrors(object, old)) errors.push(error);
  const judging = call.admission.judge?.('UPDATE', { name, object, oldObject: old, pause });
  if (judging) for (const error of await judging) errors.push(error);
  const about = { subresource, warn: call.warn, more: errors };
  const judged = [info, object, partial ? undefined : old, about] as const;
  if (pause) await inPieces(validateSteps(...judged), pause);
  else validateObject(...judged);
  const updated = { object, old, warn: call.warn };
  if (subresource === '' && pause) await inPieces(warnAboutUpdateSteps(info, updated), pause);
  else if (subresource === '') warnAboutUpdate(info, updated);
  else if (subresource === 'status') for (const text of info.statusWarnings?.(object) ?? []) call.warn(text);
  const checks: WriteCheck[] = [];
  const validating = call.admission.validate('UPDATE', { name, object, oldObject: old, checks, pause });
  if (validating) await validating;
  if (pause) await pause();
  if (call.dryRun) return { created: false, object, stored: undefined, pause };

  if (!info.strategy.custom) emptyToNull(info.schema, object);
  const pending = storedForm(info, object);
  const form = pending instanceof Promise ? await pending : pending;
  const deciding = decide(info, { object, form, current, old });
  const decided = runSteps(deciding, pause);
  let decision = decided instanceof Promise ? await decided : decided;
  if (pause) decision = await writtenDecision(decision, pause);
  const write = (latest: StoredObject | undefined): Decision => {
    if (latest?.revision !== current.revision) throw new ObjectMoved();
    runChecks(checks);
    return decision;
  };
  const stored = await writeObject(registry, { key, decide: write });
  if (decision.type === 'delete') return { created: false, object, stored: undefined };
  const after = prepareViews(info, [stored], { again: false });
  if (after) await after;
  return { created: false, object: viewObject(info, stored!), stored };
}

function setOwners(object: UnstructuredObject, owners: ObjectMeta['managedFields']): void {
  if (owners) object.metadata.managedFields = owners;
  else delete object.metadata.managedFields;
}

/** Nothing changed: nothing is written. The last finalizer is gone: the object goes in the same request. */
function* decide(
  info: ResourceInfo,
  write: {
    readonly object: UnstructuredObject;
    readonly form: UnstructuredObject;
    readonly current: StoredObject;
    readonly old: Readonly<UnstructuredObject>;
  },
): Steps<Decision> {
  const { object, form, current, old } = write;
  // Watchers are told of the state that was there last; what the request asked for was never stored.
  if (finishedDeleting(info, object)) return { type: 'delete', object: current.object as UnstructuredObject };
  const pace = new Pace();
  if (!(yield* equalSteps(object, old, pace))) return { type: 'put', object: form };
  // An object that lies in another version, or without today's defaults, is written anew: that is how data migrates.
  const isViewed = info.view !== undefined || info.remote !== undefined;
  const isKept = !isViewed || (yield* equalSteps(form, current.object, pace));
  return isKept ? { type: 'keep' } : { type: 'put', object: form };
}

/** True when an update says which state it was made from: `0` says as little as nothing (Store.Update upstream). */
export const namesVersion = (resourceVersion: string | undefined): resourceVersion is string =>
  Boolean(resourceVersion) && resourceVersion !== '0';

function checkPreconditions(call: UpdateCall, wanted: UnstructuredObject, old: Readonly<UnstructuredObject>): void {
  const { info, name } = call;
  const { uid, resourceVersion } = wanted.metadata;
  // A patch names no object to compare with before: what it makes of the uid is judged with all else.
  if (uid && uid !== old.metadata.uid && !call.patch)
    throw storedUidConflict(call, { wanted: uid, found: old.metadata.uid ?? '' });
  if (namesVersion(resourceVersion)) {
    if (resourceVersion !== old.metadata.resourceVersion) throw conflict(info, name, STALE_RESOURCE_VERSION);
  } else if ((!call.tracked || resourceVersion === '0') && !info.strategy.unconditionalUpdate) {
    // Of the resource, not the kind: the store says so, which knows nothing else (Store.Update upstream).
    throw invalid({ group: info.group, kind: info.resource }, name, [
      {
        type: 'FieldValueInvalid',
        field: 'metadata.resourceVersion',
        value: 0,
        detail: 'must be specified for an update',
      },
    ]);
  }
}

/** What the parts of a key are called where upstream does not name them after the resource. */
const KEYS: Readonly<Record<string, string>> = {
  '/endpoints': 'services/endpoints',
  '/nodes': 'minions',
  '/replicationcontrollers': 'controllers',
  '/services': 'services/specs',
  'networking.k8s.io/ingresses': 'ingress',
};

/** The conflict as upstream's store words it, with its key. */
export function storedUidConflict(
  { info, namespace, name, dryRun }: Pick<UpdateCall, 'info' | 'namespace' | 'name' | 'dryRun'>,
  { wanted, found }: { readonly wanted: string; readonly found: string },
): ApiError {
  const { group, resource } = info;
  const isNamedByGroup = info.strategy.custom || group === 'apiextensions.k8s.io' || group === 'apiregistration.k8s.io';
  const place = isNamedByGroup ? `${group}/${resource}` : (KEYS[`${group}/${resource}`] ?? resource);
  const key = `${dryRun ? '' : '/registry'}/${place}/${namespace === '' ? '' : `${namespace}/`}${name}`;
  const why = `Precondition failed: UID in precondition: ${wanted}, UID in object meta: ${found}`;
  const text = `StorageError: invalid object, Code: 4, Key: ${key}, ResourceVersion: 0, AdditionalErrorMsg: ${why}`;
  return conflict(info, name, text);
}

/** 409 because the caller meant another incarnation of the name. */
export const uidConflict = (
  info: GroupResource,
  name: string,
  { wanted, found }: { readonly wanted: string; readonly found: string },
): ApiError =>
  conflict(info, name, `Precondition failed: UID in precondition: ${wanted}, UID in object meta: ${found}`);
