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
  type ReadonlyBackup,
  VIRTUAL_MACHINE_BACKUPS,
  type VirtualMachineBackup,
  type VirtualMachineBackupTracker,
} from '../../../kinds/kubevirt.ts';
import { isBackupDone } from '../../../rules/backup/backup-conditions.ts';
import type { AdmissionContext } from './admission-context.ts';
import { type Cause, Findings, invalidValue, WebhookRefusal } from './causes.ts';

/** What a backup may be of, by API group. */
const KINDS: Readonly<Record<string, string>> = {
  [KUBEVIRT_GROUP]: 'VirtualMachine',
  [BACKUP_GROUP]: 'VirtualMachineBackupTracker',
};

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
  { metadata, spec }: ReadonlyBackup,
  context: AdmissionContext,
  { client, namespace, signal }: { readonly client: Client; readonly namespace: string; readonly signal?: AbortSignal },
): Promise<readonly Cause[]> {
  requireGate(context);
  const found = new Findings('spec');
  validateSource(found, spec.source);
  if (!spec.pvcName) found.invalid('', 'pvcName is required');
  if (spec.mode === 'Pull' && !spec.tokenSecretRef) found.invalid('', 'tokenSecretRef is required when mode is Pull');
  if (found.causes.length > 0) return found.causes;
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

function validateSource(
  found: Findings,
  { apiGroup, kind, name }: DeepReadonly<VirtualMachineBackup['spec']['source']>,
): void {
  const bad = (message: string): void => found.invalid('.source', message);
  if (apiGroup === undefined || apiGroup === null) bad('apiGroup is required');
  else {
    const wanted = Object.hasOwn(KINDS, apiGroup) ? KINDS[apiGroup] : undefined;
    if (wanted === undefined) bad('apiGroup must be kubevirt.io or backup.kubevirt.io');
    if (kind !== wanted)
      bad('kind must be VirtualMachine for kubevirt.io or VirtualMachineBackupTracker for backup.kubevirt.io');
  }
  if (!name) bad('name is required');
}

/**
 * Validates a new tracker.
 * @throws WebhookRefusal 400 while the feature gate is off
 */
export function validateNewTracker(
  { spec }: DeepReadonly<VirtualMachineBackupTracker>,
  context: AdmissionContext,
): readonly Cause[] {
  requireGate(context);
  const { apiGroup, kind, name } = spec.source;
  const found = new Findings('spec.source');
  if (apiGroup !== KUBEVIRT_GROUP) found.invalid('', 'apiGroup must be kubevirt.io');
  if (kind !== 'VirtualMachine') found.invalid('', 'kind must be VirtualMachine');
  if (!name) found.invalid('', 'name is required');
  return found.causes;
}

/** A spec that must be as it was, in this group's words. */
export function validateUnchangedBackup(spec: unknown, old: unknown): Cause[] {
  return deepEqual(spec, old) ? [] : [invalidValue('spec', IMMUTABLE)];
}
