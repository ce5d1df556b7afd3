/**
 * Mutating- and ValidatingAdmissionPolicy as plug-ins, in the order in which they are asked. They go before webhooks in both
 * passes: before `webhookPlugins` in the chain.
 */
import type { Clock } from '@coracle/runtime/clock/clock';
import type { Logger } from '@coracle/runtime/log/log';
import type { Authorizer } from '../../auth/identity.ts';
import type { ObjectStore } from '../../cache/object-store.ts';
import type { AdmissionMetrics } from '../admission-metrics.ts';
import { requestAuthorizer } from '../matching/request-authorizer.ts';
import { createEquivalents, type ServedResources } from '../matching/served-kinds.ts';
import type { AdmissionPlugin } from '../plugin.ts';
import { compileMutation } from './compiled-mutation.ts';
import { compileValidation } from './compiled-validation.ts';
import { mutatingPolicies } from './mutating-policies.ts';
import { paramAccess } from './param-access.ts';
import { createPolicySource } from './policy-source.ts';
import { type OnPolicyRefusal, validatingPolicies } from './validating-policies.ts';

export interface PolicyPluginsOptions {
  readonly store: ObjectStore;
  readonly clock: Clock;
  readonly log: Logger;
  readonly resources: ServedResources;
  readonly authorize: Authorizer;
  /** Called with what ValidatingAdmissionPolicies refuse. */
  readonly onPolicyRefusal?: OnPolicyRefusal | undefined;
  /** Where checks are counted. */
  readonly metrics: AdmissionMetrics;
}

/** The plug-ins over the policies in the store, which they watch until it is closed. */
export function policyPlugins(options: PolicyPluginsOptions): AdmissionPlugin[] {
  const { store, clock, log, resources, authorize, metrics } = options;
  const how = { store, equivalents: createEquivalents(resources), generation: () => resources.generation() };
  const services = { store, clock, log, resources, authorizer: requestAuthorizer(authorize), metrics };
  return [
    paramAccess({ store, resources, authorize }),
    mutatingPolicies(createPolicySource({ ...how, kind: 'mutating', compile: compileMutation }), services),
    validatingPolicies(
      createPolicySource({ ...how, kind: 'validating', compile: compileValidation }),
      services,
      options.onPolicyRefusal,
    ),
  ];
}
