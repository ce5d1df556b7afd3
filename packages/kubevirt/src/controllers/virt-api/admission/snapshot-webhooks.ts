/** The webhooks about snapshots and restores. */
import {
  VIRTUAL_MACHINE_RESTORES,
  VIRTUAL_MACHINE_SNAPSHOT_CONTENTS,
  VIRTUAL_MACHINE_SNAPSHOTS,
} from '../../../kinds/kubevirt.ts';
import { validateNewRestore } from './validate-restore.ts';
import { validateSnapshot, validateSnapshotContent, validateUnchanged } from './validate-snapshot.ts';
import { type ValidatingWebhook, validating } from './webhook.ts';

export const SNAPSHOT_WEBHOOKS: readonly ValidatingWebhook[] = [
  validating(
    VIRTUAL_MACHINE_SNAPSHOTS,
    'CREATE UPDATE : virtualmachinesnapshot-validator.snapshot.kubevirt.io : /virtualmachinesnapshots-validate',
    ({ object, old, context }) => validateSnapshot(object, old, context),
  ),
  validating(
    VIRTUAL_MACHINE_SNAPSHOT_CONTENTS,
    'UPDATE : virtualmachinesnapshotcontent-validator.snapshot.kubevirt.io : /virtualmachinesnapshotcontents-validate',
    ({ object, old }) => (old === undefined ? [] : validateSnapshotContent(object, old)),
  ),
  validating(
    VIRTUAL_MACHINE_RESTORES,
    'CREATE UPDATE : virtualmachinerestore-validator.snapshot.kubevirt.io : /virtualmachinerestores-validate',
    ({ object, old, ...subject }) =>
      old === undefined ? validateNewRestore(object, subject) : validateUnchanged(object.spec, old.spec),
  ),
];
