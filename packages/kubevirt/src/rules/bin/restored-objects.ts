/**
 * What an undelete makes of what the bin kept: the same objects, made anew under new UIDs. Until the machine is there they
 * belong to the content, so that none is left over without one.
 */

import { controllerReference } from '@coracle/apimachinery/meta/controller-reference';
import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import { withoutManagement } from '@coracle/apimachinery/meta/management';
import type {
  DeepReadonly,
  KubeObject,
  ObjectMeta,
  OwnerReference,
  ReadonlyObject,
} from '@coracle/apimachinery/meta/object';
import type { PersistentVolume, PersistentVolumeClaim } from '@coracle/apimachinery/types/types';
import { BOUND_BY_CONTROLLER } from '@coracle/cluster-rules/storage/claim-step';
import { PROVISIONER_FINALIZER } from '@coracle/cluster-rules/storage/provision-plan';
import type { DeletedVirtualMachineContent, HeldVolume, UndeletePlan } from '../../kinds/kinds.ts';
import type { ReadonlyVm, VirtualMachine } from '../../kinds/kubevirt.ts';
import { STATE_LABEL } from '../backend-storage/backend-storage.ts';
import { decideIdentity, IDENTITY_ORIGIN, withIdentity } from '../identity/decide-identity.ts';
import { RESUME_FALLBACK, RESUME_FROM } from '../memory-state/resume-request.ts';
import { referencesOf } from '../protection/references.ts';
import { POPULATED_FOR_ANNOTATION } from '../snapshot/restored-claim.ts';
import { UNDELETED_FROM } from './bin-names.ts';

type Content = DeepReadonly<DeletedVirtualMachineContent>;
type Plan = DeepReadonly<UndeletePlan>;

/** Annotations that belong to the very claim they were written on. */
const NOT_COPIED = ['pv.kubernetes.io/', 'volume.kubernetes.io/', 'volume.beta.kubernetes.io/'];
const NOT_A_NAME = 'DataVolume';

/** The machine as it was kept. */
export const keptMachine = ({ spec }: Content): ReadonlyVm => spec.objects[0] as ReadonlyVm;

/** What went with the machine, in the order in which it is made again. */
export const keptDependents = ({ spec }: Content): readonly ReadonlyObject[] => spec.objects.slice(1);

/** The name that an object gets. The claim of a DataVolume has the DataVolume's. */
export function newNameOf(plan: Plan, kind: string, name: string): string {
  const planned = plan.names?.find(
    (each) => each.name === name && (each.kind === kind || (kind === NOT_A_NAME && each.kind === CLAIM)),
  );
  return planned?.newName ?? name;
}
const CLAIM = 'PersistentVolumeClaim';

/** Whether an undelete of this content made the object. */
export const isFrom = (object: ReadonlyObject, content: Content): boolean =>
  object.metadata.annotations?.[UNDELETED_FROM] === content.metadata.uid;

/** A name for an object whose own is taken, made of the machine's new one. */
export const otherName = (plan: Pick<Plan, 'name'>, name: string): string => `${plan.name}-${name}`.slice(0, 253);

/** Owner of what is made before the machine. */
const contentReference = (content: Content): OwnerReference => {
  const { controller: _, blockOwnerDeletion: __, ...reference } = controllerReference(content);
  return reference;
};

/** An object that went with the machine, to be created. */
export function restoredDependent(content: Content, plan: Plan, kept: ReadonlyObject): KubeObject {
  const { metadata, ...rest } = cloneJson<KubeObject>(kept);
  const { labels, annotations } = withoutManagement(metadata);
  const isClaim = kept.kind === CLAIM;
  const owner = metadata.ownerReferences?.find(({ kind }) => kind === NOT_A_NAME);
  const name = newNameOf(plan, kept.kind, metadata.name ?? '');
  const state = labels[STATE_LABEL] === content.spec.virtualMachine.name ? { [STATE_LABEL]: plan.name } : {};
  const made = {
    ...rest,
    metadata: {
      name,
      namespace: plan.namespace,
      labels: { ...labels, ...state },
      annotations: {
        ...Object.fromEntries(
          Object.entries(annotations).filter(([key]) => !isClaim || !NOT_COPIED.some((each) => key.startsWith(each))),
        ),
        [UNDELETED_FROM]: content.metadata.uid ?? '',
        ...(isClaim && owner && { [POPULATED_FOR_ANNOTATION]: name }),
        ...(kept.kind === NOT_A_NAME && { 'cdi.kubevirt.io/storage.prePopulated': name }),
      },
      ownerReferences: [contentReference(content)],
    },
  } as KubeObject;
  return isClaim ? withVolumeOf(made, content, metadata.name ?? '') : made;
}

/** A claim that had no volume is bound as a new one. */
function withVolumeOf(claim: PersistentVolumeClaim, content: Content, before: string): PersistentVolumeClaim {
  const { volumeName: _, ...spec } = claim.spec ?? {};
  const held = content.spec.volumes?.find((each) => each.claim === before);
  return {
    ...claim,
    spec: { ...spec, ...(held && { volumeName: held.volume.metadata.name ?? '' }) },
  } as PersistentVolumeClaim;
}

