/**
 * Shows Endpoints that users write for a Service without a selector as EndpointSlices, too: whoever follows a Service reads
 * slices only. The slices go with their Endpoints (pkg/controller/endpointslicemirroring).
 */
import type { PolicyRule } from '../../api/kinds/builtin/access-types.ts';
import { ENDPOINT_SLICES, ENDPOINTS, SERVICES } from '../../api/kinds/builtin/resource-types.ts';
import type { EndpointSlice, Endpoints, Service } from '../../api/kinds/builtin/types.ts';
import { controllerReference } from '../../api/meta/controller-reference.ts';
import { deepEqual } from '../../api/meta/deep-equal.ts';
import type { DeepReadonly } from '../../api/meta/object.ts';
import { keyOf } from '../../api/meta/object.ts';
import { isAlreadyExists, isNamespaceTerminating, isNotFound } from '../../client/api-failure.ts';
import { type Controller, createController, DONE, ownKeys, source } from '../../client/controller/controller.ts';
import type { ControllerEnvironment } from '../../client/controller/environment.ts';
import { canonicalSubsets } from './canonical-subsets.ts';
import { MANAGED_BY, SERVICE_LABEL, suffixOf } from './service-endpoints.ts';

export const endpointSliceMirroringRules: PolicyRule[] = [
  { apiGroups: [''], resources: ['services', 'endpoints'], verbs: ['list', 'watch'] },
  { apiGroups: [''], resources: ['services/finalizers', 'endpoints/finalizers'], verbs: ['update'] },
  {
    apiGroups: ['discovery.k8s.io'],
    resources: ['endpointslices'],
    verbs: ['list', 'watch', 'create', 'update', 'delete'],
  },
];

const MIRROR = 'endpointslicemirroring-controller.k8s.io';
const SKIP = 'endpointslice.kubernetes.io/skip-mirror';
const LEADER = 'control-plane.alpha.kubernetes.io/leader';
/** Annotations about the Endpoints object itself. */
const OWN_ANNOTATIONS = [
  'endpoints.kubernetes.io/last-change-trigger-time',
  'kubectl.kubernetes.io/last-applied-configuration',
];
/** Addresses of one subset; further ones are not shown, as upstream. */
const MAX_ADDRESSES = 1_000;
const BY_SERVICE = 'endpointslicemirroring.service';

type Endpoint = EndpointSlice['endpoints'][number];
type EndpointPort = NonNullable<EndpointSlice['ports']>[number];

/** True when these Endpoints are a user's, for a Service that names no Pods. */
export function isMirrored(
  service: DeepReadonly<Service> | undefined,
  endpoints: DeepReadonly<Endpoints> | undefined,
): endpoints is DeepReadonly<Endpoints> {
  if (!service || !endpoints || service.spec?.selector !== undefined) return false;
  const { labels, annotations } = endpoints.metadata;
  return labels?.[SKIP] !== 'true' && annotations?.[LEADER] === undefined;
}

/** The slices of these Endpoints: one for each set of ports and family of addresses. */
export function mirroredSlices(endpoints: DeepReadonly<Endpoints>): EndpointSlice[] {
  const { name = '', namespace = '', uid = '', labels, annotations } = endpoints.metadata;
  const groups = new Map<string, { ports: EndpointPort[]; family: 'IPv4' | 'IPv6'; members: Endpoint[] }>();
  for (const { addresses = [], notReadyAddresses = [], ports = [] } of canonicalSubsets(endpoints.subsets ?? [])) {
    const shown = ports.map(({ name: port = '', protocol = 'TCP', ...rest }) => ({ name: port, protocol, ...rest }));
    const portsText = JSON.stringify(shown);
    const all = [
      ...addresses.map((address) => ({ address, ready: true })),
      ...notReadyAddresses.map((address) => ({ address, ready: false })),
    ];
    for (const { address, ready } of all.slice(0, MAX_ADDRESSES)) {
      const family = address.ip.includes(':') ? 'IPv6' : 'IPv4';
      const key = `${family} ${portsText}`;
      const group = groups.get(key) ?? { ports: shown, family, members: [] };
      const { ip, hostname, nodeName, targetRef } = address;
      group.members.push({
        addresses: [ip],
        conditions: { ready },
        ...(hostname && { hostname }),
        ...(nodeName !== undefined && { nodeName }),
        ...(targetRef && { targetRef: { ...targetRef } }),
      });
      groups.set(key, group);
    }
  }
  const kept = Object.entries(annotations ?? {}).filter(([key]) => !OWN_ANNOTATIONS.includes(key));
  return [...groups].map(([key, { ports, family, members }]) => ({
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      name: `${name}-${suffixOf(`${uid}${key}`)}`,
      namespace,
      labels: { ...labels, [SERVICE_LABEL]: name, [MANAGED_BY]: MIRROR },
      ...(kept.length > 0 && { annotations: Object.fromEntries(kept) }),
      ownerReferences: [controllerReference({ ...endpoints, apiVersion: 'v1', kind: 'Endpoints' })],
    },
    addressType: family,
    endpoints: members,
    ...(ports.length > 0 && { ports }),
  }));
}

