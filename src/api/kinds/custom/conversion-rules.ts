/** Rules of `spec.conversion`. Paths are those of upstream's internal form, in which `webhook` is one level flatter. */
import { checkDns1035Label } from '../../meta/name-rules.ts';
import type { FieldError } from '../../meta/status.ts';
import { forbidden, invalid, required, unsupported } from '../builtin/validation/field-errors.ts';
import { clientConfigErrors } from '../builtin/validation/webhooks.ts';
import type { CrdSpec, CrdWebhook } from './crd.ts';
import { REVIEW_VERSIONS, type Tolerance } from './crd-tolerance.ts';

const AT = 'spec.conversion';

/** Errors of how objects become those of another version. */
export function conversionErrors({ conversion, preserveUnknownFields }: CrdSpec, tolerance: Tolerance): FieldError[] {
  if (conversion === undefined) return [];
  const { strategy, webhook } = conversion;
  const errors: FieldError[] = [];
  if (strategy !== 'None' && preserveUnknownFields === true) {
    errors.push(invalid(`${AT}.strategy`, strategy, 'must be None if spec.preserveUnknownFields is true'));
  }
  if (!strategy) errors.push(required(`${AT}.strategy`));
  else if (strategy !== 'None' && strategy !== 'Webhook') {
    errors.push(unsupported(`${AT}.strategy`, strategy, ['None', 'Webhook']));
  }
  if (strategy === 'Webhook') return [...errors, ...webhookErrors(webhook, tolerance)];
  const detail = 'should not be set when strategy is not set to Webhook';
  if (webhook?.clientConfig !== undefined) errors.push(forbidden(`${AT}.webhookClientConfig`, detail));
  if ((webhook?.conversionReviewVersions ?? []).length > 0) {
    errors.push(forbidden(`${AT}.conversionReviewVersions`, detail));
  }
  return errors;
}

function webhookErrors(webhook: CrdWebhook | undefined, tolerance: Tolerance): FieldError[] {
  const at = `${AT}.webhookClientConfig`;
  const config = webhook?.clientConfig;
  const errors =
    config === undefined ? [required(at, 'required when strategy is set to Webhook')] : clientConfigErrors(config, at);
  const bundle = config?.caBundle;
  const problem = tolerance.brokenCaBundle ? undefined : caBundleProblem(bundle);
  if (problem !== undefined) errors.push(invalid(`${at}.caBundle`, bundle, problem));
  return [...errors, ...reviewVersionErrors(webhook?.conversionReviewVersions ?? [], tolerance)];
}

/** Why no certificate can be read from a bundle (PEM in base64); undefined when it can, or when there is none. */
export function caBundleProblem(bundle: string | undefined): string | undefined {
  if (!bundle) return undefined;
  const hasCertificate = /-----BEGIN CERTIFICATE-----\s[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----/.test(atob(bundle));
  return hasCertificate ? undefined : 'unable to load root certificates: unable to parse bytes as PEM block';
}

function reviewVersionErrors(versions: readonly string[], tolerance: Tolerance): FieldError[] {
  const at = `${AT}.conversionReviewVersions`;
  if (versions.length === 0) return [required(at)];
  const errors: FieldError[] = [];
  const seen = new Set<string>();
  for (const [i, version] of versions.entries()) {
    if (seen.has(version)) errors.push(invalid(`${at}[${i}]`, version, 'duplicate version'));
    else for (const detail of checkDns1035Label(version)) errors.push(invalid(`${at}[${i}]`, version, detail));
    seen.add(version);
  }
  if (!tolerance.unknownReviewVersions && !REVIEW_VERSIONS.some((version) => seen.has(version))) {
    errors.push(invalid(at, versions, `must include at least one of ${REVIEW_VERSIONS.join(', ')}`));
  }
  return errors;
}
