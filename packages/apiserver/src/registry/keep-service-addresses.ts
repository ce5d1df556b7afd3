/**
 * Keeps the IPAddresses of Services as they have to be, where something else than a Service's own write made them
 * otherwise: state of a time before there were any, and users who delete or make some
 * (pkg/registry/core/service/ipallocator/controller/repairip.go).
 */

import type { KubeObject } from '@coracle/apimachinery/meta/object';
import { storagePrefix } from '@coracle/apimachinery/types/resource';
import { belongsTo, clusterIpsOf, isAllocatedAddress } from '@coracle/apimachinery/types/service-cidrs';
import type { IPAddress } from '@coracle/apimachinery/types/types';
import type { Logger } from '@coracle/runtime/log/log';
import type { StoredObject, StoreWrite } from '../cache/object-store.ts';
import { giveBack, IP_ADDRESSES, takeAddress } from '../kinds/builtin/strategies/services.ts';
import type { Registry } from './write-contract.ts';
import { partWrite } from './write-object.ts';

const SERVICES_PREFIX = storagePrefix({ group: '', resource: 'services' });
const ADDRESSES_PREFIX = storagePrefix(IP_ADDRESSES);

const addressOf = ({ store }: Registry, ip: string): StoredObject | undefined =>
  store.peek({ prefix: ADDRESSES_PREFIX, namespace: '', name: ip });

/** An allocated address that is no Service's is left alone for so long. */
const ORPHAN_MS = 60_000;

/**
 * Makes what is missing, takes away what no Service has; returns how many writes that took. Rejects with ApiError when
 * the store refuses. Nothing else may write meanwhile.
 */
export async function repairServiceAddresses(registry: Registry): Promise<number> {
  const { store } = registry;
  const services = store.list(SERVICES_PREFIX).items;
  const owners = new Map<string, StoredObject>();
  // Of two with one address the one that has the IPAddress keeps it.
  for (const service of services) {
    for (const ip of clusterIpsOf(service.object)) {
      if (!owners.has(ip) || isOwner(registry, ip, service)) owners.set(ip, service);
    }
  }
  const gone = store
    .list(ADDRESSES_PREFIX)
    .items.filter(({ name, object }) => isAllocatedAddress(object) && !owners.has(name))
    .map(({ name }) => partWrite(registry, giveBack(name)));
  const missing = [...owners].flatMap(([ip, service]) => repairs(registry, ip, service));
  const writes = [...gone, ...missing];
  await writeAll(registry, writes);
  return writes.length;
}

const writeAll = ({ store }: Registry, writes: readonly StoreWrite[]): Promise<unknown> =>
  Promise.all(writes.map(({ key, decide }) => store.write(key, decide)));

/** The Service that an IPAddress names, in its newest decided state: one that goes takes its address along. */
function serviceOf({ store }: Registry, address: Readonly<KubeObject>): StoredObject | undefined {
  const { group = '', resource, namespace = '', name = '' } = (address as IPAddress).spec?.parentRef ?? {};
  if (group !== '' || resource !== 'services') return undefined;
  return store.peek({ prefix: SERVICES_PREFIX, namespace, name });
}

/** True for an address that says it was allocated, and is no Service's. */
const isOrphan = (registry: Registry, { name, object }: StoredObject): boolean =>
  isAllocatedAddress(object) && !clusterIpsOf(serviceOf(registry, object)?.object).includes(name);

function isOwner(registry: Registry, ip: string, service: StoredObject): boolean {
  const address = addressOf(registry, ip);
  return address !== undefined && belongsTo(address.object as IPAddress, service);
}

/** What it takes for a Service to have its address. */
function repairs(registry: Registry, ip: string, service: StoredObject): StoreWrite[] {
  if (isOwner(registry, ip, service)) return [];
  // What it says cannot be changed, so it is made anew.
  return [giveBack(ip), takeAddress(ip, service)].map((part) => partWrite(registry, part));
}

/** Starts to watch, after `repairServiceAddresses`; the returned function ends that. */
export function keepServiceAddresses(registry: Registry, log: Logger): () => void {
  const { store } = registry;
  let stopped = false;
  const watch = store.watch(ADDRESSES_PREFIX, store.revision(), (changes) => {
    for (const { type, current } of changes) {
      if (type !== 'ADDED') repairOne(current).catch(report);
      if (type !== 'DELETED' && isOrphan(registry, current)) sweepLater();
    }
  });
  // One timer, however many there are.
  let cancel: (() => void) | undefined;
  const sweepLater = (): void => {
    cancel ??= registry.clock.schedule(ORPHAN_MS, sweep);
  };
  const sweep = (): void => {
    cancel = undefined;
    const now = registry.clock.now();
    for (const { name } of store.list(ADDRESSES_PREFIX).items) {
      const address = addressOf(registry, name);
      if (!address || !isOrphan(registry, address)) continue;
      const age = now - Date.parse(address.metadata.creationTimestamp ?? '');
      if (age < ORPHAN_MS) sweepLater();
      else writeAll(registry, [partWrite(registry, giveBack(name))]).catch(report);
    }
  };
  const repairOne = async ({ name, object }: StoredObject): Promise<void> => {
    const service = serviceOf(registry, object);
    if (!service || !clusterIpsOf(service.object).includes(name)) return;
    // In one step: between the two the Service may go.
    await writeAll(registry, repairs(registry, name, service));
  };
  const report = (error: unknown): void => {
    if (!stopped) log.warn('the IPAddress of a Service cannot be brought back', { error: String(error) });
  };
  return () => {
    stopped = true;
    cancel?.();
    watch.stop();
  };
}
