/** The KubeVirt object of a fresh board. */

import { formatTime } from '@coracle/apimachinery/meta/object';
import type { KubeVirt } from '../../kinds/kubevirt.ts';

export const KUBEVIRT_NAMESPACE = 'kubevirt';

export interface DefaultKubeVirtOptions {
  /** The version it reports. */
  readonly version: string;
  /** Milliseconds since the epoch: the time of its conditions. */
  readonly now: number;
  /** Architecture of the host: what guests get when they name none. */
  readonly architecture: string;
  /** True when guests run without hardware acceleration. */
  readonly useEmulation: boolean;
}

/**
 * Differs from upstream's defaults in two things: the default binding is masquerade, because user-mode networking has no
 * bridge, and object graphs are on, because they only read and tell who asks before deleting what depends on what. What upstream's installer would fill in says what is running.
 */
export function defaultKubeVirt({ version, now, architecture, useEmulation }: DefaultKubeVirtOptions): KubeVirt {
  const condition = (type: string, status: 'True' | 'False', reason: string, message: string) => ({
    type,
    status,
    reason,
    message,
    lastProbeTime: formatTime(now),
    lastTransitionTime: formatTime(now),
  });
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'KubeVirt',
    metadata: { name: 'kubevirt', namespace: KUBEVIRT_NAMESPACE, annotations: {} },
    spec: {
      configuration: {
        developerConfiguration: { featureGates: ['ObjectGraph'], ...(useEmulation && { useEmulation }) },
        network: { defaultNetworkInterface: 'masquerade' },
        evictionStrategy: 'None',
        vmRolloutStrategy: 'LiveUpdate',
      },
      workloadUpdateStrategy: {},
      uninstallStrategy: 'BlockUninstallIfWorkloadsExist',
    },
    status: {
      phase: 'Deployed',
      conditions: [
        condition('Created', 'True', 'AllResourcesCreated', 'All resources were created.'),
        condition('Available', 'True', 'AllComponentsReady', 'All components are ready.'),
        condition('Progressing', 'False', 'AllComponentsReady', 'All components are ready.'),
        condition('Degraded', 'False', 'AllComponentsReady', 'All components are ready.'),
      ],
      defaultArchitecture: architecture,
      operatorVersion: version,
      targetKubeVirtVersion: version,
      observedKubeVirtVersion: version,
      outdatedVirtualMachineInstanceWorkloads: 0,
    },
  };
}
