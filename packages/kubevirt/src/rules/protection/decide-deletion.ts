/**
 * Whether an object may be deleted, by what protected machines stand on: the objects they refer to, those that hold
 * their disks and firmware state, what they are being restored from, and what holds the machines themselves. Nobody
 * passes by name: once the machine is gone, being deleted or no longer protected, there is nothing to guard. The
 * deletion of the machine itself is decided by upstream's ValidatingAdmissionPolicy, not here.
 */

import { isOwnedBy } from '@coracle/apimachinery/meta/controller-reference';
import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import { isDeleting } from '@coracle/apimachinery/meta/object-state';
import { PERSISTENT_VOLUME_CLAIMS } from '@coracle/apimachinery/types/resource-types';
import type { PersistentVolume, ReadonlyClaim } from '@coracle/apimachinery/types/types';
import { KUBEVIRT_GROUP } from '../../kinds/kubevirt.ts';
import { backendStorageClaimOf, STATE_LABEL } from '../backend-storage/backend-storage.ts';
import type { DeletionTarget, GuardingMachine, Machines, ProtectionLookup } from './deletion-target.ts';
import { type ResourceName, referencesOf } from './references.ts';
import { isReplacedBy, neededBy } from './restores.ts';

/** A machine that does not allow a deletion. */
export interface Blocker {
  readonly namespace: string;
  readonly name: string;
  /** What of it refers to the object: a field path, or words; '' when it is the machine itself that would go. */
  readonly why: string;
}

export interface Refusal {
  /** What the object is to the machines. */
  readonly reason: 'Referenced' | 'HoldsMachines' | 'DefinesMachines' | 'RunsMachines';
  /** The first MAX_NAMED by namespace and name. */
  readonly blockers: readonly Blocker[];
  /** All of them. */
  readonly total: number;
  /** It rests on writes that are not durable yet: none of the named machines is known otherwise. */
  readonly pending: boolean;
}

/** How many machines a refusal names. */
export const MAX_NAMED = 10;
/** So many are looked at for the first by name: a decision does not walk through ten thousand. */
const MAX_SORTED = 200;

const CLAIMS = PERSISTENT_VOLUME_CLAIMS;

type Rule = (target: DeletionTarget, lookup: ProtectionLookup) => Refusal | undefined;

const held =
  (reason: Refusal['reason'], machines: (target: DeletionTarget, lookup: ProtectionLookup) => Machines): Rule =>
  (target, lookup) =>
    refusal(reason, machines(target, lookup), () => '');

/** Rules of kinds that hold machines, and of those that machines name only by way of another object. */
const RULES: Readonly<Record<string, Rule>> = {
  '/namespaces': namespace,
  'kubevirt.io/kubevirts': held('RunsMachines', (_, lookup) => lookup.machines()),
  'apiextensions.k8s.io/customresourcedefinitions': definition,
  '/persistentvolumes': persistentVolume,
  '/persistentvolumeclaims': (target, lookup) => claimRefusal(target, lookup, ''),
  'cdi.kubevirt.io/datavolumes': dataVolume,
};

const REFERABLE: ReadonlySet<string> = new Set([
  '/configmaps',
  '/persistentvolumeclaims',
  '/secrets',
  '/serviceaccounts',
  'apps/controllerrevisions',
  'cdi.kubevirt.io/datavolumes',
  'instancetype.kubevirt.io/virtualmachineinstancetypes',
  'instancetype.kubevirt.io/virtualmachinepreferences',
  'k8s.cni.cncf.io/network-attachment-definitions',
  'resource.k8s.io/resourceclaims',
  'resource.k8s.io/resourceclaimtemplates',
]);

const RESTORED_FROM: ReadonlySet<string> = new Set([
  'apps/controllerrevisions',
  'snapshot.kubevirt.io/virtualmachinesnapshots',
  'snapshot.kubevirt.io/virtualmachinesnapshotcontents',
  'snapshot.storage.k8s.io/volumesnapshots',
]);

const named = (key: string): ResourceName => {
  const [group = '', resource = ''] = key.split('/');
  return { group, resource };
};
/** Every kind that may be guarded. */
export const GUARDED_KINDS: readonly ResourceName[] = [
  ...new Set([...REFERABLE, ...RESTORED_FROM, ...Object.keys(RULES)]),
].map(named);
/** Those of them that hold machines, or define what they refer to. */
export const HOLDERS: readonly ResourceName[] = [
  '/namespaces',
  'kubevirt.io/kubevirts',
  'apiextensions.k8s.io/customresourcedefinitions',
].map(named);

const keyOf = ({ group, resource }: ResourceName): string => `${group}/${resource}`;

/** Whether objects of this kind are ever guarded. */
export const isGuardedKind = (resource: ResourceName): boolean => {
  const key = keyOf(resource);
  return REFERABLE.has(key) || RESTORED_FROM.has(key) || key in RULES;
};

/** Undefined when it may go. What is being deleted already is not decided again. */
export function decideDeletion(target: DeletionTarget, lookup: ProtectionLookup): Refusal | undefined {
  if (isDeleting(target.object)) return undefined;
  const key = keyOf(target);
  const refused = (RULES[key] ?? (REFERABLE.has(key) ? referenced : undefined))?.(target, lookup);
  return refused ?? (RESTORED_FROM.has(key) ? restoredFrom(target, lookup) : undefined);
}

/** By the machines in it; the namespace of the KubeVirt object also as that, which would keep it from going for ever. */
function namespace({ name }: DeletionTarget, lookup: ProtectionLookup): Refusal | undefined {
  const refused = refusal('HoldsMachines', lookup.machines(name), () => '');
  if (refused) return refused;
  const [kubevirt] = lookup.kubevirts(name);
  return kubevirt === undefined
    ? undefined
    : refusal('RunsMachines', lookup.machines(), () => `run by KubeVirt ${kubevirt}, which is in it`);
}

