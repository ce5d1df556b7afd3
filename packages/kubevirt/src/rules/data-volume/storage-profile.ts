/** What claims of a storage class can be (CDI pkg/storagecapabilities): the profile's own words before what is known of its provisioner. */
import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import type { StorageClass } from '@coracle/apimachinery/types/types';
import { POOL_DRIVER } from '@coracle/cluster-rules/storage/pool-names';
import type { ClaimPropertySet, StorageProfile } from '../../kinds/kinds.ts';

/** A disk of a pool can be had by every node that serves it: guests move, whatever they boot from. */
const KNOWN: Readonly<Record<string, readonly ClaimPropertySet[]>> = {
  [POOL_DRIVER]: [
    { accessModes: ['ReadWriteMany'], volumeMode: 'Block' },
    { accessModes: ['ReadWriteOnce'], volumeMode: 'Block' },
    { accessModes: ['ReadWriteMany'], volumeMode: 'Filesystem' },
    { accessModes: ['ReadWriteOnce'], volumeMode: 'Filesystem' },
  ],
};

/** The sets in order of preference; none for a provisioner that nobody knows here. */
export const propertySetsOf = (
  storageClass: DeepReadonly<StorageClass> | undefined,
  profile: DeepReadonly<StorageProfile> | undefined,
): readonly DeepReadonly<ClaimPropertySet>[] =>
  profile?.spec?.claimPropertySets?.length
    ? profile.spec.claimPropertySets
    : (KNOWN[storageClass?.provisioner ?? ''] ?? []);
