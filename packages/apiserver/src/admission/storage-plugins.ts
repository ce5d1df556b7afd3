/** StorageObjectInUseProtection and PersistentVolumeClaimResize: what keeps storage from going or shrinking. */
import { forbidden } from '@coracle/apimachinery/meta/status';
import { exceeds, readQuantity } from '@coracle/apimachinery/quantity/quantity';
import type { PersistentVolumeClaimSpec } from '@coracle/apimachinery/types/types';
import type { ObjectStore } from '../cache/object-store.ts';
import type { AdmissionPlugin } from './plugin.ts';

/** Finalizers that the protection controllers take off when nobody uses the object any more. */
const FINALIZERS: ReadonlyMap<string, string> = new Map([
  ['persistentvolumeclaims', 'kubernetes.io/pvc-protection'],
  ['persistentvolumes', 'kubernetes.io/pv-protection'],
]);

/** StorageObjectInUseProtection: new claims and volumes do not go while they are in use. */
export const storageInUseProtection: AdmissionPlugin = {
  name: 'StorageObjectInUseProtection',
  matches: (operation, info, subresource) =>
    operation === 'CREATE' && subresource === '' && info.group === '' && FINALIZERS.has(info.resource),
  mutate({ info, object }) {
    const { metadata } = object!;
    const finalizer = FINALIZERS.get(info.resource)!;
    if (!metadata.finalizers?.includes(finalizer)) metadata.finalizers = [...(metadata.finalizers ?? []), finalizer];
  },
};

/** PersistentVolumeClaimResize: only a bound claim of a class that allows it may grow. */
export function claimResize(store: Pick<ObjectStore, 'peek'>): AdmissionPlugin {
  return {
    name: 'PersistentVolumeClaimResize',
    matches: (operation, info, subresource) =>
      operation === 'UPDATE' && subresource === '' && info.group === '' && info.resource === 'persistentvolumeclaims',
    validate({ info, name, object, oldObject }) {
      const spec = (object!['spec'] ?? {}) as PersistentVolumeClaimSpec;
      const old = (oldObject!['spec'] ?? {}) as PersistentVolumeClaimSpec;
      if (!isLarger(spec, old)) return;
      const phase = (oldObject!['status'] as { phase?: string } | undefined)?.phase;
      if (phase !== 'Bound') throw forbidden(info, name, 'only bound persistent volume claims can be expanded');
      const className =
        oldObject!.metadata.annotations?.['volume.beta.kubernetes.io/storage-class'] ?? old.storageClassName ?? '';
      const found = store.peek({ prefix: 'storage.k8s.io/storageclasses', namespace: '', name: className });
      if (found?.object['allowVolumeExpansion'] === true) return;
      throw forbidden(
        info,
        name,
        'only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize',
      );
    },
  };
}

function isLarger(spec: PersistentVolumeClaimSpec, old: PersistentVolumeClaimSpec): boolean {
  const [now, before] = [spec.resources?.requests?.storage, old.resources?.requests?.storage];
  return now !== before && exceeds(readQuantity(now), readQuantity(before));
}
