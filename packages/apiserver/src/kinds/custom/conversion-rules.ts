/** Rules of `spec.conversion`. Paths are those of upstream's internal form, in which `webhook` is one level flatter. */
import type { FieldError } from '@coracle/apimachinery/meta/status';
import { forbidden, invalid, required, unsupported } from '@coracle/apimachinery/validation/field-errors';
import { validateClientConfig, validateReviewVersions } from '../builtin/validation/webhooks.ts';
import type { CrdSpec, CrdWebhook } from './crd.ts';

const AT = 'spec.conversion';
const REVIEW_VERSIONS: readonly string[] = ['v1', 'v1beta1'];

interface Reading {
  /** A bundle without a certificate is refused. */
  readonly readsCaBundle: boolean;
}

/** Errors of how objects become those of another version. */
export function validateConversion(
  errors: FieldError[],
  { conversion, preserveUnknownFields }: CrdSpec,
  reading: Reading,
): void {
  if (conversion === undefined) return;
  const { strategy, webhook } = conversion;
  if (strategy !== 'None' && preserveUnknownFields === true) {
    errors.push(invalid(`${AT}.strategy`, strategy, 'must be None if spec.preserveUnknownFields is true'));
  }
  if (!strategy) errors.push(required(`${AT}.strategy`));
  else if (strategy !== 'None' && strategy !== 'Webhook') {
    errors.push(unsupported(`${AT}.strategy`, strategy, ['None', 'Webhook']));
  }
  if (strategy === 'Webhook') {
    validateWebhook(errors, webhook, reading);
    return;
  }
  const detail = 'should not be set when strategy is not set to Webhook';
  if (webhook?.clientConfig !== undefined) errors.push(forbidden(`${AT}.webhookClientConfig`, detail));
  if ((webhook?.conversionReviewVersions ?? []).length > 0) {
    errors.push(forbidden(`${AT}.conversionReviewVersions`, detail));
  }
}

function validateWebhook(errors: FieldError[], webhook: CrdWebhook | undefined, { readsCaBundle }: Reading): void {
  const at = `${AT}.webhookClientConfig`;
  const config = webhook?.clientConfig;
  if (config === undefined) errors.push(required(at, 'required when strategy is set to Webhook'));
  else validateClientConfig(errors, config, at);
  const bundle = config?.caBundle;
  const problem = readsCaBundle ? caBundleProblem(bundle) : undefined;
  if (problem !== undefined) errors.push(invalid(`${at}.caBundle`, bundle, problem));
  const versions = webhook?.conversionReviewVersions ?? [];
  const versionsAt = `${AT}.conversionReviewVersions`;
  if (versions.length === 0) {
    errors.push(required(versionsAt));
    return;
  }
  validateReviewVersions(errors, versions, versionsAt);
  if (!REVIEW_VERSIONS.some((version) => versions.includes(version))) {
    errors.push(invalid(versionsAt, versions, `must include at least one of ${REVIEW_VERSIONS.join(', ')}`));
  }
}

/** Why no certificate can be read from a bundle (PEM in base64); undefined when it can, or when there is none. */
export function caBundleProblem(bundle: string | undefined): string | undefined {
  if (!bundle) return undefined;
  const hasCertificate = /-----BEGIN CERTIFICATE-----\s[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----/.test(atob(bundle));
  return hasCertificate ? undefined : 'unable to load root certificates: unable to parse bytes as PEM block';
}
