/**
 * Rules about backups of virtual machines and their trackers (kubevirt pkg/storage/admitters/vmbackup; what upstream's
 * definitions ask for by CEL is asked here, in the same words).
 */

import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import type { Client } from '@coracle/client/client';
import {
  BACKUP_GROUP,
  KUBEVIRT_GROUP,
  VIRTUAL_MACHINE_BACKUPS,
  type VirtualMachineBackup,
  type VirtualMachineBackupTracker,
} from '../../../kinds/kubevirt.ts';
import { isBackupDone } from '../../../rules/backup/backup-conditions.ts';
import type { AdmissionContext } from './admission-context.ts';
import { type Cause, invalidValue, WebhookRefusal } from './causes.ts';

const IMMUTABLE = 'spec is immutable after creation';

function requireGate({ config }: AdmissionContext): void {
  if (!config.isEnabled('IncrementalBackup'))
    throw new WebhookRefusal(400, 'IncrementalBackup feature gate not enabled');
}

/**
 * Validates a new backup.
 * @throws WebhookRefusal 400 while the feature gate is off
 */
export async function validateNewBackup(
  { metadata, spec }: DeepReadonly<VirtualMachineBackup>,
  context: AdmissionContext,
  { client, namespace, signal }: { readonly client: Client; readonly namespace: string; readonly signal?: AbortSignal },
): Promise<Cause[]> {
  requireGate(context);
  const causes = [...sourceCauses(spec.source), ...specCauses(spec)];
  if (causes.length > 0) return causes;
  const { items } = await client.list(VIRTUAL_MACHINE_BACKUPS, { namespace, ...(signal && { signal }) });
  for (const other of items) {
    const { name } = other.metadata;
    if (name === metadata.name) return [invalidValue('metadata.name', `VirtualMachineBackup "${name}" already exists`)];
    const { apiGroup, kind, name: source } = other.spec.source;
    const isSame = apiGroup === spec.source.apiGroup && kind === spec.source.kind && source === spec.source.name;
    if (isSame && !isBackupDone(other.status))
      return [invalidValue('spec.source', `VirtualMachineBackup "${name}" in progress for source`)];
  }
  return [];
}

function sourceCauses({ apiGroup, kind, name }: DeepReadonly<VirtualMachineBackup['spec']['source']>): Cause[] {
  const causes: Cause[] = [];
  const bad = (message: string): void => void causes.push(invalidValue('spec.source', message));
  if (apiGroup === undefined || apiGroup === null) bad('apiGroup is required');
  else if (apiGroup !== KUBEVIRT_GROUP && apiGroup !== BACKUP_GROUP)
    bad('apiGroup must be kubevirt.io or backup.kubevirt.io');
  if (
    apiGroup !== undefined &&
    apiGroup !== null &&
    !(apiGroup === KUBEVIRT_GROUP && kind === 'VirtualMachine') &&
    !(apiGroup === BACKUP_GROUP && kind === 'VirtualMachineBackupTracker')
  )
    bad('kind must be VirtualMachine for kubevirt.io or VirtualMachineBackupTracker for backup.kubevirt.io');
  if (!name) bad('name is required');
  return causes;
}

function specCauses({ pvcName, mode, tokenSecretRef }: DeepReadonly<VirtualMachineBackup['spec']>): Cause[] {
  const causes: Cause[] = [];
  if (!pvcName) causes.push(invalidValue('spec', 'pvcName is required'));
  if (mode === 'Pull' && !tokenSecretRef)
    causes.push(invalidValue('spec', 'tokenSecretRef is required when mode is Pull'));
  return causes;
}

/**
 * Validates a new tracker.
 * @throws WebhookRefusal 400 while the feature gate is off
 */
export function validateNewTracker(
  { spec }: DeepReadonly<VirtualMachineBackupTracker>,
  context: AdmissionContext,
): Cause[] {
  requireGate(context);
  const { apiGroup, kind, name } = spec.source;
  return [
    ...(apiGroup === KUBEVIRT_GROUP ? [] : [invalidValue('spec.source', 'apiGroup must be kubevirt.io')]),
    ...(kind === 'VirtualMachine' ? [] : [invalidValue('spec.source', 'kind must be VirtualMachine')]),
    ...(name ? [] : [invalidValue('spec.source', 'name is required')]),
  ];
}

/** A spec that must be as it was, in this group's words. */
export function validateUnchangedBackup(spec: unknown, old: unknown): Cause[] {
  return deepEqual(spec, old) ? [] : [invalidValue('spec', IMMUTABLE)];
}
