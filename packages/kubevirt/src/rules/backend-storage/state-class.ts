/** Where claims for firmware state come from, and whether one can be used: pure (pkg/storage/backend-storage). */

import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import type { ReadonlyClaim, StorageClass } from '@coracle/apimachinery/types/types';
import { POOL_DRIVER } from '@coracle/cluster-rules/storage/pool-names';

type Class = DeepReadonly<StorageClass>;

export const NO_STATE_CLASS = 'no default storage class found';

const VIRT_DEFAULT = 'storageclass.kubevirt.io/is-default-virt-class';
const DEFAULT = 'storageclass.kubernetes.io/is-default-class';

/**
 * The storage class of new claims and the access mode they ask for. First what the cluster is configured with
 * (`vmStateStorageClass`), then the default class for machines, then the default class; undefined when there is none
 * (`NO_STATE_CLASS` says it). ReadWriteMany is asked for where it is known to be served, which is our own pool, and of a
 * class that was configured.
 */
export function stateClass(
  classes: readonly Class[],
  configured: string | undefined,
): { readonly storageClass: string; readonly accessMode: 'ReadWriteMany' | 'ReadWriteOnce' } | undefined {
  const marked = (annotation: string): string | undefined =>
    classes
      .filter(({ metadata }) => metadata.annotations?.[annotation] === 'true')
      .map(({ metadata }) => metadata.name ?? '')
      .sort()
      .at(-1);
  const storageClass = configured || marked(VIRT_DEFAULT) || marked(DEFAULT);
  if (!storageClass) return undefined;
  const isOfPool = classes.some(
    ({ metadata, provisioner }) => metadata.name === storageClass && provisioner === POOL_DRIVER,
  );
  return { storageClass, accessMode: isOfPool || configured ? 'ReadWriteMany' : 'ReadWriteOnce' };
}

/** Whether the launcher Pod may be made: `false` means wait. Throws what upstream reports as FailedBackendStorageProbe. */
export function isStateClaimReady(claim: ReadonlyClaim, classOf: (name: string) => Class | undefined): boolean {
  switch (claim.status?.phase) {
    case 'Bound':
      return true;
    case 'Lost':
      throw new Error('backend storage PVC lost');
    case 'Pending': {
      const name = claim.spec?.storageClassName;
      if (name === undefined) throw new Error('no storage class name');
      const found = classOf(name);
      if (!found) throw new Error(`storage class ${name} not found`);
      // Such a claim is bound only once a Pod that uses it was given a node.
      return found.volumeBindingMode === 'WaitForFirstConsumer';
    }
    default:
      return false;
  }
}
