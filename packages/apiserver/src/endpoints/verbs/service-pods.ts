/**
 * Which Pod a request to a Service goes to: one that its EndpointSlices name, and that is there with the address they
 * give it (registry/core/service's ResourceLocation, which proxies to addresses of Pods only). A slice is anybody's word:
 * it can choose among the Pods of the Service's own namespace, and nothing else.
 */

import type { DeepReadonly, UnstructuredObject } from '@coracle/apimachinery/meta/object';
import { badRequest } from '@coracle/apimachinery/meta/status';
import type { Service } from '@coracle/apimachinery/types/types';
import { isReady, slicesOf } from '../../outbound/service-address.ts';
import type { Exchange } from '../exchange.ts';
import { storedObject } from './get.ts';
import { type ProxyId, unavailable } from './proxy-id.ts';

interface PodPort {
  readonly pod: Readonly<UnstructuredObject>;
  readonly port: number;
}

/** One of the Pods behind the Service, by chance. Throws ApiError 404 without the Service, 503 without a Pod. */
export function podBehind(exchange: Exchange, { name, port }: ProxyId): PodPort {
  const service = storedObject(exchange, name).object as DeepReadonly<Service>;
  const { store } = exchange.server.registry;
  const { namespace } = exchange;
  const wanted = portName(service, { name, port });
  const slices = slicesOf(store, { namespace, name });
  const found: PodPort[] = [];
  for (const { endpoints, ports } of slices) {
    const number = ports?.find((one) => (one.name ?? '') === wanted && (one.protocol ?? 'TCP') === 'TCP')?.port;
    if (number === undefined) continue;
    for (const { addresses = [], targetRef } of (endpoints ?? []).filter(isReady)) {
      if (targetRef?.kind !== 'Pod' || targetRef.namespace !== namespace) continue;
      const pod = store.get({ prefix: '/pods', namespace, name: targetRef.name ?? '' })?.object;
      if (pod && addressesOf(pod).some((ip) => addresses.includes(ip))) found.push({ pod, port: number });
    }
  }
  const chosen = found[Math.floor(Math.random() * found.length)];
  if (!chosen) {
    // Upstream names the Service where there is nobody at all, and what was asked for where nobody fits.
    const someone = slices.some(({ endpoints }) => (endpoints ?? []).length > 0);
    throw unavailable(`no endpoints available for service ${JSON.stringify(someone ? exchange.info.name : name)}`);
  }
  return chosen;
}

/** Endpoints go by the name of the Service's port. Without one asked for it is the port without a name. */
function portName({ spec = {} }: DeepReadonly<Service>, { name, port }: Pick<ProxyId, 'name' | 'port'>): string {
  if (!/^[+-]?\d+$/.test(port)) return port;
  if (port.length > 6) throw badRequest(`invalid service request ${JSON.stringify(`${name}:${port}`)}`);
  const found = spec.ports?.find((one) => one.port === Number(port));
  if (!found) throw unavailable(`no service port ${Number(port)} found for service ${JSON.stringify(name)}`);
  return found.name ?? '';
}

function addressesOf(pod: Readonly<UnstructuredObject>): readonly string[] {
  const { status = {} } = pod as { status?: { podIP?: string; podIPs?: readonly { ip: string }[] } };
  return [...(status.podIP === undefined ? [] : [status.podIP]), ...(status.podIPs ?? []).map(({ ip }) => ip)];
}