/** Refused by the machines that refer to it, but for one whose restore is about to put another in its place. */
function referenced(target: DeletionTarget, lookup: ProtectionLookup, by = ''): Refusal | undefined {
  const referring = lookup.referring(target, target);
  const machines = target.component
    ? new Set([...referring].filter((vm) => !isReplacedBy(target, vm, lookup)))
    : referring;
  return refusal('Referenced', machines, (vm) => `${by}${fieldOf(vm, target, target.name)}`);
}

/** The field that refers to the object of that name, or without one to any of the kind. */
const fieldOf = (vm: GuardingMachine, { group, resource }: ResourceName, name?: string): string =>
  vm.field ??
  referencesOf(vm.object).find(
    (each) => (name ?? each.name) === each.name && each.resource === resource && each.group === group,
  )?.field ??
  '';

/** By reference, or as the firmware state of a machine. `by` is put before what the machine says. */
function claimRefusal(target: DeletionTarget, lookup: ProtectionLookup, by: string): Refusal | undefined {
  const refused = referenced(target, lookup, by);
  if (refused) return refused;
  const owner = stateOwner(target.object as ReadonlyClaim);
  const vm = owner === undefined ? undefined : lookup.machine(target.namespace, owner);
  if (!vm || isReplacedBy(target, vm, lookup)) return undefined;
  // Once a migration or a restore has put a newer one in its place it may go.
  const others = [...lookup.stateClaims(target.namespace, owner!)].filter(
    ({ metadata }) => metadata.name !== target.name,
  );
  const used = backendStorageClaimOf({ metadata: { namespace: vm.namespace, name: vm.name } }, [
    ...others,
    target.object as ReadonlyClaim,
  ]);
  return used === target.object
    ? refusal('Referenced', new Set([vm]), () => `${by}label ${STATE_LABEL} of the claim`)
    : undefined;
}

/** The machine whose firmware state a claim holds: by its label, or as versions before the label named it. */
function stateOwner({ metadata: { name = '', labels } }: ReadonlyClaim): string | undefined {
  const label = labels?.[STATE_LABEL];
  if (label !== undefined) return label;
  // What a restore has put aside.
  if (labels?.['restore.kubevirt.io/cleanup-backend-pvc'] !== undefined) return undefined;
  return name.startsWith(`${STATE_LABEL}-`) ? name.slice(STATE_LABEL.length + 1) : undefined;
}

/** As the claim that is bound to it, while it is that very claim. */
function persistentVolume({ object }: DeletionTarget, lookup: ProtectionLookup): Refusal | undefined {
  const { namespace, name, uid } = (object as DeepReadonly<PersistentVolume>).spec?.claimRef ?? {};
  if (!namespace || !name) return undefined;
  const claim = lookup.claim(namespace, name);
  if (!claim || (uid && uid !== claim.metadata.uid)) return undefined;
  return claimRefusal({ ...CLAIMS, namespace, name, object: claim }, lookup, `claim ${namespace}/${name}, `);
}

/** By reference, or as the claim that would go with it. */
function dataVolume(target: DeletionTarget, lookup: ProtectionLookup): Refusal | undefined {
  const refused = referenced(target, lookup);
  if (refused) return refused;
  const { namespace, name } = target;
  const claim = lookup.claim(namespace, name);
  if (!claim || !isOwnedBy(claim, target.object.metadata.uid)) return undefined;
  return claimRefusal({ ...CLAIMS, namespace, name, object: claim }, lookup, `claim ${name}, `);
}

/** Its objects would go with it: the machines, or what they refer to. */
function definition({ object }: DeletionTarget, lookup: ProtectionLookup): Refusal | undefined {
  const { group = '', names } = (object as { spec?: { group?: string; names?: { plural?: string } } }).spec ?? {};
  const kind = { group, resource: names?.plural ?? '' };
  if (group === KUBEVIRT_GROUP && kind.resource === 'virtualmachines')
    return refusal('DefinesMachines', lookup.machines(), () => '');
  if (!REFERABLE.has(keyOf(kind))) return undefined;
  return refusal('Referenced', lookup.referringToKind(kind), (vm) => fieldOf(vm, kind));
}

function restoredFrom(target: DeletionTarget, lookup: ProtectionLookup): Refusal | undefined {
  for (const restore of lookup.restores(target.namespace)) {
    const vm = neededBy(target, restore, lookup) && lookup.machine(target.namespace, restore.spec.target.name);
    if (vm)
      return refusal('Referenced', new Set([vm]), () => `VirtualMachineRestore ${restore.metadata.name} under way`);
  }
  return undefined;
}

function refusal(
  reason: Refusal['reason'],
  machines: Machines,
  why: (vm: GuardingMachine) => string,
): Refusal | undefined {
  const total = machines.size;
  if (total === 0) return undefined;
  const blockers = firstOf(machines);
  return {
    reason,
    blockers: blockers.map((vm) => ({ namespace: vm.namespace, name: vm.name, why: why(vm) })),
    total,
    pending: blockers.every(({ pending }) => pending === true),
  };
}

/** Those to name: of some the first by name, of very many the first that come, in the same order. */
function firstOf(machines: Machines): readonly GuardingMachine[] {
  if (machines.first) return machines.first(MAX_NAMED, MAX_SORTED);
  return [...machines].sort((a, b) => (text(a) < text(b) ? -1 : 1)).slice(0, MAX_NAMED);
}

const text = ({ namespace, name }: GuardingMachine): string => `${namespace}/${name}`;
