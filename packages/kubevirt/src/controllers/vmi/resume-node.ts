/**
 * Where an instance that goes on from saved memory is placed: on the nodes that have the state. It waits while there is
 * none of them, and says so, unless it may boot instead.
 */

import { keyOf, type ObjectKey } from '@coracle/apimachinery/meta/object';
import { policyRules } from '@coracle/apimachinery/types/policy-rules';
import { NODES } from '@coracle/apimachinery/types/resource-types';
import type { ReadonlyNode } from '@coracle/apimachinery/types/types';
import { orAbsent } from '@coracle/client/api-failure';
import type { ControllerEnvironment } from '@coracle/client/controller/environment';
import type { EventRecorder } from '@coracle/client/events/recorder';
import { POOL_LABEL } from '@coracle/cluster-rules/storage/pool-names';
import { type ReadonlyVmi, VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINE_SNAPSHOTS } from '../../kinds/kubevirt.ts';
import type { MemoryPlace } from '../../rules/launcher/node-selector.ts';
import { parseResumeFrom, RESUME_FALLBACK, RESUME_FROM } from '../../rules/memory-state/resume-request.ts';
import { MEMORY_NODE, MEMORY_POOL } from '../../rules/memory-state/saved-memory.ts';
import type { SyncProblem } from './vmi-status.ts';

/** Rights beside those the controller has anyway. */
export const resumeNodeRules = policyRules('list : snapshot.kubevirt.io : virtualmachinesnapshots');

export interface ResumeNodes {
  /** Where the launcher Pod of an instance goes, or why it has to wait; neither where it matters not. */
  of(vmi: ReadonlyVmi): Promise<{ readonly place?: MemoryPlace; readonly problem?: SyncProblem }>;
  /** News of a node: the instances that it may help. */
  observe(node: ReadonlyNode, previous: ReadonlyNode | undefined): ObjectKey[];
}

const REASON = 'FailedResume';
const HOSTNAME = 'kubernetes.io/hostname';
const isWaiting = ({ status }: ReadonlyVmi): boolean =>
  status?.conditions?.some(({ type, reason }) => type === 'Synchronized' && reason === REASON) ?? false;

/** Makes them; informers asked for here are started by the set's owner. */
export function createResumeNodes({ client, informers }: ControllerEnvironment, events: EventRecorder): ResumeNodes {
  const nodes = informers.of(NODES);
  const vmis = informers.of(VIRTUAL_MACHINE_INSTANCES);

  /** The annotations of the snapshot whose memory it is. Few instances ask for one, so nothing is watched for them. */
  const stateOf = async ({ metadata }: ReadonlyVmi): Promise<Readonly<Record<string, string>> | undefined> => {
    const request = parseResumeFrom(metadata.annotations?.[RESUME_FROM] ?? '');
    if (!request) return undefined;
    // A cluster without the kind has no such state either: the agent says so.
    const list = await orAbsent(client.list(VIRTUAL_MACHINE_SNAPSHOTS, { namespace: metadata.namespace ?? '' }));
    return list?.items.find((snapshot) => snapshot.metadata.uid === request.state)?.metadata.annotations;
  };

  return {
    async of(vmi) {
      const { [MEMORY_NODE]: node, [MEMORY_POOL]: pool } = (await stateOf(vmi)) ?? {};
      if (node === undefined) return {};
      const isRequired = vmi.metadata.annotations?.[RESUME_FALLBACK] !== 'Boot';
      const [key, value] = pool === undefined ? [HOSTNAME, node] : [POOL_LABEL, pool];
      const isThere = nodes
        .list()
        .some(({ metadata }) => metadata.labels?.[key] === value || (pool === undefined && metadata.name === node));
      if (isThere) return { place: { key, value, isRequired } };
      if (!isRequired) return {};
      const message = `the guest is not resumed: node ${node}, which has its saved memory, is gone. It waits for it; annotation ${RESUME_FALLBACK}: Boot of the virtual machine boots it from its disks at its next start`;
      if (!isWaiting(vmi)) events.event(vmi, 'Warning', REASON, message);
      return { problem: { reason: REASON, message } };
    },
    observe(node, previous) {
      if (previous && previous.metadata.labels?.[POOL_LABEL] === node.metadata.labels?.[POOL_LABEL]) return [];
      const waiting = vmis.list().filter((vmi) => isWaiting(vmi));
      return waiting.map((vmi) => keyOf(vmi));
    },
  };
}
