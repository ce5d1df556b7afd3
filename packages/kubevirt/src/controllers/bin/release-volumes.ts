/** The end of a content: the volumes that it still holds are deleted from their pools. */

import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import { isDeleting } from '@coracle/apimachinery/meta/object-state';
import { PERSISTENT_VOLUME_CLAIMS } from '@coracle/apimachinery/types/resource-types';
import type { PersistentVolume } from '@coracle/apimachinery/types/types';
import { orAbsent } from '@coracle/client/api-failure';
import { commit } from '@coracle/client/commit/commit';
import { removeFinalizer } from '@coracle/client/finalizer/finalizer';
import {
  DELETED_VIRTUAL_MACHINE_CONTENTS,
  type DeletedVirtualMachineContent,
  type HeldVolume,
} from '../../kinds/kinds.ts';
import { BIN_FINALIZER, heldHandles, holdLabel } from '../../rules/bin/bin-names.ts';
import { type BinPass, type Content, NotYet, poolReason, volumeNow } from './bin-pass.ts';

/**
 * Releases, and lets the content go.
 * @throws NotYet while a volume cannot be deleted
 */
export async function releaseVolumes(pass: BinPass): Promise<void> {
  const { content, client, signal } = pass;
  const held = new Set(heldHandles(content.metadata.labels));
  for (const volume of content.spec.volumes ?? [])
    if (volume.handle !== undefined && held.has(volume.handle)) await release(pass, volume);
  await commit<DeletedVirtualMachineContent>(client, DELETED_VIRTUAL_MACHINE_CONTENTS, {
    before: content,
    after: removeFinalizer(content as DeletedVirtualMachineContent, BIN_FINALIZER),
    signal,
  });
}

async function release(pass: BinPass, { volume, pool = '', handle = '' }: DeepReadonly<HeldVolume>): Promise<void> {
  const { content, client, callPool, signal, log } = pass;
  const found = await volumeNow(pass, volume.metadata.name ?? '');
  if (found) {
    if (await isAlive(pass, found)) return;
    // The deleter may have been about to leave the content to us: what it does is over when the object is gone.
    throw new NotYet(`volume ${volume.metadata.name} is not released yet`);
  }
  const { items } = await client.list(DELETED_VIRTUAL_MACHINE_CONTENTS, {
    labelSelector: holdLabel(handle),
    metadataOnly: true,
    signal,
  });
  if (items.some((other) => other.metadata.uid !== content.metadata.uid && !isDeleting(other as Content))) return;
  try {
    await callPool(pool, 'deleteVolume', { handle }, signal);
  } catch (error) {
    if (poolReason(error) === undefined) throw error;
    throw new NotYet((error as Error).message);
  }
  log.info('volume of a deleted virtual machine released', { pool, volume: handle });
}

/** Whether the volume goes on without the bin: its claim is there, or whoever changed its policy wants to keep it. */
async function isAlive({ client, signal }: BinPass, volume: PersistentVolume): Promise<boolean> {
  if (volume.spec?.persistentVolumeReclaimPolicy !== 'Delete') return true;
  const { namespace = '', name = '', uid = '' } = volume.spec.claimRef ?? {};
  if (name === '') return true;
  const claim = await orAbsent(client.get(PERSISTENT_VOLUME_CLAIMS, { namespace, name }, { signal }));
  return claim !== undefined && claim.metadata.uid === uid;
}
