/** The plug-ins that are on in every server, in upstream's order. KubeVirt's own come behind them. */
import type { Clock } from '../../base/clock/clock.ts';
import type { ObjectStore } from '../cache/object-store.ts';
import { certificateRequestor } from './certificate-requestor.ts';
import { defaultClasses } from './default-classes.ts';
import { namespaceLifecycle } from './namespace-lifecycle.ts';
import type { AdmissionPlugin } from './plugin.ts';
import { defaultTolerationSeconds, priority } from './pod-defaults.ts';
import { serviceAccount } from './service-account.ts';
import { SERVICE_CIDR, serviceAllocation } from './service-allocation.ts';

export function defaultPlugins(store: ObjectStore, clock: Clock): AdmissionPlugin[] {
  return [
    namespaceLifecycle(store),
    serviceAccount(store, clock),
    priority(store),
    defaultTolerationSeconds,
    certificateRequestor,
    ...defaultClasses(store),
    serviceAllocation(store, clock, { cidr: SERVICE_CIDR }),
  ];
}
