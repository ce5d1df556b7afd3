/** Keeps the Node object and its lease alive: the lease every ten seconds, the status when it changes or grows old. */

import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import { formatMicroTime, formatTime } from '@coracle/apimachinery/meta/object';
import { conditionOf, isConditionTrue } from '@coracle/apimachinery/meta/object-state';
import { LEASES, NODES } from '@coracle/apimachinery/types/resource-types';
import type { Lease, Node } from '@coracle/apimachinery/types/types';
import { isAlreadyExists, isConflict, isNotFound } from '@coracle/client/api-failure';
import type { Client } from '@coracle/client/client';
import type { Clock } from '@coracle/runtime/clock/clock';
import type { Logger } from '@coracle/runtime/log/log';
import { servedByAnother, takenMessage } from './agent-id.ts';
import {
  labelChanges,
  type NodeDescription,
  nodeAnnotations,
  nodeLabels,
  nodeObject,
  nodeStatus,
  UNSERVED_ANNOTATION,
} from './node-object.ts';

interface RegistrationOptions {
  readonly client: Client;
  readonly clock: Clock;
  readonly log: Logger;
  readonly signal: AbortSignal;
  readonly describe: () => Promise<NodeDescription>;
  /** Called with the Node as it was read, at each heartbeat. */
  readonly observe?: (node: Node) => void;
}

export const LEASE_NAMESPACE = 'kube-node-lease';
const HEARTBEAT_MS = 10_000;
const LEASE_SECONDS = 40;
/** A status is written at least this often, as by a kubelet. */
const STATUS_MS = 300_000;
/** virt-handler's heartbeat: an annotation that is renewed about once a minute. */
const HANDLER_BEAT_MS = 60_000;
/** When KubeVirt last heard of the node (kubevirt.io/api/core/v1, VirtHandlerHeartbeat). */
export const HANDLER_HEARTBEAT_ANNOTATION = 'kubevirt.io/heartbeat';
const RETRY_MS = 1000;

/**
 * Registers the node (resolves then) and keeps it registered until the signal fires. While another agent serves a node
 * of the name it waits.
 */
export async function registerNode(options: RegistrationOptions): Promise<{ readonly done: Promise<void> }> {
  const { clock, log, signal } = options;
  let statusAt = Number.NEGATIVE_INFINITY;
  const beat = async (): Promise<void> => {
    const description = await options.describe();
    const now = clock.monotonic();
    const node = await ensureNode(options, description);
    options.observe?.(node);
    const ready = isConditionTrue(node, 'Ready');
    const wanted = nodeStatus(description, node.status, clock.now());
    const stable = (['capacity', 'allocatable', 'addresses', 'daemonEndpoints', 'nodeInfo'] as const).every((field) =>
      deepEqual(node.status?.[field], wanted[field]),
    );
    const pressure = (status: Node['status']) => {
      const found = conditionOf({ status }, 'DiskPressure');
      return `${found?.status} ${found?.message}`;
    };
    if (!ready || !stable || pressure(node.status) !== pressure(wanted) || now - statusAt >= STATUS_MS) {
      const key = { namespace: '', name: description.name };
      const patch = { type: 'strategic', body: { status: wanted } } as const;
      await options.client.patch(NODES, key, patch, { subresource: 'status', signal });
      statusAt = now;
    }
    await renewLease(options, description.name, node.metadata.uid ?? '');
  };
  for (;;) {
    try {
      await beat();
      break;
    } catch (error) {
      signal.throwIfAborted();
      log.warn('node not registered yet', { error: (error as Error).message });
      await clock.sleep(RETRY_MS, signal);
    }
  }
  const done = (async () => {
    let pause = HEARTBEAT_MS;
    while (!signal.aborted) {
      await clock.sleep(pause, signal).catch(() => {});
      if (signal.aborted) return;
      try {
        await beat();
        pause = HEARTBEAT_MS;
      } catch (error) {
        if (signal.aborted) return;
        log.warn('heartbeat failed', { error: (error as Error).message });
        pause = RETRY_MS;
      }
    }
  })();
  return { done };
}

/** Reads the Node, making it when missing, and puts our labels and annotations right. Labels of others stay. */
async function ensureNode({ client, clock, signal }: RegistrationOptions, description: NodeDescription): Promise<Node> {
  const key = { namespace: '', name: description.name };
  let node: Node;
  try {
    node = await client.get(NODES, key, { signal });
  } catch (error) {
    if (!isNotFound(error)) throw error;
    try {
      const made = nodeObject(description);
      const annotations = { ...made.metadata.annotations, [HANDLER_HEARTBEAT_ANNOTATION]: formatTime(clock.now()) };
      return await client.create(NODES, { ...made, metadata: { ...made.metadata, annotations } }, { signal });
    } catch (second) {
      if (!isAlreadyExists(second)) throw second;
      node = await client.get(NODES, key, { signal });
    }
  }
  if (description.agentId !== undefined && servedByAnother(node, description.agentId))
    throw new Error(takenMessage(description.name));
  const labels = nodeLabels(description);
  const annotations: Record<string, string> = nodeAnnotations(description);
  const beat = node.metadata.annotations?.[HANDLER_HEARTBEAT_ANNOTATION];
  const isStale = beat === undefined || !(Math.abs(clock.now() - Date.parse(beat)) < HANDLER_BEAT_MS);
  if (isStale) annotations[HANDLER_HEARTBEAT_ANNOTATION] = formatTime(clock.now());
  // What somebody else wrote there stands until the next heartbeat, as upstream: a cordon is what keeps a node empty.
  else if (node.metadata.labels?.['kubevirt.io/schedulable'] !== undefined) delete labels['kubevirt.io/schedulable'];
  const changes = labelChanges(node.metadata, labels);
  // An agent that left made the node unschedulable; a cordon of somebody else carries no such mark.
  const isUnserved = node.metadata.annotations?.[UNSERVED_ANNOTATION] !== undefined;
  const isBehind = Object.entries(annotations).some(([name, value]) => node.metadata.annotations?.[name] !== value);
  if (Object.keys(changes).length === 0 && !isUnserved && !isBehind) return node;
  const metadata = {
    labels: changes,
    annotations: { ...annotations, ...(isUnserved && { [UNSERVED_ANNOTATION]: null }) },
  };
  const body = { metadata, ...(isUnserved && { spec: { unschedulable: null } }) };
  return client.patch(NODES, key, { type: 'merge', body }, { signal });
}

async function renewLease(
  { client, clock, log, signal }: RegistrationOptions,
  name: string,
  uid: string,
): Promise<void> {
  const key = { namespace: LEASE_NAMESPACE, name };
  const renewTime = formatMicroTime(clock.now());
  const spec = { holderIdentity: name, leaseDurationSeconds: LEASE_SECONDS, renewTime };
  try {
    await client.patch(LEASES, key, { type: 'merge', body: { spec } }, { signal });
    return;
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
  const lease: Lease = {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { ...key, ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name, uid }] },
    spec,
  };
  try {
    await client.create(LEASES, lease, { signal });
  } catch (error) {
    if (isNotFound(error)) log.debug('no namespace for node leases yet', { namespace: LEASE_NAMESPACE });
    else if (!isAlreadyExists(error) && !isConflict(error)) throw error;
  }
}
