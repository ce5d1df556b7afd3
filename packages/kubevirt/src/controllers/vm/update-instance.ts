/** Brings a change of a virtual machine to its running instance, where the cluster updates instances live. */

import { keyOf } from '@coracle/apimachinery/meta/object';
import { isDeleting } from '@coracle/apimachinery/meta/object-state';
import { isApiError } from '@coracle/client/api-failure';
import type { Client } from '@coracle/client/client';
import { type ReadonlyVm, type ReadonlyVmi, VIRTUAL_MACHINE_INSTANCES } from '../../kinds/kubevirt.ts';
import type { Layers } from '../../rules/instancetype/expand.ts';
import { interfacesDecision } from '../../rules/live-update/interface-changes.ts';
import { type LiveUpdateDecision, liveUpdateDecision } from '../../rules/live-update/live-update-decision.ts';
import { volumesDecision } from '../../rules/live-update/volume-changes.ts';
import type { ClusterConfig } from '../../rules/machine-defaults/cluster-config.ts';
import { DefaultsError } from '../../rules/machine-defaults/implicit-devices.ts';
import { expandedSpec } from './start-revision.ts';
import type { SyncFailure } from './vm-status.ts';

export interface InstanceUpdate {
  /** As it is now. */
  readonly instance: ReadonlyVmi;
  /** Why only a restart brings the change. */
  readonly restart?: string;
  /** Why it has to wait. */
  readonly failure?: SyncFailure;
  /** The decision was made on an instance that has changed since. */
  readonly isStale?: boolean;
}

/**
 * Decides, and patches the instance: volumes and interfaces always, the rest where the cluster updates instances live and nothing else
 * waits for a restart (`isRestartRequired`). Throws what the API says, unless it only says that the instance has changed.
 */
export async function updateInstance(
  client: Client,
  input: {
    readonly vm: ReadonlyVm;
    readonly instance: ReadonlyVmi;
    readonly layers: Layers;
    /** Every DataVolume of the machine is filled. */
    readonly isFilled: boolean;
    readonly config: ClusterConfig;
    readonly cpuAllocationRatio: number;
    readonly isRestartRequired: boolean;
  },
): Promise<InstanceUpdate> {
  const { vm, instance, layers, isFilled, config, cpuAllocationRatio, isRestartRequired } = input;
  const wanted = expandedOrNot(vm, layers, config);
  // Before it runs the guest starts with what its instance was made from.
  if (!wanted || instance.status?.phase !== 'Running' || isDeleting(instance)) return { instance };
  const volumes = config.isEnabled('DeclarativeHotplugVolumes') || config.isEnabled('HotplugVolumes');
  const decisions: LiveUpdateDecision[] = [
    ...(volumes ? [volumesDecision({ wanted, vmi: instance, isFilled })] : []),
    interfacesDecision({ wanted, vmi: instance }),
    ...(config.liveUpdate && !isRestartRequired
      ? [liveUpdateDecision({ wanted, vmi: instance, cpuAllocationRatio })]
      : []),
  ];
  const patch = decisions.flatMap((one) => one.patch);
  const restart = decisions.find((one) => one.restart !== undefined)?.restart;
  const failure = decisions.find((one) => one.failure)?.failure;
  const decision = { ...(restart !== undefined && { restart }), ...(failure && { failure }) };
  if (patch.length === 0) return { instance, ...decision };
  try {
    const body = [{ op: 'test', path: '/metadata/uid', value: instance.metadata.uid } as const, ...patch];
    const patched = await client.patch(VIRTUAL_MACHINE_INSTANCES, keyOf(instance), { type: 'json', body });
    return { instance: patched, ...decision };
  } catch (error) {
    if (!isApiError(error, 404, 409, 422)) throw error;
    return { instance, isStale: true, ...decision };
  }
}

function expandedOrNot(vm: ReadonlyVm, layers: Layers, config: ClusterConfig): ReturnType<typeof expandedSpec> {
  try {
    return expandedSpec({ spec: vm.spec, layers }, config);
  } catch (error) {
    if (error instanceof DefaultsError) return undefined;
    throw error;
  }
}
