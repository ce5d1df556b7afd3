/**
 * Kinds, and fields of Services, that are stored and that nothing here acts on yet: who makes one is informed at once, by a
 * warning and by an event of the object. Silent where an external controller has taken the work on: it holds its Lease.
 */

import { controllerOf } from '@coracle/apimachinery/meta/controller-reference';
import { formatTime, type UnstructuredObject } from '@coracle/apimachinery/meta/object';
import { textAt, textsAt } from '@coracle/apimachinery/types/read-value';
import type { ResourceInfo } from '@coracle/apimachinery/types/resource';
import type { Node } from '@coracle/apimachinery/types/types';
import type { AdmissionPlugin } from '@coracle/apiserver/admission/plugin';
import type { ObjectStore, StoredObject } from '@coracle/apiserver/cache/object-store';
import type { Clock } from '@coracle/runtime/clock/clock';

export interface UnservedKindsOptions {
  readonly store: ObjectStore;
  readonly clock: Clock;
  /** Events of the core group. */
  readonly events: ResourceInfo;
}

interface Lease {
  readonly spec?: {
    readonly renewTime?: string;
    readonly leaseDurationSeconds?: number;
    readonly holderIdentity?: string;
  };
}

const LEASES = 'coordination.k8s.io/leases';
const DEFAULT_LEASE_SECONDS = 15;
/** What kube-controller-manager makes Pods of. */
const WORKLOADS = new Set([
  'apps/deployments',
  'apps/statefulsets',
  'apps/daemonsets',
  'apps/replicasets',
  'batch/jobs',
  'batch/cronjobs',
  '/replicationcontrollers',
]);
const AUTOSCALERS = 'autoscaling/horizontalpodautoscalers';
const INGRESSES = 'networking.k8s.io/ingresses';
const INGRESS_CLASSES = 'networking.k8s.io/ingressclasses';
const PODS = '/pods';
const NODES = '/nodes';
/** Of a node that is an agent of ours: it says of a Pod of containers, by an event of its own, that it runs none. */
const OUR_RUNTIME = 'qemu://';
const SERVICES = '/services';
/** Fields of Services, and one annotation. */
const UNSERVED_FIELDS: Readonly<Record<string, string>> = {
  externalIPs:
    'spec.externalIPs is not served: nothing here answers at these addresses; a Service answers at its cluster IP, its node ports and the address in its status',
  loadBalancerSourceRanges:
    'spec.loadBalancerSourceRanges has no effect: the address of a load balancer here is one of the loopback network, which only this host reaches',
};
const TOPOLOGY_MODE = 'service.kubernetes.io/topology-mode';
const NO_TOPOLOGY_MODE = `annotation ${TOPOLOGY_MODE} has no effect: its share of each zone is not worked out here; spec.trafficDistribution: PreferSameZone keeps connections in their zone`;
const UNSERVED = new Set([...WORKLOADS, AUTOSCALERS, INGRESSES, PODS, SERVICES]);
const REASON = 'NotServed';
const COMPONENT = 'coracle';

/** Makes the plug-in. */
export function unservedKinds({ store, clock, events }: UnservedKindsOptions): AdmissionPlugin {
  const isLed = (namespace: string, name: string): boolean => {
    const { spec } = (store.get({ prefix: LEASES, namespace, name })?.object ?? {}) as Lease;
    const seconds = spec?.leaseDurationSeconds ?? DEFAULT_LEASE_SECONDS;
    return !!spec?.holderIdentity && Date.parse(spec.renewTime ?? '') + seconds * 1000 > clock.now();
  };
  const problemOf = (info: ResourceInfo, object: Readonly<UnstructuredObject>): string | undefined => {
    const { kind } = info;
    const name = nameOf(info);
    if (name === SERVICES) {
      const asked = Object.entries(UNSERVED_FIELDS).filter(([field]) => textsAt(object, 'spec', field).length > 0);
      const texts = asked.map(([, text]) => text);
      if (/^[Aa]uto$/.test(textAt(object.metadata, 'annotations', TOPOLOGY_MODE))) texts.push(NO_TOPOLOGY_MODE);
      return texts.join('. ') || undefined;
    }
    if (name === PODS) {
      const runsContainers = ({ object }: StoredObject): boolean =>
        !(object as Node).status?.nodeInfo?.containerRuntimeVersion?.startsWith(OUR_RUNTIME);
      return store.count(NODES) === 0 || store.list(NODES, { limit: 1, match: runsContainers }).items.length > 0
        ? undefined
        : 'no node here runs containers: this Pod is stored, and stays Pending. A kubelet that joins this server runs it; a machine is a VirtualMachine';
    }
    if (name === AUTOSCALERS) {
      return isLed('kube-system', 'kube-controller-manager')
        ? undefined
        : `nothing acts on this ${kind} yet: it is stored, and nothing is scaled. A kube-controller-manager that is run against this server acts on it`;
    }
    if (name === INGRESSES) {
      // Whoever runs a controller of them has said so by a class.
      return store.count(INGRESS_CLASSES) > 0
        ? undefined
        : `nothing acts on this ${kind} yet: it is stored, and no traffic comes by it. An ingress controller that is run against this server, with its IngressClass, acts on it; Services of type NodePort and LoadBalancer answer without one`;
    }
    if (WORKLOADS.has(name)) {
      return isLed('kube-system', 'kube-controller-manager')
        ? undefined
        : `nothing acts on this ${kind} yet: it is stored, and no Pods are made. A kube-controller-manager run against this server acts on it; containers also need a kubelet`;
    }
    return undefined;
  };
  return {
    name: 'UnservedKinds',
    matches: (operation, info, subresource) =>
      subresource === '' &&
      UNSERVED.has(nameOf(info)) &&
      (operation === 'CREATE' || (operation === 'UPDATE' && nameOf(info) === SERVICES)),
    validate({ info, object, namespace, warn, companions }) {
      // What a controller makes was reported with its owner.
      if (!object || controllerOf(object)) return;
      const problem = problemOf(info, object);
      if (problem === undefined) return;
      warn(problem);
      if (nameOf(info) === PODS) return;
      companions?.push({
        info: events,
        object: eventOf(object, { namespace, problem, now: clock.now() }),
        manager: COMPONENT,
      });
    },
  };
}

const nameOf = ({ group, resource }: ResourceInfo): string => `${group}/${resource}`;

function eventOf(
  { apiVersion, kind, metadata }: Readonly<UnstructuredObject>,
  { namespace, problem, now }: { readonly namespace: string; readonly problem: string; readonly now: number },
): UnstructuredObject {
  const { name = '', uid = '' } = metadata;
  const time = formatTime(now);
  return {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: `${name.slice(0, 200)}.${uid.replaceAll('-', '').slice(0, 16)}`, namespace },
    involvedObject: { apiVersion, kind, namespace, name, uid },
    reason: REASON,
    message: problem,
    type: 'Warning',
    source: { component: COMPONENT },
    reportingComponent: COMPONENT,
    firstTimestamp: time,
    lastTimestamp: time,
    count: 1,
  } as unknown as UnstructuredObject;
}
