/**
 * Services and their IPAddresses, which become durable in one commit: an address is taken when the Service that has it
 * is written, and given back when it goes or lets go of it. Upstream writes the two one after the other
 * (pkg/registry/core/service/storage/alloc.go) and has a controller look for what a crash left between them.
 */

import type { UnstructuredObject } from '@coracle/apimachinery/meta/object';
import { type ApiError, invalid } from '@coracle/apimachinery/meta/status';
import type { ResourceInfo } from '@coracle/apimachinery/types/resource';
import { addressOf, belongsTo, clusterIpsOf, type IpAddress } from '@coracle/apimachinery/types/service-cidrs';
import type { Decision, StoredObject, StoreKey, StoreWrite } from '../cache/object-store.ts';
import { builtinResource } from '../kinds/builtin/builtin-resources.ts';
import { deletionVerdict } from './graceful-deletion.ts';
import { fillSystemMetadata } from './object-metadata.ts';
import type { Registry } from './write-contract.ts';

export const SERVICES_PREFIX = '/services';
export const ADDRESSES_PREFIX = 'networking.k8s.io/ipaddresses';
/** Whom the fields of an IPAddress belong to. */
const MANAGER = 'kube-apiserver';

/** Where an IPAddress lies. */
export const addressKey = (ip: string): StoreKey => ({ prefix: ADDRESSES_PREFIX, namespace: '', name: ip });

/** Writes an object with its companions and, when it is a Service, with its IPAddresses: all or nothing. */
export function writeObject(
  registry: Registry,
  write: StoreWrite,
  companions?: () => readonly StoreWrite[],
): Promise<StoredObject | undefined> {
  if (write.key.prefix === SERVICES_PREFIX) return writeService(registry, write, companions);
  const { store } = registry;
  return companions ? store.writeTogether(write, companions) : store.write(write.key, write.decide);
}

/** Throws ApiError 422 when an address is another's, and what `write` throws. */
async function writeService(
  registry: Registry,
  write: StoreWrite,
  companions: (() => readonly StoreWrite[]) | undefined,
): Promise<StoredObject | undefined> {
  const { store } = registry;
  const { key } = write;
  for (;;) {
    let taken: string | undefined;
    let addresses: StoreWrite[] = [];
    const decide = (current: StoredObject | undefined): Decision => {
      const decision = write.decide(current);
      if (decision.type === 'keep') return decision;
      const before = clusterIpsOf(current?.object);
      const after = decision.type === 'put' ? clusterIpsOf(decision.object) : [];
      const gained = after.filter((ip) => !before.includes(ip));
      taken = gained.find((ip) => store.peek(addressKey(ip)) !== undefined);
      if (taken !== undefined) throw alreadyAllocated(key.name, taken);
      addresses = [
        ...gained.map((ip) => takeAddress(registry, ip, key)),
        ...before.filter((ip) => !after.includes(ip)).map((ip) => giveBack(registry, ip, key)),
      ];
      return decision;
    };
    try {
      return await store.writeTogether({ key, decide }, () => [...addresses, ...(companions?.() ?? [])]);
    } catch (error) {
      // A "no" that rests on a write still on its way is reported when that is durable.
      const durable = taken === undefined ? undefined : store.settled(addressKey(taken));
      if (!durable || (await durable)) throw error;
    }
  }
}

/** The write of a Service's IPAddress; one that is there stays. */
export function takeAddress(registry: Registry, ip: string, service: Pick<StoreKey, 'namespace' | 'name'>): StoreWrite {
  return {
    key: addressKey(ip),
    decide: (current) => {
      if (current) return { type: 'keep' };
      const object = addressOf(ip, service);
      const info = addressInfo();
      const now = registry.clock.now();
      fillSystemMetadata(info, object.metadata, now);
      // Of one version only: nobody has to be waited for.
      void registry.fields?.track({ info, subresource: '', manager: MANAGER, live: undefined, now }, object);
      return { type: 'put', object };
    },
  };
}

/** The write that lets an IPAddress go, if it is `service`'s; one that somebody holds by a finalizer waits for that. */
export function giveBack(registry: Registry, ip: string, service?: Pick<StoreKey, 'namespace' | 'name'>): StoreWrite {
  return {
    key: addressKey(ip),
    decide: (current) => {
      if (!current || (service && !belongsTo(current.object as IpAddress, service))) return { type: 'keep' };
      const verdict = deletionVerdict(addressInfo(), current.object, { options: {}, now: registry.clock.now() });
      if (verdict.type === 'already-terminating') return { type: 'keep' };
      return verdict.type === 'mark'
        ? { type: 'put', object: verdict.object }
        : { type: 'delete', object: current.object as UnstructuredObject };
    },
  };
}

let info: ResourceInfo | undefined;
function addressInfo(): ResourceInfo {
  info ??= builtinResource({ group: 'networking.k8s.io', version: 'v1', resource: 'ipaddresses' })!;
  return info;
}

const alreadyAllocated = (service: string, ip: string): ApiError =>
  invalid({ group: '', kind: 'Service' }, service, [
    {
      type: 'FieldValueInvalid',
      field: 'spec.clusterIPs',
      value: [ip],
      detail: `failed to allocate IP ${ip}: provided IP is already allocated`,
    },
  ]);
