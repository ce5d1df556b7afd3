/** The plug-ins that are on in every server, in upstream's order. KubeVirt's own come just before ResourceQuota. */
import type { Clock } from '@coracle/runtime/clock/clock';
import type { Authorizer } from '../auth/identity.ts';
import type { ObjectStore } from '../cache/object-store.ts';
import { certificateRequestor } from './certificates.ts';
import { defaultClasses } from './default-classes.ts';
import { limitRanger } from './limit-ranger.ts';
import { namespaceLifecycle } from './namespace-lifecycle.ts';
import { nodeRestriction } from './node-restriction.ts';
import { taintNodesByCondition } from './node-taints.ts';
import type { AdmissionPlugin } from './plugin.ts';
import { defaultTolerationSeconds, podTopologyLabels, priority } from './pod-defaults.ts';
import { runtimeClass } from './runtime-class.ts';
import { serviceAccount } from './service-account.ts';
import { serviceAllocation } from './service-allocation.ts';
import { claimResize, storageInUseProtection } from './storage-plugins.ts';

interface DefaultPluginsOptions {
  readonly clock: Clock;
  readonly authorize: Authorizer;
  readonly more?: readonly AdmissionPlugin[];
  /** Pod security, and quotas, where the server has them. */
  readonly podSecurity?: readonly AdmissionPlugin[];
  readonly quota?: readonly AdmissionPlugin[];
}

/**
 * The chain; `more` stands before ResourceQuota, which has to be the last one to say no. Its end are the plug-ins that
 * users configure: policies, what stands like a webhook (KubeVirt's own admission), webhooks.
 */
export function defaultPlugins(store: ObjectStore, options: DefaultPluginsOptions): AdmissionPlugin[] {
  const { clock, authorize, more = [], podSecurity = [], quota = [] } = options;
  return [
    namespaceLifecycle(store),
    nodeRestriction({ store, authorize }),
    limitRanger(store),
    serviceAccount(store, clock),
    taintNodesByCondition,
    ...podSecurity,
    priority(store),
    defaultTolerationSeconds,
    storageInUseProtection,
    claimResize(store),
    runtimeClass(store),
    certificateRequestor,
    ...defaultClasses(store),
    podTopologyLabels(store),
    serviceAllocation(store, clock),
    ...more,
    ...quota,
  ];
}
