/** The three ways a webhook stops a write, in upstream's words (apiserver/pkg/admission/plugin/webhook/errors). */
import type { JsonObject } from '../../../api/meta/own-property.ts';
import { ApiError, badRequest, internalError, type Status, type StatusDetails } from '../../../api/meta/status.ts';

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

/** What client-go says of an answer that is no success and carries no Status. */
export function responseProblem(code: number, text: string): string {
  const status = statusIn(text);
  if (status?.message) return status.message;
  switch (code) {
    case 400:
      return 'the server rejected our request for an unknown reason';
    case 401:
      return 'the server has asked for the client to provide credentials';
    case 403:
      return text.trim() === '' ? 'unknown' : text.trim();
    case 404:
      return 'the server could not find the requested resource';
    case 405:
      return 'the server does not allow this method on the requested resource';
    case 409:
      return 'the server reported a conflict';
    case 413:
      return 'Request entity too large';
    case 422:
      return 'the server rejected our request due to an error in our request';
    case 429:
      return 'the server has received too many requests and has asked us to try again later';
    case 503:
      return 'the server is currently unable to handle the request';
    case 504:
      return 'the server was unable to return a response in the time allotted, but may still be processing the request';
    default:
      return code >= 500
        ? `an error on the server (${JSON.stringify(text.trim())}) has prevented the request from succeeding`
        : `the server responded with the status code ${code} but did not return more information`;
  }
}

function statusIn(text: string): Partial<Status> | undefined {
  try {
    const value = JSON.parse(text) as Partial<Status> | null;
    return value?.kind === 'Status' ? value : undefined;
  } catch {
    return undefined;
  }
}
