/** Rules about pools of machines (virtualmachinepool-validator). */

import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import { parseGoDuration } from '@coracle/apimachinery/meta/go-duration';
import type { FieldError } from '@coracle/apimachinery/meta/status';
import { fromLabelSelectorObject, matchesLabels } from '@coracle/apimachinery/selector/label-selector';
import type { Client } from '@coracle/client/client';
import type { ReadonlyPool, ReadonlyVm } from '../../../kinds/kubevirt.ts';
import type { AdmissionContext } from './admission-context.ts';
import { countPresent, Findings, requiredValue } from './causes.ts';
import { expandMachine } from './instancetypes.ts';
import { validateVirtualMachine } from './validate-virtual-machine.ts';

/** Everything that is wrong with a pool; `old` is the one it replaces. */
export async function validatePool(
  pool: ReadonlyPool,
  old: ReadonlyPool | undefined,
  context: AdmissionContext,
  client: Client,
): Promise<readonly FieldError[]> {
  const { selector, virtualMachineTemplate } = pool.spec;
  if (virtualMachineTemplate?.spec?.template === undefined)
    return [requiredValue('spec.virtualMachineTemplate', 'missing virtual machine template.')];
  const found = new Findings('spec');
  const parsed = fromLabelSelectorObject(selector);
  if (parsed.requirements.length === 0 || !matchesLabels(parsed, virtualMachineTemplate.metadata?.labels))
    found.invalid('.selector', 'selector does not match labels.');
  if (old !== undefined && !deepEqual(old.spec.selector, selector))
    found.forbidden('.selector', 'selector is immutable after creation');
  validateStrategies(found, pool);
  const machine: ReadonlyVm = {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name: pool.metadata.name ?? '', namespace: pool.metadata.namespace ?? '' },
    spec: virtualMachineTemplate.spec,
  };
  const expand = async () => (await expandMachine(machine, context, client))?.template;
  const ofMachine = await validateVirtualMachine(machine, undefined, context, expand);
  return [
    ...found.causes,
    ...ofMachine.map(({ detail, ...cause }) => ({
      ...cause,
      field: cause.field.replace(/^spec/, 'spec.virtualMachineTemplate.spec'),
      ...(detail !== undefined && {
        detail: detail.replaceAll(/\bspec\.template\./g, 'spec.virtualMachineTemplate.spec.template.'),
      }),
    })),
  ];
}

function validateStrategies(found: Findings, { spec }: ReadonlyPool): void {
  for (const name of ['scaleInStrategy', 'updateStrategy'] as const) {
    const strategy = spec[name];
    if (strategy !== undefined && countPresent(Object.values(strategy)) !== 1)
      found.invalid(`.${name}`, `spec.${name} must have exactly one strategy set`);
  }
  for (const kind of ['proactive', 'opportunistic'] as const)
    if (spec.scaleInStrategy?.[kind]?.statePreservation === 'Online') {
      const text = 'the memory of machines that go is not kept: Offline keeps their disks';
      found.invalid(`.scaleInStrategy.${kind}.statePreservation`, text);
    }
  const { maxUnavailable } = spec;
  if (typeof maxUnavailable === 'string' && !/^[0-9]{1,3}%$/.test(maxUnavailable))
    found.invalid('.maxUnavailable', `spec.maxUnavailable "${maxUnavailable}" is not a percentage`);
  const after = spec.autohealing?.minFailingToStartDuration;
  if (after !== undefined && parseGoDuration(after) === undefined)
    found.invalid('.autohealing.minFailingToStartDuration', `"${after}" is not a duration, such as 5m or 1h30m`);
}
