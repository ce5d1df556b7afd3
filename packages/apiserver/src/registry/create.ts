/** POST: a new object, from admission to the store. */

import { GENERATE_NAME_ATTEMPTS, generateName } from '@coracle/apimachinery/meta/generate-name';
import type { UnstructuredObject } from '@coracle/apimachinery/meta/object';
import { ApiError, alreadyExists } from '@coracle/apimachinery/meta/status';
import { emptyToNull } from '@coracle/apimachinery/schema/empty-to-null';
import { type ResourceInfo, storagePrefix } from '@coracle/apimachinery/types/resource';
import type { Companion, WriteCheck } from '../admission/plugin.ts';
import type { Decision, StoredObject, StoreKey } from '../cache/object-store.ts';
import { applyKindDefaults, validateObject } from './normalize-input.ts';
import {
  checkGeneration,
  dedupeOwnerReferences,
  fillSystemMetadata,
  matchNamespace,
  wipeSystemMetadata,
} from './object-metadata.ts';
import { refuseWhenDurable } from './refuse-when-durable.ts';
import { storedForm, viewWritten } from './versioned-view.ts';
import { runChecks } from './write-call.ts';
import type {
  AdmissionSubject,
  BegunCreate,
  Completed,
  CreateCall,
  CreateStages,
  Registry,
  SentBody,
  StageServices,
  WriteCall,
  WriteResult,
} from './write-contract.ts';
import { companionWrites, writeObject } from './write-object.ts';
import { warnAboutCreate } from './write-warnings.ts';

/** True when a create forgets the status it is sent (PrepareForCreate of the kind's strategy upstream). */
export const dropsStatus = ({ strategy }: Pick<ResourceInfo, 'strategy'>): boolean =>
  strategy.statusSubresource && strategy.statusOnCreate === 'drop';

/**
 * Creates `object` (normalised, owned by the callee). Throws ApiError: 400 namespace, 409 taken, 422 not valid, or what
 * admission says.
 */
export async function createObject(registry: Registry, call: CreateCall): Promise<WriteResult> {
  const { info } = call;
  const stages = stagesOf(registry, call);
  const beginning = stages.begin();
  const { object, isVersioned } = beginning instanceof Promise ? await beginning : beginning;
  const given = object.metadata;
  const generated = !given.name && given.generateName ? given.generateName : undefined;
  const subject: AdmissionSubject = { name: given.name ?? '', object, oldObject: undefined };
  await call.admission.mutate('CREATE', subject);
  // Admission may have put another metadata in its place.
  const { metadata } = object;
  for (let attempt = 1; ; attempt++) {
    if (generated !== undefined) metadata.name = generateName(generated);
    const completing = stages.complete(object, { attempt, isRewritten: subject.rewritten === true });
    const completed = completing instanceof Promise ? await completing : completing;
    const companions: Companion[] = [];
    const checks: WriteCheck[] = [];
    const name = completed.object.metadata.name!;
    await call.admission.validate('CREATE', {
      name,
      object: completed.object,
      oldObject: undefined,
      companions,
      checks,
    });
    // Upstream's storage says so, when everything else about the object is found right.
    if (isVersioned && !call.dryRun)
      throw new ApiError({ code: 500, message: 'resourceVersion should not be set on objects to be created' });
    const key: StoreKey = { prefix: storagePrefix(info), namespace: call.namespace, name };
    try {
      return await refuseWhenDurable(registry.store, key, () =>
        insert(registry, call, { key, completed, companions, checks }),
      );
    } catch (error) {
      if (generated === undefined || !(error instanceof ApiError) || error.reason !== 'AlreadyExists') throw error;
      if (attempt >= GENERATE_NAME_ATTEMPTS) throw generatedNamesExhausted(error);
    }
  }
}

/** What one needs to know of a create to do its stages, on whichever thread. */
export interface CreateFacts extends Pick<WriteCall, 'info' | 'subresource' | 'namespace' | 'manager' | 'warn'> {
  readonly tracked?: boolean;
  readonly trusted?: boolean;
}

function stagesOf(registry: Registry, call: CreateCall): CreateStages {
  const given = call.object;
  if (isSent(given)) return registry.elsewhere!.create(call, given);
  return {
    begin: () => beginCreate(registry, call, given),
    complete(object, about) {
      completeCreate(registry.clock.now(), call, { object, ...about });
      return { object, decide: () => storeDecision(call.info, object) };
    },
  };
}

