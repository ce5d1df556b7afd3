/** Rules about restores of virtual machines (kubevirt pkg/storage/admitters/vmrestore). */

import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import { orAbsent } from '@coracle/client/api-failure';
import type { Client } from '@coracle/client/client';
import {
  VIRTUAL_MACHINE_RESTORES,
  VIRTUAL_MACHINE_SNAPSHOT_CONTENTS,
  VIRTUAL_MACHINE_SNAPSHOTS,
  VIRTUAL_MACHINES,
  type VirtualMachineRestore,
  VOLUME_OWNERSHIP_POLICIES,
  VOLUME_RESTORE_POLICIES,
} from '../../../kinds/kubevirt.ts';
import { needsBackendStorage } from '../../../rules/backend-storage/backend-storage.ts';
import type { AdmissionContext } from './admission-context.ts';
import { type Cause, invalidValue, requiredValue, WebhookRefusal } from './causes.ts';
import { validateMachineReference } from './validate-snapshot.ts';

type Restore = DeepReadonly<VirtualMachineRestore>;

export const BACKEND_STORAGE_ELSEWHERE =
  'Restore to a different VM is not supported when snapshotted VM has backend storage (persistent TPM or EFI)';

/**
 * Validates a new restore: by its own fields, by other restores of the same target, and by the snapshot where that exists.
 * @throws WebhookRefusal 400 while the feature gate is off, and when the snapshot is not far enough to be validated
 */
export async function validateNewRestore(
  restore: Restore,
  { namespace, context, client }: { namespace: string; context: AdmissionContext; client: Client },
): Promise<Cause[]> {
  if (!context.config.isEnabled('Snapshot')) throw new WebhookRefusal(400, 'Snapshot/Restore feature gate not enabled');
  const { spec } = restore;
  const causes = validateMachineReference('spec.target', spec.target);
  if (causes.length === 0) {
    causes.push(
      ...validatePatches(spec.patches ?? []),
      ...(await validateBackendStorage(restore, namespace, client)),
      ...validateOverrides(spec.volumeRestoreOverrides ?? []),
      ...validatePolicies(spec),
    );
  }
  const { items } = await client.list(VIRTUAL_MACHINE_RESTORES, { namespace });
  for (const other of items) {
    if (other.status?.complete === true || !deepEqual(other.spec.target, spec.target)) continue;
    const name = JSON.stringify(other.metadata.name);
    causes.push(invalidValue('spec.target', `VirtualMachineRestore ${name} in progress`));
  }
  return causes;
}

/** One operation each, on what a user may write: labels, annotations and the spec. */
export function validatePatches(patches: readonly string[]): Cause[] {
  return patches.flatMap((patch): Cause[] => {
    let path: unknown;
    try {
      path = (JSON.parse(patch) as { path?: unknown } | null)?.path;
    } catch {
      path = undefined;
    }
    if (typeof path !== 'string')
      return [invalidValue('spec.patches', `patch format is not valid - one JSON patch operation expected: ${patch}`)];
    const allowed = ['/spec/', '/metadata/labels/', '/metadata/annotations/'].some((start) => path.startsWith(start));
    return allowed
      ? []
      : [invalidValue('spec.patches', `patching is valid only for elements under /spec/ only: "path": "${path}"`)];
  });
}

function validateOverrides(overrides: NonNullable<Restore['spec']['volumeRestoreOverrides']>): Cause[] {
  return overrides.flatMap((override, i): Cause[] => {
    const path = `spec.volumeRestoreOverrides[${i}]`;
    const says = override.restoreName || override.annotations !== undefined || override.labels !== undefined;
    return [
      ...(override.volumeName ? [] : [requiredValue(`${path}.volumeName`, 'must provide a volume name')]),
      ...(says ? [] : [requiredValue(path, 'must provide at least one overriden field')]),
    ];
  });
}

function validatePolicies({ volumeRestorePolicy, volumeOwnershipPolicy }: Restore['spec']): Cause[] {
  const unknown = (field: string, what: string, policy: string | undefined, known: readonly string[]): Cause[] =>
    policy === undefined || known.includes(policy)
      ? []
      : [invalidValue(`spec.${field}`, `volume ${what} policy "${policy}" doesn't exist`)];
  return [
    ...unknown('volumeRestorePolicy', 'restore', volumeRestorePolicy, VOLUME_RESTORE_POLICIES),
    ...unknown('volumeOwnershipPolicy', 'ownership', volumeOwnershipPolicy, VOLUME_OWNERSHIP_POLICIES),
  ];
}

/** What a machine keeps in its TPM and its EFI variables is its own: it does not go to another machine. */
async function validateBackendStorage({ spec }: Restore, namespace: string, client: Client): Promise<Cause[]> {
  const snapshot = await orAbsent(
    client.get(VIRTUAL_MACHINE_SNAPSHOTS, { namespace, name: spec.virtualMachineSnapshotName }),
  );
  if (snapshot === undefined) return [];
  const target = await orAbsent(client.get(VIRTUAL_MACHINES, { namespace, name: spec.target.name }));
  const { sourceUID, virtualMachineSnapshotContentName: contentName } = snapshot.status ?? {};
  const differs = target === undefined || (sourceUID !== undefined && target.metadata.uid !== sourceUID);
  if (!differs) return [];
  if (contentName === undefined) throw new WebhookRefusal(400, 'snapshot content name is nil in vmSnapshot status');
  const content = await client.get(VIRTUAL_MACHINE_SNAPSHOT_CONTENTS, { namespace, name: contentName });
  const vm = content.spec.source.virtualMachine;
  if (vm === undefined) throw new WebhookRefusal(400, 'unexpected snapshot source');
  const template = vm.spec?.template?.spec;
  return template && needsBackendStorage(template) ? [invalidValue('spec', BACKEND_STORAGE_ELSEWHERE)] : [];
}
