/** The kinds of cdi.kubevirt.io that are served, as TypeScript types, and their names as clients use them. */
import type { ResourceType } from '@coracle/apimachinery/meta/gvk';
import type { DeepReadonly, KubeObject } from '@coracle/apimachinery/meta/object';
import type { Static } from 'typebox';
import type { dataVolumeSpec } from '../data-volume.ts';

export const CDI_GROUP = 'cdi.kubevirt.io';
export const CDI_VERSION = 'v1beta1';

export interface CdiCondition {
  type: string;
  status: 'True' | 'False' | 'Unknown';
  reason?: string;
  message?: string;
  lastTransitionTime?: string;
  lastHeartbeatTime?: string;
}

/** Phases that this server writes; CDI has more. `''` is what a new one has. */
export type DataVolumePhase =
  | ''
  | 'Pending'
  | 'PendingPopulation'
  | 'ImportScheduled'
  | 'ImportInProgress'
  | 'CloneScheduled'
  | 'CloneInProgress'
  | 'UploadScheduled'
  | 'UploadReady'
  | 'Succeeded'
  | 'Failed';

export interface DataVolumeStatus {
  claimName?: string;
  phase?: DataVolumePhase;
  /** `12.34%` or `N/A`. */
  progress?: string;
  restartCount?: number;
  conditions?: CdiCondition[];
}

export type DataVolumeSpec = Static<typeof dataVolumeSpec>;

export interface DataVolume extends KubeObject {
  spec: DataVolumeSpec;
  status?: DataVolumeStatus;
}

/** As stores and caches hand it out: nobody changes it. */
export type ReadonlyDataVolume = DeepReadonly<DataVolume>;

export interface DataSource extends KubeObject {
  spec: {
    source: {
      pvc?: { namespace: string; name: string };
      snapshot?: { namespace: string; name: string };
      dataSource?: { namespace: string; name: string };
    };
  };
  status?: { source?: DataSource['spec']['source']; conditions?: CdiCondition[] };
}

/** Access modes and a volume mode that go together. */
export interface ClaimPropertySet {
  accessModes?: string[];
  volumeMode?: string;
}

export interface StorageProfile extends KubeObject {
  spec?: { claimPropertySets?: ClaimPropertySet[] };
  status?: {
    storageClass?: string;
    provisioner?: string;
    cloneStrategy?: string;
    claimPropertySets?: ClaimPropertySet[];
    conditions?: CdiCondition[];
  };
}

export interface DataImportCronStatus {
  currentImports?: { DataVolumeName: string; Digest: string }[];
  lastImportedPVC?: { namespace: string; name: string };
  lastExecutionTimestamp?: string;
  lastImportTimestamp?: string;
  sourceFormat?: string;
  conditions?: CdiCondition[];
}

export interface DataImportCron extends KubeObject {
  spec: {
    template: {
      metadata?: { labels?: Record<string, string>; annotations?: Record<string, string> };
      spec: DataVolumeSpec;
    };
    schedule: string;
    managedDataSource: string;
    garbageCollect?: string;
    importsToKeep?: number;
    retentionPolicy?: string;
  };
  status?: DataImportCronStatus;
}

/** What `virtctl image-upload` reads: where uploads are taken. */
export interface CdiConfig extends KubeObject {
  spec?: { uploadProxyURLOverride?: string };
  status?: {
    uploadProxyURL?: string;
    uploadProxyCA?: string;
    filesystemOverhead?: { global: string };
    preallocation?: boolean;
  };
}

const type = <T extends KubeObject>(resource: string, kind: string, namespaced = true): ResourceType<T> =>
  Object.freeze({ group: CDI_GROUP, version: CDI_VERSION, resource, kind, namespaced });

export const DATA_VOLUMES = type<DataVolume>('datavolumes', 'DataVolume');
export const DATA_SOURCES = type<DataSource>('datasources', 'DataSource');
export const DATA_IMPORT_CRONS = type<DataImportCron>('dataimportcrons', 'DataImportCron');
export const STORAGE_PROFILES = type<StorageProfile>('storageprofiles', 'StorageProfile', false);
export const CDI_CONFIGS = type<CdiConfig>('cdiconfigs', 'CDIConfig', false);
