/** Findings of the validation, and how they become the refusal of a webhook. */

import { ApiError, type FieldError, type FieldErrorType } from '@coracle/apimachinery/meta/status';
import type { VirtualMachineInstanceSpec } from '../../../kinds/kubevirt.ts';
import type { ClusterConfig } from '../../../rules/machine-defaults/cluster-config.ts';

/** A finding. Its `detail` is the whole message: the webhooks of this API put no prefix before it. */
export interface Cause extends FieldError {
  readonly detail: string;
}

/** The spec of an instance in front of the rules, where it stands, and the settings of the cluster. */
export interface ValidatedSpec {
  readonly path: string;
  readonly spec: Readonly<VirtualMachineInstanceSpec>;
  readonly config: ClusterConfig;
}

/** Validates item by item. What is found is added one by one: as arguments, very many would not fit the stack. */
export function validateEach<T>(
  causes: Cause[],
  items: readonly T[],
  validate: (item: T, index: number) => readonly Cause[],
): void {
  for (let i = 0; i < items.length; i++) addAll(causes, validate(items[i]!, i));
}

/** Adds one by one. */
export function addAll(causes: Cause[], more: Iterable<Cause>): void {
  for (const cause of more) causes.push(cause);
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

/** The refusal for a request that could not be validated at all: 400 without a reason. */
export const rejection = (webhook: string, message: string): ApiError =>
  new ApiError({ code: 400, message: deniedBy(webhook, message) });

export const deniedBy = (webhook: string, message: string): string =>
  `admission webhook ${JSON.stringify(webhook)} denied the request: ${message}`;

/** Findings in one answer. Upstream has no bound: there 3 MiB of wrong items are answered with ten times as much. */
const MAX_CAUSES = 1000;
const MAX_CAUSES_LENGTH = 512 * 1024;

/** The first findings, as many as one answer holds. */
function firstOf(causes: readonly FieldError[]): readonly FieldError[] {
  let length = 0;
  let count = 0;
  for (; count < causes.length && count < MAX_CAUSES && length <= MAX_CAUSES_LENGTH; count++) {
    length += (causes[count]!.detail ?? '').length + causes[count]!.field.length;
  }
  return count === causes.length ? causes : causes.slice(0, count);
}

/** The messages of all findings; of very many the first, and how many more there are. */
export function joinMessages(causes: readonly FieldError[]): string {
  const first = firstOf(causes);
  const messages = first.map(({ detail }) => detail ?? '');
  if (first.length < causes.length) messages.push(`and ${causes.length - first.length} more`);
  return messages.join(', ');
}

export const statusCauses = (causes: readonly FieldError[]): { reason: string; message: string; field?: string }[] =>
  firstOf(causes).map(({ type, detail, field }) => ({
    reason: type,
    message: detail ?? '',
    ...(field !== '' && { field }),
  }));

/** How many of the values are there. */
export const countPresent = (values: readonly unknown[]): number =>
  values.filter((value) => value !== undefined && value !== null).length;