const isSent = (given: UnstructuredObject | SentBody): given is SentBody => given['bytes'] instanceof Uint8Array;

/** Takes what the server sets out of a new object, and writes down whose its fields are. */
export function beginCreate(
  { fields, clock }: StageServices,
  facts: CreateFacts,
  object: UnstructuredObject,
): BegunCreate | Promise<BegunCreate> {
  const { info, subresource, manager } = facts;
  const given = object.metadata;
  matchNamespace(given, facts.namespace);
  const begun: BegunCreate = { object, isVersioned: isVersion(given.resourceVersion) };
  delete given.resourceVersion;
  const { managedFields } = given;
  wipeSystemMetadata(given, { applied: facts.tracked === true });
  dedupeOwnerReferences(given, facts.tracked ? 'made' : 'sent', facts.warn);
  if (info.strategy.namesItself && !given.name && !given.generateName) given.name = crypto.randomUUID();
  if (facts.tracked) {
    if (managedFields) given.managedFields = managedFields;
    return begun;
  }
  const tracking = fields?.track({ info, subresource, manager, live: undefined, now: clock.now() }, object);
  return tracking ? tracking.then(() => begun) : begun;
}

/** Sets what the server sets, and validates. Throws ApiError 422. */
export function completeCreate(
  now: number,
  facts: CreateFacts,
  written: { readonly object: UnstructuredObject; readonly attempt: number; readonly isRewritten: boolean },
): void {
  const { info, warn } = facts;
  const { object, attempt } = written;
  const { metadata } = object;
  if (written.isRewritten && attempt === 1) {
    const tracked = metadata.managedFields;
    matchNamespace(metadata, facts.namespace);
    wipeSystemMetadata(metadata);
    dedupeOwnerReferences(metadata, 'made', warn);
    if (tracked) metadata.managedFields = tracked;
  }
  fillSystemMetadata(info, metadata, now);
  checkGeneration(info, metadata);
  // After the name and the uid: a namespace's label and a Job's selector are made of them.
  applyKindDefaults(info, object);
  if (attempt === 1) info.strategy.prepareForCreate?.(object, { now });
  if (!facts.trusted) validateObject(info, object);
  if (attempt === 1) warnAboutCreate(facts, object);
}

/** What the store is given of a new object. A promise only where a webhook converts. */
export function storeDecision(info: ResourceInfo, object: UnstructuredObject): Decision | Promise<Decision> {
  if (!info.strategy.custom) emptyToNull(info.schema, object);
  const form = storedForm(info, object);
  return form instanceof Promise ? form.then((object) => ({ type: 'put', object })) : { type: 'put', object: form };
}

/** True for a revision that the storage would take for one: upstream drops `0` and what is no number. */
const isVersion = (resourceVersion: string | undefined): boolean =>
  resourceVersion !== undefined && /^[0-9]+$/.test(resourceVersion) && !/^0+$/.test(resourceVersion);

interface Insertion {
  readonly key: StoreKey;
  readonly completed: Completed;
  readonly companions: readonly Companion[];
  readonly checks: readonly WriteCheck[];
}

async function insert(
  registry: Registry,
  call: CreateCall,
  { key, completed, companions, checks }: Insertion,
): Promise<WriteResult> {
  const { info } = call;
  const { object } = completed;
  const refuseExisting = (current: StoredObject | undefined): void => {
    if (!current) return;
    const terminating = current.object.metadata.deletionTimestamp !== undefined;
    throw alreadyExists(info, key.name, terminating ? 'object is being deleted: ' : '');
  };
  if (call.dryRun) {
    refuseExisting(registry.store.peek(key));
    return { created: true, object, stored: undefined, isLarge: completed.isLarge === true };
  }
  const deciding = completed.decide();
  const decision = deciding instanceof Promise ? await deciding : deciding;
  const decide = (current: StoredObject | undefined): Decision => {
    refuseExisting(current);
    runChecks(checks);
    return decision;
  };
  const stored = await writeObject(registry, { info, key, decide }, companionWrites(registry, companions));
  return { created: true, object: await viewWritten(info, stored!), stored };
}

function generatedNamesExhausted({ status }: ApiError): ApiError {
  const { message = '', reason = '', details, code } = status;
  return new ApiError({ code, message, reason, details: { ...details, retryAfterSeconds: 1 } });
}
