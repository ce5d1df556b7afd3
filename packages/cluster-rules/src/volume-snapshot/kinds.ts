/** The kinds of snapshot.storage.k8s.io/v1 as TypeScript types, and their names as clients use them. */
import { clusterType, namespacedType } from '@coracle/apimachinery/meta/gvk';
import type { KubeObject } from '@coracle/apimachinery/meta/object';

export const SNAPSHOT_STORAGE_GROUP = 'snapshot.storage.k8s.io';

/** The last failure; taken away when a later attempt succeeds. */
export interface VolumeSnapshotError {
  /** RFC 3339. */
  time?: string;
  message?: string;
}

/** A user's request for a snapshot of a claim, or for a snapshot that exists already. */
export interface VolumeSnapshot extends KubeObject {
  spec: {
    /** Exactly one of the two. */
    source: { persistentVolumeClaimName?: string; volumeSnapshotContentName?: string };
    volumeSnapshotClassName?: string;
  };
  status?: {
    boundVolumeSnapshotContentName?: string;
    /** RFC 3339. */
    creationTime?: string;
    readyToUse?: boolean;
    /** Quantity: least size of a volume made from it. */
    restoreSize?: string;
    error?: VolumeSnapshotError;
    volumeGroupSnapshotName?: string;
  };
}

/** A snapshot as the storage has it. */
export interface VolumeSnapshotContent extends KubeObject {
  spec: {
    deletionPolicy: 'Delete' | 'Retain';
    driver: string;
    /** Exactly one of the two. */
    source: { volumeHandle?: string; snapshotHandle?: string };
    sourceVolumeMode?: string;
    volumeSnapshotClassName?: string;
    volumeSnapshotRef: {
      apiVersion?: string;
      kind?: string;
      namespace?: string;
      name?: string;
      uid?: string;
      resourceVersion?: string;
    };
  };
  status?: {
    snapshotHandle?: string;
    /** Nanoseconds since the epoch. */
    creationTime?: number;
    readyToUse?: boolean;
    /** Bytes. */
    restoreSize?: number;
    error?: VolumeSnapshotError;
    volumeGroupSnapshotHandle?: string;
  };
}

/** How snapshots by one driver are made, and what becomes of them. */
export interface VolumeSnapshotClass extends KubeObject {
  driver: string;
  deletionPolicy: 'Delete' | 'Retain';
  parameters?: Record<string, string>;
}

const API_VERSION = `${SNAPSHOT_STORAGE_GROUP}/v1`;
export const VOLUME_SNAPSHOTS = namespacedType<VolumeSnapshot>(API_VERSION, 'volumesnapshots', 'VolumeSnapshot');
export const VOLUME_SNAPSHOT_CONTENTS = clusterType<VolumeSnapshotContent>(
  API_VERSION,
  'volumesnapshotcontents',
  'VolumeSnapshotContent',
);
export const VOLUME_SNAPSHOT_CLASSES = clusterType<VolumeSnapshotClass>(
  API_VERSION,
  'volumesnapshotclasses',
  'VolumeSnapshotClass',
);
