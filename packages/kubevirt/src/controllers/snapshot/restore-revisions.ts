/** Steps of a restore: the copies of instance type and preference that the snapshot kept. */

import { controllerReference, isControlledBy } from '@coracle/apimachinery/meta/controller-reference';
import type { DeepReadonly, OwnerReference } from '@coracle/apimachinery/meta/object';
import { CONTROLLER_REVISIONS } from '@coracle/apimachinery/types/resource-types';
import type { ControllerRevision } from '@coracle/apimachinery/types/types';
import { orAbsent, orThere } from '@coracle/client/api-failure';
import { commit } from '@coracle/client/commit/commit';
import { SNAPSHOT_GROUP, SNAPSHOT_VERSION, VIRTUAL_MACHINES, type VirtualMachine } from '../../kinds/kubevirt.ts';
import { isSameCapture } from '../../rules/instancetype/revision.ts';
import {
  CAPTURED_FIELDS,
  type CapturedField,
  copiedRevisionName,
  copyRevision,
} from '../../rules/snapshot/saved-machine.ts';
import { type RestorePass, RestoreProblem, type StepOutcome } from './restore-pass.ts';

/** Names of the revisions of the restored machine. */
export type Revisions = Partial<Record<CapturedField, string>>;

const ownerOf = ({ target, restore }: RestorePass): OwnerReference =>
  // Until there is a machine they are the restore's, so that none is left over without one.
  target === undefined
    ? controllerReference({
        ...restore,
        apiVersion: `${SNAPSHOT_GROUP}/${SNAPSHOT_VERSION}`,
        kind: 'VirtualMachineRestore',
      })
    : controllerReference({ ...target, apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine' });

/**
 * Makes the revisions for the target from the snapshot's, and returns their names. One of that name that says something
 * else is made anew: revisions cannot be changed.
 * @throws RestoreProblem when the snapshot's is not there any more
 */
export async function restoreRevisions(pass: RestorePass): Promise<Revisions> {
  const { restore, content, client } = pass;
  const namespace = restore.metadata.namespace ?? '';
  const made: Revisions = {};
  for (const field of CAPTURED_FIELDS) {
    const kept = content.spec.source.virtualMachine?.spec?.[field]?.revisionName;
    if (!kept) continue;
    const copy = await orAbsent(client.get(CONTROLLER_REVISIONS, { namespace, name: kept }));
    if (copy === undefined) throw new RestoreProblem(`Unable to find ControllerRevision ${namespace}/${kept}`);
    const name = copiedRevisionName(kept, restore.spec.virtualMachineSnapshotName, restore.spec.target.name);
    const there = await orAbsent(client.get(CONTROLLER_REVISIONS, { namespace, name }));
    if (there !== undefined && !isSameCapture(copy, there))
      await orAbsent(client.delete(CONTROLLER_REVISIONS, { namespace, name }));
    if (there === undefined || !isSameCapture(copy, there)) {
      await orThere(client.create(CONTROLLER_REVISIONS, copyRevision(copy, name, ownerOf(pass))));
    }
    made[field] = name;
  }
  return made;
}

/** Those that the spec of the restored machine names; where a machine is brought back, its status names the others. */
export function namedInSpec({ target, content }: RestorePass, revisions: Revisions): Revisions {
  const status = content.spec.source.virtualMachine?.status;
  const named: Revisions = {};
  for (const field of CAPTURED_FIELDS) {
    const name = revisions[field];
    if (name !== undefined && (target === undefined || status?.[`${field}Ref`] == null)) named[field] = name;
  }
  return named;
}

/** After the machine was written: its revisions are its own, and its status names those that its spec does not. */
export async function claimRevisions(pass: RestorePass): Promise<StepOutcome> {
  const { restore, content, client } = pass;
  const target = pass.target as VirtualMachine | undefined;
  if (target === undefined) return 'waiting';
  const namespace = restore.metadata.namespace ?? '';
  let status = target.status;
  for (const field of CAPTURED_FIELDS) {
    const saved = content.spec.source.virtualMachine;
    const kept = saved?.spec?.[field]?.revisionName;
    if (!kept) continue;
    const name = copiedRevisionName(kept, restore.spec.virtualMachineSnapshotName, restore.spec.target.name);
    const revision = await orAbsent(client.get(CONTROLLER_REVISIONS, { namespace, name }));
    if (revision !== undefined) await own(revision, pass);
    const matcher = target.spec[field];
    if (matcher == null || matcher.revisionName || revision === undefined) continue;
    const ref = status?.[`${field}Ref`];
    if (ref?.controllerRevisionRef?.name === name) continue;
    status = {
      ...status,
      [`${field}Ref`]: { ...saved?.status?.[`${field}Ref`], ...ref, controllerRevisionRef: { name } },
    };
  }
  if (status === target.status) return 'done';
  await commit(client, VIRTUAL_MACHINES, { before: target, after: { ...target, ...(status && { status }) } });
  return 'waiting';
}

async function own(revision: DeepReadonly<ControllerRevision>, pass: RestorePass): Promise<void> {
  const before = revision as ControllerRevision;
  const owner = ownerOf(pass);
  if (isControlledBy(before, owner.uid)) return;
  const after = { ...before, metadata: { ...before.metadata, ownerReferences: [owner] } };
  await commit(pass.client, CONTROLLER_REVISIONS, { before, after });
}
