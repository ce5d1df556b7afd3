/** POST: a new object, from admission to the store. */

import { type ResourceInfo, storagePrefix } from '../../api/kinds/resource.ts';
import { cloneJson } from '../../api/meta/deep-clone.ts';
import { GENERATE_NAME_ATTEMPTS, generateName } from '../../api/meta/generate-name.ts';
import type { UnstructuredObject } from '../../api/meta/object.ts';
import { ApiError, alreadyExists } from '../../api/meta/status.ts';
import { inPieces } from '../../api/meta/steps.ts';
import { emptyToNull } from '../../api/schema/empty-to-null.ts';
import type { Companion, WriteCheck } from '../admission/plugin.ts';
import type { Decision, StoreKey } from '../cache/object-store.ts';
import { companionWrites } from './companions.ts';
import { applyKindDefaults, applyKindDefaultsSteps, validateObject, validateSteps } from './normalize-input.ts';
import {
  checkGeneration,
  dedupeOwnerReferences,
  fillSystemMetadata,
  matchNamespace,
  wipeSystemMetadata,
} from './object-metadata.ts';
import { refuseWhenDurable } from './refuse-when-durable.ts';
import { writeObject } from './service-addresses.ts';
import { countsTemplates, startTemplateGeneration } from './template-generation.ts';
import { prepareViews, storedForm, viewObject } from './versioned-view.ts';
import { type AdmissionSubject, type Registry, runChecks, type WriteCall, type WriteResult } from './write-call.ts';
import { warnAboutCreate, warnAboutCreateSteps } from './write-warnings.ts';
import { writtenDecision } from './written-decision.ts';

export interface CreateCall extends WriteCall {
  /** Normalised, owned by the callee. */
  readonly object: UnstructuredObject;
  /** True when managedFields were set already (apply). */
  readonly tracked?: boolean;
  /** True for an object out of the program itself: a test has found it valid, so no start has to find it again. */
  readonly trusted?: boolean;
}

/** True when a create forgets the status it is sent (PrepareForCreate of the kind's strategy upstream). */
export const dropsStatus = ({ strategy }: Pick<ResourceInfo, 'strategy'>): boolean =>
  strategy.statusSubresource && strategy.statusOnCreate === 'drop';

/**
 * Creates `object` (normalised, owned by the callee). Throws ApiError: 400 namespace, 409 taken, 422 not valid, or what
 * admission says.
 */
export async function createObject(registry: Registry, call: CreateCall): Promise<WriteResult> {
  const { info, object } = call;
  const given = object.metadata;
  matchNamespace(given, call.namespace);
  const versioned = isVersioned(given.resourceVersion);
  delete given.resourceVersion;
  const { managedFields } = given;
  wipeSystemMetadata(given, { applied: call.tracked === true });
  dedupeOwnerReferences(given, call.tracked ? 'made' : 'sent', call.warn);
  if (call.tracked) {
    if (managedFields) given.managedFields = managedFields;
  } else {
    const { subresource, manager } = call;
    const change = { info, subresource, manager, live: undefined, now: registry.clock.now(), pause: call.pause };
    const tracking = registry.fields?.track(change, object);
    if (tracking) await tracking;
  }
  if (call.pause) await call.pause();
  if (info.strategy.namesItself && !given.name && !given.generateName) given.name = crypto.randomUUID();
  const generated = !given.name && given.generateName ? given.generateName : undefined;
  const { pause } = call;
  const subject: AdmissionSubject = { name: given.name ?? '', object, oldObject: undefined, pause };
  await call.admission.mutate('CREATE', subject);
  // Admission may have put another metadata in its place.
  const { metadata } = object;
  if (subject.rewritten) {
    const tracked = metadata.managedFields;
    matchNamespace(metadata, call.namespace);
    wipeSystemMetadata(metadata);
    dedupeOwnerReferences(metadata, 'made', call.warn);
    if (tracked) metadata.managedFields = tracked;
  }

  for (let attempt = 1; ; attempt++) {
    if (generated !== undefined) metadata.name = generateName(generated);
    fillSystemMetadata(info, metadata, registry.clock.now());
    checkGeneration(info, metadata);
    // After the name and the uid: a namespace's label and a Job's selector are made of them.
    if (call.pause) await inPieces(applyKindDefaultsSteps(info, object), call.pause);
    else applyKindDefaults(info, object);
    if (attempt === 1) info.prepareCreate?.(object, { now: registry.clock.now(), warn: call.warn });
    if (countsTemplates(info)) startTemplateGeneration(object);
    if (call.pause) await call.pause();
    if (call.pause) await inPieces(validateSteps(info, object), call.pause);
    else if (!call.trusted) validateObject(info, object);
    if (attempt === 1 && call.pause) await inPieces(warnAboutCreateSteps(info, call), call.pause);
    else if (attempt === 1) warnAboutCreate(info, call);
    const companions: Companion[] = [];
    const checks: WriteCheck[] = [];
    const judged = { name: metadata.name!, object, oldObject: undefined, companions, checks, pause };
    await call.admission.validate('CREATE', judged);
    // Upstream's storage says so, when everything else about the object is found right.
    if (versioned && !call.dryRun)
      throw new ApiError({ code: 500, message: 'resourceVersion should not be set on objects to be created' });
    const key: StoreKey = { prefix: storagePrefix(info), namespace: call.namespace, name: metadata.name! };
    if (call.pause) await call.pause();
    try {
      return await refuseWhenDurable(registry.store, key, () => insert(registry, call, { key, companions, checks }));
    } catch (error) {
      if (generated === undefined || !(error instanceof ApiError) || error.reason !== 'AlreadyExists') throw error;
      if (attempt >= GENERATE_NAME_ATTEMPTS) throw generatedNamesExhausted(error);
      thaw(object);
    }
  }
}

