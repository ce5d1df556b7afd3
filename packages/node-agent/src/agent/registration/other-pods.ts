/** Pods on this node that are no launchers. */

import { hasEnded, isDeleting } from '@coracle/apimachinery/meta/object-state';
import type { ReadonlyPod } from '@coracle/apimachinery/types/types';
import { isExporter } from '@coracle/kubevirt/rules/export/exporter-pod';
import { isAttachment } from '@coracle/kubevirt/rules/launcher/attachment-pod';
import { claimAddress, listAddresses, releaseAddress } from '../../network/address-pool.ts';
import type { AgentEnvironment } from '../environment.ts';
import { deletePod, writePodStatus } from '../launcher/api-writes.ts';
import { podStatusOf } from '../launcher/pod-status.ts';

/** Pods that are no launchers: those that hold volumes or lead to exports run, others are said once each; all go when somebody deletes them. */
export function createUnmanagedPodStatus(environment: AgentEnvironment): (pod: ReadonlyPod) => void {
  /** UIDs reported; bounded. */
  const reported = new Set<string>();
  return (pod) => {
    const uid = pod.metadata.uid ?? '';
    if (isDeleting(pod)) {
      deletePod(environment, pod).catch((error: Error) =>
        environment.log.warn('pod not deleted', { pod: pod.metadata.name, error: error.message }),
      );
      return;
    }
    const isProgram = isExporter(pod);
    if (isProgram || isAttachment(pod)) {
      const isReported = pod.status?.phase === 'Running' && (!isProgram || pod.status.podIP !== undefined);
      if (isReported || hasEnded(pod)) return;
      reportRunning(environment, pod, isProgram).catch((error: Error) =>
        environment.log.warn('pod not reported', { pod: pod.metadata.name, error: error.message }),
      );
      return;
    }
    if (reported.has(uid)) return;
    if (reported.size > 10_000) reported.clear();
    reported.add(uid);
    environment.events.event(
      pod,
      'Warning',
      'NotSupported',
      'This node runs virtual machines only; a pod that is not a virt-launcher stays Pending here.',
    );
  };
}

async function reportRunning(environment: AgentEnvironment, pod: ReadonlyPod, isProgram: boolean): Promise<void> {
  const { clock, hostIP, addressesDirectory } = environment;
  const address = isProgram && (await claimAddress(addressesDirectory, holderOf(environment, pod)));
  const startedAt = Date.parse(pod.status?.startTime ?? '') || clock.now();
  const running = { state: 'running', startedAt, imageIds: {}, ...(address && { address }) } as const;
  await writePodStatus(environment, pod, (newest) => ({
    status: { ...podStatusOf(newest, running, { hostIP, now: clock.now() }) },
  }));
}

/** Agents of one host share the addresses, and clean up after themselves alone. */
const holderPrefix = (nodeName: string): string => `program ${nodeName} `;
const holderOf = ({ nodeName }: AgentEnvironment, { metadata }: ReadonlyPod): string =>
  holderPrefix(nodeName) + metadata.uid;

/** Gives back the addresses of exporters that this node has no more. */
export async function releaseProgramAddresses(
  environment: AgentEnvironment,
  pods: readonly ReadonlyPod[],
): Promise<void> {
  const { addressesDirectory, nodeName } = environment;
  const kept = new Set(pods.map((pod) => holderOf(environment, pod)));
  for (const [address, holder] of await listAddresses(addressesDirectory))
    if (holder.startsWith(holderPrefix(nodeName)) && !kept.has(holder))
      await releaseAddress(addressesDirectory, address, holder).catch(() => {});
}

/** True for the Pods that this agent starts guests for. */
export const isLauncher = (pod: ReadonlyPod): boolean => pod.metadata.labels?.['kubevirt.io'] === 'virt-launcher';
