/** Makes the storage classes of a fresh server. */

import { makeOnce } from '@coracle/apiserver/registry/once-made-objects';
import type { ResourceSource } from '@coracle/apiserver/registry/resource-catalog';
import type { Registry } from '@coracle/apiserver/registry/write-contract';
import { DEFAULT_CLASS, defaultClasses } from '@coracle/kube-controllers/storage/default-classes';
import { COMPONENT_NAMESPACE } from './components.ts';

const STORAGE_CLASSES = 'storage.k8s.io/storageclasses';

/** Makes those that were never made; a default class that somebody else made stays the only one. */
export async function makeStorageClasses(registry: Registry, resources: ResourceSource): Promise<void> {
  const hasDefault = registry.store
    .list(STORAGE_CLASSES)
    .items.some(({ object }) => object.metadata.annotations?.[DEFAULT_CLASS] === 'true');
  await makeOnce(registry, {
    resources,
    record: { namespace: COMPONENT_NAMESPACE, name: 'coracle-made-once' },
    objects: defaultClasses(hasDefault),
  });
}
