/** Takes back what an undelete has made when it cannot be finished: the bin then holds the machine as before. */

import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import { isDeleting } from '@coracle/apimachinery/meta/object-state';
import { PERSISTENT_VOLUMES } from '@coracle/apimachinery/types/resource-types';
import type { PersistentVolume } from '@coracle/apimachinery/types/types';
import { orAbsent } from '@coracle/client/api-failure';
import { commit } from '@coracle/client/commit/commit';
import { removeFinalizer } from '@coracle/client/finalizer/finalizer';
import { PROVISIONER_FINALIZER } from '@coracle/cluster-rules/storage/provision-plan';
import {
  DELETED_VIRTUAL_MACHINE_CONTENTS,
  type DeletedVirtualMachineContent,
  type HeldVolume,
} from '../../kinds/kinds.ts';
import { holdLabel } from '../../rules/bin/bin-names.ts';
import { claimReference, isFrom, keptDependents, newNameOf } from '../../rules/bin/restored-objects.ts';
import { type BinPass, current, NotYet, planOf, typeOf, volumeNow, writeStatus } from './bin-pass.ts';

/**
 * One pass of it; the phase is `Deleted` when all is gone.
 * @throws NotYet while something is on its way out
 */
export async function revertUndelete(pass: BinPass): Promise<void> {
  const { content, client, signal } = pass;
  const plan = planOf(content);
  // First of all: a claim that goes must not take its disk along.
  const holds = (content.spec.volumes ?? []).flatMap(({ handle }) => (handle ? [holdLabel(handle)] : []));
  if (holds.some((label) => content.metadata.labels?.[label] === undefined)) {
    const labels = { ...content.metadata.labels, ...Object.fromEntries(holds.map((label) => [label, ''])) };
    await commit<DeletedVirtualMachineContent>(client, DELETED_VIRTUAL_MACHINE_CONTENTS, {
      before: content,
      after: { ...content, metadata: { ...content.metadata, labels } },
      signal,
    });
    return;
  }
  let left: string | undefined;
  for (const kept of keptDependents(content)) {
    const key = { namespace: plan.namespace, name: newNameOf(plan, kept.kind, kept.metadata.name ?? '') };
    const found = await current(pass, kept, key);
    if (!found || !isFrom(found, content)) continue;
    left = `${kept.kind} ${key.namespace}/${key.name}`;
    const preconditions = { uid: found.metadata.uid ?? '' };
    if (!isDeleting(found)) await orAbsent(client.delete(typeOf(kept), key, { preconditions, signal }));
  }
  if (left !== undefined) throw new NotYet(`${left} is still being deleted`);
  for (const held of content.spec.volumes ?? []) {
    const name = held.volume.metadata.name ?? '';
    const found = await volumeNow(pass, name);
    if (!found) continue;
    if (!isFrom(found, content)) {
      await releaseAgain(pass, found, held);
      continue;
    }
    await removeVolume(pass, found);
    throw new NotYet(`volume ${name} is still being deleted`);
  }
  await writeStatus(pass, { phase: 'Deleted', plan: undefined });
}

/** One that never went is kept for a claim by name: by that of the machine that is gone, so that no other claim gets it. */
async function releaseAgain(
  { content, client, signal }: BinPass,
  volume: PersistentVolume,
  { claim, volume: before }: DeepReadonly<HeldVolume>,
): Promise<void> {
  const wanted = claimReference(planOf(content), claim);
  const { namespace, name, uid = '' } = volume.spec?.claimRef ?? {};
  if (uid !== '' || namespace !== wanted.namespace || name !== wanted.name) return;
  const after = { ...volume, spec: { ...volume.spec, claimRef: before.spec?.claimRef } } as PersistentVolume;
  await commit(client, PERSISTENT_VOLUMES, { before: volume, after, signal });
}

/** One that no claim was bound to is nobody's to release: the deleter acts on those that were. */
async function removeVolume({ client, signal }: BinPass, volume: PersistentVolume): Promise<void> {
  if ((volume.spec?.claimRef?.uid ?? '') !== '') return;
  const preconditions = { uid: volume.metadata.uid ?? '' };
  const key = { namespace: '', name: volume.metadata.name ?? '' };
  if (!isDeleting(volume)) await orAbsent(client.delete(PERSISTENT_VOLUMES, key, { preconditions, signal }));
  else
    await commit(client, PERSISTENT_VOLUMES, {
      before: volume,
      after: removeFinalizer(volume, PROVISIONER_FINALIZER),
      signal,
    });
}