/** Makes the controller; its keys are Services, whose Endpoints have the same name. */
export function createEndpointSliceMirroringController(environment: ControllerEnvironment): Controller {
  const { client, informers, clock, log } = environment;
  const services = informers.of(SERVICES);
  const endpoints = informers.of(ENDPOINTS);
  const slices = informers.of(ENDPOINT_SLICES);
  const serviceOf = ({ metadata }: DeepReadonly<EndpointSlice>) => ({
    namespace: metadata.namespace ?? '',
    name: metadata.labels?.[SERVICE_LABEL] ?? '',
  });
  const ours = (slice: DeepReadonly<EndpointSlice>): boolean => slice.metadata.labels?.[MANAGED_BY] === MIRROR;
  slices.addIndex(BY_SERVICE, (slice) => {
    const { namespace, name } = serviceOf(slice);
    return ours(slice) ? [`${namespace}/${name}`] : [];
  });

  return createController({
    name: 'endpointslicemirroring-controller',
    client,
    clock,
    log,
    concurrency: 5,
    sources: [
      ownKeys(services),
      ownKeys(endpoints),
      source(slices, (slice) => (ours(slice) ? [serviceOf(slice)] : [])),
    ],
    async reconcile(key, { signal }) {
      const object = endpoints.get(key);
      const wanted = isMirrored(services.get(key), object) ? mirroredSlices(object) : [];
      const held = new Map(
        slices.byIndex(BY_SERVICE, `${key.namespace}/${key.name}`).map((slice) => [slice.metadata.name ?? '', slice]),
      );
      try {
        for (const slice of wanted) {
          const known = held.get(slice.metadata.name ?? '');
          held.delete(slice.metadata.name ?? '');
          if (!known) await client.create(ENDPOINT_SLICES, slice, { signal });
          else if (!isSame(known, slice)) {
            const { uid = '', resourceVersion = '' } = known.metadata;
            const metadata = { ...slice.metadata, uid, resourceVersion };
            await client.update(ENDPOINT_SLICES, { ...slice, metadata }, { signal });
          }
        }
        for (const slice of held.values()) {
          const preconditions = { uid: slice.metadata.uid ?? '' };
          await client.delete(ENDPOINT_SLICES, keyOf(slice), { preconditions, signal });
        }
      } catch (error) {
        // The copy lags, or the namespace is going: another change says what comes next.
        if (!isAlreadyExists(error) && !isNamespaceTerminating(error) && !isNotFound(error)) throw error;
      }
      return DONE;
    },
  });
}

const isSame = (held: DeepReadonly<EndpointSlice>, wanted: EndpointSlice): boolean =>
  deepEqual(held.endpoints ?? [], wanted.endpoints) &&
  deepEqual(held.ports ?? [], wanted.ports ?? []) &&
  deepEqual(held.metadata.labels ?? {}, wanted.metadata.labels ?? {}) &&
  deepEqual(held.metadata.annotations ?? {}, wanted.metadata.annotations ?? {});
