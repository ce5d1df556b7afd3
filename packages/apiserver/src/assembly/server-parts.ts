/**
 * The parts of the API server that can be left out: each is a factory that whoever starts the server hands in, so that a
 * server without one neither loads nor runs its code. What kubectl, informers and controllers need is no part: it is always there.
 */
import type { podSecurity } from '../admission/pod-security/pod-security.ts';
import type { policyPlugins } from '../admission/policy/policy-plugins.ts';
import type { resourceQuota } from '../admission/resource-quota.ts';
import type { webhookPlugins } from '../admission/webhook/webhook-plugins.ts';
import type { createAggregator } from '../aggregation/aggregator.ts';
import type { Auditor } from '../audit/auditor.ts';
import type { createWebhookAuthorizer } from '../auth/webhook-authorizer.ts';
import type { BodyDecoder } from '../endpoints/exchange.ts';
import type { createFlowControl } from '../endpoints/flow-control/flow-control.ts';
import type { MakeSwagger } from '../endpoints/openapi-routes.ts';

export interface ServerParts {
  /** Validating- and MutatingAdmissionPolicies in CEL: without it they are stored and nothing follows them. */
  readonly policies?: typeof policyPlugins;
  /** Validating- and MutatingWebhookConfigurations: without it they are stored and nobody is called. */
  readonly webhooks?: typeof webhookPlugins;
  /** APIServices of other servers; without it no request is passed on. */
  readonly aggregation?: typeof createAggregator;
  /** Priority and fairness; without it requests are answered in the order they come, up to `maxInFlight` at once. */
  readonly flowControl?: typeof createFlowControl;
  /** ResourceQuotas; without it they bound nothing. */
  readonly quota?: typeof resourceQuota;
  /** Pod security levels of namespaces; without it their labels mean nothing. */
  readonly podSecurity?: typeof podSecurity;
  /** Authorizers behind a webhook; without it a set-up that names one is refused at the first decision. */
  readonly webhookAuthorizer?: typeof createWebhookAuthorizer;
  /** Writes down who did what. */
  readonly auditor?: Auditor;
  /** Media types of request bodies beside JSON and YAML: protobuf. */
  readonly bodyDecoders?: ReadonlyMap<string, BodyDecoder>;
  /** The document at /openapi/v2; 404 without it, and kubectl falls back to version 3. */
  readonly swagger2?: MakeSwagger;
}
