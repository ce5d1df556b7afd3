/**
 * Objects that a fresh server brings along and that are the user's from then on: one that was edited stays edited, one
 * that was deleted stays away. A ConfigMap lists what has been made, since its absence alone does not say.
 */

import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import { parseApiVersion } from '@coracle/apimachinery/meta/gvk';
import type { UnstructuredObject } from '@coracle/apimachinery/meta/object';
import { storagePrefix } from '@coracle/apimachinery/types/resource';
import { ensure, pluralOf } from './bootstrap-objects.ts';
import type { ResourceSource } from './resource-catalog.ts';
import type { Registry } from './write-contract.ts';

export interface OnceMadeOptions {
  readonly resources: ResourceSource;
  /** The ConfigMap that remembers. */
  readonly record: { readonly namespace: string; readonly name: string };
  readonly objects: readonly UnstructuredObject[];
}

/**
 * Makes the objects that were never made. Those of kinds that are not served wait for a later start.
 * @throws ApiError when the store refuses
 */
export async function makeOnce(registry: Registry, { resources, record, objects }: OnceMadeOptions): Promise<void> {
  const info = resources.lookup('', 'v1', 'configmaps')!;
  const key = { prefix: storagePrefix(info), ...record };
  const made = new Set(listOf(registry.store.peek(key)?.object));
  const before = made.size;
  const withPlural = pluralOf(resources);
  for (const object of objects) {
    const { resource } = withPlural(object);
    if (resource === '') continue;
    const entry = `${resource}.${parseApiVersion(object.apiVersion).group}/${object.metadata.name}`;
    if (made.has(entry)) continue;
    await ensure(registry, { resources, resource, object });
    made.add(entry);
  }
  if (made.size === before) return;
  // After the objects: a crash in between makes none of them anew, since they are there.
  const data = { made: [...made].sort().join('\n') };
  const { namespace, name } = record;
  const fresh = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace, name }, data };
  if (await ensure(registry, { resources, resource: info.resource, object: fresh })) return;
  await registry.store.write(key, (current) => {
    if (!current) return { type: 'keep' };
    const next = cloneJson(current.object) as UnstructuredObject;
    next['data'] = { ...(next['data'] as object | undefined), ...data };
    return { type: 'put', object: next };
  });
}

const listOf = (object: Readonly<UnstructuredObject> | undefined): string[] => {
  const { made = '' } = (object?.['data'] ?? {}) as { made?: string };
  return made.split('\n').filter((entry) => entry !== '');
};
