/** Objects that must exist before the server is ready, from the namespaces to the flow schemas. */

import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import { parseApiVersion } from '@coracle/apimachinery/meta/gvk';
import { formatTime, type UnstructuredObject } from '@coracle/apimachinery/meta/object';
import { ApiError } from '@coracle/apimachinery/meta/status';
import { storagePrefix } from '@coracle/apimachinery/types/resource';
import { DEFAULT_SERVICE_CIDR, firstServiceIp } from '@coracle/apimachinery/types/service-cidrs';
import { REQUEST_HEADERS } from '../auth/front-proxy.ts';
import { FLOW_CONTROL_OBJECTS, MANDATORY_SCHEMAS } from '../kinds/builtin/flow-control-objects.ts';
import { apiServices } from './bootstrap-api-services.ts';
import templates from './bootstrap-objects.json' with { type: 'json' };
import { createObject } from './create.ts';
import { repairServiceAddresses } from './keep-service-addresses.ts';
import { normalizeInput } from './normalize-input.ts';
import type { ResourceSource } from './resource-catalog.ts';
import { ownWrite } from './write-call.ts';
import type { Registry } from './write-contract.ts';

/** Namespaces that always exist; all but kube-node-lease cannot be deleted. */
export const SYSTEM_NAMESPACES = ['default', 'kube-system', 'kube-public', 'kube-node-lease'] as const;

export interface BootstrapOptions {
  /** Address and port under which clients inside guests and pods reach this server. */
  readonly advertise?: { readonly address: string; readonly port: number };
  /** PEM of the CA of client certificates. */
  readonly clientCa?: string;
  /** PEM of the CA of front proxies, and the common names they have. */
  readonly frontProxy?: { readonly ca: string; readonly allowedNames: readonly string[] };
  /** Range of cluster IPs, `DEFAULT_SERVICE_CIDR` when absent; the `kubernetes` Service gets its first address. */
  readonly serviceCidr?: string;
  /** More objects to ensure. */
  readonly more?: readonly UnstructuredObject[];
  /** More objects to ensure, which come back when somebody deletes them; those of a namespace come back with it. */
  readonly lasting?: readonly UnstructuredObject[];
}

/** An object the server makes, and keeps. */
export interface BootstrapObject {
  readonly resource: string;
  readonly object: UnstructuredObject;
  /** Fields that follow the process, not the user: put right when they differ. */
  readonly follow?: readonly string[];
}

/**
 * Creates what is missing, in order. What is there stays as it is, but for the server's own address. Objects of
 * resources that are not served are skipped. Returns how many were created. Throws ApiError when the store refuses.
 */
export async function ensureBootstrapObjects(
  registry: Registry,
  { resources, ...options }: BootstrapOptions & { readonly resources: ResourceSource },
): Promise<number> {
  const withPlural = pluralOf(resources);
  const services = apiServices(resources.all(), registry.clock.now());
  const objects = [
    ...lastingObjects({ resources, ...options }, registry.clock.now()),
    ...[...services, ...(options.more ?? [])].map(withPlural),
  ];
  // All at once: they share a few commits, and no one needs another to be there.
  const outcomes = await Promise.all(objects.map((object) => ensure(registry, { resources, ...object })));
  await repairServiceAddresses(registry);
  return outcomes.filter((made) => made).length;
}

/** Says of an object which resource it is of; '' for a kind that is not served. */
export const pluralOf = (resources: ResourceSource): ((object: UnstructuredObject) => BootstrapObject) => {
  const plurals = new Map(resources.all().map((info) => [`${info.group}/${info.version}/${info.kind}`, info.resource]));
  return (object) => {
    const { group, version } = parseApiVersion(object.apiVersion);
    return { resource: plurals.get(`${group}/${version}/${object.kind}`) ?? '', object };
  };
};

