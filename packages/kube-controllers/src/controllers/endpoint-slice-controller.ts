/**
 * Keeps EndpointSlices, and Endpoints beside them, in step with the Pods a Service selects. `service-endpoints.ts` says
 * what they should be; this file writes the difference. Slices go with their Service by the garbage collector.
 */

import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import type { DeepReadonly, KubeObject, ObjectKey } from '@coracle/apimachinery/meta/object';
import { keyOf } from '@coracle/apimachinery/meta/object';
import { policyRules } from '@coracle/apimachinery/types/policy-rules';
import { ENDPOINT_SLICES, ENDPOINTS, NODES, PODS, SERVICES } from '@coracle/apimachinery/types/resource-types';
import type { EndpointSlice, Service } from '@coracle/apimachinery/types/types';
import { isAlreadyExists, isNamespaceTerminating, isNotFound, orAbsent } from '@coracle/client/api-failure';
import { type Controller, createController, ownKeys, source } from '@coracle/client/controller/controller';
import type { ControllerEnvironment } from '@coracle/client/controller/environment';
import {
  isKept,
  isOurs,
  MANAGED_BY,
  MANAGER,
  SERVICE_LABEL,
  selectsLabels,
  wantedEndpoints,
  wantedSlices,
} from './service-endpoints.ts';

export const endpointSliceRules = policyRules(
  'list watch : core : services pods nodes endpoints',
  'create update delete : core : endpoints',
  'update : core : services/finalizers',
  'list watch create update delete : discovery.k8s.io : endpointslices',
);

const BY_SERVICE = 'endpointslice.service';
const ZONE = 'topology.kubernetes.io/zone';

const managedSlice = (slice: DeepReadonly<EndpointSlice>): boolean => slice.metadata.labels?.[MANAGED_BY] === MANAGER;
const serviceOf = ({ metadata }: DeepReadonly<EndpointSlice>): ObjectKey => ({
  namespace: metadata.namespace ?? '',
  name: metadata.labels?.[SERVICE_LABEL] ?? '',
});

/** Makes the controller; its keys are Services. */
export function createEndpointSliceController(environment: ControllerEnvironment): Controller {
  const { client, informers } = environment;
  const services = informers.of(SERVICES);
  const pods = informers.of(PODS);
  const nodes = informers.of(NODES);
  const slices = informers.of(ENDPOINT_SLICES);
  const endpoints = informers.of(ENDPOINTS);
  slices.addIndex(BY_SERVICE, (slice) => {
    const { namespace, name } = serviceOf(slice);
    return managedSlice(slice) ? [`${namespace}/${name}`] : [];
  });
  const zoneOf = (name: string): string | undefined => nodes.get({ namespace: '', name })?.metadata.labels?.[ZONE];

  const syncSlices = async (service: DeepReadonly<Service>, signal: AbortSignal): Promise<void> => {
    const key = keyOf(service);
    const selected = pods.list(key.namespace).filter((pod) => selectsLabels(service, pod.metadata.labels));
    const wanted = wantedSlices(service, { pods: selected, zoneOf });
    const held = new Map(
      slices.byIndex(BY_SERVICE, `${key.namespace}/${key.name}`).map((slice) => [slice.metadata.name ?? '', slice]),
    );
    for (const slice of wanted) {
      const known = held.get(slice.metadata.name ?? '');
      held.delete(slice.metadata.name ?? '');
      if (!known) await client.create(ENDPOINT_SLICES, slice, { signal });
      else if (!sameSlice(known, slice)) {
        await client.update(ENDPOINT_SLICES, { ...slice, metadata: merged(known, slice) }, { signal });
      }
    }
    for (const slice of held.values()) {
      const preconditions = { uid: slice.metadata.uid ?? '' };
      await orAbsent(client.delete(ENDPOINT_SLICES, keyOf(slice), { preconditions, signal }));
    }
    const object = wantedEndpoints(service, { pods: selected, zoneOf });
    const known = endpoints.get(key);
    if (!known) await client.create(ENDPOINTS, object, { signal });
    else if (!deepEqual(known.subsets ?? [], object.subsets ?? []) || !sameLabels(known, object)) {
      await client.update(ENDPOINTS, { ...object, metadata: merged(known, object) }, { signal });
    }
  };

  return createController({
    ...environment,
    name: 'endpointslice-controller',
    concurrency: 5,
    sources: [
      ownKeys(services),
      source(pods, (pod, previous) =>
        services
          .list(pod.metadata.namespace ?? '')
          .filter(
            (service) =>
              selectsLabels(service, pod.metadata.labels) || selectsLabels(service, previous?.metadata.labels),
          )
          .map(keyOf),
      ),
      source(slices, (slice) => (managedSlice(slice) ? [serviceOf(slice)] : [])),
      source(endpoints, (object) => [keyOf(object)]),
    ],
    async reconcile(key, { signal }) {
      const service = services.get(key);
      try {
        if (!service) {
          const left = endpoints.get(key);
          if (left && isOurs(left)) {
            const preconditions = { uid: left.metadata.uid ?? '' };
            await orAbsent(client.delete(ENDPOINTS, key, { preconditions, signal }));
          }
        } else if (isKept(service) && service.metadata.deletionTimestamp === undefined) {
          await syncSlices(service, signal);
        }
      } catch (error) {
        // The copy lags, or the namespace is going: another change says what comes next.
        if (!isAlreadyExists(error) && !isNamespaceTerminating(error) && !isNotFound(error)) throw error;
      }
    },
  });
}

const sameLabels = (held: DeepReadonly<KubeObject>, wanted: KubeObject): boolean =>
  deepEqual(held.metadata.labels ?? {}, wanted.metadata.labels ?? {});

const sameSlice = (held: DeepReadonly<EndpointSlice>, wanted: EndpointSlice): boolean =>
  deepEqual(held.endpoints ?? [], wanted.endpoints) &&
  deepEqual(held.ports ?? [], wanted.ports ?? []) &&
  sameLabels(held, wanted);

/** The metadata that is wanted on the object that is there. */
const merged = (held: DeepReadonly<KubeObject>, wanted: KubeObject): KubeObject['metadata'] => ({
  ...wanted.metadata,
  uid: held.metadata.uid ?? '',
  resourceVersion: held.metadata.resourceVersion ?? '',
});
