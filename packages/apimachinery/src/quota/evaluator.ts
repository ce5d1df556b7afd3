/**
 * What one object takes from a quota, by its resource (pkg/quota/v1/evaluator/core). Pods, claims and Services are
 * counted by what they ask for; everything else by its number (`count/<resource>.<group>`).
 */

import type { UnstructuredObject } from '../meta/object.ts';
import { isFinal } from '../meta/object-state.ts';
import type { GroupResource } from '../meta/status.ts';
import { exceeds, parseQuantity, type Quantity } from '../quantity/quantity.ts';
import { objectsAt, textAt, valueAt } from '../types/read-value.ts';
import { type Amounts, whole } from './amounts.ts';
import { type ContainerParts, type PodSpecParts, podAmounts } from './pod-amounts.ts';
import { claimInScope, podInScope, type QuotaSpec, type ScopeRequirement, scopesOf } from './scopes.ts';

type Target = Readonly<UnstructuredObject>;

export interface QuotaEvaluator {
  /** True when an update of an object is charged too, by the difference. */
  readonly chargesUpdates: boolean;
  /** True for a name in a quota's `hard` that objects of this resource count towards. */
  counts(name: string): boolean;
  inScope(object: Target, scope: ScopeRequirement): boolean;
  /** What the object takes at the moment `now` (milliseconds since the epoch). */
  usage(object: Target, now: number): Amounts;
  /** What is missing in the object when these names are limited: `limits.cpu for: c1`; undefined when nothing is. */
  missing?(object: Target, names: readonly string[]): string | undefined;
}

const ONE = whole(1);

/** `count/pods`, `count/deployments.apps`. */
const countName = ({ group, resource }: GroupResource): string => `count/${resource}${group === '' ? '' : `.${group}`}`;

/** Counted by a plain name as well, from before there was `count/`. */
const PLAIN_COUNTS = new Set(['configmaps', 'replicationcontrollers', 'resourcequotas', 'secrets']);

const COMPUTE = ['cpu', 'memory', 'requests.cpu', 'requests.memory', 'limits.cpu', 'limits.memory'];
const STORAGE = ['ephemeral-storage', 'requests.ephemeral-storage', 'limits.ephemeral-storage'];
const POD_NAMES = new Set([...COMPUTE, ...STORAGE, 'pods', 'count/pods']);

/** `requests.example.com/gpu`: a device, asked for under the name it has on nodes. */
const isExtended = (name: string): boolean => name.includes('/') && !/(?:^|[./])kubernetes\.io\//.test(name);

const podEvaluator: QuotaEvaluator = {
  chargesUpdates: false,
  counts: (name) =>
    POD_NAMES.has(name) ||
    /^(?:requests\.)?hugepages-/.test(name) ||
    (name.startsWith('requests.') && isExtended(name.slice('requests.'.length))),
  inScope: podInScope,
  usage(pod, now) {
    const usage = new Map([['count/pods', ONE]]);
    if (hasEnded(pod, now)) return usage;
    usage.set('pods', ONE);
    const spec = (pod['spec'] ?? {}) as PodSpecParts;
    for (const [name, amount] of podAmounts(spec, 'requests')) {
      if (name === 'cpu' || name === 'memory' || name === 'ephemeral-storage' || name.startsWith('hugepages-')) {
        usage.set(name, amount);
        usage.set(`requests.${name}`, amount);
      } else if (isExtended(name)) {
        usage.set(`requests.${name}`, amount);
      }
    }
    for (const [name, amount] of podAmounts(spec, 'limits')) {
      if (name === 'cpu' || name === 'memory' || name === 'ephemeral-storage') usage.set(`limits.${name}`, amount);
    }
    return usage;
  },
  missing(pod, names) {
    const spec = (pod['spec'] ?? {}) as PodSpecParts;
    const required = COMPUTE.filter((name) => names.includes(name) && !says(spec, name)).sort();
    const all = [...(spec.containers ?? []), ...(spec.initContainers ?? [])];
    const lines = required.flatMap((name) => {
      const silent = [...new Set(all.filter((container) => !says(container, name)).map((one) => one.name))].sort();
      return silent.length === 0 ? [] : [`${name} for: ${silent.join(',')}`];
    });
    return lines.length === 0 ? undefined : lines.join('; ');
  },
};

/** `cpu` is the request, as `requests.cpu` is. */
function says({ resources }: Pick<ContainerParts, 'resources'>, name: string): boolean {
  const [side, resource] = name.includes('.') ? (name.split('.') as [string, string]) : ['requests', name];
  return resources?.[side as 'requests' | 'limits']?.[resource] !== undefined;
}

