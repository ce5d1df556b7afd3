/**
 * The last word of an agent about its Node: no machine is to be scheduled there until an agent serves it again, which
 * takes that back (`node-registration.ts`). Somebody's own cordon stays what it is.
 */

import { formatTime } from '@coracle/apimachinery/meta/object';
import { NODES } from '@coracle/apimachinery/types/resource-types';
import type { Client } from '@coracle/client/client';
import type { Clock } from '@coracle/runtime/clock/clock';
import type { Logger } from '@coracle/runtime/log/log';
import { AGENT_ID_ANNOTATION, UNSERVED_ANNOTATION } from './node-object.ts';

export interface LeaveOptions {
  readonly client: Client;
  readonly nodeName: string;
  /** The id of the agent: a Node that another one has taken over is left alone. */
  readonly agentId: string;
  /** Guests run on: the Node stays Ready as long as its Lease, so that an agent that is soon back finds nothing changed. */
  readonly guestsStay: boolean;
  readonly clock: Clock;
  readonly log: Logger;
  /** Bounds the attempt. */
  readonly signal: AbortSignal;
}

/** Marks the Node unschedulable, and NotReady where no guest stays. Never rejects: its Lease tells in the end. */
export async function leaveNode({
  client,
  nodeName,
  agentId,
  clock,
  log,
  signal,
  guestsStay,
}: LeaveOptions): Promise<void> {
  const key = { namespace: '', name: nodeName };
  try {
    const node = await client.get(NODES, key, { signal });
    if (node.metadata.annotations?.[AGENT_ID_ANNOTATION] !== agentId) return;
    const { uid } = node.metadata;
    if (!node.spec?.unschedulable) {
      const body = { metadata: { uid, annotations: { [UNSERVED_ANNOTATION]: 'true' } }, spec: { unschedulable: true } };
      await client.patch(NODES, key, { type: 'merge', body }, { signal });
    }
    if (guestsStay) return;
    const now = formatTime(clock.now());
    const ready = {
      type: 'Ready',
      status: 'False',
      reason: 'KubeletNotReady',
      message: 'the node agent has stopped',
      lastHeartbeatTime: now,
      lastTransitionTime: now,
    };
    const body = { metadata: { uid }, status: { conditions: [ready] } };
    await client.patch(NODES, key, { type: 'strategic', body }, { subresource: 'status', signal });
  } catch (error) {
    log.debug('the node was not marked as left', { error: (error as Error).message });
  }
}
