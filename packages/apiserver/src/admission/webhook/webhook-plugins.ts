/** Mutating and validating webhooks as plug-ins: the last of their pass. */
import type { Clock } from '@coracle/runtime/clock/clock';
import type { Logger } from '@coracle/runtime/log/log';
import type { Authorizer } from '../../auth/identity.ts';
import type { ObjectStore } from '../../cache/object-store.ts';
import type { ConnectOutbound } from '../../outbound/outbound.ts';
import type { AdmissionMetrics } from '../admission-metrics.ts';
import { requestAuthorizer } from '../matching/request-authorizer.ts';
import { createEquivalents, type ServedResources } from '../matching/served-kinds.ts';
import type { AdmissionPlugin } from '../plugin.ts';
import { mutatingWebhooks } from './mutating-webhooks.ts';
import { validatingWebhooks } from './validating-webhooks.ts';
import { createWebhookSource } from './webhook-source.ts';

export interface WebhookPluginsOptions {
  readonly store: ObjectStore;
  readonly clock: Clock;
  readonly log: Logger;
  readonly resources: ServedResources;
  readonly authorize: Authorizer;
  readonly connectOutbound: ConnectOutbound;
  /** Where calls are counted. */
  readonly metrics: AdmissionMetrics;
}

/** The plug-ins over the configurations in the store, which they watch until it is closed. */
export function webhookPlugins(options: WebhookPluginsOptions): AdmissionPlugin[] {
  const { store, clock, log, resources, authorize, connectOutbound: connect, metrics } = options;
  const hooks = { store, equivalents: createEquivalents(resources), generation: () => resources.generation(), connect };
  const services = { store, clock, log, resources, authorizer: requestAuthorizer(authorize), metrics };
  return [
    mutatingWebhooks(createWebhookSource({ ...hooks, resource: 'mutatingwebhookconfigurations' }), services),
    validatingWebhooks(createWebhookSource({ ...hooks, resource: 'validatingwebhookconfigurations' }), services),
  ];
}
