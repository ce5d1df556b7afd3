/** Pods on this node that are no launchers. */

import { hasEnded, isDeleting } from '@coracle/apimachinery/meta/object-state';
import type { ReadonlyPod } from '@coracle/apimachinery/types/types';
import { isExporter } from '@coracle/kubevirt/rules/export/exporter-pod';
import { isAttachment } from '@coracle/kubevirt/rules/launcher/attachment-pod';
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
    if (isAttachment(pod) || isExporter(pod)) {
      if (pod.status?.phase === 'Running' || hasEnded(pod)) return;
      const running = { state: 'running', startedAt: environment.clock.now(), imageIds: {} } as const;
      writePodStatus(environment, pod, (newest) => ({
        status: { ...podStatusOf(newest, running, { hostIP: environment.hostIP, now: environment.clock.now() }) },
      })).catch((error: Error) =>
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
      'This node runs virtual machines only; a pod that is no virt-launcher stays Pending here.',
    );
  };
}

const LAUNCHER_SELECTOR = { key: 'kubevirt.io', value: 'virt-launcher' } as const;

/** True for the Pods that this agent starts guests for. */
export const isLauncher = (pod: ReadonlyPod): boolean =>
  pod.metadata.labels?.[LAUNCHER_SELECTOR.key] === LAUNCHER_SELECTOR.value;
