/** PUT: replaces an object, or creates it where the kind allows. */

import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import type { UnstructuredObject } from '@coracle/apimachinery/meta/object';
import type { ResourceInfo } from '@coracle/apimachinery/types/resource';
import { createObject, dropsStatus } from './create.ts';
import { guaranteedUpdate } from './guaranteed-update.ts';
import { matchName, matchNamespace } from './object-metadata.ts';
import { namesVersion } from './update-stages.ts';
import type { Registry, SentBody, WriteCall, WriteResult } from './write-contract.ts';

/** Replaces the object with `object` (normalised, owned by the callee). Throws ApiError as `guaranteedUpdate` does. */
export async function updateObject(
  registry: Registry,
  call: WriteCall & {
    readonly object: UnstructuredObject;
    /** What it was sent as, should the stored object be a large one. */
    readonly sent: () => SentBody;
    /** Asked before a PUT creates; rejects with ApiError 403. */
    readonly authorizeCreate: () => Promise<void> | void;
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
    ...(mayCreate(call) && {
      create: async () => {
        await call.authorizeCreate();
        return createObject(registry, {
          ...call,
          object: newObject(call.info, cloneJson(object) as UnstructuredObject),
        });
      },
    }),
  });
}

/** As `updateObject`, with a large body that another thread reads. */
export async function updateLarge(
  registry: Registry,
  call: WriteCall & { readonly sent: SentBody; readonly authorizeCreate: () => Promise<void> | void },
): Promise<WriteResult> {
  const { sent } = call;
  return guaranteedUpdate(registry, {
    ...call,
    sent: () => sent,
    isLarge: true,
    pinned: false,
    next: readElsewhere,
    ...(mayCreate(call) && {
      create: async () => {
        await call.authorizeCreate();
        return createObject(registry, { ...call, object: sent });
      },
    }),
  });
}

/** Of a large body: what is wanted is made where it is read. */
export function readElsewhere(): never {
  throw new TypeError('a large body is read by another thread');
}

const mayCreate = ({ info, subresource }: WriteCall): boolean =>
  info.strategy.allowCreateOnUpdate && subresource === '';

/** The body of a PUT as a new object. */
export function newObject(info: ResourceInfo, object: UnstructuredObject): UnstructuredObject {
  delete object.metadata.resourceVersion;
  if (dropsStatus(info)) delete object['status'];
  return object;
}
