/** Cells of the core group. */

import {
  isObject,
  type JsonObject,
  listAt,
  numberAt,
  objectAt,
  objectsAt,
  textAt,
  textsAt,
  valueAt,
} from '@coracle/apimachinery/types/read-value';
import { accessModes, type Cell, conditionOf, firstFew, formatLabels, type KindCells, NONE } from './cell.ts';
import { EVENT_CELLS } from './event.ts';
import { POD_CELLS } from './pod.ts';

const ROLE_PREFIX = 'node-role.kubernetes.io/';

function nodeStatus(node: JsonObject): string {
  const ready = conditionOf(node, 'Ready');
  const words = [ready === undefined ? 'Unknown' : ready['status'] === 'True' ? 'Ready' : 'NotReady'];
  if (valueAt(node, 'spec', 'unschedulable') === true) words.push('SchedulingDisabled');
  return words.join(',');
}

function nodeRoles(node: JsonObject): string {
  const roles = new Set<string>();
  for (const [key, value] of Object.entries(objectAt(node, 'metadata', 'labels'))) {
    if (key.startsWith(ROLE_PREFIX) && key.length > ROLE_PREFIX.length) roles.add(key.slice(ROLE_PREFIX.length));
    else if (key === 'kubernetes.io/role' && value !== '') roles.add(String(value));
  }
  return roles.size === 0 ? NONE : [...roles].sort().join(',');
}

const nodeAddress =
  (type: string): Cell =>
  (node) =>
    textAt(
      objectsAt(node, 'status', 'addresses').find((address) => address['type'] === type),
      'address',
    ) || NONE;

/** Sorted addresses of a load balancer, '' when it has none yet. */
function loadBalancerAddresses(object: JsonObject): string {
  const addresses = objectsAt(object, 'status', 'loadBalancer', 'ingress').map(
    (ingress) => textAt(ingress, 'ip') || textAt(ingress, 'hostname'),
  );
  return [...new Set(addresses.filter((address) => address !== ''))].sort().join(',');
}

function externalIp(service: JsonObject): string {
  const external = textsAt(service, 'spec', 'externalIPs');
  switch (textAt(service, 'spec', 'type')) {
    case 'ClusterIP':
    case 'NodePort':
      return external.length > 0 ? external.join(',') : NONE;
    case 'LoadBalancer': {
      const balanced = loadBalancerAddresses(service);
      return [...(balanced === '' ? [] : [balanced]), ...external].join(',') || '<pending>';
    }
    case 'ExternalName':
      return textAt(service, 'spec', 'externalName');
    default:
      return '<unknown>';
  }
}

function servicePorts(service: JsonObject): string {
  const ports = objectsAt(service, 'spec', 'ports').map((port) => {
    const nodePort = numberAt(port, 'nodePort');
    return `${numberAt(port, 'port')}${nodePort > 0 ? `:${nodePort}` : ''}/${textAt(port, 'protocol')}`;
  });
  return ports.join(',') || NONE;
}

const hostPort = (ip: string, port: number): string => (ip.includes(':') ? `[${ip}]:${port}` : `${ip}:${port}`);

function endpoints(object: JsonObject): string {
  const addresses = objectsAt(object, 'subsets').flatMap((subset) => {
    const ips = objectsAt(subset, 'addresses').map((address) => textAt(address, 'ip'));
    const ports = objectsAt(subset, 'ports');
    return ports.length === 0 ? ips : ports.flatMap((port) => ips.map((ip) => hostPort(ip, numberAt(port, 'port'))));
  });
  return firstFew(addresses, { max: 3, empty: listAt(object, 'subsets').length === 0 ? NONE : '' });
}

const entryCount = (object: JsonObject, ...fields: string[]): number =>
  fields.reduce((sum, field) => sum + Object.keys(objectAt(object, field)).length, 0);

const BETA_CLASS = 'volume.beta.kubernetes.io/storage-class';
const storageClass: Cell = (object) =>
  textAt(object, 'metadata', 'annotations', BETA_CLASS) || textAt(object, 'spec', 'storageClassName');

const phaseOrTerminating: Cell = (object) =>
  valueAt(object, 'metadata', 'deletionTimestamp') != null ? 'Terminating' : textAt(object, 'status', 'phase');

const isBound = (claim: JsonObject): boolean => textAt(claim, 'spec', 'volumeName') !== '';

/** One half of a quota: the `limits.*` entries or all others, as `pods: 1/10, services: 0/5`. */
const quotaHalf =
  (limits: boolean): Cell =>
  (quota) =>
    Object.entries(objectAt(quota, 'status', 'hard'))
      .filter(([name]) => name.startsWith('limits.') === limits)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, hard]) => `${name}: ${String(valueAt(quota, 'status', 'used', name) ?? '0')}/${String(hard)}`)
      .join(', ');

export const CORE_CELLS: KindCells = {
  configmaps: { Data: (object) => entryCount(object, 'data', 'binaryData') },
  endpoints: { Endpoints: endpoints },
  events: EVENT_CELLS,
  nodes: {
    Status: nodeStatus,
    Roles: nodeRoles,
    'Internal-IP': nodeAddress('InternalIP'),
    'External-IP': nodeAddress('ExternalIP'),
  },
  persistentvolumeclaims: {
    Status: phaseOrTerminating,
    Capacity: (claim) => (isBound(claim) ? textAt(claim, 'status', 'capacity', 'storage') || '0' : ''),
    'Access Modes': (claim) => (isBound(claim) ? accessModes(listAt(claim, 'status', 'accessModes')) : ''),
    StorageClass: storageClass,
  },
  persistentvolumes: {
    'Access Modes': (volume) => accessModes(listAt(volume, 'spec', 'accessModes')),
    Status: phaseOrTerminating,
    Claim: (volume) => {
      const claim = valueAt(volume, 'spec', 'claimRef');
      return isObject(claim) ? `${textAt(claim, 'namespace')}/${textAt(claim, 'name')}` : '';
    },
    StorageClass: storageClass,
  },
  pods: POD_CELLS,
  resourcequotas: { Request: quotaHalf(false), Limit: quotaHalf(true) },
  secrets: { Data: (object) => entryCount(object, 'data') },
  services: {
    'Cluster-IP': (service) =>
      textsAt(service, 'spec', 'clusterIPs')[0] ?? (textAt(service, 'spec', 'clusterIP') || NONE),
    'External-IP': externalIp,
    'Port(s)': servicePorts,
    Selector: (service) => formatLabels(valueAt(service, 'spec', 'selector')),
  },
};
