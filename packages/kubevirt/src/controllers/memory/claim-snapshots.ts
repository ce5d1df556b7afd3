/**
 * The claims of a guest whose memory is saved: their VolumeSnapshots are taken by its node in the same moment. Until
 * then their group lacks one (`SNAPSHOT_GROUP_SIZE`), so that nobody else takes them.
 */

import { controllerReference } from '@coracle/apimachinery/meta/controller-reference';
import { ApiError } from '@coracle/apimachinery/meta/status';
import { PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES } from '@coracle/apimachinery/types/resource-types';
import type { PersistentVolumeClaim, ReadonlyClaim } from '@coracle/apimachinery/types/types';
import { isNotFound, orAbsent } from '@coracle/client/api-failure';
import type { Client } from '@coracle/client/client';
import type { Informer } from '@coracle/client/informer/informer';
import { POOL_DRIVER, SNAPSHOT_GROUP, SNAPSHOT_GROUP_SIZE } from '@coracle/cluster-rules/storage/pool-names';
import { SNAPSHOT_STORAGE_GROUP, VOLUME_SNAPSHOTS } from '@coracle/cluster-rules/volume-snapshot/kinds';
import type {
  ReadonlyContent,
  ReadonlySnapshot,
  ReadonlyVm,
  VirtualMachine,
  VirtualMachineSnapshotContent,
} from '../../kinds/kubevirt.ts';
import { claimVolumes } from '../../rules/memory-state/fork.ts';
import type { SaveMemory } from '../../rules/memory-state/memory-calls.ts';
import { contentNameOf } from '../../rules/snapshot/snapshot-names.ts';

/** A volume of the machine, and the VolumeSnapshot of its claim. */
export interface SavedVolume {
  readonly name: string;
  readonly volumeSnapshot: string;
  readonly spec: ReadonlyClaim['spec'];
}

export interface ClaimSnapshots {
  /** What the agent is to take; 'waiting' until all are there, else a text that says why they cannot be taken. */
  snapshotsOf(
    snapshot: ReadonlySnapshot,
    vm: ReadonlyVm,
    signal: AbortSignal,
  ): Promise<NonNullable<SaveMemory['snapshots']> | string>;
  /** It is known how saving came out: what was not taken by then may be. */
  release(snapshot: ReadonlySnapshot, signal: AbortSignal): Promise<void>;
  /** Volumes of the machine with their VolumeSnapshots; 'waiting' until those can be used. */
  volumesOf(snapshot: ReadonlySnapshot, vm: ReadonlyVm): readonly SavedVolume[] | 'waiting';
  /** Makes a claim of `owner` with the content of a volume. */
  restore(owner: VirtualMachine, volume: SavedVolume, name: string, signal: AbortSignal): Promise<void>;
}

export function createClaimSnapshots(options: {
  readonly client: Client;
  readonly contents: Informer<VirtualMachineSnapshotContent>;
}): ClaimSnapshots {
  const { client, contents } = options;
  const contentOf = (snapshot: ReadonlySnapshot): ReadonlyContent | undefined =>
    contents.get({ namespace: snapshot.metadata.namespace ?? '', name: contentNameOf(snapshot) });

  /** Handle of the volume of a claim; a text where it is in no pool of ours. */
  const handleOf = async (
    namespace: string,
    claim: string,
    signal: AbortSignal,
  ): Promise<{ handle: string } | string> => {
    const { spec } = await client.get(PERSISTENT_VOLUME_CLAIMS, { namespace, name: claim }, { signal });
    const volume = await client.get(PERSISTENT_VOLUMES, { namespace: '', name: spec?.volumeName ?? '' }, { signal });
    const csi = volume.spec?.csi as { readonly driver?: string; readonly volumeHandle?: string } | undefined;
    if (csi?.driver !== POOL_DRIVER || csi.volumeHandle === undefined)
      return `claim ${claim} is not in a pool of this server: its volume cannot be saved together with memory`;
    return { handle: csi.volumeHandle };
  };

  return {
    async snapshotsOf(snapshot, vm, signal) {
      const names = claimVolumes(vm);
      if (names.length === 0) return [];
      const content = contentOf(snapshot);
      if (!content) return 'waiting';
      const namespace = snapshot.metadata.namespace ?? '';
      const taken: { handle: string; volume: string }[] = [];
      for (const name of names) {
        const backup = content.spec.volumeBackups?.find(({ volumeName }) => volumeName === name);
        if (!backup?.volumeSnapshotName) return `volume ${name} is not part of the snapshot, and memory rests on it`;
        try {
          const key = { namespace, name: backup.volumeSnapshotName };
          const { metadata } = await client.get(VOLUME_SNAPSHOTS, key, { signal });
          const volume = await handleOf(namespace, backup.persistentVolumeClaim.metadata?.name ?? '', signal);
          if (typeof volume === 'string') return volume;
          taken.push({ handle: metadata.uid ?? '', volume: volume.handle });
        } catch (error) {
          if (isNotFound(error)) return 'waiting';
          throw error;
        }
      }
      return taken;
    },

    async release(snapshot, signal) {
      const content = contentOf(snapshot);
      const names = (content?.spec.volumeBackups ?? []).flatMap(({ volumeSnapshotName }) => volumeSnapshotName ?? []);
      const keys = names.map((name) => ({ namespace: snapshot.metadata.namespace ?? '', name }));
      const found = await Promise.all(keys.map((key) => orAbsent(client.get(VOLUME_SNAPSHOTS, key, { signal }))));
      const grouped = found.filter((each) => each?.metadata.annotations?.[SNAPSHOT_GROUP] !== undefined);
      for (const each of grouped) {
        const size = String(grouped.length);
        if (!each || each.metadata.annotations?.[SNAPSHOT_GROUP_SIZE] === size) continue;
        const { namespace = '', name = '', uid } = each.metadata;
        const body = { metadata: { uid, annotations: { [SNAPSHOT_GROUP_SIZE]: size } } };
        await client.patch(VOLUME_SNAPSHOTS, { namespace, name }, { type: 'merge', body });
      }
    },

    volumesOf(snapshot, vm) {
      const names = claimVolumes(vm);
      if (names.length === 0) return [];
      const content = contentOf(snapshot);
      if (content?.status?.readyToUse !== true) return 'waiting';
      return (content.spec.volumeBackups ?? []).flatMap(({ volumeName, volumeSnapshotName, persistentVolumeClaim }) =>
        names.includes(volumeName) && volumeSnapshotName !== undefined
          ? [{ name: volumeName, volumeSnapshot: volumeSnapshotName, spec: persistentVolumeClaim.spec }]
          : [],
      );
    },

    async restore(owner, { volumeSnapshot, spec }, name, signal) {
      const { volumeName: _, dataSource: __, dataSourceRef: ___, ...rest } = (spec ?? {}) as Record<string, unknown>;
      const claim = {
        apiVersion: 'v1',
        kind: 'PersistentVolumeClaim',
        metadata: {
          name,
          namespace: owner.metadata.namespace ?? '',
          ownerReferences: [controllerReference({ ...owner, apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine' })],
        },
        spec: {
          ...rest,
          dataSource: { apiGroup: SNAPSHOT_STORAGE_GROUP, kind: 'VolumeSnapshot', name: volumeSnapshot },
        },
      } as unknown as PersistentVolumeClaim;
      try {
        await client.create(PERSISTENT_VOLUME_CLAIMS, claim, { signal });
      } catch (error) {
        if (!(error instanceof ApiError && error.reason === 'AlreadyExists')) throw error;
      }
    },
  };
}
