/** What decisions about deletions ask, out of objects that were listed. */

import type { ReadonlyObject } from '@coracle/apimachinery/meta/object';
import type { ReadonlyClaim } from '@coracle/apimachinery/types/types';
import type { ReadonlyContent, ReadonlyRestore, ReadonlyVm } from '../../kinds/kubevirt.ts';
import type { ProtectionLookup } from '../protection/deletion-target.ts';
import { createProtectionIndex, type IndexedPrefix } from '../protection/protection-index.ts';

export interface ListedObjects {
  readonly machines: readonly ReadonlyVm[];
  readonly claims: readonly ReadonlyClaim[];
  readonly restores: readonly ReadonlyRestore[];
  readonly contents: readonly ReadonlyContent[];
}

/** Makes the lookup; nothing is read anew. */
export function listedLookup({ machines, claims, restores, contents }: ListedObjects): ProtectionLookup {
  const byName = new Map(claims.map((claim) => [keyOf(claim), claim]));
  const { parts, lookup } = createProtectionIndex((namespace, name) => byName.get(`${namespace}/${name}`));
  const feed = (prefix: IndexedPrefix, objects: readonly ReadonlyObject[]): void => {
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

const keyOf = ({ metadata: { namespace, name } }: ReadonlyObject): string => `${namespace}/${name}`;
