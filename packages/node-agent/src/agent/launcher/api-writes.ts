/** The agent's writes: patches of a status, held to the version they were computed from, tried until they fit. */

import type { ResourceType } from '@coracle/apimachinery/meta/gvk';
import { type DeepReadonly, type KubeObject, keyOf } from '@coracle/apimachinery/meta/object';
import { PODS } from '@coracle/apimachinery/types/resource-types';
import type { ReadonlyPod } from '@coracle/apimachinery/types/types';
import { isConflict, isNotFound, orAbsent, orGone } from '@coracle/client/api-failure';
import type { Patch } from '@coracle/client/client';
import { changed, hasNullInList, statusPatch } from '@coracle/client/commit/status-patch';
import { type ReadonlyVmi, VIRTUAL_MACHINE_INSTANCES } from '@coracle/kubevirt/kinds/kinds';
import type { AgentEnvironment } from '../environment.ts';

const CONFLICTS = 8;
/** Before a second try: the write that was in the way may not be readable yet. Doubled each time. */
const CONFLICT_PAUSE_MS = 5;

/** What is written: fields of the status, and annotations where the kind takes them through its status (Pods do). */
export interface StatusWrite {
  readonly status: Readonly<Record<string, unknown>>;
  readonly annotations?: Readonly<Record<string, string>>;
}

/**
 * Computes a change from the newest object and writes it to `status`; on a conflict reads again and computes anew.
 * Returns the object as it is afterwards; undefined when it is gone or has another UID. Other failures are thrown.
 */
async function writeStatus<T extends KubeObject>(
  environment: AgentEnvironment,
  type: ResourceType<T>,
  known: DeepReadonly<T>,
  change: (object: DeepReadonly<T>) => StatusWrite | undefined,
): Promise<DeepReadonly<T> | undefined> {
  const { client, signal } = environment;
  const key = keyOf(known as unknown as KubeObject);
  const { uid } = known.metadata;
  let object: DeepReadonly<T> = known;
  for (let attempt = 0; ; attempt++) {
    const wanted = change(object);
    if (!wanted) return object;
    try {
      return await patchStatus(environment, type, object, wanted);
    } catch (error) {
      if (isNotFound(error)) return undefined;
      if (!isConflict(error) || attempt >= CONFLICTS) throw error;
    }
    await environment.clock.sleep(CONFLICT_PAUSE_MS * 2 ** attempt, signal);
    const stored = await orAbsent(client.get(type, key, { signal }));
    if (!stored) return undefined;
    object = stored as DeepReadonly<T>;
    if (object.metadata.uid !== uid) return undefined;
  }
}

/** One write of what changes in the status, held to the version of `object`. Throws what the API says. */
export async function patchStatus<T extends KubeObject>(
  { client, signal }: AgentEnvironment,
  type: ResourceType<T>,
  object: DeepReadonly<T>,
  { status, annotations }: StatusWrite,
): Promise<DeepReadonly<T>> {
  const known = object as unknown as KubeObject & { readonly status?: unknown };
  const { uid, resourceVersion } = known.metadata;
  // Built-in kinds have times that are null whether or not they are sent.
  const patch: Patch =
    type.group !== '' && hasNullInList(status)
      ? statusPatch(known, changed(known.status, status))
      : { type: 'merge', body: { metadata: { uid, resourceVersion, ...(annotations && { annotations }) }, status } };
  return (await client.patch(type, keyOf(known), patch, { subresource: 'status', signal })) as DeepReadonly<T>;
}

export const writePodStatus = (
  environment: AgentEnvironment,
  pod: ReadonlyPod,
  change: (pod: ReadonlyPod) => StatusWrite | undefined,
): Promise<ReadonlyPod | undefined> => writeStatus(environment, PODS, pod, change);

export const writeVmiStatus = (
  environment: AgentEnvironment,
  vmi: ReadonlyVmi,
  change: (vmi: ReadonlyVmi) => Readonly<Record<string, unknown>>,
): Promise<ReadonlyVmi | undefined> =>
  writeStatus(environment, VIRTUAL_MACHINE_INSTANCES, vmi, (newest) => {
    const status = change(newest);
    return Object.keys(status).length === 0 ? undefined : { status };
  });

/** Ends the life of a Pod object: what a kubelet does when the last container is gone. */
export async function deletePod(environment: AgentEnvironment, pod: ReadonlyPod): Promise<void> {
  const { uid } = pod.metadata;
  await orGone(
    environment.client.delete(PODS, keyOf(pod as unknown as KubeObject), {
      gracePeriodSeconds: 0,
      ...(uid !== undefined && { preconditions: { uid } }),
      signal: environment.signal,
    }),
  );
}
