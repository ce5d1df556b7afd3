/**
 * The claim that keeps the firmware state of a machine: the state of its TPM and its EFI variables (upstream's "backend
 * storage", pkg/storage/backend-storage). Which machines need one, how it is found again, and what it looks like.
 */

import { controllerReference } from '@coracle/apimachinery/meta/controller-reference';
import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import type { PersistentVolumeClaim, ReadonlyClaim } from '@coracle/apimachinery/types/types';
import type { ReadonlyVm, ReadonlyVmi, VirtualMachineInstance } from '../../kinds/kubevirt.ts';

type InstanceSpec = DeepReadonly<VirtualMachineInstance['spec']>;

/** Label of the claim in use: the name of the machine. */
export const STATE_LABEL = 'persistent-state-for';
/** Label of the claim that a migration fills for its target: the name of the migration. Gone once it is in use. */
export const STATE_MIGRATION_LABEL = 'kubevirt.io/migrationName';
/** Name of the claim's entry in `status.volumeStatus`, of the volume in the launcher Pod, and in snapshots of the machine. */
export const STATE_VOLUME = 'persistent-state-for-this-vm';
/** Storage that the claim asks for. */
export const STATE_SIZE = '10Mi';

/** True when the guest has a TPM; `enabled: false` means that it has none. */
export const hasTpm = ({ domain }: InstanceSpec): boolean =>
  domain?.devices?.tpm !== undefined && domain.devices.tpm.enabled !== false;

/** True when what the guest keeps in its TPM shall survive the guest. */
export const hasPersistentTpm = (spec: InstanceSpec): boolean =>
  hasTpm(spec) && spec.domain.devices.tpm?.persistent === true;

/** True when the EFI variables of the guest shall survive it. */
export const hasPersistentEfi = ({ domain }: InstanceSpec): boolean =>
  domain?.firmware?.bootloader?.efi?.persistent === true;

/** True when a machine of this spec has a claim for its firmware state. */
export const needsBackendStorage = (spec: InstanceSpec): boolean => hasPersistentTpm(spec) || hasPersistentEfi(spec);

/** What names a machine: a VirtualMachine or its instance, which has the same name. */
interface Machine {
  readonly metadata: { readonly namespace?: string; readonly name?: string };
}

/**
 * The claim with the firmware state of a machine, among `claims` (of any namespace); undefined when it has none yet. It
 * is the one labelled `persistent-state-for=<name>`; versions of KubeVirt before the label named it
 * `persistent-state-for-<name>`. One that is being deleted is no more. The claim of a migration's target counts only
 * once it was labelled.
 */
export function backendStorageClaimOf<T extends ReadonlyClaim>(
  { metadata: { namespace, name } }: Machine,
  claims: Iterable<T>,
): T | undefined {
  let found: T | undefined;
  let old: T | undefined;
  for (const claim of claims) {
    const { metadata } = claim;
    if (metadata.namespace !== namespace || metadata.deletionTimestamp !== undefined) continue;
    if (metadata.labels?.[STATE_LABEL] === name) {
      // Two of them are left by a hand-over that broke off: the target's is the newer one.
      if (!found || isNewer(claim, found)) found = claim;
    } else if (metadata.name === `${STATE_LABEL}-${name}`) old = claim;
  }
  return found ?? old;
}

const isNewer = (a: ReadonlyClaim, b: ReadonlyClaim): boolean => {
  const [ofA, ofB] = [a.metadata.creationTimestamp ?? '', b.metadata.creationTimestamp ?? ''];
  return ofA === ofB ? (a.metadata.name ?? '') > (b.metadata.name ?? '') : ofA > ofB;
};

/** The same for a VirtualMachine, where its template asks for one: what a snapshot of it holds besides its volumes. */
export function backendStorageClaimOfVm<T extends ReadonlyClaim>(vm: ReadonlyVm, claims: Iterable<T>): T | undefined {
  const spec = vm.spec.template?.spec;
  return spec && needsBackendStorage(spec) ? backendStorageClaimOf(vm, claims) : undefined;
}

/** Name of the claim that an instance runs with, by its status; undefined before that is reported. */
export const currentStateClaim = (vmi: ReadonlyVmi): string | undefined =>
  vmi.status?.volumeStatus?.find(({ name }) => name === STATE_VOLUME)?.persistentVolumeClaimInfo?.claimName;

/**
 * A claim for the firmware state of an instance, to be created. It belongs to whoever the instance belongs to, so that it
 * outlives the instance of a VirtualMachine; a standalone instance takes it along.
 */
export function newStateClaim(
  vmi: ReadonlyVmi,
  options: {
    readonly storageClass: string;
    readonly accessMode: string;
    /** Name of the migration whose target it is for; without it the claim is in use at once. */
    readonly migration?: string;
  },
): PersistentVolumeClaim {
  const { namespace = '', name = '', ownerReferences = [] } = vmi.metadata;
  const owners = ownerReferences.length > 0 ? cloneJson(ownerReferences) : [controllerReference(vmi)];
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: {
      generateName: `${STATE_LABEL}-${name}-`,
      namespace,
      labels: {
        ...(options.migration === undefined ? { [STATE_LABEL]: name } : { [STATE_MIGRATION_LABEL]: options.migration }),
        'cdi.kubevirt.io/applyStorageProfile': 'true',
      },
      ownerReferences: owners as NonNullable<PersistentVolumeClaim['metadata']['ownerReferences']>,
    },
    spec: {
      accessModes: [options.accessMode],
      resources: { requests: { storage: STATE_SIZE } },
      storageClassName: options.storageClass,
      volumeMode: 'Filesystem',
    },
  } as PersistentVolumeClaim;
}
