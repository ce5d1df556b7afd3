/** Rules about replica sets of instances: the template is validated as an instance would be. */

import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import type { VirtualMachineInstanceReplicaSet } from '../../../kinds/kubevirt.ts';
import type { ClusterConfig } from '../../../rules/machine-defaults/cluster-config.ts';
import { type Cause, invalidValue, requiredValue } from './causes.ts';
import { validateInstanceSpec } from './validate-instance-spec.ts';

export function validateReplicaSet(
  { spec: { template, selector } }: DeepReadonly<VirtualMachineInstanceReplicaSet>,
  config: ClusterConfig,
): Cause[] {
  if (template?.spec?.domain?.devices === undefined) {
    return [requiredValue('spec.template', 'missing virtual machine template.')];
  }
  const labels = template.metadata?.labels ?? {};
  const spec = template.spec as Parameters<typeof validateInstanceSpec>[1];
  const causes = validateInstanceSpec('spec.template.spec', spec, config);
  const wanted = selector.matchLabels ?? {};
  for (const key of Object.keys(wanted)) {
    if (Object.hasOwn(labels, key) && labels[key] === wanted[key]) continue;
    causes.push(invalidValue('spec.selector', 'selector does not match labels.'));
    break;
  }
  return causes;
}
