/** One call of one webhook: the review out, the response back, within its time. */
import type { JsonObject } from '@coracle/apimachinery/meta/own-property';
import { ApiError, internalError } from '@coracle/apimachinery/meta/status';
import { createLinkedController } from '@coracle/runtime/signal/linked-controller';
import { answerProblem } from '../../outbound/answer-problem.ts';
import { readWhole } from '../../outbound/read-whole.ts';
import type { AdmissionAttributes } from '../plugin.ts';
import { type AdmissionResponse, buildReview, parseAnswer, type Review, readResponse } from './admission-review.ts';
import type { WebhookServices } from './should-call.ts';
import { denial, dryRunUnsupported, WebhookCallFailed } from './webhook-failure.ts';
import type { Candidate, Hook } from './webhook-source.ts';

/** Largest answer of a webhook: a patch may carry as much as a request. */
const MAX_ANSWER_BYTES = 16 * 1024 * 1024;
const DEFAULT_TIMEOUT_SECONDS = 10;

interface Call extends Pick<WebhookServices, 'clock' | 'metrics'> {
  readonly attributes: AdmissionAttributes;
  readonly mutating: boolean;
}

/**
 * Asks the webhook and passes its warnings and audit annotations on. Rejects with WebhookCallFailed when there is no
 * response, with ApiError when the response is no, when a dry run must not reach it, or when the client's own time is over.
 */
export async function callWebhook(candidate: Candidate, call: Call): Promise<AdmissionResponse> {
  const { webhook } = candidate.hook;
  const { mutating, metrics, attributes } = call;
  const counted = { name: webhook.name, mutating, operation: attributes.operation };
  const began = metrics.now();
  try {
    const response = await ask(candidate, call);
    metrics.webhook({ ...counted, ms: metrics.now() - began });
    return response;
  } catch (error) {
    const passedBy = error instanceof WebhookCallFailed && webhook.failurePolicy === 'Ignore';
    metrics.webhook({ ...counted, error, passedBy, ms: metrics.now() - began });
    throw error;
  }
}

async function ask({ hook, matched }: Candidate, call: Call): Promise<AdmissionResponse> {
  const { attributes, mutating } = call;
  const { webhook } = hook;
  if (attributes.dryRun && webhook.sideEffects !== 'None' && webhook.sideEffects !== 'NoneOnDryRun') {
    throw dryRunUnsupported(webhook.name);
  }
  let review: Review;
  try {
    review = await buildReview(attributes, { matched, reviewVersions: webhook.admissionReviewVersions ?? [] });
  } catch (error) {
    // An object that cannot be shown in the webhook's version is no failure of the webhook.
    if (error instanceof ApiError) throw mutating ? internalError(error.status.message ?? '') : error;
    throw new WebhookCallFailed(webhook.name, `could not create admission objects: ${(error as Error).message}`);
  }
  if (hook.trustProblem !== undefined) {
    throw new WebhookCallFailed(webhook.name, `could not get REST client: ${hook.trustProblem}`);
  }
  const answer = await send(hook, review, call);
  let response: AdmissionResponse;
  try {
    response = readResponse(answer, { uid: review.uid, version: review.version, mutating });
  } catch (error) {
    throw new WebhookCallFailed(webhook.name, `received invalid webhook response: ${(error as Error).message}`);
  }
  for (const [key, value] of Object.entries(response.auditAnnotations)) {
    attributes.annotate(`${webhook.name}/${key}`, value);
  }
  for (const warning of response.warnings) attributes.warn(warning);
  if (!response.allowed) throw denial(webhook.name, response.status);
  return response;
}

async function send(hook: Hook, review: Review, { attributes, clock }: Call): Promise<JsonObject> {
  const { signal, deadline } = attributes;
  if (signal.aborted) throw requestTimedOut();
  const { webhook } = hook;
  const seconds = webhook.timeoutSeconds ?? DEFAULT_TIMEOUT_SECONDS;
  // What is left of the request's own time, where that is less.
  const left = deadline === undefined ? seconds : Math.ceil((deadline - clock.monotonic()) / 1000);
  const query = `${hook.query === '' ? '' : `${hook.query}&`}timeout=${Math.max(Math.min(seconds, left), 1)}s`;
  const own = createLinkedController(signal);
  const cancel = clock.schedule(seconds * 1000, () => own.abort(new Error('context deadline exceeded')));
  try {
    const response = await hook.call({
      method: 'POST',
      path: hook.path,
      query,
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, */*',
        'user-agent': 'kube-apiserver-admission',
      },
      body: review.body,
      peer: { address: '' },
      signal: own.signal,
    });
    const body = await readWhole(response, { limit: MAX_ANSWER_BYTES, signal: own.signal });
    if (response.status < 200 || response.status > 206) throw new AnswerRefused(answerProblem(response, body));
    return parsed(new TextDecoder().decode(body));
  } catch (error) {
    if (signal.aborted) throw requestTimedOut();
    const why =
      error instanceof AnswerRefused
        ? error.message
        : `Post ${JSON.stringify(`${hook.url.split('?')[0]}?${query}`)}: ${(error as Error).message}`;
    throw new WebhookCallFailed(webhook.name, `failed to call webhook: ${why}`, { cause: error });
  } finally {
    cancel();
    own.release();
  }
}

/** There was an answer, and it is none that can be used. */
class AnswerRefused extends Error {}

function parsed(text: string): JsonObject {
  try {
    return parseAnswer(text);
  } catch (error) {
    throw new AnswerRefused((error as Error).message);
  }
}

const TIMED_OUT = 'Timeout: request did not complete within requested timeout';
const requestTimedOut = (): ApiError => new ApiError({ code: 504, reason: 'Timeout', message: TIMED_OUT });
