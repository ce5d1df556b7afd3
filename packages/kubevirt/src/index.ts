/** What other packages use of this one: nothing else is theirs to import. */
export { backupControllerRules, createBackupControllers } from './controllers/backup/backup-controllers.ts';
export { binControllerRules, createBinController } from './controllers/bin/bin-controller.ts';
export { isHeld } from './controllers/bin/held-volumes.ts';
export { cloneControllerRules, createCloneController } from './controllers/clone/clone-controller.ts';
export {
  commonInstancetypesRules,
  createCommonInstancetypesController,
} from './controllers/common-instancetypes/common-instancetypes-controller.ts';
export { dataVolumeRules } from './controllers/data-volume/data-volume-controller.ts';
export { createDataVolumeControllers } from './controllers/data-volume/data-volume-controllers.ts';
export {
  createEvacuationController,
  evacuationControllerRules,
} from './controllers/evacuation/evacuation-controller.ts';
export { evacuationMetrics } from './controllers/evacuation/evacuation-metrics.ts';
export { createKubeVirtController, kubeVirtControllerRules } from './controllers/kubevirt/kubevirt-controller.ts';
export { createMemoryController, memoryControllerRules } from './controllers/memory/memory-controller.ts';
export { createMigrationController, migrationControllerRules } from './controllers/migration/migration-controller.ts';
export { createPhaseTimes, migrationMetrics } from './controllers/migration/migration-metrics.ts';
export {
  createDeletionWebhookController,
  deletionWebhookControllerRules,
  type WebhookAddress,
} from './controllers/protection/deletion-webhook-controller.ts';
export {
  createProtectionController,
  protectionControllerRules,
} from './controllers/protection/protection-controller.ts';
export { createSspController, sspControllerRules } from './controllers/protection/ssp-controller.ts';
export { createSnapshotControllers, snapshotControllerRules } from './controllers/snapshot/snapshot-controllers.ts';
export { extendedMachineGraph, type GraphReader } from './controllers/virt-api/subresources/read-extended-graph.ts';
export {
  type ClaimUuid,
  causeDenial,
  createDeletionWebhook,
  createSubresourceApi,
  DELETION_WEBHOOK_PATH,
  defaultKubeVirt,
  deletionWebhookRules,
  isKubeVirtComponent,
  kubevirtClusterRoleBindings,
  kubevirtClusterRoles,
  type Mutated,
  type SubresourceApi,
  sourceReader,
  VIRT_API_ACCOUNT,
  type VirtAdmission,
  type VirtAdmissionRequest,
  virtAdmission,
  virtApiRules,
} from './controllers/virt-api/virt-api.ts';
export { createStartRecord } from './controllers/vm/start-record.ts';
export { expandedSpec } from './controllers/vm/start-revision.ts';
export { createVmController, vmControllerRules } from './controllers/vm/vm-controller.ts';
export { createVmiController, vmiControllerRules } from './controllers/vmi/vmi-controller.ts';
export {
  createWorkloadUpdateController,
  workloadUpdateControllerRules,
} from './controllers/workload-update/workload-update-controller.ts';
export { cdiCrds } from './kinds/cdi/definitions.ts';
export {
  CDI_GROUP,
  CDI_VERSION,
  type DataImportCron,
  type DataSource,
  type DataVolume,
  type DataVolumeSpec,
} from './kinds/cdi/kinds.ts';
export { coracleCrds } from './kinds/coracle/definitions.ts';
export {
  type BinStatus,
  CORACLE_GROUP,
  CORACLE_VERSION,
  DELETED_VIRTUAL_MACHINE_CONTENTS,
  DELETED_VIRTUAL_MACHINES,
  type DeletedVirtualMachine,
  type UndeleteRequest,
} from './kinds/coracle/kinds.ts';
export {
  KUBEVIRTS,
  type KubeVirt,
  MIGRATION_POLICIES,
  VIRTUAL_MACHINE_INSTANCE_MIGRATIONS,
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINE_SNAPSHOTS,
  VIRTUAL_MACHINES,
  type VirtualMachine,
  type VirtualMachineInstance,
  type VirtualMachineSnapshot,
} from './kinds/kinds.ts';
export {
  kubevirtCrds,
  kubevirtResources,
  VIRTUAL_MACHINE_BACKUP_TRACKERS,
  VIRTUAL_MACHINE_BACKUPS,
  VIRTUAL_MACHINE_RESTORES,
  VIRTUAL_MACHINE_SNAPSHOT_CONTENTS,
  type VirtualMachineInstanceMigration,
  type VirtualMachineInstancePreset,
} from './kinds/kubevirt.ts';
export { sspCrd } from './kinds/ssp/definition.ts';
export { SSP_GROUP, type Ssp } from './kinds/ssp/kinds.ts';
export type { MigrationState, VirtualMachineInstanceStatus, VmCondition } from './kinds/status.ts';
export type { CloudInitSource, Volume } from './kinds/volumes.ts';
export { STATE_LABEL, STATE_VOLUME } from './rules/backend-storage/backend-storage.ts';
export type { BackupRequest } from './rules/backup/backup-request.ts';
export { checkpointHandle } from './rules/backup/checkpoint-handles.ts';
export { MAX_RECORD_BYTES, MAX_RECORDS } from './rules/bin/bin-bounds.ts';
export { UNDELETE_VERB, UNDELETED_FROM } from './rules/bin/bin-names.ts';
export { BIN_ROLES } from './rules/bin/bin-roles.ts';
export { readWindow, UNDELETE_WINDOW_ANNOTATION, undeleteWindowOf } from './rules/bin/bin-settings.ts';
export { captureMachine } from './rules/bin/capture-machine.ts';
export { CDI_ROLES } from './rules/data-volume/cdi-roles.ts';
export { sourceOfDataVolume } from './rules/data-volume/data-volume-source.ts';
export { validateImportCron } from './rules/data-volume/import-cron.ts';
export { isLoopbackUrl, validateDataVolume } from './rules/data-volume/validate-data-volume.ts';
export {
  type Block,
  blocksOf,
  type Fate,
  type FinalizerRow,
  finalizerRows,
  type NamespaceObject,
  type PreviewRow,
  previewRows,
  unprotectCommand,
} from './rules/deletion-preview/deletion-preview.ts';
export { type GuardedPart, guardedParts, partKey, sharersOf } from './rules/deletion-preview/guarded-parts.ts';
export { listedLookup } from './rules/deletion-preview/listed-lookup.ts';
export { type DrainRow, drainPlan } from './rules/drain/drain-plan.ts';
export { isDeletedForSilence } from './rules/eviction/silent-deletion.ts';
export { type AuditInput, type AuditRow, auditIdentities } from './rules/identity/audit-identity.ts';
export { cloudInitInstanceId } from './rules/identity/cloud-init-instance.ts';
export { decideIdentity, onlyAddsUuid } from './rules/identity/decide-identity.ts';
export { identityMetrics } from './rules/identity/identity-metrics.ts';
export {
  findSharedUuids,
  type Machine,
  machineOfVm,
  machineOfVmi,
  machineText,
  type SharedUuid,
  vmiUuids,
  vmUuids,
} from './rules/identity/shared-uuids.ts';
export { commonInstancetypes } from './rules/instancetype/bundle/bundle.ts';
export { conflictsMessage } from './rules/instancetype/conflicts.ts';
export { convertPreset } from './rules/instancetype/convert-preset.ts';
export { expandVirtualMachine, type Layers } from './rules/instancetype/expand.ts';
export { type ExplainedField, explainExpansion } from './rules/instancetype/explain.ts';
export { layersOf, readSources } from './rules/instancetype/resolve.ts';
export {
  BLOCK_TARGET_HOOK,
  FAIL_MEMORY_HOTPLUG_HOOK,
  FAIL_MIGRATION_HOOK,
  SIMULATE_CRASH,
  TARGET_IMAGE_HOOK,
} from './rules/launcher/functional-test-hooks.ts';
export { logsSerialConsole } from './rules/launcher/guest-console-log.ts';
export {
  CREATED_BY_LABEL,
  LAUNCHER_LABEL,
  LAUNCHER_VALUE,
  MIGRATION_JOB_LABEL,
} from './rules/launcher/launcher-labels.ts';
export { instanceReference } from './rules/launcher/launcher-owner.ts';
export { guestGraceSeconds } from './rules/launcher/launcher-pod.ts';
export {
  CPU_FEATURE_PREFIX,
  CPU_MODEL_PREFIX,
  HYPERV_OF_NODE,
  HYPERV_PREFIX,
  MACHINE_TYPE_PREFIX,
} from './rules/launcher/node-selector.ts';
export { hostAddressOf, isPodAddress, podAddressOf } from './rules/launcher/pod-address.ts';
export { podShortfall } from './rules/launcher/pod-shortfall.ts';
export { liveUpdateVerdict } from './rules/live-update/live-update-verdict.ts';
export { type NextPlug, nextPlug } from './rules/live-update/next-plug.ts';
export { hasPendingCondition, pendingChanges } from './rules/live-update/pending-changes.ts';
export { isResizing, type PodResizeVerdict, podResizeVerdict } from './rules/live-update/pod-resize.ts';
export {
  type DiskPause,
  type DiskSpace,
  diskFloor,
  diskPauseOf,
  ephemeralLimit,
  ephemeralRequest,
  hasDiskPressure,
} from './rules/machine/disk-room.ts';
export {
  type AskedPort,
  askedHostPorts,
  FORWARDED_PORTS_ANNOTATION,
  HOST_PORTS_ANNOTATION,
  type PublishedPort,
  usualHostPort,
} from './rules/machine/host-ports.ts';
export {
  DEFAULT_SMBIOS,
  type DeviceSpec,
  type ForwardedPort,
  type HotMemoryPlan,
  type MachinePlan,
  type NodeFacts,
  PlanError,
  type PlannedDisk,
  type SmbiosConfig,
} from './rules/machine/machine-plan.ts';
export { machinePlan } from './rules/machine/plan.ts';
export { type ClusterConfig, clusterConfigOf, cpuAllocationRatioOf } from './rules/machine-defaults/cluster-config.ts';
export { isGateEnabled } from './rules/machine-defaults/feature-gates.ts';
export { DefaultsError } from './rules/machine-defaults/implicit-devices.ts';
export { obsoleteCpuModels } from './rules/machine-defaults/obsolete-cpu-models.ts';
export { FORK_INTO, forkNames, forkObstacle, MAX_FORKS, parseForkInto } from './rules/memory-state/fork.ts';
export type { DeleteMemory, MemorySaved, MemoryStates, SaveMemory } from './rules/memory-state/memory-calls.ts';
export { hostOf, resumeDifference, resumedPlan, type SavedHost } from './rules/memory-state/resume-plan.ts';
export { INCLUDE_MEMORY, parseResumeFrom, RESUME_FALLBACK, RESUME_FROM } from './rules/memory-state/resume-request.ts';
export { includesMemory } from './rules/memory-state/saved-memory.ts';
export { type Migratability, migratability } from './rules/migration/migratability.ts';
export {
  completionMs,
  type MigrationLimits,
  migrationLimits,
  monitorStep,
} from './rules/migration/migration-limits.ts';
export {
  type MigrationEnds,
  type MigrationVerdict,
  migrationVerdict,
  nextSourceStep,
  nextTargetStep,
  type SourcePhase,
  type TargetPhase,
} from './rules/migration/migration-steps.ts';
export { movedPlan, planDifference } from './rules/migration/plan-difference.ts';
export { mustStandStill } from './rules/migration/still-guest.ts';
export { migrationSettings } from './rules/migration-policy/migration-settings.ts';
export { buildMachineGraph, hasStateClaim } from './rules/object-graph/build-graph.ts';
export { GRAPH_RESOURCES } from './rules/object-graph/graph-resources.ts';
export type { ExtendedGraphNode, Looked } from './rules/object-graph/mark-graph.ts';
export { decideDeletion, isGuardedKind, type Refusal } from './rules/protection/decide-deletion.ts';
export { DELETE_PROTECTION_LABEL, guardsItsParts, isDeleteProtected } from './rules/protection/delete-protection.ts';
export { mustStopFirst, notStopped } from './rules/protection/delete-when-stopped.ts';
export { DELETION_POLICY_NAME } from './rules/protection/deletion-policy.ts';
export type { DeletionTarget } from './rules/protection/deletion-target.ts';
export { isHeldByMachine } from './rules/protection/held-by-machine.ts';
export { KRUISE_PROTECTION_LABEL, type KruiseHook, kruiseHookOf } from './rules/protection/kruise-label.ts';
export {
  isActivePod,
  isBoundClaim,
  type KruiseCounts,
  type KruiseSubject,
  kruiseRefusal,
} from './rules/protection/kruise-refusal.ts';
export { partsPolicy } from './rules/protection/parts-policy.ts';
export { findPreciousMachines, type PreciousMachine } from './rules/protection/precious-machines.ts';
export { createProtectionIndex, INDEXED_PREFIXES, type IndexedKind } from './rules/protection/protection-index.ts';
export {
  type ProtectionSettings,
  protectionSettingsOf,
  UNPROTECT_PERMISSION_ANNOTATION,
} from './rules/protection/protection-settings.ts';
export { referencesOf } from './rules/protection/references.ts';
export {
  blockerEvent,
  type ProtectionRefusal,
  REFUSAL_ANNOTATION,
  refusalAnnotation,
  refusalEvent,
} from './rules/protection/refusal-evidence.ts';
export { deletionForbidden, refusalText } from './rules/protection/refusal-text.ts';
export { otherSsp, SSP_WEBHOOK, sspProblem } from './rules/protection/ssp-rules.ts';
export type { StateIndex } from './rules/protection/state-index.ts';
export {
  switchesProtectionOff,
  UNPROTECT_ROLE,
  UNPROTECT_RULES,
  UNPROTECT_VERB,
  unprotectRefusal,
} from './rules/protection/unprotect-permission.ts';
export { effectiveRunStrategy, isFinal, type RunStrategy } from './rules/run-strategy/run-strategy.ts';
