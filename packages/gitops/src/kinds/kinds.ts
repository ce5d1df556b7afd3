/** The kinds of Config Sync as TypeScript types, and their names as clients use them. Field names are upstream's. */
export { PROPAGATION_POLICY } from '@coracle/apimachinery/meta/management';

import { namespacedType } from '@coracle/apimachinery/meta/gvk';
import type { KubeObject } from '@coracle/apimachinery/meta/object';

export const CONFIG_SYNC_GROUP = 'configsync.gke.io';
/** RootSyncs live here and nowhere else, and the accounts of all syncs. */
export const CONFIG_SYNC_NAMESPACE = 'config-management-system';

export type GitAuth = 'ssh' | 'cookiefile' | 'gcenode' | 'gcpserviceaccount' | 'token' | 'githubapp' | 'none';

/** Where a sync gets its objects from when `sourceType` is git. */
export interface GitSpec {
  repo: string;
  branch?: string;
  revision?: string;
  dir?: string;
  /** Go duration. */
  period?: string;
  auth: GitAuth;
  gcpServiceAccountEmail?: string;
  proxy?: string;
  secretRef?: { name?: string };
  noSSLVerify?: boolean;
  caCertSecretRef?: { name?: string };
}

export interface OciSpec {
  image: string;
  dir?: string;
  /** Go duration. */
  period?: string;
  auth: string;
  gcpServiceAccountEmail?: string;
  caCertSecretRef?: { name?: string };
}

export interface HelmSpec {
  /** http://, https:// or oci:// */
  repo: string;
  chart: string;
  /** A version or a range; '' and `latest` are the newest. */
  version?: string;
  releaseName?: string;
  /** Of a RootSync: what templates see as the namespace of the release. */
  namespace?: string;
  /** Of a RootSync: the same, and where objects go that name none. */
  deployNamespace?: string;
  values?: object | null;
  valuesFileRefs?: { name: string; dataKey?: string }[];
  includeCRDs?: boolean;
  /** Go duration. */
  period?: string;
  auth: string;
  gcpServiceAccountEmail?: string;
  secretRef?: { name?: string };
  caCertSecretRef?: { name?: string };
}

export interface OverrideSpec {
  /** 0 = everything. */
  gitSyncDepth?: number;
  statusMode?: string;
  /** Go duration. */
  reconcileTimeout?: string;
  /** Go duration. */
  apiServerTimeout?: string;
  enableShellInRendering?: boolean;
  namespaceStrategy?: string;
  roleRefs?: { kind: string; name: string; namespace?: string }[];
  resources?: object[];
  logLevels?: object[];
}

export interface SyncSpec {
  sourceFormat?: string;
  sourceType?: string;
  git?: GitSpec;
  oci?: OciSpec | null;
  helm?: HelmSpec | null;
  override?: OverrideSpec | null;
}

/** One error of a sync: `code` is the number of a KNV code, as text. */
export interface SyncError {
  code: string;
  errorMessage: string;
  errorResources?: SyncErrorResource[];
}

export interface SyncErrorResource {
  sourcePath?: string;
  name?: string;
  namespace?: string;
  gvk?: { group: string; version: string; kind: string };
}

export interface ErrorSummary {
  totalCount: number;
  truncated: boolean;
  errorCountAfterTruncation: number;
}

export interface GitStatus {
  repo: string;
  revision: string;
  branch: string;
  dir: string;
}

export interface OciStatus {
  image: string;
  dir: string;
}

export interface HelmStatus {
  repo: string;
  chart: string;
  version: string;
}

/** What became of one stage: source, rendering or sync. */
export interface StageStatus {
  gitStatus?: GitStatus;
  ociStatus?: OciStatus;
  helmStatus?: HelmStatus;
  commit?: string;
  lastUpdate?: string;
  errors?: SyncError[];
  errorSummary?: ErrorSummary;
  /** Of rendering alone. */
  message?: string;
}

export type SyncConditionType =
  | 'Reconciling'
  | 'Stalled'
  | 'Syncing'
  | 'ReconcilerFinalizing'
  | 'ReconcilerFinalizerFailure';
export type ErrorSourceRef = 'status.source.errors' | 'status.rendering.errors' | 'status.sync.errors';

export interface SyncCondition {
  type: SyncConditionType;
  status: 'True' | 'False' | 'Unknown';
  lastUpdateTime?: string;
  lastTransitionTime?: string;
  reason?: string;
  message?: string;
  commit?: string;
  errors?: SyncError[];
  errorSourceRefs?: ErrorSourceRef[];
  errorSummary?: ErrorSummary;
}

export interface SyncStatus {
  observedGeneration?: number;
  reconciler?: string;
  lastSyncedCommit?: string;
  source?: StageStatus;
  rendering?: StageStatus;
  sync?: StageStatus;
  conditions?: SyncCondition[];
}

/** A RootSync or a RepoSync: they differ in their kind and in what they may do. */
export interface Sync extends KubeObject {
  spec?: SyncSpec;
  status?: SyncStatus;
}

export const FOREGROUND = 'Foreground';
/** On a sync until what it manages has been dealt with. */
export const RECONCILER_FINALIZER = 'configsync.gke.io/reconciler';

/** An object without its version: how inventories name objects. */
export interface ObjectRef {
  group: string;
  kind: string;
  namespace: string;
  name: string;
}

export type Actuation = 'Pending' | 'Succeeded' | 'Skipped' | 'Failed';
export type ReconcileOutcome = 'Pending' | 'Succeeded' | 'Skipped' | 'Timeout' | 'Failed';
export type ObjectHealth = 'InProgress' | 'Failed' | 'Current' | 'Terminating' | 'NotFound' | 'Unknown';

export interface ResourceStatus extends ObjectRef {
  status: ObjectHealth;
  sourceHash?: string;
  strategy?: 'Apply' | 'Delete';
  actuation?: Actuation;
  reconcile?: ReconcileOutcome;
  conditions?: { type: string; status: string; reason?: string; message?: string; lastTransitionTime?: string }[];
}

/** The inventory of one sync: what it has made, or is about to make. */
export interface ResourceGroup extends KubeObject {
  spec?: {
    resources?: ObjectRef[];
    subgroups?: { namespace: string; name: string }[];
    descriptor?: { type?: string; revision?: string; description?: string; links?: object[] };
  };
  status?: {
    observedGeneration?: number;
    resourceStatuses?: ResourceStatus[];
    subgroupStatuses?: object[];
    conditions?: { type: string; status: string; reason?: string; message?: string; lastTransitionTime?: string }[];
  };
}

export const ROOT_SYNCS = namespacedType<Sync>(`${CONFIG_SYNC_GROUP}/v1beta1`, 'rootsyncs', 'RootSync');
export const REPO_SYNCS = namespacedType<Sync>(`${CONFIG_SYNC_GROUP}/v1beta1`, 'reposyncs', 'RepoSync');
export const RESOURCE_GROUPS = namespacedType<ResourceGroup>('kpt.dev/v1alpha1', 'resourcegroups', 'ResourceGroup');
