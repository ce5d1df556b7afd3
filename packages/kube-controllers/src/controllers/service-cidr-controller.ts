/**
 * Says that ServiceCIDRs are ready, and keeps one that is deleted while Services have addresses of it that no other one
 * covers (pkg/controller/servicecidrs).
 */

import { type DeepReadonly, formatTime, keyOf } from '@coracle/apimachinery/meta/object';
import { conditionOf, isDeleting } from '@coracle/apimachinery/meta/object-state';
import { policyRules } from '@coracle/apimachinery/types/policy-rules';
import { IP_ADDRESSES, SERVICE_CIDRS } from '@coracle/apimachinery/types/resource-types';
import {
  canDeleteCidr,
  isAllocatedAddress,
  rangeHolds,
  rangesOf,
  rangesOverlap,
} from '@coracle/apimachinery/types/service-cidrs';
import type { Condition, ServiceCIDR } from '@coracle/apimachinery/types/types';
import { orAbsent } from '@coracle/client/api-failure';
import { commit } from '@coracle/client/commit/commit';
import { createController, ownKeys, requeueAfter, source } from '@coracle/client/controller/controller';
import type { ControllerEnvironment } from '@coracle/client/controller/environment';
import { addFinalizer, hasFinalizer, removeFinalizer } from '@coracle/client/finalizer/finalizer';

const FINALIZER = 'networking.k8s.io/service-cidr-finalizer';
/** Until then every allocator has heard that it is no longer to be used. */
const GRACE_MS = 10_000;
const READY = { status: 'True', reason: '', message: 'Kubernetes Service CIDR is ready' } as const;
const IN_USE = {
  status: 'False',
  reason: 'Terminating',
  message: 'There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new ServiceCIDR',
} as const;

export const serviceCidrRules = policyRules(
  'list watch patch : networking.k8s.io : servicecidrs',
  'patch : networking.k8s.io : servicecidrs/status',
  'list watch : networking.k8s.io : ipaddresses',
);

/** Makes the controller. */
export function createServiceCidrController(environment: ControllerEnvironment) {
  const { client, informers, clock } = environment;
  const cidrs = informers.of(SERVICE_CIDRS);
  const addresses = informers.of(IP_ADDRESSES);
  /** Those on their way out that a change may let go, or hold. */
  const leaving = (concerns: (cidr: DeepReadonly<ServiceCIDR>) => boolean) =>
    cidrs
      .list()
      .filter((cidr) => isDeleting(cidr) && concerns(cidr))
      .map(keyOf);
  return createController({
    ...environment,
    name: 'service-cidr-controller',
    sources: [
      ownKeys(cidrs),
      source(cidrs, (changed) => {
        const ranges = rangesOf(changed);
        return leaving((cidr) => rangesOf(cidr).some((one) => ranges.some((range) => rangesOverlap(one, range))));
      }),
      source(addresses, (address) =>
        isAllocatedAddress(address)
          ? leaving((cidr) => rangesOf(cidr).some((range) => rangeHolds(range, address.metadata.name ?? '')))
          : [],
      ),
    ],
    async reconcile(key, { signal }) {
      const cidr = cidrs.get(key);
      if (!cidr) return;
      const save = async (after: DeepReadonly<ServiceCIDR>): Promise<void> => {
        await orAbsent(commit(client, SERVICE_CIDRS, { before: cidr, after, order: 'status-last', signal }));
      };
      if (!isDeleting(cidr)) {
        await save(withReady(addFinalizer(cidr as ServiceCIDR, FINALIZER), READY, clock.now()));
      } else if (!canDeleteCidr(cidr, { all: cidrs.list(), addresses: addresses.list() })) {
        await save(withReady(cidr as ServiceCIDR, IN_USE, clock.now()));
      } else if (hasFinalizer(cidr, FINALIZER)) {
        const left = Date.parse(cidr.metadata.deletionTimestamp!) + GRACE_MS - clock.now();
        if (left > 0) return requeueAfter(Math.min(left, GRACE_MS));
        await save(removeFinalizer(cidr as ServiceCIDR, FINALIZER));
      }
    },
  });
}

/** With the condition; itself when it says so already. */
function withReady(
  cidr: ServiceCIDR,
  { status, reason, message }: typeof READY | typeof IN_USE,
  now: number,
): ServiceCIDR {
  const conditions = cidr.status?.conditions ?? [];
  const before = conditionOf(cidr, 'Ready');
  if (before?.status === status && (before.reason ?? '') === reason && before.message === message) return cidr;
  const lastTransitionTime =
    before?.status === status && before.lastTransitionTime ? before.lastTransitionTime : formatTime(now);
  const condition: Condition = { type: 'Ready', status, lastTransitionTime, reason, message };
  const others = conditions.filter(({ type }) => type !== 'Ready');
  return { ...cidr, status: { ...cidr.status, conditions: [...others, condition] } };
}
