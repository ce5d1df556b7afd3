/** The Services of the cluster by their addresses, and since when each has had nobody ready. */
import { numberOf, TCP } from '../ipv4-frame.ts';
import { type NetworkChange, type NetworkService, TABLES } from './switch-state.ts';

/**
 * From the moment in which the last endpoint of a Service goes: nobody is refused meanwhile, and names lead where they led. A guest that moves is ready on its
 * new node a moment after it is no longer so on the old one; who asks in between asks again after a second (RFC 6298).
 */
export const BETWEEN_ENDPOINTS_MS = 3000;

export interface ServiceTable {
  /** The addresses of Services that are new, different or gone. */
  change(change: NetworkChange): Set<number>;
  /** Whether a Service has the address. */
  has(address: number): boolean;
  find(address: number, protocol: number, port: number): NetworkService | undefined;
  /** The Service has had somebody ready a moment ago, and is likely to have again. */
  isBetweenEndpoints(service: NetworkService): boolean;
}

/** Makes an empty one. `now`: ms of a clock that only goes forward. */
export function createServiceTable(now: () => number): ServiceTable {
  const services = new Map<number, NetworkService[]>();
  const byKey = new Map<string, NetworkService>();
  /** By key: when the last endpoint went. An entry a Service at most. */
  const emptied = new Map<string, number>();
  const remove = (key: string): number | undefined => {
    const known = byKey.get(key);
    if (!known) return undefined;
    const address = numberOf(known.address);
    byKey.delete(key);
    const left = (services.get(address) ?? []).filter((one) => one !== known);
    if (left.length > 0) services.set(address, left);
    else services.delete(address);
    return address;
  };
  return {
    change({ whole, services: news = {} }) {
      const touched = new Set<number>();
      for (const key of whole ? [...byKey.keys()] : (news.remove ?? [])) {
        const address = remove(key);
        emptied.delete(key);
        if (address !== undefined) touched.add(address);
      }
      for (const service of news.set ?? []) {
        const key = TABLES.services(service);
        if (service.targets.length > 0) emptied.delete(key);
        else if (byKey.get(key)?.targets.length) emptied.set(key, now());
        remove(key);
        const address = numberOf(service.address);
        touched.add(address);
        byKey.set(key, service);
        services.set(address, [...(services.get(address) ?? []), service]);
      }
      return touched;
    },
    has: (address) => services.has(address),
    find: (address, protocol, port) =>
      services.get(address)?.find((one) => one.port === port && (one.protocol === 'tcp') === (protocol === TCP)),
    isBetweenEndpoints(service) {
      const since = emptied.get(TABLES.services(service));
      return since !== undefined && now() - since < BETWEEN_ENDPOINTS_MS;
    },
  };
}
