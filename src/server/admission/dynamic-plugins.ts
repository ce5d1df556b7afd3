/**
 * The plug-ins that users configure, in the order in which they are asked. In the mutating pass: MutatingAdmissionPolicy,
 * then webhooks; in the validating pass: ValidatingAdmissionPolicy, then webhooks. What stands like a webhook without
 * being one (KubeVirt's own admission) comes between, so that policies go before it in both passes.
 */
import type { Clock } from '../../base/clock/clock.ts';
import type { Logger } from '../../base/log/log.ts';
import type { Authorizer } from '../auth/identity.ts';
import type { ObjectStore } from '../cache/object-store.ts';
import type { ConnectOutbound } from '../outbound/outbound.ts';
import { type AdmissionMetrics, createAdmissionMetrics } from './admission-metrics.ts';
import { requestAuthorizer } from './matching/request-authorizer.ts';
import { createEquivalents, type ServedResources } from './matching/served-kinds.ts';
import type { AdmissionPlugin } from './plugin.ts';
import { compileMutation } from './policy/compiled-mutation.ts';
import { compileValidation } from './policy/compiled-validation.ts';
import { mutatingPolicies } from './policy/mutating-policies.ts';
import { paramAccess } from './policy/param-access.ts';
import { createPolicySource } from './policy/policy-source.ts';
import { type OnPolicyRefusal, validatingPolicies } from './policy/validating-policies.ts';
import { mutatingWebhooks } from './webhook/mutating-webhooks.ts';
import { validatingWebhooks } from './webhook/validating-webhooks.ts';
import { createWebhookSource } from './webhook/webhook-source.ts';

export interface DynamicAdmissionOptions {
  readonly store: ObjectStore;
  readonly clock: Clock;
  readonly log: Logger;
  readonly resources: ServedResources;
  readonly authorize: Authorizer;
  readonly connectOutbound: ConnectOutbound;
  /** Plug-ins that stand where webhooks stand. */
  readonly webhookLike?: readonly AdmissionPlugin[];
  /** Hears of what ValidatingAdmissionPolicies refuse. */
  readonly onPolicyRefusal?: OnPolicyRefusal;
  /** Where calls and checks are counted. */
  readonly metrics?: AdmissionMetrics;
}

/** The plug-ins over the configuration in the store, which they watch until it is closed. */
export function dynamicPlugins(options: DynamicAdmissionOptions): AdmissionPlugin[] {
  const { store, clock, log, resources } = options;
  const equivalents = createEquivalents(resources);
  const generation = (): number => resources.generation();
  const authorizer = requestAuthorizer(options.authorize);
  const hooks = { store, equivalents, generation, connect: options.connectOutbound };
  const policies = { store, equivalents, generation };
  const metrics = options.metrics ?? createAdmissionMetrics(clock);
  const services = { store, clock, log, resources, authorizer, metrics };
  return [
    paramAccess({ store, resources, authorize: options.authorize }),
    mutatingPolicies(
      createPolicySource({
        ...policies,
        policies: 'mutatingadmissionpolicies',
        bindings: 'mutatingadmissionpolicybindings',
        compile: compileMutation,
      }),
      services,
    ),
    validatingPolicies(
      createPolicySource({
        ...policies,
        policies: 'validatingadmissionpolicies',
        bindings: 'validatingadmissionpolicybindings',
        compile: compileValidation,
      }),
      services,
      options.onPolicyRefusal,
    ),
    ...(options.webhookLike ?? []),
    mutatingWebhooks(createWebhookSource({ ...hooks, resource: 'mutatingwebhookconfigurations' }), services),
    validatingWebhooks(createWebhookSource({ ...hooks, resource: 'validatingwebhookconfigurations' }), services),
  ];
}
