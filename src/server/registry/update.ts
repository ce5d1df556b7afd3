/** PUT: replaces an object, or creates it where the kind allows. */

import { cloneJson } from '../../api/meta/deep-clone.ts';
import type { UnstructuredObject } from '../../api/meta/object.ts';
import { createObject, dropsStatus } from './create.ts';
import { guaranteedUpdate, namesVersion } from './guaranteed-update.ts';
import { matchName, matchNamespace } from './object-metadata.ts';
import type { Registry, WriteCall, WriteResult } from './write-call.ts';

/** Replaces the object with `object` (normalised, owned by the callee). Throws ApiError as `guaranteedUpdate` does. */
export async function updateObject(
  registry: Registry,
  call: WriteCall & {
    readonly object: UnstructuredObject;
    /** Asked before a PUT creates; rejects with ApiError 403. */
    readonly authorizeCreate: () => Promise<void> | void;
  },
): Promise<WriteResult> {
  const { info, object, subresource } = call;
  matchNamespace(object.metadata, call.namespace);
  matchName(object.metadata, call.name);
  const mayCreate = info.strategy.createOnUpdate && subresource === '';
  return guaranteedUpdate(registry, {
    ...call,
    pinned: namesVersion(object.metadata.resourceVersion),
    // Each attempt changes its object (admission, status isolation): only the caller's copy stays as it was sent.
    next: () => cloneJson(object) as UnstructuredObject,
    ...(mayCreate && {
      create: async () => {
        await call.authorizeCreate();
        const fresh = cloneJson(object) as UnstructuredObject;
        delete fresh.metadata.resourceVersion;
        if (dropsStatus(info)) delete fresh['status'];
        return createObject(registry, { ...call, object: fresh });
      },
    }),
  });
}
