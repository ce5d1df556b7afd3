/**
 * Kinds that are stored and that nothing here acts on yet: who makes one is informed at once, by a warning and by an event of
 * the object. Silent where an external controller has taken the work on: it holds its Lease.
 */

import { formatTime, type UnstructuredObject } from '@coracle/apimachinery/meta/object';
import type { ResourceInfo } from '@coracle/apimachinery/types/resource';
import type { AdmissionPlugin } from '@coracle/apiserver/admission/plugin';
import type { ObjectStore } from '@coracle/apiserver/cache/object-store';
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
const WORKLOADS = new Set(['deployments', 'statefulsets', 'daemonsets', 'replicasets', 'jobs', 'cronjobs']);
const REASON = 'NotServed';
const COMPONENT = 'coracle';

/** Makes the plug-in. */
export function unservedKinds({ store, clock, events }: UnservedKindsOptions): AdmissionPlugin {
  const isLed = (namespace: string, name: string): boolean => {
    const { spec } = (store.get({ prefix: LEASES, namespace, name })?.object ?? {}) as Lease;
    const seconds = spec?.leaseDurationSeconds ?? DEFAULT_LEASE_SECONDS;
    return !!spec?.holderIdentity && Date.parse(spec.renewTime ?? '') + seconds * 1000 > clock.now();
  };
  const problemOf = ({ group, resource, kind }: ResourceInfo): string | undefined => {
    if (group === 'apps' || group === 'batch') {
      return isLed('kube-system', 'kube-controller-manager')
        ? undefined
        : `nothing acts on this ${kind} yet: it is stored, and no Pods are made. A kube-controller-manager that is run against this server acts on it; containers need a kubelet besides`;
    }
    if (resource === 'virtualmachineinstancereplicasets') {
      return isLed('kubevirt', 'virt-controller')
        ? undefined
        : `nothing acts on this ${kind} yet: it is stored, and no instances are made. KubeVirt's virt-controller acts on it when it is run against this server`;
    }
    return undefined;
  };
  return {
    name: 'UnservedKinds',
    matches: (operation, { group, resource }, subresource) =>
      operation === 'CREATE' &&
      subresource === '' &&
      (((group === 'apps' || group === 'batch') && WORKLOADS.has(resource)) ||
        (group === 'kubevirt.io' && resource === 'virtualmachineinstancereplicasets')),
    validate({ info, object, namespace, warn, companions }) {
      // What a controller makes was reported with its owner.
      if (!object || object.metadata.ownerReferences?.some(({ controller }) => controller)) return;
      const problem = problemOf(info);
      if (problem === undefined) return;
      warn(problem);
      companions?.push({
        info: events,
        object: eventOf(object, { namespace, problem, now: clock.now() }),
        manager: COMPONENT,
      });
    },
  };
}

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
