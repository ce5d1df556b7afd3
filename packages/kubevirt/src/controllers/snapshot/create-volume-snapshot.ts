/** Step of a content: the VolumeSnapshot of one claim. */

import { controllerReference } from '@coracle/apimachinery/meta/controller-reference';
import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import { isAlreadyExists } from '@coracle/client/api-failure';
import type { Client } from '@coracle/client/client';
import type { EventRecorder } from '@coracle/client/events/recorder';
import { POOL_DRIVER, SNAPSHOT_GROUP, SNAPSHOT_GROUP_SIZE } from '@coracle/cluster-rules/storage/pool-names';
import {
  SNAPSHOT_STORAGE_GROUP,
  VOLUME_SNAPSHOTS,
  type VolumeSnapshot,
} from '@coracle/cluster-rules/volume-snapshot/kinds';
import type { ReadonlyContent, VolumeBackup } from '../../kinds/kubevirt.ts';
import { SNAPSHOT_GROUP as GROUP, SNAPSHOT_VERSION } from '../../kinds/kubevirt.ts';
import { SOURCE_NAME_LABEL, SOURCE_NAMESPACE_LABEL } from '../../rules/snapshot/snapshot-names.ts';
import type { SnapshotStores } from './snapshot-stores.ts';

type Backup = DeepReadonly<VolumeBackup>;
interface Deps {
  readonly client: Client;
  readonly stores: SnapshotStores;
  readonly events: EventRecorder;
}

interface Moment extends Deps {
  /** They are taken in the moment in which the memory is saved: until then the group lacks one. */
  readonly waits: boolean;
}

/**
 * Makes the VolumeSnapshot of a backup, or takes the one that is there. Those in pools of ours say that they belong
 * together, so that all volumes are saved at one point in time.
 * @throws Error when no VolumeSnapshotClass can be chosen any more
 */
export async function createVolumeSnapshot(
  content: ReadonlyContent,
  backup: Backup,
  deps: Moment,
): Promise<VolumeSnapshot> {
  const { client, events } = deps;
  const { namespace = '', uid = '' } = content.metadata;
  const name = backup.volumeSnapshotName ?? '';
  const { className, driver } = classOf(backup, deps);
  const backups = content.spec.volumeBackups ?? [];
  const together = backups.filter((each) => each.volumeSnapshotName && classOf(each, deps).driver === POOL_DRIVER);
  const machine = content.spec.source.virtualMachine?.metadata;
  const wanted: VolumeSnapshot = {
    apiVersion: `${SNAPSHOT_STORAGE_GROUP}/v1`,
    kind: 'VolumeSnapshot',
    metadata: {
      name,
      namespace,
      labels: { [SOURCE_NAME_LABEL]: machine?.name ?? '', [SOURCE_NAMESPACE_LABEL]: machine?.namespace ?? '' },
      ...(driver === POOL_DRIVER && {
        annotations: { [SNAPSHOT_GROUP]: uid, [SNAPSHOT_GROUP_SIZE]: String(together.length + (deps.waits ? 1 : 0)) },
      }),
      ownerReferences: [
        controllerReference({
          ...content,
          apiVersion: `${GROUP}/${SNAPSHOT_VERSION}`,
          kind: 'VirtualMachineSnapshotContent',
        }),
      ],
    },
    spec: {
      source: { persistentVolumeClaimName: backup.persistentVolumeClaim.metadata?.name ?? '' },
      volumeSnapshotClassName: className,
    },
  };
  try {
    const made = await client.create(VOLUME_SNAPSHOTS, wanted);
    events.event(content, 'Normal', 'SuccessfulVolumeSnapshotCreate', `Successfully created VolumeSnapshot ${name}`);
    return made;
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
    return client.get(VOLUME_SNAPSHOTS, { namespace, name });
  }
}

function classOf(
  { persistentVolumeClaim: { metadata, spec } }: Backup,
  { stores }: Deps,
): { readonly className: string; readonly driver: string } {
  const choice = stores.snapshotClassOf(spec?.storageClassName ?? '');
  if (choice.type === 'class') return { className: choice.name, driver: choice.driver };
  const claim = `${metadata?.namespace}/${metadata?.name}`;
  throw new Error(choice.type === 'unclear' ? choice.message : `there is no VolumeSnapshotClass for ${claim} any more`);
}
