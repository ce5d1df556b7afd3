/** What other packages use of this one: nothing else is theirs to import. */
export {
  formatHeldClaims,
  GONE_CLAIMS_ANNOTATION,
  HELD_CLAIMS_ANNOTATION,
  type HeldClaim,
  parseHeldClaims,
} from './claims/held-claims.ts';
export { TPM_LABEL } from './placement/node-labels.ts';
export { type NodeUsage, nodeUsage } from './placement/node-usage.ts';
export { placePod } from './placement/place-pod.ts';
export type { NamespaceLabels } from './placement/pod-affinity.ts';
export { type Amounts, addAmounts, amountOf, amountsOf, isTerminated, podRequests } from './placement/pod-requests.ts';
export { type ClaimChoice, type PodVolumes, podVolumes } from './placement/pod-volumes.ts';
export { findVictims, PREEMPTED, priorityOf } from './placement/preemption.ts';
export { tolerates } from './placement/taints.ts';
export { boundStatus, unboundStatus, withClaim, withPhase, withVolume } from './storage/bind-writes.ts';
export { parseChecksum } from './storage/checksum.ts';
export {
  BIND_COMPLETED,
  BOUND_BY_CONTROLLER,
  type ClaimEvent,
  claimStep,
  SELECTED_NODE,
  STORAGE_PROVISIONER,
  STORAGE_PROVISIONER_BETA,
} from './storage/claim-step.ts';
export { defaultClassOf } from './storage/default-class.ts';
export { capacityOf, modeOf, requestOf } from './storage/match-volume.ts';
export {
  type CreateSnapshots,
  type CreateVolume,
  type DeleteHandle,
  type ExpandVolume,
  type FillProblem,
  type FillReport,
  type FillSource,
  type FillVolume,
  type ImageDigest,
  POOL_CALLS,
  type PoolCall,
  type PoolErrorReason,
  type PoolFacts,
  type SnapshotsMade,
  type VolumeFormat,
  type VolumeMade,
} from './storage/pool-calls.ts';
export { POOL_ATTRIBUTE, POOL_DRIVER, POOL_LABEL, SNAPSHOT_GROUP, SNAPSHOT_GROUP_SIZE } from './storage/pool-names.ts';
export {
  bytesText,
  createCall,
  formatOf,
  isLeftToPopulator,
  PROVISIONER_FINALIZER,
  placeOf,
  sourceOf,
  USE_POPULATOR,
  volumeNameFor,
  volumeObject,
} from './storage/provision-plan.ts';
export { resizeFailed, resizeStep } from './storage/resize-step.ts';
export {
  AS_SOURCE,
  BEING_CREATED,
  BEING_DELETED,
  CLAIM_AS_SOURCE,
  CONTENT_BOUND,
  contentFor,
  contentNameOf,
  defaultSnapshotClass,
  isContentOf,
  poolOfHandle,
  SNAPSHOT_BOUND,
  snapshotHandleIn,
  statusFrom,
  unfit,
} from './storage/snapshot-plan.ts';
export { PROVISIONED_BY, unbound, volumeStep } from './storage/volume-step.ts';
export { volumeSnapshotCrds } from './volume-snapshot/definitions.ts';
export {
  SNAPSHOT_STORAGE_GROUP,
  VOLUME_SNAPSHOT_CLASSES,
  VOLUME_SNAPSHOT_CONTENTS,
  VOLUME_SNAPSHOTS,
  type VolumeSnapshot,
  type VolumeSnapshotClass,
  type VolumeSnapshotContent,
} from './volume-snapshot/kinds.ts';
