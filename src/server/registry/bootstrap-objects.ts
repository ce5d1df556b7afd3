/** Objects that must exist before the server is ready: namespaces, the `kubernetes` Service, system priority classes. */

import { storagePrefix } from '../../api/kinds/resource.ts';
import { cloneJson } from '../../api/meta/deep-clone.ts';
import { parseApiVersion } from '../../api/meta/gvk.ts';
import type { UnstructuredObject } from '../../api/meta/object.ts';
import { ApiError } from '../../api/meta/status.ts';
import { createObject } from './create.ts';
import { normalizeInput } from './normalize-input.ts';
import type { ResourceSource } from './resource-catalog.ts';
import { NO_ADMISSION, type Registry } from './write-call.ts';

/** Namespaces that always exist; all but kube-node-lease cannot be deleted. */
export const SYSTEM_NAMESPACES = ['default', 'kube-system', 'kube-public', 'kube-node-lease'] as const;

export interface BootstrapOptions {
  /** Address and port under which clients inside guests and pods reach this server. */
  readonly advertise?: { readonly address: string; readonly port: number };
  /** Cluster IP of the `kubernetes` Service. */
  readonly serviceIp?: string;
  /** More objects to ensure, in order (RBAC defaults and the like). */
  readonly more?: readonly UnstructuredObject[];
}

interface BootstrapObject {
  readonly resource: string;
  readonly object: UnstructuredObject;
}

/**
 * Creates what is missing, in order; never changes what is there. Objects of resources that are not served are skipped.
 * Returns how many were created. Throws ApiError when the store refuses.
 */
export async function ensureBootstrapObjects(
  registry: Registry,
  { resources, ...options }: BootstrapOptions & { readonly resources: ResourceSource },
): Promise<number> {
  let created = 0;
  const plurals = new Map(resources.all().map((info) => [`${info.group}/${info.version}/${info.kind}`, info.resource]));
  const more = (options.more ?? []).map((object) => {
    const { group, version } = parseApiVersion(object.apiVersion);
    return { resource: plurals.get(`${group}/${version}/${object.kind}`) ?? '', object };
  });
  for (const { resource, object } of [...bootstrapObjects(options), ...more]) {
    if (await ensure(registry, { resources, resource, object })) created++;
  }
  return created;
}

async function ensure(
  registry: Registry,
  { resources, resource, object }: BootstrapObject & { readonly resources: ResourceSource },
): Promise<boolean> {
  const { group, version } = parseApiVersion(object.apiVersion);
  const info = resources.lookup(group, version, resource);
  if (!info) return false;
  const { name = '', namespace = '' } = object.metadata;
  if (registry.store.peek({ prefix: storagePrefix(info), namespace, name })) return false;
  const fresh = cloneJson(object) as UnstructuredObject;
  normalizeInput(info, fresh, { dropStatus: info.strategy.statusSubresource });
  try {
    await createObject(registry, {
      info,
      subresource: '',
      namespace,
      name: '',
      dryRun: false,
      manager: 'apiserver',
      admission: NO_ADMISSION,
      warn: () => {},
      object: fresh,
    });
    return true;
  } catch (error) {
    if (error instanceof ApiError && error.reason === 'AlreadyExists') return false;
    throw error;
  }
}

function bootstrapObjects({ advertise, serviceIp = '10.96.0.1' }: BootstrapOptions): BootstrapObject[] {
  const objects: BootstrapObject[] = SYSTEM_NAMESPACES.map((name) => ({
    resource: 'namespaces',
    object: { apiVersion: 'v1', kind: 'Namespace', metadata: { name } },
  }));
  objects.push(priorityClass('system-node-critical', 2000001000), priorityClass('system-cluster-critical', 2000000000));
  objects.push({
    resource: 'services',
    object: {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: {
        name: 'kubernetes',
        namespace: 'default',
        labels: { component: 'apiserver', provider: 'kubernetes' },
      },
      spec: {
        type: 'ClusterIP',
        clusterIP: serviceIp,
        clusterIPs: [serviceIp],
        ipFamilies: ['IPv4'],
        ipFamilyPolicy: 'SingleStack',
        ports: [{ name: 'https', port: 443, protocol: 'TCP', targetPort: advertise?.port ?? 6443 }],
      },
    },
  });
  if (advertise) objects.push(endpoints(advertise), endpointSlice(advertise));
  return objects;
}

const DESCRIPTIONS: Record<string, string> = {
  'system-node-critical': 'Used for system critical pods that must not be moved from their current node.',
  'system-cluster-critical':
    'Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.',
};

const priorityClass = (name: string, value: number): BootstrapObject => ({
  resource: 'priorityclasses',
  object: {
    apiVersion: 'scheduling.k8s.io/v1',
    kind: 'PriorityClass',
    metadata: { name },
    value,
    description: DESCRIPTIONS[name],
  },
});

const endpoints = ({ address, port }: { address: string; port: number }): BootstrapObject => ({
  resource: 'endpoints',
  object: {
    apiVersion: 'v1',
    kind: 'Endpoints',
    metadata: {
      name: 'kubernetes',
      namespace: 'default',
      labels: { 'endpointslice.kubernetes.io/skip-mirror': 'true' },
    },
    subsets: [{ addresses: [{ ip: address }], ports: [{ name: 'https', port, protocol: 'TCP' }] }],
  },
});

const endpointSlice = ({ address, port }: { address: string; port: number }): BootstrapObject => ({
  resource: 'endpointslices',
  object: {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      name: 'kubernetes',
      namespace: 'default',
      labels: { 'kubernetes.io/service-name': 'kubernetes' },
    },
    addressType: address.includes(':') ? 'IPv6' : 'IPv4',
    endpoints: [{ addresses: [address], conditions: { ready: true } }],
    ports: [{ name: 'https', port, protocol: 'TCP' }],
  },
});
