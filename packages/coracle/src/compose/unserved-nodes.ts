/**
 * What a start does about nodes that it does not serve, before anything can be scheduled to them: those of this data
 * directory that nobody asked for and that have no guests go, with the Pods on them that nobody can end; those of other
 * agents whose Lease has lapsed are Unknown until they are heard of.
 */
import { join } from 'node:path';
import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import { keyOf } from '@coracle/apimachinery/meta/object';
import { conditionOf, hasEnded, isDeleting } from '@coracle/apimachinery/meta/object-state';
import { LEASES, NODES, PODS } from '@coracle/apimachinery/types/resource-types';
import type { Node, ReadonlyNode, ReadonlyPod } from '@coracle/apimachinery/types/types';
import { isConflict, isNotFound } from '@coracle/client/api-failure';
import type { Client } from '@coracle/client/client';
import { commit } from '@coracle/client/commit/commit';
import { silentConditions, wantedTaints } from '@coracle/kube-controllers/controllers/node-lifecycle-controller';
import { knownAgentId } from '@coracle/node-agent/agent/registration/agent-id';
import { AGENT_ID_ANNOTATION } from '@coracle/node-agent/agent/registration/node-object';
import { LEASE_NAMESPACE } from '@coracle/node-agent/agent/registration/node-registration';
import type { Clock } from '@coracle/runtime/clock/clock';
import type { Logger } from '@coracle/runtime/log/log';

export interface UnservedNodesOptions {
  readonly client: Client;
  /** Where the nodes of this data directory keep their files. */
  readonly nodesDirectory: string;
  /** Names of the nodes that are started: those asked for and those with guests. */
  readonly served: readonly string[];
  readonly clock: Clock;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

export interface UnservedNodes {
  /** Nodes of an earlier start that are no more. */
  readonly removed: readonly string[];
  /** Nodes of other agents that have not been heard of. */
  readonly silent: readonly string[];
}

/** A Lease that was not renewed for so long has lapsed (its own duration where it names one). */
const LEASE_SECONDS = 40;

/** Clears up. A node that cannot be dealt with is logged and left to its Lease. */
export async function clearUnservedNodes(options: UnservedNodesOptions): Promise<UnservedNodes> {
  const { client, served, log, signal } = options;
  const [removed, silent]: [string[], string[]] = [[], []];
  for (const node of (await client.list(NODES, { signal })).items) {
    const name = node.metadata.name ?? '';
    if (served.includes(name)) continue;
    try {
      if (await isOwn(node, options.nodesDirectory)) {
        await removeNode(node, options);
        removed.push(name);
      } else if (await isSilent(node, options)) {
        await markSilent(node, options);
        silent.push(name);
      }
    } catch (error) {
      log.warn('a node that nobody serves was left as it is', { node: name, error: (error as Error).message });
    }
  }
  return { removed: removed.sort(), silent: silent.sort() };
}

/** Its last agent worked in this data directory, which only one process does at a time: this one, and it does not serve it. */
async function isOwn(node: ReadonlyNode, nodesDirectory: string): Promise<boolean> {
  const shown = node.metadata.annotations?.[AGENT_ID_ANNOTATION];
  return shown !== undefined && shown === (await knownAgentId(join(nodesDirectory, node.metadata.name ?? '')));
}

async function removeNode(node: ReadonlyNode, { client, signal }: UnservedNodesOptions): Promise<void> {
  const name = node.metadata.name ?? '';
  const { items } = await client.list(PODS, { fieldSelector: `spec.nodeName=${name}`, signal });
  for (const pod of items) if (pod.spec.nodeName === name) await endPod(pod, client, signal);
  await client.delete(NODES, { namespace: '', name }, { preconditions: { uid: node.metadata.uid ?? '' }, signal });
}

/** A Pod that has ended is kept for its logs and owners; the garbage collector for Pods takes it with its node. */
async function endPod(pod: ReadonlyPod, client: Client, signal: AbortSignal): Promise<void> {
  const isFinal = hasEnded(pod);
  if (isFinal && !isDeleting(pod)) return;
  try {
    if (!isFinal) {
      const status = {
        phase: 'Failed',
        reason: 'NodeLost',
        message: 'the node is no longer served, and no guest runs there',
      };
      const body = { metadata: { uid: pod.metadata.uid }, status };
      await client.patch(PODS, keyOf(pod), { type: 'strategic', body }, { subresource: 'status', signal });
    }
    const preconditions = { uid: pod.metadata.uid ?? '' };
    await client.delete(PODS, keyOf(pod), { gracePeriodSeconds: 0, preconditions, signal });
  } catch (error) {
    if (!isNotFound(error) && !isConflict(error)) throw error;
  }
}

async function isSilent(node: ReadonlyNode, { client, clock, signal }: UnservedNodesOptions): Promise<boolean> {
  const ready = conditionOf(node, 'Ready');
  if (ready?.status === 'Unknown') return false;
  try {
    const { spec } = await client.get(
      LEASES,
      { namespace: LEASE_NAMESPACE, name: node.metadata.name ?? '' },
      { signal },
    );
    const renewed = Date.parse(spec?.renewTime ?? '');
    // A clock that runs ahead of ours is no sign of silence, and one that has it wrong reports again within a second.
    return !(clock.now() - renewed < (spec?.leaseDurationSeconds ?? LEASE_SECONDS) * 1000);
  } catch (error) {
    if (isNotFound(error)) return true;
    throw error;
  }
}

/** As the controller for nodes does after a while; an agent that lives takes it back with its next heartbeat. */
async function markSilent(before: Node, { client, clock, signal }: UnservedNodesOptions): Promise<void> {
  const now = clock.now();
  const silent = cloneJson<Node>(before);
  silent.status = { ...silent.status, conditions: silentConditions(before, now) };
  const marked = (await commit(client, NODES, { before, after: silent, signal })) ?? before;
  const tainted = cloneJson<Node>(marked);
  // Nothing is asked to leave yet: that is the controller's to say.
  tainted.spec = { ...tainted.spec, taints: wantedTaints(silent, now, { isDisrupted: true }) };
  await commit(client, NODES, { before: marked, after: tainted, signal });
}
