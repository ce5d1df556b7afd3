/**
 * What the bin keeps of a machine whose deletion begins: the machine, and what goes with it by ownership. With a namespace
 * goes more: the claims that the machine uses, whoever owns them.
 */

import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import {
  type DeepReadonly,
  formatTime,
  type KubeObject,
  type ObjectMeta,
  type ReadonlyObject,
} from '@coracle/apimachinery/meta/object';
import type { PersistentVolume, ReadonlyClaim } from '@coracle/apimachinery/types/types';
import { placeOf } from '@coracle/cluster-rules/storage/provision-plan';
import {
  CORACLE_GROUP,
  CORACLE_VERSION,
  type DeletedVirtualMachine,
  type DeletedVirtualMachineContent,
  type HeldVolume,
} from '../../kinds/kinds.ts';
import type { ReadonlyVm } from '../../kinds/kubevirt.ts';
import { backendStorageClaimOfVm, STATE_LABEL } from '../backend-storage/backend-storage.ts';
import { withRevisionNames } from '../instancetype/revision-names.ts';
import { BIN_FINALIZER, contentNameOf, holdLabel, recordNameOf } from './bin-names.ts';

export interface MachineCapture {
  readonly vm: ReadonlyVm;
  /** Claims, ControllerRevisions, Secrets, ConfigMaps and DataVolumes that go with it. */
  readonly dependents: readonly ReadonlyObject[];
  readonly volumeNamed: (name: string) => DeepReadonly<PersistentVolume> | undefined;
  readonly namespaceUid: string;
  /** The namespace goes, so no record can lie in it. */
  readonly withNamespace: boolean;
  readonly user: string;
  readonly now: number;
}

export interface CapturedMachine {
  readonly content: DeletedVirtualMachineContent;
  readonly record?: DeletedVirtualMachine;
}

/** Builds the objects to be written in the commit that begins the deletion. */
export function captureMachine(capture: MachineCapture): CapturedMachine {
  const { vm, dependents, volumeNamed, namespaceUid, withNamespace, user, now } = capture;
  const { name = '', namespace = '', uid = '' } = vm.metadata;
  const deletedAt = formatTime(now);
  const deletedBy = user === '' ? {} : { deletedBy: user };
  const machine = {
    apiVersion: vm.apiVersion,
    kind: vm.kind,
    metadata: metadataOf(vm),
    spec: withRevisionNames(vm),
  } as KubeObject;
  const objects = [machine, ...keptDependents(vm, dependents)];
  const volumes = dependents.flatMap((each) => heldVolume(each, volumeNamed) ?? []);
  const record = withNamespace ? undefined : recordNameOf(name, uid);
  const content: DeletedVirtualMachineContent = {
    apiVersion: `${CORACLE_GROUP}/${CORACLE_VERSION}`,
    kind: 'DeletedVirtualMachineContent',
    metadata: {
      name: contentNameOf(uid),
      finalizers: [BIN_FINALIZER],
      labels: Object.fromEntries(volumes.flatMap(({ handle }) => (handle ? [[holdLabel(handle), '']] : []))),
    },
    spec: {
      virtualMachine: { namespace, name, uid },
      namespaceUID: namespaceUid,
      ...(record !== undefined && { record }),
      deletedAt,
      ...deletedBy,
      bytes: JSON.stringify(objects).length + JSON.stringify(volumes).length,
      objects,
      ...(volumes.length > 0 && { volumes }),
    },
  };
  if (record === undefined) return { content };
  return {
    content,
    record: {
      apiVersion: `${CORACLE_GROUP}/${CORACLE_VERSION}`,
      kind: 'DeletedVirtualMachine',
      metadata: { name: record, namespace },
      spec: {
        virtualMachine: { name, uid },
        content: contentNameOf(uid),
        deletedAt,
        ...deletedBy,
        disks: volumes.length,
      },
    },
  };
}

/** Of its metadata what an object is made with; its UID, by which it is known if it is still there. */
function metadataOf({ metadata }: ReadonlyObject): ObjectMeta {
  const { name = '', namespace = '', uid = '', labels, annotations, ownerReferences } = metadata;
  return cloneJson<ObjectMeta>({
    name,
    namespace,
    uid,
    ...(labels && { labels }),
    ...(annotations && { annotations }),
    ...(ownerReferences && { ownerReferences }),
  } as DeepReadonly<ObjectMeta>);
}

/**
 * The claim with the firmware state is known by its label alone from now on: a name of before labels means nothing for a
 * machine of another name, and which of two is the newer one cannot be seen of claims that are made anew.
 */
function keptDependents(vm: ReadonlyVm, dependents: readonly ReadonlyObject[]): KubeObject[] {
  const claims = dependents.filter(isClaim);
  const state = backendStorageClaimOfVm(vm, claims);
  return dependents.map((each) => {
    const kept = keptObject(each);
    if (!state || !isClaim(each)) return kept;
    const { [STATE_LABEL]: machine, ...labels } = kept.metadata.labels ?? {};
    if (each === state) kept.metadata.labels = { ...labels, [STATE_LABEL]: vm.metadata.name ?? '' };
    else if (machine === vm.metadata.name) kept.metadata.labels = labels;
    return kept;
  });
}

const isClaim = (object: ReadonlyObject): object is ReadonlyClaim => object.kind === 'PersistentVolumeClaim';

function keptObject(object: ReadonlyObject): KubeObject {
  const { status: _, metadata: __, ...rest } = object as ReadonlyObject & { readonly status?: unknown };
  return { ...cloneJson<Omit<KubeObject, 'metadata'>>(rest), metadata: metadataOf(object) } as KubeObject;
}

/** The volume that a claim is bound to; undefined for other objects, and for claims without one. */
function heldVolume(object: ReadonlyObject, volumeNamed: MachineCapture['volumeNamed']): HeldVolume | undefined {
  if (!isClaim(object)) return undefined;
  const { metadata, spec } = object;
  const bound = spec?.volumeName ? volumeNamed(spec.volumeName) : undefined;
  // A claim names a volume as its writer likes: it is its own only where the volume says so.
  if (!bound || bound.spec?.claimRef?.uid !== metadata.uid) return undefined;
  const { status: _, ...volume } = cloneJson<PersistentVolume>(bound);
  const { uid: __, resourceVersion: ___, managedFields: ____, creationTimestamp: _____, ...kept } = volume.metadata;
  return { claim: metadata.name ?? '', volume: { ...volume, metadata: kept }, ...placeOf(bound) };
}
