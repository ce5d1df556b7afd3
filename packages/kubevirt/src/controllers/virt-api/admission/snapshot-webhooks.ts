/** The webhooks about snapshots and restores. */
import {
  VIRTUAL_MACHINE_RESTORES,
  VIRTUAL_MACHINE_SNAPSHOT_CONTENTS,
  VIRTUAL_MACHINE_SNAPSHOTS,
  type VirtualMachineRestore,
  type VirtualMachineSnapshot,
  type VirtualMachineSnapshotContent,
} from '../../../kinds/kubevirt.ts';
import { validateNewRestore } from './validate-restore.ts';
import { validateSnapshot, validateSnapshotContent, validateUnchanged } from './validate-snapshot.ts';
import { type ValidatingWebhook, validating } from './webhook.ts';

export const SNAPSHOT_WEBHOOKS: readonly ValidatingWebhook[] = [
  validating<VirtualMachineSnapshot>(
    {
      name: 'virtualmachinesnapshot-validator.snapshot.kubevirt.io',
      path: '/virtualmachinesnapshots-validate',
      type: VIRTUAL_MACHINE_SNAPSHOTS,
      operations: ['CREATE', 'UPDATE'],
    },
    ({ object, old, context }) => validateSnapshot(object, old, context),
  ),
  validating<VirtualMachineSnapshotContent>(
    {
      name: 'virtualmachinesnapshotcontent-validator.snapshot.kubevirt.io',
      path: '/virtualmachinesnapshotcontents-validate',
      type: VIRTUAL_MACHINE_SNAPSHOT_CONTENTS,
      operations: ['UPDATE'],
    },
    ({ object, old }) => (old === undefined ? [] : validateSnapshotContent(object, old)),
  ),
  validating<VirtualMachineRestore>(
    {
      name: 'virtualmachinerestore-validator.snapshot.kubevirt.io',
      path: '/virtualmachinerestores-validate',
      type: VIRTUAL_MACHINE_RESTORES,
      operations: ['CREATE', 'UPDATE'],
    },
    ({ object, old, ...subject }) =>
      old === undefined ? validateNewRestore(object, subject) : validateUnchanged(object.spec, old.spec),
  ),
];
