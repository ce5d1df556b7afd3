/** PUT: replaces an object, or creates it where the kind allows. */

import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import type { UnstructuredObject } from '@coracle/apimachinery/meta/object';
import type { ResourceInfo } from '@coracle/apimachinery/types/resource';
import { createObject, dropsStatus } from './create.ts';
import { guaranteedUpdate } from './guaranteed-update.ts';
import { matchName, matchNamespace } from './object-metadata.ts';
import { namesVersion } from './update-stages.ts';
import type { Registry, SentBody, UpdateCall, WriteCall, WriteResult } from './write-contract.ts';

interface PutCall extends WriteCall {
  /** Asked before a PUT creates; rejects with ApiError 403. */
  readonly authorizeCreate: () => Promise<void> | void;
}

/** Replaces the object with `object` (normalised, owned by the callee). Throws ApiError as `guaranteedUpdate` does. */
export async function updateObject(
  registry: Registry,
  call: PutCall & {
    readonly object: UnstructuredObject;
    /** What it was sent as, should the stored object be a large one. */
    readonly sent: () => SentBody;
  },
): Promise<WriteResult> {
  const { object } = call;
  matchNamespace(object.metadata, call.namespace);
  matchName(object.metadata, call.name);
  return guaranteedUpdate(registry, {
    ...call,
    pinned: namesVersion(object.metadata.resourceVersion),
    // Each attempt changes its object (admission, status isolation): only the caller's copy stays as it was sent.
    next: () => cloneJson(object) as UnstructuredObject,
    ...creating(registry, call, () => newObject(call.info, cloneJson(object) as UnstructuredObject)),
  });
}

/** As `updateObject`, with a large body that another thread reads. */
export async function updateLarge(
  registry: Registry,
  call: PutCall & { readonly sent: SentBody },
): Promise<WriteResult> {
  const { sent } = call;
  return guaranteedUpdate(registry, {
    ...call,
    sent: () => sent,
    isLarge: true,
    pinned: false,
    next: readElsewhere,
    ...creating(registry, call, () => sent),
  });
}

/** Of a large body: what is wanted is made where it is read. */
export function readElsewhere(): never {
  throw new TypeError('a large body is read by another thread');
}

/** What to do when there is no such object, where the kind allows that. */
function creating(
  registry: Registry,
  call: PutCall,
  object: () => UnstructuredObject | SentBody,
): Pick<UpdateCall, 'create'> {
  if (!call.info.strategy.allowCreateOnUpdate || call.subresource !== '') return {};
  const create = async (): Promise<WriteResult> => {
    await call.authorizeCreate();
    return createObject(registry, { ...call, object: object() });
  };
  return { create };
}

/** The body of a PUT as a new object. */
export function newObject(info: ResourceInfo, object: UnstructuredObject): UnstructuredObject {
  delete object.metadata.resourceVersion;
  if (dropsStatus(info)) delete object['status'];
  return object;
}
