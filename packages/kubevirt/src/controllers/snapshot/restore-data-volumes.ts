/** Steps of a restore: the DataVolumes of templates, filled already; and those that are replaced. Nothing without CDI. */

import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import { PERSISTENT_VOLUME_CLAIMS } from '@coracle/apimachinery/types/resource-types';
import type { PersistentVolumeClaim } from '@coracle/apimachinery/types/types';
import { orAbsent, orThere } from '@coracle/client/api-failure';
import type { Client } from '@coracle/client/client';
import { commit } from '@coracle/client/commit/commit';
import { DATA_VOLUMES, type DataVolume } from '../../kinds/kinds.ts';
import type { VirtualMachine, VolumeRestore } from '../../kinds/kubevirt.ts';
import { POPULATED_FOR_ANNOTATION, RESTORE_NAME_ANNOTATION } from '../../rules/snapshot/restored-claim.ts';
import { hasTemplate, replacedDataVolumes } from '../../rules/snapshot/restored-machine.ts';
import { restoredName } from '../../rules/snapshot/restored-volumes.ts';
import { volumesOf } from '../../rules/snapshot/saved-volumes.ts';
import type { RestorePass, StepOutcome } from './restore-pass.ts';

/** Phases of a DataVolume that needs nothing more before its machine may start. */
const SETTLED = ['Succeeded', 'WaitForFirstConsumer', 'PendingPopulation'];

const servesDataVolumes = async (client: Client): Promise<boolean> =>
  (await orAbsent(client.raw('GET', '/apis/cdi.kubevirt.io/v1beta1'))) !== undefined;

/** Says which DataVolume takes each claim of a template over, on the claim and in the status. */
export async function nameDataVolumes(pass: RestorePass): Promise<StepOutcome> {
  const { restore, content, client, stores } = pass;
  const saved = content.spec.source.virtualMachine;
  if (!saved?.spec?.dataVolumeTemplates?.length) return 'done';
  const served = await servesDataVolumes(client);
  const next: VolumeRestore[] = [];
  for (const volume of restore.status?.restores ?? []) {
    const dataVolume = volumesOf({ spec: saved.spec }).find(({ name }) => name === volume.volumeName)?.dataVolume;
    if (dataVolume === undefined || !hasTemplate(saved, dataVolume.name)) {
      next.push(volume);
      continue;
    }
    const name = restoredName(restore, volume.volumeName, dataVolume.name);
    next.push({ ...volume, dataVolumeName: name });
    if (!served) continue;
    const claim = stores.claims.get({
      namespace: restore.metadata.namespace ?? '',
      name: volume.persistentVolumeClaim,
    }) as PersistentVolumeClaim | undefined;
    if (claim === undefined) return 'waiting';
    const { ownerReferences: _, ...metadata } = claim.metadata;
    if (metadata.annotations?.[POPULATED_FOR_ANNOTATION] === name) continue;
    const annotations = { ...metadata.annotations, [POPULATED_FOR_ANNOTATION]: name };
    const after = { ...claim, metadata: { ...metadata, annotations } };
    await commit(client, PERSISTENT_VOLUME_CLAIMS, { before: claim, after });
  }
  if (restore.status === undefined || deepEqual(restore.status.restores ?? [], next)) return 'done';
  restore.status.restores = next;
  return 'waiting';
}

/** Makes the DataVolumes of the machine as it will be, and lists those that go. */
export async function restoreDataVolumes(pass: RestorePass, machine: VirtualMachine): Promise<StepOutcome> {
  const { restore, target, client } = pass;
  const templates = machine.spec.dataVolumeTemplates ?? [];
  let outcome: StepOutcome = 'done';
  if (templates.length > 0 && (await servesDataVolumes(client))) {
    for (const template of templates) {
      if ((await restoreDataVolume(pass, template)) === 'waiting') outcome = 'waiting';
    }
  }
  const replaced = target === undefined ? [] : replacedDataVolumes(target, machine);
  if (restore.status !== undefined && !deepEqual(restore.status.deletedDataVolumes ?? [], replaced)) {
    if (replaced.length > 0) restore.status.deletedDataVolumes = replaced;
    else delete restore.status.deletedDataVolumes;
    return 'waiting';
  }
  return outcome;
}

async function restoreDataVolume(
  { restore, client, stores }: RestorePass,
  template: NonNullable<VirtualMachine['spec']['dataVolumeTemplates']>[number],
): Promise<StepOutcome> {
  const metadata = (template.metadata ?? {}) as DataVolume['metadata'];
  const namespace = restore.metadata.namespace ?? '';
  const name = metadata.name ?? '';
  const found = await orAbsent(client.get(DATA_VOLUMES, { namespace, name }));
  if (found !== undefined) return SETTLED.includes(found.status?.phase ?? '') ? 'done' : 'waiting';
  const claim = stores.claims.get({ namespace, name });
  // The claim of a template that the snapshot does not hold is not ours to hand over.
  if (claim === undefined || claim.metadata.annotations?.[POPULATED_FOR_ANNOTATION] !== name) return 'done';
  await orThere(
    client.create(DATA_VOLUMES, {
      apiVersion: 'cdi.kubevirt.io/v1beta1',
      kind: 'DataVolume',
      metadata: {
        ...metadata,
        namespace,
        annotations: {
          ...metadata.annotations,
          [RESTORE_NAME_ANNOTATION]: restore.metadata.name ?? '',
          'cdi.kubevirt.io/storage.prePopulated': 'true',
        },
      },
      spec: template.spec,
    }),
  );
  return 'waiting';
}

/** Deletes the DataVolumes that were replaced; their claims go with them. */
export async function deleteReplacedDataVolumes({ restore, client }: RestorePass): Promise<void> {
  const namespace = restore.metadata.namespace ?? '';
  for (const name of restore.status?.deletedDataVolumes ?? [])
    await orAbsent(client.delete(DATA_VOLUMES, { namespace, name }));
}
