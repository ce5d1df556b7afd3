/**
 * Brings back what the cluster cannot do without when somebody deletes it: the system namespaces, the `kubernetes`
 * Service with its endpoints, the flow schemas. Upstream looks every few seconds; here a watch says when. What goes with
 * its namespace comes back with it, and not before: the namespace could never end.
 */

import { parseApiVersion } from '@coracle/apimachinery/meta/gvk';
import { storagePrefix } from '@coracle/apimachinery/types/resource';
import { getOrInsert } from '@coracle/runtime/collections/get-or-insert';
import type { Logger } from '@coracle/runtime/log/log';
import { type BootstrapObject, type BootstrapOptions, ensure, lastingObjects } from './bootstrap-objects.ts';
import { keepServiceAddresses } from './keep-service-addresses.ts';
import type { ResourceSource } from './resource-catalog.ts';
import type { Registry } from './write-contract.ts';

const NAMESPACES = storagePrefix({ group: '', resource: 'namespaces' });

/** Starts to watch, after `ensureBootstrapObjects` with the same options; the returned function ends that. */
export function keepBootstrapObjects(
  registry: Registry,
  { resources, log, ...options }: BootstrapOptions & { readonly resources: ResourceSource; readonly log: Logger },
): () => void {
  const { store, clock } = registry;
  const byPrefix = new Map<string, Map<string, BootstrapObject>>();
  const inNamespace = new Map<string, BootstrapObject[]>();
  for (const kept of lastingObjects({ resources, ...options }, clock.now())) {
    const { group, version } = parseApiVersion(kept.object.apiVersion);
    const info = resources.lookup(group, version, kept.resource);
    if (!info) continue;
    const { namespace = '', name } = kept.object.metadata;
    getOrInsert(byPrefix, storagePrefix(info), () => new Map()).set(`${namespace}/${name}`, kept);
    getOrInsert(inNamespace, namespace, () => []).push(kept);
  }
  const isThere = (namespace: string): boolean => {
    const object = store.peek({ prefix: NAMESPACES, namespace: '', name: namespace })?.object;
    return object !== undefined && object.metadata.deletionTimestamp === undefined;
  };
  const bringBack = async (kept: BootstrapObject): Promise<void> => {
    const { namespace, name = '' } = kept.object.metadata;
    if (namespace && !isThere(namespace)) return;
    await ensure(registry, { resources, ...kept });
    if (kept.resource !== 'namespaces') return;
    for (const inside of inNamespace.get(name) ?? []) await ensure(registry, { resources, ...inside });
  };
  let stopped = false;
  const from = store.revision();
  const watches = [...byPrefix].map(([prefix, objects]) =>
    store.watch(prefix, from, (changes) => {
      for (const { type, current } of changes) {
        const kept = objects.get(`${current.namespace}/${current.name}`);
        if (!kept || (type !== 'DELETED' && !kept.follow)) continue;
        bringBack(kept).catch((error: unknown) => {
          if (!stopped)
            log.warn('object of the server cannot be brought back', { name: current.name, error: String(error) });
        });
      }
    }),
  );
  const stopAddresses = keepServiceAddresses(registry, log);
  return () => {
    stopped = true;
    stopAddresses();
    for (const watch of watches) watch.stop();
  };
}
