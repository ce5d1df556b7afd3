/** Rules about pools of machines (virtualmachinepool-validator). */

import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import { parseGoDuration } from '@coracle/apimachinery/meta/go-duration';
import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import type { FieldError } from '@coracle/apimachinery/meta/status';
import { fromLabelSelectorObject, matchesLabels } from '@coracle/apimachinery/selector/label-selector';
import type { Client } from '@coracle/client/client';
import type { VirtualMachine, VirtualMachinePool } from '../../../kinds/kubevirt.ts';
import type { AdmissionContext } from './admission-context.ts';
import { addAll, type Cause, countPresent, forbiddenValue, invalidValue, requiredValue } from './causes.ts';
import { expandMachine } from './instancetypes.ts';
import { validateVirtualMachine } from './validate-virtual-machine.ts';

type Pool = DeepReadonly<VirtualMachinePool>;

/** Everything that is wrong with a pool; `old` is the one it replaces. */
export async function validatePool(
  pool: Pool,
  old: Pool | undefined,
  context: AdmissionContext,
  client: Client,
): Promise<readonly FieldError[]> {
  const { selector, virtualMachineTemplate } = pool.spec;
  if (virtualMachineTemplate?.spec?.template === undefined)
    return [requiredValue('spec.virtualMachineTemplate', 'missing virtual machine template.')];
  const causes: Cause[] = [];
  const parsed = fromLabelSelectorObject(selector);
  if (parsed.requirements.length === 0 || !matchesLabels(parsed, virtualMachineTemplate.metadata?.labels))
    causes.push(invalidValue('spec.selector', 'selector does not match labels.'));
  if (old !== undefined && !deepEqual(old.spec.selector, selector))
    causes.push(forbiddenValue('spec.selector', 'selector is immutable after creation'));
  addAll(causes, validateStrategies(pool));
  const machine: DeepReadonly<VirtualMachine> = {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name: pool.metadata.name ?? '', namespace: pool.metadata.namespace ?? '' },
    spec: virtualMachineTemplate.spec,
  };
  const expand = async () => (await expandMachine(machine, context, client))?.template;
  const found = await validateVirtualMachine(machine, undefined, context, expand);
  return [
    ...causes,
    ...found.map((cause) => ({ ...cause, field: cause.field.replace(/^spec/, 'spec.virtualMachineTemplate.spec') })),
  ];
}

function validateStrategies({ spec }: Pool): Cause[] {
  const causes: Cause[] = [];
  for (const name of ['scaleInStrategy', 'updateStrategy'] as const) {
    const strategy = spec[name];
    if (strategy !== undefined && countPresent(Object.values(strategy)) !== 1)
      causes.push(invalidValue(`spec.${name}`, `spec.${name} must have exactly one strategy set`));
  }
  for (const kind of ['proactive', 'opportunistic'] as const)
    if (spec.scaleInStrategy?.[kind]?.statePreservation === 'Online')
      causes.push(
        invalidValue(
          `spec.scaleInStrategy.${kind}.statePreservation`,
          'the memory of machines that go is not kept: Offline keeps their disks',
        ),
      );
  const { maxUnavailable } = spec;
  if (typeof maxUnavailable === 'string' && !/^[0-9]{1,3}%$/.test(maxUnavailable))
    causes.push(invalidValue('spec.maxUnavailable', `spec.maxUnavailable "${maxUnavailable}" is no percentage`));
  const after = spec.autohealing?.minFailingToStartDuration;
  if (after !== undefined && parseGoDuration(after) === undefined)
    causes.push(
      invalidValue('spec.autohealing.minFailingToStartDuration', `"${after}" is no duration, such as 5m or 1h30m`),
    );
  return causes;
}
