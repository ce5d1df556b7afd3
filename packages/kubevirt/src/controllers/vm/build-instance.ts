/** The VirtualMachineInstance a VirtualMachine starts: pure. */

import { controllerReference } from '@coracle/apimachinery/meta/controller-reference';
import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import type { ReadonlyVm, VirtualMachine, VirtualMachineInstance } from '../../kinds/kubevirt.ts';
import { decideIdentity, withIdentity } from '../../rules/identity/decide-identity.ts';
import { startConflictsMessage } from '../../rules/instancetype/conflicts.ts';
import { applyAtStart, type Layers } from '../../rules/instancetype/expand.ts';
import type { ClusterConfig } from '../../rules/machine-defaults/cluster-config.ts';
import { OBSERVED_API_VERSIONS, VM_FINALIZER } from '../../rules/machine-defaults/hold-machine.ts';
import { FORKED_FROM } from '../../rules/memory-state/fork.ts';
import { RESUME_FALLBACK, RESUME_FROM } from '../../rules/memory-state/resume-request.ts';
import { VM_GENERATION } from './vm-view.ts';

export interface BuildInstanceOptions {
  /** Starts the guest paused. */
  readonly paused: boolean;
  /** What instance type and preference stand for. */
  readonly layers: Layers;
  readonly config: ClusterConfig;
}

/** The machine and its instance type say the same thing differently: upstream's text. */
export class StartConflict extends Error {}

/**
 * Builds the instance.
 * @throws StartConflict
 * @throws DefaultsError when the cluster's settings contradict each other
 */
export function buildInstance(vm: ReadonlyVm, options: BuildInstanceOptions): VirtualMachineInstance {
  const template = cloneJson(vm.spec.template) as VirtualMachine['spec']['template'];
  const spec = (template.spec ?? {}) as VirtualMachineInstance['spec'];
  spec.domain ??= {} as NonNullable<typeof spec.domain>;
  // Dumps are of a guest that runs.
  if (spec.volumes) spec.volumes = spec.volumes.filter(({ memoryDump }) => memoryDump === undefined);
  const { firmware } = spec.domain;
  const vmName = vm.metadata.name ?? '';
  spec.domain.firmware = withIdentity(firmware, decideIdentity({ type: 'instance-of-vm', firmware, vmName }));
  if (options.paused) spec.startStrategy = 'Paused';
  const labels = template.metadata?.labels;
  const instance = {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: {
      name: vmName,
      namespace: vm.metadata.namespace ?? '',
      ...(labels && { labels: { ...labels } }),
      annotations: {
        ...template.metadata?.annotations,
        // For this start, and none later: what a machine says of it goes once its instance runs.
        ...resumeAnnotations(vm),
        ...OBSERVED_API_VERSIONS,
        [VM_GENERATION]: String(vm.metadata.generation ?? 0),
      },
      ownerReferences: [controllerReference(vm)],
      finalizers: [VM_FINALIZER],
    },
    spec,
  } as VirtualMachineInstance;
  const { layers, config } = options;
  const conflicts = applyAtStart({ ...layers, vm, spec, metadata: instance.metadata, config });
  if (conflicts.length > 0) throw new StartConflict(startConflictsMessage(conflicts));
  return instance;
}

function resumeAnnotations({ metadata }: ReadonlyVm): Record<string, string> {
  const { [RESUME_FROM]: from, [RESUME_FALLBACK]: fallback, [FORKED_FROM]: source } = metadata.annotations ?? {};
  if (from === undefined) return {};
  return {
    [RESUME_FROM]: from,
    ...(fallback !== undefined && { [RESUME_FALLBACK]: fallback }),
    // Its agent waits for the state, which may not be saved yet.
    ...(source !== undefined && { [FORKED_FROM]: source }),
  };
}