/** The PersistentVolume of a held volume, kept for its claim. */
export function restoredVolume(content: Content, plan: Plan, held: DeepReadonly<HeldVolume>): PersistentVolume {
  const { metadata, spec, ...rest } = cloneJson<PersistentVolume>(held.volume);
  const { [BOUND_BY_CONTROLLER]: _, ...annotations } = metadata.annotations ?? {};
  return {
    ...rest,
    metadata: {
      name: metadata.name ?? '',
      ...(metadata.labels && { labels: metadata.labels }),
      annotations: { ...annotations, [UNDELETED_FROM]: content.metadata.uid ?? '' },
      ...(spec?.persistentVolumeReclaimPolicy === 'Delete' && { finalizers: [PROVISIONER_FINALIZER] }),
    },
    spec: { ...spec, claimRef: claimReference(plan, held.claim) },
  };
}

/** Without a UID: the claim that is made under this name is the one. */
export const claimReference = (plan: Plan, claim: string) => ({
  apiVersion: 'v1',
  kind: CLAIM,
  namespace: plan.namespace,
  name: newNameOf(plan, CLAIM, claim),
});

/**
 * The machine, to be created. Its identity is that of before unless a new one was asked for. It belongs to nobody: what
 * controlled it would not know it any more. A sync that took it out would take it out again: it is not that sync's either.
 */
export function restoredMachine(content: Content, plan: Plan): VirtualMachine {
  const { metadata, spec, apiVersion, kind } = cloneJson<VirtualMachine>(keptMachine(content));
  renameReferences(content, plan, spec);
  const {
    [RESUME_FROM]: _,
    [RESUME_FALLBACK]: __,
    [IDENTITY_ORIGIN]: ___,
    ...annotations
  } = withoutManagement(metadata).annotations;
  const { labels } = withoutManagement(metadata);
  const domain = spec.template?.spec?.domain;
  let origin: string | undefined;
  if (domain !== undefined) {
    const identity = plan.newIdentity
      ? { uuid: '', serial: '' }
      : decideIdentity({ type: 'restore-same', firmware: domain.firmware, vmName: metadata.name ?? '' });
    domain.firmware = withIdentity(domain.firmware, identity);
    origin = 'origin' in identity ? identity.origin : undefined;
    if (plan.newIdentity) for (const nic of domain.devices?.interfaces ?? []) delete nic.macAddress;
  }
  return {
    apiVersion,
    kind,
    metadata: {
      name: plan.name,
      namespace: plan.namespace,
      ...(Object.keys(labels).length > 0 && { labels }),
      annotations: {
        ...annotations,
        ...(origin !== undefined && { [IDENTITY_ORIGIN]: origin }),
        [UNDELETED_FROM]: content.metadata.uid ?? '',
      },
    },
    spec,
  } as VirtualMachine;
}

/** Kinds by the plurals that references name. */
const KIND_OF: Readonly<Record<string, string>> = {
  persistentvolumeclaims: CLAIM,
  datavolumes: NOT_A_NAME,
  controllerrevisions: 'ControllerRevision',
  secrets: 'Secret',
  configmaps: 'ConfigMap',
};

function renameReferences(content: Content, plan: Plan, spec: VirtualMachine['spec']): void {
  if (!plan.names?.length) return;
  for (const { resource, name, field } of referencesOf(keptMachine(content))) {
    const kind = KIND_OF[resource];
    const next = kind === undefined ? name : newNameOf(plan, kind, name);
    if (next !== name && field.startsWith('spec.')) setAt(spec, field.slice('spec.'.length), next);
  }
}

/** Sets what stands at `a.b[0].c`; it is there. */
function setAt(root: object, path: string, value: string): void {
  const steps = path.split(/[.[\]]+/).filter((step) => step !== '');
  let at = root as Record<string, unknown>;
  for (const step of steps.slice(0, -1)) at = at[step] as Record<string, unknown>;
  at[steps.at(-1)!] = value;
}

/**
 * Owners of an object once the machine is there: the machine where the old one owned it, and nobody where it owned
 * nothing of it. A claim of a DataVolume is left to the DataVolume, which takes it.
 */
export function finalOwners(content: Content, kept: ReadonlyObject, machine: ReadonlyVm): readonly OwnerReference[] {
  const before = kept.metadata.ownerReferences?.find(({ uid }) => uid === content.spec.virtualMachine.uid);
  if (!before) return [];
  return [
    { ...before, apiVersion: machine.apiVersion, name: machine.metadata.name ?? '', uid: machine.metadata.uid ?? '' },
  ];
}

/** Metadata of an object that the machine has taken over. */
export function takenOver(metadata: DeepReadonly<ObjectMeta>, owners: readonly OwnerReference[]): ObjectMeta {
  const { ownerReferences: _, annotations = {}, ...rest } = cloneJson<ObjectMeta>(metadata);
  const { [UNDELETED_FROM]: __, ...others } = annotations;
  return {
    ...rest,
    annotations: others,
    ...(owners.length > 0 && { ownerReferences: [...owners] }),
  };
}
