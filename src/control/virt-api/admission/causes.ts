/** Findings of the validation, and how they become the refusal of a webhook. */
import { ApiError, type FieldError, type FieldErrorType } from '../../../api/meta/status.ts';

/** A finding. Its `detail` is the whole message: the webhooks of this API put no prefix before it. */
export interface Cause extends FieldError {
  readonly detail: string;
}

const finding =
  (type: FieldErrorType) =>
  (field: string, detail: string): Cause => ({ type, field, detail });

export const invalidValue = finding('FieldValueInvalid');
export const requiredValue = finding('FieldValueRequired');
export const unsupportedValue = finding('FieldValueNotSupported');
export const duplicateValue = finding('FieldValueDuplicate');
export const missingValue = finding('FieldValueNotFound');
export const forbiddenValue = finding('FieldValueForbidden');

/**
 * The refusal as a client sees it when a webhook answers with causes: 422 Invalid, the messages joined, no details but
 * the causes (kubevirt pkg/util/webhooks ToAdmissionResponse, apiserver webhook ToStatusErr).
 */
export function denial(webhook: string, causes: readonly FieldError[]): ApiError {
  return new ApiError({
    code: 422,
    reason: 'Invalid',
    message: deniedBy(webhook, joinMessages(causes)),
    details: { causes: statusCauses(causes) },
  });
}

/** A refusal that is neither a finding about a field nor a fault of the request: the webhook chose its code and words. */
export class WebhookRefusal extends Error {
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

/** Findings of a mutating webhook: refused as those of a validating one are. */
export class CauseRefusal extends Error {
  readonly causes: readonly FieldError[];

  constructor(causes: readonly FieldError[]) {
    super(joinMessages(causes));
    this.causes = causes;
  }
}

/** A refusal as a client sees it: the code, no reason, no details. */
export const refusedBy = (webhook: string, { code, message }: WebhookRefusal): ApiError =>
  new ApiError({ code, message: deniedBy(webhook, message) });

/** The refusal for a request that could not be judged at all: 400 without a reason. */
export const rejection = (webhook: string, message: string): ApiError =>
  new ApiError({ code: 400, message: deniedBy(webhook, message) });

export const deniedBy = (webhook: string, message: string): string =>
  `admission webhook ${JSON.stringify(webhook)} denied the request: ${message}`;

export const joinMessages = (causes: readonly FieldError[]): string =>
  causes.map(({ detail }) => detail ?? '').join(', ');

export const statusCauses = (causes: readonly FieldError[]): { reason: string; message: string; field?: string }[] =>
  causes.map(({ type, detail, field }) => ({
    reason: type,
    message: detail ?? '',
    ...(field !== '' && { field }),
  }));

/** How many of the values are there. */
export const countPresent = (values: readonly unknown[]): number =>
  values.filter((value) => value !== undefined && value !== null).length;
