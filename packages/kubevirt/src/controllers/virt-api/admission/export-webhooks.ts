/** The webhook about exports. */
import { VIRTUAL_MACHINE_EXPORTS, type VirtualMachineExport } from '../../../kinds/kubevirt.ts';
import { validateNewExport } from './validate-export.ts';
import { validateUnchanged } from './validate-snapshot.ts';
import { type ValidatingWebhook, validating } from './webhook.ts';

export const EXPORT_WEBHOOKS: readonly ValidatingWebhook[] = [
  validating<VirtualMachineExport>(
    {
      name: 'virtualmachineexport-validator.export.kubevirt.io',
      path: '/virtualmachineexports-validate',
      type: VIRTUAL_MACHINE_EXPORTS,
      operations: ['CREATE', 'UPDATE'],
    },
    ({ object, old }) => (old === undefined ? validateNewExport(object) : validateUnchanged(object.spec, old.spec)),
  ),
];
