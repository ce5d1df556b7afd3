/** POST: a new object, from admission to the store. */

import { type ResourceInfo, storagePrefix } from '../../api/kinds/resource.ts';
import { GENERATE_NAME_ATTEMPTS, generateName } from '../../api/meta/generate-name.ts';
import type { UnstructuredObject } from '../../api/meta/object.ts';
import { ApiError, alreadyExists } from '../../api/meta/status.ts';
import { unqualifiedFinalizers } from '../../api/meta/validate-object-meta.ts';
import type { StoreKey } from '../cache/object-store.ts';
import { applyKindDefaults, validateObject } from './normalize-input.ts';
import { dedupeOwnerReferences, fillSystemMetadata, matchNamespace, wipeSystemMetadata } from './object-metadata.ts';
import { storedForm, viewObject } from './versioned-view.ts';
import type { Registry, WriteCall, WriteResult } from './write-call.ts';

export interface CreateCall extends WriteCall {
  /** Normalised, owned by the callee. */
  readonly object: UnstructuredObject;
  /** True when managedFields were set already (apply). */
  readonly tracked?: boolean;
}

/**
 * Creates `object` (normalised, owned by the callee). Throws ApiError: 400 namespace, 409 taken, 422 not valid, or what
 * admission says.
 */
export async function createObject(registry: Registry, call: CreateCall): Promise<WriteResult> {
  const { info, object } = call;
  const given = object.metadata;
  matchNamespace(given, call.namespace);
  if (given.resourceVersion) {
    throw new ApiError({ code: 500, message: 'resourceVersion should not be set on objects to be created' });
  }
  delete given.resourceVersion;
  const { managedFields } = given;
  wipeSystemMetadata(given);
  dedupeOwnerReferences(given, call.warn);
  if (call.tracked) {
    if (managedFields) given.managedFields = managedFields;
  } else {
    const { subresource, manager } = call;
    registry.fields?.track({ info, subresource, manager, live: undefined, now: registry.clock.now() }, object);
  }
  const generated = !given.name && given.generateName ? given.generateName : undefined;
  await call.admission.mutate('CREATE', { name: given.name ?? '', object, oldObject: undefined });
  // Admission may have put another metadata in its place.
  const { metadata } = object;

  for (let attempt = 1; ; attempt++) {
    if (generated !== undefined) metadata.name = generateName(generated);
    fillSystemMetadata(info, metadata, registry.clock.now());
    // After the name and the uid: a namespace's label and a Job's selector are made of them.
    applyKindDefaults(info, object);
    validateObject(info, object);
    if (attempt === 1) warnAbout(info, call);
    await call.admission.validate('CREATE', { name: metadata.name!, object, oldObject: undefined });
    const key: StoreKey = { prefix: storagePrefix(info), namespace: call.namespace, name: metadata.name! };
    try {
      return await insert(registry, call, key);
    } catch (error) {
      if (generated === undefined || !(error instanceof ApiError) || error.reason !== 'AlreadyExists') throw error;
      if (attempt >= GENERATE_NAME_ATTEMPTS) throw generatedNamesExhausted(error);
    }
  }
}

/** What is allowed and looks like a mistake. */
function warnAbout(info: ResourceInfo, { object, warn }: CreateCall): void {
  for (const text of info.warnings?.(object) ?? []) warn(text);
  if (!info.strategy.custom) return;
  for (const name of unqualifiedFinalizers(object.metadata)) {
    warn(
      `metadata.finalizers: ${JSON.stringify(name)}: prefer a domain-qualified finalizer name including a path (/) to avoid accidental conflicts with other finalizer writers`,
    );
  }
}

async function insert(registry: Registry, call: CreateCall, key: StoreKey): Promise<WriteResult> {
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
  const stored = await registry.store.write(key, (current) => {
    refuseExisting(current);
    return { type: 'put', object: storedForm(info, object) };
  });
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
