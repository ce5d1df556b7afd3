/** Keeps one StorageProfile for each storage class: what claims of it are where a DataVolume does not say. */
import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import { STORAGE_CLASSES } from '@coracle/apimachinery/types/resource-types';
import { orAbsent, orThere } from '@coracle/client/api-failure';
import { commit } from '@coracle/client/commit/commit';
import { type Controller, createController, ownKeys } from '@coracle/client/controller/controller';
import type { ControllerEnvironment } from '@coracle/client/controller/environment';
import { CDI_GROUP, CDI_VERSION, STORAGE_PROFILES, type StorageProfile } from '../../kinds/kinds.ts';
import { propertySetsOf } from '../../rules/data-volume/storage-profile.ts';

/** Makes the controller; its keys are names of classes. */
export function createStorageProfileController({ client, clock, log, informers }: ControllerEnvironment): Controller {
  const classes = informers.of(STORAGE_CLASSES);
  const profiles = informers.of(STORAGE_PROFILES);
  return createController({
    name: 'storage-profile',
    client,
    clock,
    log,
    sources: [ownKeys(classes), ownKeys(profiles)],
    async reconcile(key, { signal }) {
      const storageClass = classes.get(key);
      const profile = profiles.get(key);
      if (!storageClass) {
        if (profile) await orAbsent(client.delete(STORAGE_PROFILES, key, { signal }));
        return;
      }
      if (!profile) {
        const made: StorageProfile = {
          apiVersion: `${CDI_GROUP}/${CDI_VERSION}`,
          kind: 'StorageProfile',
          metadata: { name: key.name },
          spec: {},
        };
        await orThere(client.create(STORAGE_PROFILES, made, { signal }));
        return;
      }
      const status = {
        storageClass: key.name,
        provisioner: storageClass.provisioner,
        cloneStrategy: 'csi-clone',
        claimPropertySets: propertySetsOf(storageClass, profile).map((set) => ({ ...set })),
      };
      if (deepEqual(profile.status, status)) return;
      await commit(client, STORAGE_PROFILES, {
        before: profile,
        after: { ...profile, status } as StorageProfile,
        signal,
      });
    },
  });
}
