/** Whether a remote API is there: its Service, somebody behind it, and an answer to a probe (upstream's order and words). */
import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import type { Condition, EndpointPort, Endpoints, Service } from '@coracle/apimachinery/types/types';
import { type ApiHandler, NEVER, NO_BYTES } from '@coracle/runtime/http/seam';
import type { UserInfo } from '../auth/identity.ts';
import type { ObjectStore } from '../cache/object-store.ts';
import { isReady, serviceHost, slicesOf } from '../outbound/service-address.ts';
import type { RemoteApi } from './api-service-index.ts';
import { remoteUserHeaders } from './proxy-request.ts';

export type Availability = Pick<Condition, 'status' | 'reason' | 'message'>;

/** Who the server is when it asks for itself. */
export const AGGREGATOR_USER: UserInfo = { username: 'system:kube-aggregator', groups: ['system:masters'] };

const no = (reason: string, message: string): Availability => ({ status: 'False', reason, message });

/** What is wrong with the Service or its endpoints; undefined when the API can be probed. */
export function serviceAvailability(
  store: Pick<ObjectStore, 'get' | 'list'>,
  { service }: RemoteApi,
): Availability | undefined {
  const { namespace, name, port } = service;
  const where = `service/${name} in ${JSON.stringify(namespace)}`;
  const found = store.get({ prefix: '/services', namespace, name });
  if (!found) return no('ServiceNotFound', `${where} is not present`);
  const { spec = {} } = found.object as DeepReadonly<Service>;
  if ((spec.type ?? 'ClusterIP') !== 'ClusterIP') return undefined;
  const servicePort = spec.ports?.find((one) => one.port === port);
  if (!servicePort) return no('ServicePortError', `${where} is not listening on port ${port}`);
  const portName = servicePort.name ?? '';
  const named = (ports: readonly EndpointPort[] | null | undefined): boolean =>
    ports?.some((one) => (one.name ?? '') === portName && one.port !== undefined) === true;

  const slices = slicesOf(store, { namespace, name });
  // Slices of Endpoints are made a little later, and by a controller that may be off: both count.
  const endpoints = store.get({ prefix: '/endpoints', namespace, name });
  if (slices.length === 0 && !endpoints) {
    return no('EndpointsNotFound', `cannot find endpointslices for ${where}`);
  }
  const active =
    slices.some(({ endpoints, ports }) => endpoints?.some(isReady) && named(ports)) ||
    (endpoints?.object as DeepReadonly<Endpoints> | undefined)?.subsets?.some(
      ({ addresses = [], ports }) => addresses.length > 0 && named(ports),
    );
  if (active) return undefined;
  return no(
    'MissingEndpoints',
    `endpointslices for ${where} have no addresses with port name ${JSON.stringify(portName)}`,
  );
}

/** Asks the far end for a document it must have. Never rejects but with the signal's reason. */
export async function probeAvailability(
  store: Pick<ObjectStore, 'get'>,
  {
    remote,
    handler,
    signal,
  }: { readonly remote: RemoteApi; readonly handler: ApiHandler; readonly signal: AbortSignal },
): Promise<Availability> {
  const path = discoveryPath(remote);
  const url = `https://${hostOf(store, remote)}:${remote.service.port}${path}`;
  try {
    const { status, body } = await handler(aggregatorRequest(path, { signal }));
    // Nobody reads the body: it is begun and given up, so that the connection is free again.
    if (typeof body === 'function') body(discard());
    if (status >= 200 && status < 300) return { status: 'True', reason: 'Passed', message: 'all checks passed' };
    return no('FailedDiscoveryCheck', `failing or missing response from ${url}: bad status from ${url}: ${status}`);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    return no('FailedDiscoveryCheck', `failing or missing response from ${url}: Get ${JSON.stringify(url)}: ${why}`);
  }
}

const discard = () => ({
  buffered: 0,
  signal: NEVER,
  write: () => true,
  drained: () => Promise.resolve(),
  end: () => {},
});

/** `/apis/<group>/<version>`; the core group has its own root. */
export const discoveryPath = ({ group, version }: Pick<RemoteApi, 'group' | 'version'>): string =>
  group === '' ? `/api/${version}` : `/apis/${group}/${version}`;

/** A GET in the server's own name. */
export function aggregatorRequest(
  path: string,
  { signal, accept }: { readonly signal: AbortSignal; readonly accept?: string },
): Parameters<ApiHandler>[0] {
  return {
    method: 'GET',
    path,
    query: '',
    headers: { ...Object.fromEntries(remoteUserHeaders(AGGREGATOR_USER)), ...(accept !== undefined && { accept }) },
    body: NO_BYTES,
    peer: { address: '' },
    signal,
  };
}

function hostOf(store: Pick<ObjectStore, 'get'>, { service: { namespace, name } }: RemoteApi): string {
  const service = store.get({ prefix: '/services', namespace, name })?.object as DeepReadonly<Service> | undefined;
  const { clusterIP = '' } = service?.spec ?? {};
  return clusterIP === '' || clusterIP === 'None' ? serviceHost({ namespace, name }) : clusterIP;
}