/** The objects that come back when a user deletes them (`keepBootstrapObjects`). */
export const lastingObjects = (
  options: BootstrapOptions & { readonly resources: ResourceSource },
  now: number,
): BootstrapObject[] => [
  ...bootstrapObjects(options, now),
  ...(options.lasting ?? []).map(pluralOf(options.resources)),
  ...FLOW_CONTROL_OBJECTS.map((object) => ({
    resource: object.kind === 'FlowSchema' ? 'flowschemas' : 'prioritylevelconfigurations',
    object,
    // How much room what is exempt takes up is up to the administrator; the other mandatory ones are as they have to be.
    ...(isFixed(object) && { follow: ['spec'] }),
  })),
];

const isFixed = ({ kind, metadata: { name = '' } }: UnstructuredObject): boolean =>
  kind === 'FlowSchema' ? Object.hasOwn(MANDATORY_SCHEMAS, name) : name === 'catch-all';

/** Makes one object if it is missing and puts right the fields it follows; true when it was made. */
export async function ensure(
  registry: Registry,
  { resources, resource, object, follow }: BootstrapObject & { readonly resources: ResourceSource },
): Promise<boolean> {
  const { group, version } = parseApiVersion(object.apiVersion);
  const info = resources.lookup(group, version, resource);
  if (!info) return false;
  const { name = '', namespace = '' } = object.metadata;
  const key = { prefix: storagePrefix(info), namespace, name };
  const existing = registry.store.peek(key);
  if (existing && !follow?.some((field) => !deepEqual(existing.object[field], object[field]))) return false;
  if (existing) {
    await registry.store.write(key, (current) => {
      if (!current) return { type: 'keep' };
      const next = cloneJson(current.object) as UnstructuredObject;
      for (const field of follow!) next[field] = cloneJson(object[field]);
      return { type: 'put', object: next };
    });
    return false;
  }
  const fresh = cloneJson(object) as UnstructuredObject;
  // Unlike a client, the server may say what the status is.
  normalizeInput(info, fresh);
  try {
    await createObject(registry, {
      ...ownWrite('apiserver'),
      info,
      namespace,
      object: fresh,
      trusted: true,
    });
    return true;
  } catch (error) {
    if (error instanceof ApiError && error.reason === 'AlreadyExists') return false;
    throw error;
  }
}

function bootstrapObjects(options: BootstrapOptions, now: number): BootstrapObject[] {
  const { advertise, serviceCidr = DEFAULT_SERVICE_CIDR } = options;
  const values = {
    '{service-cidr}': serviceCidr,
    '{service-ip}': firstServiceIp(serviceCidr),
    '{port}': advertise?.port ?? 6443,
    '{address}': advertise?.address,
    '{family}': advertise?.address.includes(':') ? 'IPv6' : 'IPv4',
    '{now}': formatTime(now),
  };
  return [
    ...SYSTEM_NAMESPACES.map((name) => ({
      resource: 'namespaces',
      object: { apiVersion: 'v1', kind: 'Namespace', metadata: { name } },
    })),
    ...filled(templates.always, values),
    ...(advertise ? filled(templates.advertised, values) : []),
    ...(advertise || options.clientCa || options.frontProxy ? [authenticationConfig(options)] : []),
  ];
}

/** Copies of the templates in `bootstrap-objects.json`, in which texts like `{port}` stand for values. */
const filled = (objects: readonly unknown[], values: Readonly<Record<string, unknown>>): readonly BootstrapObject[] =>
  JSON.parse(JSON.stringify(objects), (_, value: unknown) =>
    typeof value === 'string' && Object.hasOwn(values, value) ? values[value] : value,
  ) as BootstrapObject[];

/** What extension API servers read: whom to believe, by certificate and by headers of the proxy in front of them. */
const authenticationConfig = ({ clientCa, frontProxy }: BootstrapOptions): BootstrapObject => ({
  resource: 'configmaps',
  follow: ['data'],
  object: {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'extension-apiserver-authentication', namespace: 'kube-system' },
    data: {
      ...(clientCa && { 'client-ca-file': clientCa }),
      'requestheader-allowed-names': JSON.stringify(frontProxy?.allowedNames ?? []),
      ...(frontProxy && { 'requestheader-client-ca-file': frontProxy.ca }),
      ...Object.fromEntries(Object.entries(REQUEST_HEADERS).map(([name, headers]) => [name, JSON.stringify(headers)])),
    },
  },
});
