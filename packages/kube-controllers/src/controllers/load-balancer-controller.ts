/**
 * Gives Services of type LoadBalancer an address of the loopback network (127.32.0.0/11) as their ingress: what a cloud's
 * controller does elsewhere. Node agents listen there. One with `loadBalancerClass` is somebody else's.
 */
import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import { policyRules } from '@coracle/apimachinery/types/policy-rules';
import { SERVICES } from '@coracle/apimachinery/types/resource-types';
import type { Service } from '@coracle/apimachinery/types/types';
import { orAbsent } from '@coracle/client/api-failure';
import { commit } from '@coracle/client/commit/commit';
import { type Controller, createController, ownKeys } from '@coracle/client/controller/controller';
import type { ControllerEnvironment } from '@coracle/client/controller/environment';

export const loadBalancerRules = policyRules('list watch : core : services', 'patch : core : services/status');

const BASE = (127 << 24) | (32 << 16);
/** Without the first address of the range, which the hash of an empty text would be near. */
const SIZE = 2 ** 21 - 1;

const ingressOf = (service: DeepReadonly<Service>): string =>
  service.status?.loadBalancer?.ingress?.find(({ ip }) => ip !== undefined)?.ip ?? '';

/** True for addresses that this controller gives. */
export function isOurIngress(address: string): boolean {
  const [first, second] = address.split('.').map(Number);
  return first === 127 && second !== undefined && second >= 32 && second < 64;
}

const isOurs = ({ spec }: DeepReadonly<Service>): boolean =>
  spec?.type === 'LoadBalancer' && (spec as { loadBalancerClass?: string }).loadBalancerClass === undefined;

/** An address for the Service that no other one has: the one that its UID leads to, or one behind it (FNV-1a). */
export function ingressFor(service: DeepReadonly<Service>, taken: ReadonlySet<string>): string {
  const asked = service.spec?.loadBalancerIP ?? '';
  if (isOurIngress(asked) && !taken.has(asked)) return asked;
  let hash = 0x811c9dc5;
  for (const char of service.metadata.uid ?? '') hash = Math.imul(hash ^ char.charCodeAt(0), 0x01000193) >>> 0;
  for (let step = 0; ; step++) {
    const number = BASE + 1 + ((hash + step) % SIZE);
    const address = [24, 16, 8, 0].map((shift) => (number >>> shift) & 255).join('.');
    if (!taken.has(address)) return address;
  }
}

/** Makes the controller. */
export function createLoadBalancerController(environment: ControllerEnvironment): Controller {
  const { client, informers } = environment;
  const services = informers.of(SERVICES);
  return createController({
    ...environment,
    name: 'service-lb-controller',
    sources: [ownKeys(services)],
    async reconcile(key, { signal }) {
      const service = services.get(key);
      if (!service || service.metadata.deletionTimestamp !== undefined) return;
      const has = ingressOf(service);
      let ingress: { ip: string; ipMode: 'Proxy' }[] | undefined;
      if (isOurs(service)) {
        if (has !== '') return;
        const taken = new Set(services.list().map(ingressOf));
        ingress = [{ ip: ingressFor(service, taken), ipMode: 'Proxy' }];
      } else if (!isOurIngress(has)) return;
      const after = { ...service, status: { ...service.status, loadBalancer: ingress ? { ingress } : {} } };
      await orAbsent(commit(client, SERVICES, { before: service, after, order: 'status-last', signal }));
    },
  });
}
