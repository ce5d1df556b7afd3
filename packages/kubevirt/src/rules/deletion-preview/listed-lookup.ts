/** What decisions about deletions ask, out of objects that were listed. */

import type { DeepReadonly, KubeObject } from '@coracle/apimachinery/meta/object';
import type { PersistentVolumeClaim } from '@coracle/apimachinery/types/types';
import type { VirtualMachine, VirtualMachineRestore, VirtualMachineSnapshotContent } from '../../kinds/kubevirt.ts';
import type { ProtectionLookup } from '../protection/deletion-target.ts';
import { createProtectionIndex, type IndexedPrefix } from '../protection/protection-index.ts';

export interface ListedObjects {
  readonly machines: readonly DeepReadonly<VirtualMachine>[];
  readonly claims: readonly DeepReadonly<PersistentVolumeClaim>[];
  readonly restores: readonly DeepReadonly<VirtualMachineRestore>[];
  readonly contents: readonly DeepReadonly<VirtualMachineSnapshotContent>[];
}

/** Makes the lookup; nothing is read anew. */
export function listedLookup({ machines, claims, restores, contents }: ListedObjects): ProtectionLookup {
  const byName = new Map(claims.map((claim) => [keyOf(claim), claim]));
  const { parts, lookup } = createProtectionIndex((namespace, name) => byName.get(`${namespace}/${name}`));
  const feed = (prefix: IndexedPrefix, objects: readonly DeepReadonly<KubeObject>[]): void => {
    for (const object of objects) {
      const { namespace = '', name = '' } = object.metadata;
      parts[prefix].set({ namespace, name }, { revision: 0, object: { metadata: object.metadata, object } });
    }
  };
  feed('kubevirt.io/virtualmachines', machines);
  feed('/persistentvolumeclaims', claims);
  feed('snapshot.kubevirt.io/virtualmachinerestores', restores);
  feed('snapshot.kubevirt.io/virtualmachinesnapshotcontents', contents);
  return lookup;
}

const keyOf = ({ metadata: { namespace, name } }: DeepReadonly<KubeObject>): string => `${namespace}/${name}`;
