/** Rules about replica sets of instances: the template is validated as an instance would be. */

import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import { fromLabelSelectorObject, matchesLabels } from '@coracle/apimachinery/selector/label-selector';
import type { VirtualMachineInstanceReplicaSet } from '../../../kinds/kubevirt.ts';
import type { AdmissionContext } from './admission-context.ts';
import { type Cause, Findings, requiredValue } from './causes.ts';
import { validateInstanceSpec } from './validate-instance-spec.ts';
import { validateMetadata } from './validate-metadata.ts';

export function validateReplicaSet(
  { spec: { template, selector } }: DeepReadonly<VirtualMachineInstanceReplicaSet>,
  context: AdmissionContext,
): readonly Cause[] {
  if (template?.spec?.domain?.devices === undefined)
    return [requiredValue('spec.template', 'missing virtual machine template.')];
  const labels = template.metadata?.labels ?? {};
  const spec = template.spec as Parameters<typeof validateInstanceSpec>[1];
  // Instances are made of it by a controller, which may write labels that users may not.
  const found = new Findings('spec');
  validateMetadata(found.at('.template.metadata'), template.metadata, { ...context, trusted: false });
  validateInstanceSpec(found.at('.template.spec'), spec, context.config);
  if (!matchesLabels(fromLabelSelectorObject(selector), labels))
    found.invalid('.selector', 'selector does not match labels.');
  return found.causes;
}
