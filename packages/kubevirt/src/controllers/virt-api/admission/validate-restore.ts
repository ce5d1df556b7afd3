/** Rules about restores of virtual machines (kubevirt pkg/storage/admitters/vmrestore). */

import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import { orAbsent } from '@coracle/client/api-failure';
import type { Client } from '@coracle/client/client';
import {
  type ReadonlyRestore,
  VIRTUAL_MACHINE_RESTORES,
  VIRTUAL_MACHINE_SNAPSHOT_CONTENTS,
  VIRTUAL_MACHINE_SNAPSHOTS,
  VIRTUAL_MACHINES,
  type VirtualMachineRestore,
} from '../../../kinds/kubevirt.ts';
import { valuesOf } from '../../../kinds/structural-schema.ts';
import { needsBackendStorage } from '../../../rules/backend-storage/backend-storage.ts';
import type { AdmissionContext } from './admission-context.ts';
import { type Cause, Findings, WebhookRefusal } from './causes.ts';
import { validateMachineReference } from './validate-snapshot.ts';

type VolumeRestoreOverride = NonNullable<VirtualMachineRestore['spec']['volumeRestoreOverrides']>[number];

export const BACKEND_STORAGE_ELSEWHERE =
  'Restore to a different VM is not supported when snapshotted VM has backend storage (persistent TPM or EFI)';

/**
 * Validates a new restore: by its own fields, by other restores of the same target, and by the snapshot where that exists.
 * @throws WebhookRefusal 400 while the feature gate is off, and when the snapshot is not far enough to be validated
 */
export async function validateNewRestore(
  restore: ReadonlyRestore,
  { namespace, context, client }: { namespace: string; context: AdmissionContext; client: Client },
): Promise<readonly Cause[]> {
  if (!context.config.isEnabled('Snapshot')) throw new WebhookRefusal(400, 'Snapshot/Restore feature gate not enabled');
  const { spec } = restore;
  const found = new Findings('spec', validateMachineReference('spec.target', spec.target));
  if (found.causes.length === 0) {
    validatePatches(found, spec.patches ?? []);
    await validateBackendStorage(found, restore, { namespace, client });
    found.each('.volumeRestoreOverrides', spec.volumeRestoreOverrides, validateOverride);
    validatePolicies(found, spec);
  }
  const { items } = await client.list(VIRTUAL_MACHINE_RESTORES, { namespace });
  for (const { metadata, status, spec: other } of items)
    if (status?.complete !== true && deepEqual(other.target, spec.target))
      found.invalid('.target', `VirtualMachineRestore ${JSON.stringify(metadata.name)} in progress`);
  return found.causes;
}

/** One operation each, on what a user may write: labels, annotations and the spec. */
export function validatePatches(found: Findings, patches: readonly string[]): void {
  for (const patch of patches) {
    const path = pathOf(patch);
    if (typeof path !== 'string')
      found.invalid('.patches', `patch format is not valid - one JSON patch operation expected: ${patch}`);
    else if (!['/spec/', '/metadata/labels/', '/metadata/annotations/'].some((start) => path.startsWith(start)))
      found.invalid('.patches', `patching is valid only for elements under /spec/ only: "path": "${path}"`);
  }
}

function pathOf(patch: string): unknown {
  try {
    return (JSON.parse(patch) as { path?: unknown } | null)?.path;
  } catch {
    return undefined;
  }
}

function validateOverride(found: Findings, override: DeepReadonly<VolumeRestoreOverride>): void {
  if (!override.volumeName) found.required('.volumeName', 'must provide a volume name');
  if (!override.restoreName && override.annotations === undefined && override.labels === undefined)
    found.required('', 'must provide at least one overriden field');
}

function validatePolicies(
  found: Findings,
  { volumeRestorePolicy, volumeOwnershipPolicy }: ReadonlyRestore['spec'],
): void {
  const known = (member: string, what: string, policy: string | undefined, policies: readonly string[]): void => {
    if (policy !== undefined && !policies.includes(policy))
      found.invalid(member, `volume ${what} policy "${policy}" doesn't exist`);
  };
  known('.volumeRestorePolicy', 'restore', volumeRestorePolicy, valuesOf('RestoreSpec', 'volumeRestorePolicy'));
  known('.volumeOwnershipPolicy', 'ownership', volumeOwnershipPolicy, valuesOf('RestoreSpec', 'volumeOwnershipPolicy'));
}

/** What a machine keeps in its TPM and its EFI variables is its own: it does not go to another machine. */
async function validateBackendStorage(
  found: Findings,
  { spec }: ReadonlyRestore,
  { namespace, client }: { readonly namespace: string; readonly client: Client },
): Promise<void> {
  const snapshot = await orAbsent(
    client.get(VIRTUAL_MACHINE_SNAPSHOTS, { namespace, name: spec.virtualMachineSnapshotName }),
  );
  if (snapshot === undefined) return;
  const target = await orAbsent(client.get(VIRTUAL_MACHINES, { namespace, name: spec.target.name }));
  const { sourceUID, virtualMachineSnapshotContentName: contentName } = snapshot.status ?? {};
  const differs = target === undefined || (sourceUID !== undefined && target.metadata.uid !== sourceUID);
  if (!differs) return;
  if (contentName === undefined) throw new WebhookRefusal(400, 'snapshot content name is nil in vmSnapshot status');
  const content = await client.get(VIRTUAL_MACHINE_SNAPSHOT_CONTENTS, { namespace, name: contentName });
  const vm = content.spec.source.virtualMachine;
  if (vm === undefined) throw new WebhookRefusal(400, 'unexpected snapshot source');
  const template = vm.spec?.template?.spec;
  if (template && needsBackendStorage(template)) found.invalid('', BACKEND_STORAGE_ELSEWHERE);
}
