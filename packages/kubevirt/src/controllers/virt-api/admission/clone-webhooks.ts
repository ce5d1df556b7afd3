/** The webhooks about clones. */
import { VIRTUAL_MACHINE_CLONES, type VirtualMachineClone } from '../../../kinds/kubevirt.ts';
import { mutateClone, validateNewClone } from './validate-clone.ts';
import { validateUnchanged } from './validate-snapshot.ts';
import { type MutatingWebhook, mutating, type ValidatingWebhook, validating } from './webhook.ts';

export const CLONE_MUTATING_WEBHOOKS: readonly MutatingWebhook[] = [
  mutating<VirtualMachineClone>(
    {
      name: 'virtualmachineclones-mutator.kubevirt.io',
      path: '/vm-clone-mutate-create',
      type: VIRTUAL_MACHINE_CLONES,
      operations: ['CREATE'],
    },
    ({ object }) => mutateClone(object),
  ),
];

export const CLONE_WEBHOOKS: readonly ValidatingWebhook[] = [
  validating<VirtualMachineClone>(
    {
      name: 'vm-clone-validator.kubevirt.io',
      path: '/vm-clone-validate-create',
      type: VIRTUAL_MACHINE_CLONES,
      operations: ['CREATE', 'UPDATE'],
    },
    ({ object, old, context }) =>
      old === undefined ? validateNewClone(object, context) : validateUnchanged(object.spec, old.spec),
  ),
];
