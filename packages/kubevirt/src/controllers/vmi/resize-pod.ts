/** Gives the launcher Pod of a running instance the size its spec asks for by now, where no migration is to do that. */

import { keyOf } from '@coracle/apimachinery/meta/object';
import { isDeleting } from '@coracle/apimachinery/meta/object-state';
import { ApiError } from '@coracle/apimachinery/meta/status';
import { PODS } from '@coracle/apimachinery/types/resource-types';
import type { Pod, ReadonlyPod } from '@coracle/apimachinery/types/types';
import type { Client } from '@coracle/client/client';
import type { ReadonlyVmi } from '../../kinds/kubevirt.ts';
import { type CarrierFacts, carrierOf } from '../../rules/live-update/carrier.ts';
import { isMoving, pendingChanges } from '../../rules/live-update/pending-changes.ts';
import { COMPUTE, resizeOf, resizeProblem, shrinkOf } from '../../rules/live-update/pod-resize.ts';
import type { PodSizing } from '../../rules/machine-defaults/cluster-config.ts';

export interface ResizeFacts extends CarrierFacts {
  readonly sizing: PodSizing;
}

/** What a change waits for, for the condition that shows it; undefined when nothing is the matter. */
interface ResizeOutcome {
  /** A change waits to be carried. */
  readonly pending: boolean;
  readonly waiting?: string;
}

/** Resizes the Pod if that is what is missing. Throws what the API says, unless it refuses the size. */
export async function resizePod(
  client: Client,
  { vmi, pod }: { readonly vmi: ReadonlyVmi; readonly pod: ReadonlyPod | undefined },
  facts: ResizeFacts,
): Promise<ResizeOutcome> {
  const isRunning = vmi.status?.phase === 'Running' && !isDeleting(vmi);
  if (!pod || !isRunning || isDeleting(pod)) return { pending: false };
  const { vcpus, memory } = pendingChanges(vmi);
  const pending = vcpus || memory;
  if (isMoving(vmi)) return { pending };
  if (pending && carrierOf(vmi, facts) === 'migration')
    return { pending, waiting: 'A live migration to a launcher pod of the new size brings the change' };
  const resources = (pending ? resizeOf : shrinkOf)(vmi, pod, facts.sizing);
  const node = pod.spec.nodeName ?? '';
  if (!resources) {
    const trouble = pending ? resizeProblem(pod) : undefined;
    return { pending, ...(trouble && { waiting: `Node ${node} cannot make the change yet: ${trouble}` }) };
  }
  try {
    const body = { metadata: { uid: pod.metadata.uid }, spec: { containers: [{ name: COMPUTE, resources }] } };
    await client.patch(PODS, keyOf(pod as Pod), { type: 'strategic', body }, { subresource: 'resize' });
    return { pending };
  } catch (error) {
    if (!(error instanceof ApiError) || error.code >= 500 || error.code === 429) throw error;
    return { pending, waiting: `The launcher pod cannot be resized: ${error.message}` };
  }
}
