/**
 * Where a Service leads: the ready addresses behind it (apiserver's util/proxy ResolveEndpoint). Nothing here routes
 * cluster IPs, so the server dials the endpoints themselves.
 */
import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import type {
  Endpoint,
  EndpointPort,
  EndpointSlice,
  Endpoints,
  Service,
  ServicePort,
} from '@coracle/apimachinery/types/types';
import type { ObjectStore } from '../cache/object-store.ts';

const SLICES = 'discovery.k8s.io/endpointslices';
const SERVICE_NAME = 'kubernetes.io/service-name';

export interface ServiceReference {
  readonly namespace: string;
  readonly name: string;
  /** Number of the Service's port. */
  readonly port: number;
}

/** One place to dial. `host` is an IP address or (ExternalName) a DNS name. */
export interface ServiceAddress {
  readonly host: string;
  readonly port: number;
}

/** The EndpointSlices of a Service: where its Pods are. A slice is anybody's word. */
export const slicesOf = (
  store: Pick<ObjectStore, 'list'>,
  { namespace, name }: { readonly namespace: string; readonly name: string },
): readonly DeepReadonly<Partial<EndpointSlice>>[] =>
  store
    .list(SLICES, { namespace, match: ({ object }) => object.metadata.labels?.[SERVICE_NAME] === name })
    .items.map(({ object }) => object as DeepReadonly<Partial<EndpointSlice>>);

/** True for an endpoint that may be asked: readiness that is not known counts as ready. */
export const isReady = ({ conditions }: DeepReadonly<Endpoint>): boolean => conditions?.ready !== false;

/** The name a Service's certificate is checked against. */
export const serviceHost = ({ namespace, name }: Pick<ServiceReference, 'namespace' | 'name'>): string =>
  `${name}.${namespace}.svc`;

/**
 * Every address the Service's port leads to now, EndpointSlices first, then the older Endpoints. Throws Error in the
 * words of upstream: no such service, no such port, or nobody behind it.
 */
export function serviceAddresses(
  store: Pick<ObjectStore, 'get' | 'list'>,
  { namespace, name, port }: ServiceReference,
): ServiceAddress[] {
  const service = store.get({ prefix: '/services', namespace, name });
  if (!service) throw new Error(`service ${JSON.stringify(name)} not found`);
  const { spec = {} } = service.object as DeepReadonly<Service>;
  if (spec.type === 'ExternalName') return [{ host: spec.externalName ?? '', port }];
  const wanted = spec.ports?.find((one) => one.port === port);
  if (!wanted) throw new Error(`no service port ${port} found for service ${JSON.stringify(name)}`);
  const ofSlices = slicesOf(store, { namespace, name }).flatMap(({ endpoints, ports }) => {
    const hosts = (endpoints ?? []).filter(isReady).flatMap(({ addresses = [] }) => addresses);
    return addressesAt(targetPort(ports, wanted), hosts);
  });
  if (ofSlices.length > 0) return ofSlices;
  const { subsets } = (store.get({ prefix: '/endpoints', namespace, name })?.object ?? {}) as DeepReadonly<Endpoints>;
  const addresses = (subsets ?? []).flatMap(({ addresses: hosts = [], ports }) =>
    addressesAt(
      targetPort(ports, wanted),
      hosts.map(({ ip }) => ip),
    ),
  );
  if (addresses.length === 0) throw new Error(`no endpoints available for service ${JSON.stringify(name)}`);
  return addresses;
}

const addressesAt = (port: number | undefined, hosts: readonly string[]): ServiceAddress[] =>
  port === undefined ? [] : hosts.map((host) => ({ host, port }));

/** Ports of endpoints go by the service port's name; endpoints that list none take the service's numeric target. */
function targetPort(ports: readonly EndpointPort[] | null | undefined, wanted: ServicePort): number | undefined {
  if (!ports?.length) {
    return typeof wanted.targetPort === 'number' && wanted.targetPort > 0 ? wanted.targetPort : wanted.port;
  }
  return ports.find(({ name = '' }) => name === (wanted.name ?? ''))?.port;
}