/** True for a revision that the storage would take for one: upstream drops `0` and what is no number. */
const isVersioned = (resourceVersion: string | undefined): boolean =>
  resourceVersion !== undefined && /^[0-9]+$/.test(resourceVersion) && !/^0+$/.test(resourceVersion);

/** An object whose parts were frozen for a name that somebody else took meanwhile: as copies, they can be changed again. */
function thaw(object: UnstructuredObject): void {
  for (const name of Object.keys(object)) {
    const member = object[name];
    if (name !== 'metadata' && Object.isFrozen(member)) object[name] = cloneJson(member);
  }
  const metadata = object.metadata as Record<string, unknown>;
  for (const name of Object.keys(metadata)) {
    if (Object.isFrozen(metadata[name])) metadata[name] = cloneJson(metadata[name]);
  }
}

async function insert(
  registry: Registry,
  call: CreateCall,
  {
    key,
    companions,
    checks,
  }: { readonly key: StoreKey; readonly companions: readonly Companion[]; readonly checks: readonly WriteCheck[] },
): Promise<WriteResult> {
  const { info, object } = call;
  const refuseExisting = (current: { readonly object: Readonly<UnstructuredObject> } | undefined): void => {
    if (!current) return;
    const terminating = current.object.metadata.deletionTimestamp !== undefined;
    throw alreadyExists(info, key.name, terminating ? 'object is being deleted: ' : '');
  };
  if (call.dryRun) {
    refuseExisting(registry.store.peek(key));
    return { created: true, object, stored: undefined };
  }
  if (!info.strategy.custom) emptyToNull(info.schema, object);
  const pending = storedForm(info, object);
  const form = pending instanceof Promise ? await pending : pending;
  let decision: Decision = { type: 'put', object: form };
  if (call.pause) {
    // Before it is frozen: under another name it may have to change once more.
    refuseExisting(registry.store.peek(key));
    decision = await writtenDecision(decision, call.pause);
  }
  const decide = (current: { readonly object: Readonly<UnstructuredObject> } | undefined): Decision => {
    refuseExisting(current);
    runChecks(checks);
    return decision;
  };
  const stored = await writeObject(registry, { key, decide }, companionWrites(registry, companions));
  const views = prepareViews(info, [stored], { again: false });
  if (views) await views;
  return { created: true, object: viewObject(info, stored!), stored };
}

function generatedNamesExhausted(last: ApiError): ApiError {
  const { message, reason, details, code } = last.status;
  return new ApiError({
    code,
    message: message ?? '',
    reason: reason ?? '',
    details: { ...details, retryAfterSeconds: 1 },
  });
}
