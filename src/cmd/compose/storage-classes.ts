/** Makes the storage classes of a fresh server. */
import { DEFAULT_CLASS, defaultClasses } from '../../control/storage/default-classes.ts';
import { makeOnce } from '../../server/registry/once-made-objects.ts';
import type { ResourceSource } from '../../server/registry/resource-catalog.ts';
import type { Registry } from '../../server/registry/write-contract.ts';
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