/** A Pod that has ended, or should have by now, takes nothing but its place. */
function hasEnded(pod: Target, now: number): boolean {
  if (isFinal(textAt(pod, 'status', 'phase'))) return true;
  const { deletionTimestamp, deletionGracePeriodSeconds } = pod.metadata;
  if (deletionTimestamp === undefined || deletionGracePeriodSeconds === undefined) return false;
  return now > Date.parse(deletionTimestamp) + deletionGracePeriodSeconds * 1000;
}

const serviceEvaluator: QuotaEvaluator = {
  chargesUpdates: true,
  counts: (name) => ['services', 'services.nodeports', 'services.loadbalancers', 'count/services'].includes(name),
  inScope: () => false,
  usage(service) {
    const ports = objectsAt(service, 'spec', 'ports');
    const type = textAt(service, 'spec', 'type');
    const usage = new Map([
      ['services', ONE],
      ['count/services', ONE],
      ['services.nodeports', whole(0)],
      ['services.loadbalancers', whole(0)],
    ]);
    if (type === 'NodePort') usage.set('services.nodeports', whole(ports.length));
    if (type === 'LoadBalancer') {
      const isOptedOut = valueAt(service, 'spec', 'allocateLoadBalancerNodePorts') === false;
      const own = isOptedOut ? ports.filter((port) => port['nodePort']) : ports;
      usage.set('services.nodeports', whole(own.length));
      usage.set('services.loadbalancers', ONE);
    }
    return usage;
  },
};

const CLASS_INFIX = '.storageclass.storage.k8s.io/';
const ATTRIBUTES_INFIX = '.volumeattributesclass.storage.k8s.io/';

const claimEvaluator: QuotaEvaluator = {
  chargesUpdates: true,
  counts: (name) =>
    ['persistentvolumeclaims', 'requests.storage', 'count/persistentvolumeclaims'].includes(name) ||
    [CLASS_INFIX, ATTRIBUTES_INFIX].some(
      (infix) => name.endsWith(`${infix}requests.storage`) || name.endsWith(`${infix}persistentvolumeclaims`),
    ),
  inScope: claimInScope,
  usage(claim) {
    const usage = new Map([
      ['persistentvolumeclaims', ONE],
      ['count/persistentvolumeclaims', ONE],
    ]);
    const storage = [
      valueAt(claim, 'spec', 'resources', 'requests', 'storage'),
      valueAt(claim, 'status', 'allocatedResources', 'storage'),
    ]
      .filter((text) => text !== undefined)
      .map((text) => parseQuantity(String(text)))
      .reduce<Quantity | undefined>((most, one) => (most && !exceeds(one, most) ? most : one), undefined);
    if (storage) usage.set('requests.storage', storage);
    const legacyClass = claim.metadata.annotations?.['volume.beta.kubernetes.io/storage-class'];
    const className = legacyClass ?? textAt(claim, 'spec', 'storageClassName');
    if (className !== '') {
      usage.set(`${className}${CLASS_INFIX}persistentvolumeclaims`, ONE);
      if (storage) usage.set(`${className}${CLASS_INFIX}requests.storage`, storage);
    }
    return usage;
  },
};

const BY_VALUE: ReadonlyMap<string, QuotaEvaluator> = new Map([
  ['/pods', podEvaluator],
  ['/services', serviceEvaluator],
  ['/persistentvolumeclaims', claimEvaluator],
]);

/** Not objects that stay, or too many to be counted. */
const UNCOUNTED = new Set([
  '/bindings',
  '/events',
  'events.k8s.io/events',
  'authentication.k8s.io/tokenreviews',
  'authentication.k8s.io/selfsubjectreviews',
  'authorization.k8s.io/subjectaccessreviews',
  'authorization.k8s.io/localsubjectaccessreviews',
  'authorization.k8s.io/selfsubjectaccessreviews',
  'authorization.k8s.io/selfsubjectrulesreviews',
]);

/** How a resource is counted; undefined when it is not. */
export function quotaEvaluator(of: GroupResource): QuotaEvaluator | undefined {
  const key = `${of.group}/${of.resource}`;
  if (UNCOUNTED.has(key)) return undefined;
  return BY_VALUE.get(key) ?? numberEvaluator(of);
}

function numberEvaluator(of: GroupResource): QuotaEvaluator {
  const names = [countName(of), ...(of.group === '' && PLAIN_COUNTS.has(of.resource) ? [of.resource] : [])];
  const usage: Amounts = new Map(names.map((name) => [name, ONE]));
  return { chargesUpdates: false, counts: (name) => names.includes(name), inScope: () => false, usage: () => usage };
}

/** Whether the quota is about this object at all: one name in `hard` counts it, and every scope holds. */
export const quotaMatches = (
  evaluator: QuotaEvaluator,
  { hard, spec }: { readonly hard: Iterable<string>; readonly spec: QuotaSpec | undefined },
  object: Target,
): boolean =>
  [...hard].some((name) => evaluator.counts(name)) && scopesOf(spec).every((scope) => evaluator.inScope(object, scope));
