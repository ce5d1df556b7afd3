/** The three ways a webhook stops a write, in upstream's words (apiserver/pkg/admission/plugin/webhook/errors). */
import type { JsonObject } from '@coracle/apimachinery/meta/own-property';
import {
  ApiError,
  badRequest,
  internalError,
  type Status,
  type StatusDetails,
} from '@coracle/apimachinery/meta/status';

/** The call itself failed; failurePolicy says what that means. */
export class WebhookCallFailed extends Error {
  constructor(webhook: string, reason: string, options?: { cause?: unknown }) {
    super(`failed calling webhook ${JSON.stringify(webhook)}: ${reason}`, options);
    this.name = 'WebhookCallFailed';
  }

  /** What the client gets when the webhook must not be passed by. */
  refusal(): ApiError {
    return internalError(this.message, this.cause);
  }
}

export const dryRunUnsupported = (webhook: string): ApiError =>
  badRequest(`admission webhook ${JSON.stringify(webhook)} does not support dry run`);

/** The webhook's own status, at least a 400, with the webhook's name in front of what it says. */
export function denial(webhook: string, status: JsonObject = {}): ApiError {
  const given = status as Partial<Status>;
  const by = `admission webhook ${JSON.stringify(webhook)} denied the request`;
  const why = given.message || given.reason;
  const code = typeof given.code === 'number' && given.code >= 400 ? given.code : 400;
  return new ApiError({
    code,
    ...(given.reason && { reason: String(given.reason) }),
    ...(given.details && { details: given.details as StatusDetails }),
    message: why ? `${by}: ${why}` : `${by} without explanation`,
  });
}
