/** Labels and annotations that tie a virt-launcher Pod to its instance, as upstream spells them. */
import { hexOf } from '@coracle/apimachinery/meta/hex';

export const LAUNCHER_LABEL = 'kubevirt.io';
export const LAUNCHER_VALUE = 'virt-launcher';
export const CREATED_BY_LABEL = 'kubevirt.io/created-by';
export const VMI_ID_LABEL = 'vmi.kubevirt.io/id';
export const VM_NAME_LABEL = 'vm.kubevirt.io/name';
export const NODE_NAME_LABEL = 'kubevirt.io/nodeName';
export const MIGRATION_JOB_LABEL = 'kubevirt.io/migrationJobUID';
export const MIGRATION_JOB_NAME_ANNOTATION = 'kubevirt.io/migrationJobName';
/** On the instance: where the migration under way goes to. */
export const MIGRATION_TARGET_NODE_LABEL = 'kubevirt.io/migrationTargetNodeName';
/** On an instance that is to be evicted: `descheduler` when that asked for it. */
export const EVICTION_SOURCE_ANNOTATION = 'kubevirt.io/eviction-source';
export const DOMAIN_ANNOTATION = 'kubevirt.io/domain';
export const FOREGROUND_FINALIZER = 'kubevirt.io/foregroundDeleteVirtualMachine';
/** On migrations: their controller's finalizer, and who made them. */
export const MIGRATION_FINALIZER = 'kubevirt.io/migrationJobFinalize';
export const EVACUATION_ANNOTATION = 'kubevirt.io/evacuationMigration';
export const WORKLOAD_UPDATE_ANNOTATION = 'kubevirt.io/workloadUpdateMigration';
/** Readiness gate of the Pod: no traffic for a guest that is paused. */
export const UNPAUSED_GATE = 'kubevirt.io/virtual-machine-unpaused';
const MAX_LABEL = 63;

/** The `vmi.kubevirt.io/id` value of a name: the name, or its first 54 characters and 8 hex digits of its SHA-1. */
export async function vmiIdLabel(name: string): Promise<string> {
  if (name.length <= MAX_LABEL) return name;
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-1', new TextEncoder().encode(name)));
  return `${name.slice(0, 54)}-${hexOf(digest.subarray(0, 4))}`;
}
