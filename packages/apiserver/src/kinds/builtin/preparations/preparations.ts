/**
 * What the strategies of upstream's registry make of built-in objects beside their defaults (PrepareForCreate and
 * PrepareForUpdate below pkg/registry), where it is neither a wall between the parts of an object nor its generation.
 */
import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import { formatTime } from '@coracle/apimachinery/meta/object';
import { isObject, type JsonObject, listAt, objectAt, textAt, valueAt } from '@coracle/apimachinery/types/read-value';
import type { ResourceInfo } from '@coracle/apimachinery/types/resource';
import { claimPreparation } from './claims.ts';
import { jobPreparation } from './jobs.ts';
import { podPreparation } from './pods.ts';
import type { Preparation } from './preparation.ts';

/** When a volume came to its phase. */
const volumePreparation: Preparation = {
  create(volume, { now }) {
    volume['status'] = { ...objectAt(volume, 'status'), lastPhaseTransitionTime: formatTime(now) };
  },
  update(volume, old, { subresource, now }) {
    if (subresource !== 'status' || textAt(volume, 'status', 'phase') === textAt(old, 'status', 'phase')) return;
    const sent = valueAt(volume, 'status', 'lastPhaseTransitionTime');
    const isOwn = sent !== undefined && sent !== null && sent !== valueAt(old, 'status', 'lastPhaseTransitionTime');
    if (!isOwn) volume['status'] = { ...objectAt(volume, 'status'), lastPhaseTransitionTime: formatTime(now) };
  },
};

/** Of the secrets of a service account only the names are kept: they are those of its namespace. */
function nameSecrets(account: Record<string, unknown>): void {
  if (!Array.isArray(account['secrets'])) return;
  account['secrets'] = account['secrets'].map((secret) => {
    const name = textAt(secret, 'name');
    return name === '' ? {} : { name };
  });
}

/** Topology is a field of the time before v1. */
function dropTopology(slice: Record<string, unknown>): void {
  if (!Array.isArray(slice['endpoints'])) return;
  slice['endpoints'] = slice['endpoints'].map((endpoint) => {
    if (!isObject(endpoint) || endpoint['deprecatedTopology'] === undefined) return endpoint;
    const { deprecatedTopology: _, ...kept } = endpoint;
    return kept;
  });
}

const hasSameEndpoints = (slice: JsonObject, old: JsonObject): boolean =>
  deepEqual(listAt(slice, 'endpoints'), listAt(old, 'endpoints'));

/** Whatever else has to end first, the namespace controller is among it. */
const namespacePreparation: Preparation = {
  create(namespace) {
    const finalizers = listAt(namespace, 'spec', 'finalizers');
    if (finalizers.includes('kubernetes')) return;
    namespace['spec'] = { ...objectAt(namespace, 'spec'), finalizers: [...finalizers, 'kubernetes'] };
  },
};

/** Kubelets have not been configured through the API since 1.24. */
function dropConfiguration(node: Record<string, unknown>, old?: JsonObject): void {
  for (const [part, field] of [
    ['spec', 'configSource'],
    ['status', 'config'],
  ] as const) {
    if (valueAt(node, part, field) === undefined || valueAt(old, part, field) !== undefined) continue;
    const { [field]: _, ...kept } = objectAt(node, part);
    node[part] = kept;
  }
}

/** By `resource.group`, or the bare resource of the core group. */
const PREPARATIONS: Readonly<Record<string, Preparation>> = {
  namespaces: namespacePreparation,
  nodes: { create: (node) => dropConfiguration(node), update: dropConfiguration },
  pods: podPreparation,
  persistentvolumes: volumePreparation,
  persistentvolumeclaims: claimPreparation,
  serviceaccounts: { create: nameSecrets, update: nameSecrets },
  'jobs.batch': jobPreparation,
  'endpointslices.discovery.k8s.io': {
    create: dropTopology,
    update: (slice, old) => {
      if (!hasSameEndpoints(slice, old)) dropTopology(slice);
    },
  },
  'apiservices.apiregistration.k8s.io': {
    create(service, { now }) {
      if (isObject(valueAt(service, 'spec', 'service'))) return;
      service['status'] = { conditions: [localCondition(now)] };
    },
  },
};

/** What the status of every APIService says that no other server stands behind. */
export const localCondition = (now: number) => ({
  type: 'Available',
  status: 'True',
  lastTransitionTime: formatTime(now),
  reason: 'Local',
  message: 'Local APIServices are always available',
});

/** The preparation of one built-in resource, as members of its description. */
export function preparationOf(group: string, resource: string): Pick<ResourceInfo, 'prepareCreate' | 'prepareUpdate'> {
  const { create, update } = PREPARATIONS[group === '' ? resource : `${resource}.${group}`] ?? {};
  return { ...(create && { prepareCreate: create }), ...(update && { prepareUpdate: update }) };
}
