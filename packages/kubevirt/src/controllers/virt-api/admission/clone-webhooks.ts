/** The webhooks about clones. */
import { VIRTUAL_MACHINE_CLONES } from '../../../kinds/kubevirt.ts';
import { mutateClone, validateNewClone } from './validate-clone.ts';
import { validateUnchanged } from './validate-snapshot.ts';
import { type MutatingWebhook, mutating, type ValidatingWebhook, validating } from './webhook.ts';

export const CLONE_MUTATING_WEBHOOKS: readonly MutatingWebhook[] = [
  mutating(
    VIRTUAL_MACHINE_CLONES,
    'CREATE : virtualmachineclones-mutator.kubevirt.io : /vm-clone-mutate-create',
    ({ object }) => mutateClone(object),
  ),
];

export const CLONE_WEBHOOKS: readonly ValidatingWebhook[] = [
  validating(
    VIRTUAL_MACHINE_CLONES,
    'CREATE UPDATE : vm-clone-validator.kubevirt.io : /vm-clone-validate-create',
    ({ object, old, context }) =>
      old === undefined ? validateNewClone(object, context) : validateUnchanged(object.spec, old.spec),
  ),
];
