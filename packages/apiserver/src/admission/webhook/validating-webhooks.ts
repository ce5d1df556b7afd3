/** ValidatingAdmissionWebhook: all webhooks that want the write are asked at once; one no is enough. */
import type { AdmissionAttributes, AdmissionPlugin } from '../plugin.ts';
import { callWebhook } from './call-webhook.ts';
import { shouldCall, type WebhookServices } from './should-call.ts';
import { WebhookCallFailed } from './webhook-failure.ts';
import type { Candidate, WebhookSource } from './webhook-source.ts';

/** The plug-in over the configurations of `source`. */
export function validatingWebhooks(source: WebhookSource, services: WebhookServices): AdmissionPlugin {
  return {
    name: 'ValidatingAdmissionWebhook',
    matches: (operation, info, subresource) => source.candidates(operation, info, subresource).length > 0,
    validate(attributes) {
      const { operation, info, subresource } = attributes;
      return askWanted(source.candidates(operation, info, subresource), attributes, services);
    },
  };
}

/** Of several refusals the client gets the one of the first webhook, so that the answer does not depend on who is fast. */
async function askWanted(
  candidates: readonly Candidate[],
  attributes: AdmissionAttributes,
  services: WebhookServices,
): Promise<void> {
  const wanted: Candidate[] = [];
  for (const candidate of candidates) {
    if (await shouldCall(candidate, attributes, services)) wanted.push(candidate);
  }
  const asked = wanted.map((candidate, index) => ask(candidate, attributes, { ...services, index }));
  for (const outcome of await Promise.allSettled(asked)) if (outcome.status === 'rejected') throw outcome.reason;
}

async function ask(
  candidate: Candidate,
  attributes: AdmissionAttributes,
  { clock, log, metrics, index }: WebhookServices & { readonly index: number },
): Promise<void> {
  const { webhook } = candidate.hook;
  try {
    await callWebhook(candidate, { attributes, mutating: false, clock, metrics });
  } catch (error) {
    if (!(error instanceof WebhookCallFailed)) throw error;
    if (webhook.failurePolicy !== 'Ignore') throw error.refusal();
    log.warn('admission webhook failed and is passed by', { webhook: webhook.name, error: error.message });
    attributes.annotate(`failed-open.validating.webhook.admission.k8s.io/round_0_index_${index}`, webhook.name);
  }
}
