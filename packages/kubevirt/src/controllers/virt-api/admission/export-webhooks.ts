/** The webhook about exports. */
import { VIRTUAL_MACHINE_EXPORTS } from '../../../kinds/kubevirt.ts';
import { validateNewExport } from './validate-export.ts';
import { validateUnchanged } from './validate-snapshot.ts';
import { type ValidatingWebhook, validating } from './webhook.ts';

export const EXPORT_WEBHOOKS: readonly ValidatingWebhook[] = [
  validating(
    VIRTUAL_MACHINE_EXPORTS,
    'CREATE UPDATE : virtualmachineexport-validator.export.kubevirt.io : /virtualmachineexports-validate',
    ({ object, old }) => (old === undefined ? validateNewExport(object) : validateUnchanged(object.spec, old.spec)),
  ),
];
