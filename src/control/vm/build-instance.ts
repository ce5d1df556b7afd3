/** The VirtualMachineInstance a VirtualMachine starts: pure. */
import type { VirtualMachine, VirtualMachineInstance } from '../../api/kinds/kubevirt/kubevirt.ts';
import { cloneJson } from '../../api/meta/deep-clone.ts';
import type { DeepReadonly } from '../../api/meta/object.ts';
import { ownerReferenceTo } from './owner-reference.ts';
import { OBSERVED_API_VERSIONS, VM_FINALIZER, VM_GENERATION } from './vm-view.ts';

/** Builds the instance; `paused` starts the guest paused, `legacyUuid` is used where the template has none. */
export function buildInstance(
  vm: DeepReadonly<VirtualMachine>,
  options: { readonly paused: boolean; readonly legacyUuid: string },
): VirtualMachineInstance {
  const template = cloneJson(vm.spec.template) as VirtualMachine['spec']['template'];
  const spec = (template.spec ?? {}) as VirtualMachineInstance['spec'];
  spec.domain ??= {} as NonNullable<typeof spec.domain>;
  spec.domain.firmware = { ...spec.domain.firmware, uuid: spec.domain.firmware?.uuid || options.legacyUuid };
  if (options.paused) spec.startStrategy = 'Paused';
  const labels = template.metadata?.labels;
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: {
      name: vm.metadata.name ?? '',
      namespace: vm.metadata.namespace ?? '',
      ...(labels && { labels: { ...labels } }),
      annotations: {
        ...template.metadata?.annotations,
        ...OBSERVED_API_VERSIONS,
        [VM_GENERATION]: String(vm.metadata.generation ?? 0),
      },
      ownerReferences: [ownerReferenceTo(vm)],
      finalizers: [VM_FINALIZER],
    },
    spec,
  } as VirtualMachineInstance;
}
