/** Findings of the validation, and how they become the refusal of a webhook. */

import { ApiError, type FieldError, type FieldErrorType } from '@coracle/apimachinery/meta/status';
import type { ClusterConfig } from '../../../rules/machine-defaults/cluster-config.ts';
import type { FeatureGate } from '../../../rules/machine-defaults/feature-gates.ts';

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
const forbiddenValue = finding('FieldValueForbidden');

/**
 * What is wrong with an object, in the order in which it is found. `path` is where the part that is validated stands; fields
 * are named from there: `.bus` is a member, `''` the part itself.
 */
export class Findings {
  readonly path: string;
  readonly causes: Cause[];

  constructor(path = '', causes: Cause[] = []) {
    this.path = path;
    this.causes = causes;
  }

  /** For a part of it: what is found there joins what was found before. */
  at(member: string): Findings {
    return new Findings(this.path + member, this.causes);
  }

  /** Validates item by item. */
  each<T>(
    member: string,
    items: readonly T[] | undefined,
    validate: (found: Findings, item: T, index: number) => void,
  ): void {
    for (const [i, item] of (items ?? []).entries()) validate(this.at(`${member}[${i}]`), item, i);
  }

  invalid(member: string, detail: string): void {
    this.causes.push(invalidValue(this.path + member, detail));
  }

  required(member: string, detail: string): void {
    this.causes.push(requiredValue(this.path + member, detail));
  }

  unsupported(member: string, detail: string): void {
    this.causes.push(unsupportedValue(this.path + member, detail));
  }

  duplicate(member: string, detail: string): void {
    this.causes.push(duplicateValue(this.path + member, detail));
  }

  missing(member: string, detail: string): void {
    this.causes.push(missingValue(this.path + member, detail));
  }

  forbidden(member: string, detail: string): void {
    this.causes.push(forbiddenValue(this.path + member, detail));
  }

  /** Refuses what needs a feature gate that is off. */
  gated(member: string, gate: FeatureGate, config: ClusterConfig): void {
    if (!config.isEnabled(gate)) this.invalid(member, gateMissing(gate));
  }
}

export const gateMissing = (gate: string): string =>
  `${gate} feature gate is not enabled: add it to configuration.developerConfiguration.featureGates of the KubeVirt object`;

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
  for (; count < causes.length && count < MAX_CAUSES && length <= MAX_CAUSES_LENGTH; count++)
    length += (causes[count]!.detail ?? '').length + causes[count]!.field.length;
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
