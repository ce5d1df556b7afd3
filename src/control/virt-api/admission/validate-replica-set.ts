/** Rules about replica sets of instances: the template is judged as an instance would be. */
import type { VirtualMachineInstanceReplicaSet } from '../../../api/kinds/kubevirt/kubevirt.ts';
import type { DeepReadonly } from '../../../api/meta/object.ts';
import type { ClusterConfig } from '../../../domain/machine-defaults/cluster-config.ts';
import { type Cause, invalidValue, requiredValue } from './causes.ts';
import { validateVirtualMachineInstanceSpec } from './validate-instance-spec.ts';

export function validateReplicaSet(
  { spec: { template, selector } }: DeepReadonly<VirtualMachineInstanceReplicaSet>,
  config: ClusterConfig,
): Cause[] {
  if (template?.spec?.domain?.devices === undefined) {
    return [requiredValue('spec.template', 'missing virtual machine template.')];
  }
  const labels = template.metadata?.labels ?? {};
  const wanted = Object.entries(selector.matchLabels ?? {});
  const selected = wanted.every(([key, value]) => Object.hasOwn(labels, key) && labels[key] === value);
  return [
    ...validateVirtualMachineInstanceSpec(
      'spec.template.spec',
      template.spec as Parameters<typeof validateVirtualMachineInstanceSpec>[1],
      config,
    ),
    ...(selected ? [] : [invalidValue('spec.selector', 'selector does not match labels.')]),
  ];
}
