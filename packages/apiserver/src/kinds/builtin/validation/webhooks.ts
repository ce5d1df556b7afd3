/** Validation of MutatingWebhookConfiguration and ValidatingWebhookConfiguration. */

import { checkDns1035Label, checkSubdomain } from '@coracle/apimachinery/meta/name-rules';
import type { FieldError } from '@coracle/apimachinery/meta/status';
import { type JsonObject, objectsAt, textAt, textsAt, valueAt } from '@coracle/apimachinery/types/read-value';
import {
  addAll,
  duplicate,
  faults,
  invalid,
  isPort,
  oneOf,
  PORT_RANGE,
  required,
  validateEach,
  validateNested,
} from '@coracle/apimachinery/validation/field-errors';
import { validateMatchConditions, validateOperationRule, validateSelectorField } from './admission-rules.ts';
import { validateByRules } from './table-rules.ts';
import policyRules from './webhook-rules.json' with { type: 'json' };

const REVIEW_VERSIONS = ['v1', 'v1beta1'];
const URL_FORM = '; desired format: https://host[/path]';

/** Both kinds. */
export function validateWebhooks(object: JsonObject): readonly FieldError[] {
  const errors: FieldError[] = [];
  const names = new Set<string>();
  const validateRules = (webhook: JsonObject, i: number) =>
    validateWebhook(errors, webhook, { at: `webhooks[${i}]`, names });
  validateNested(errors, objectsAt(object, 'webhooks'), validateRules);
  return errors;
}

function validateWebhook(
  errors: FieldError[],
  webhook: JsonObject,
  { at, names }: { readonly at: string; readonly names: Set<string> },
): void {
  const name = textAt(webhook, 'name');
  errors.push(...qualifiedNameErrors(name, `${at}.name`));
  const validateRules = (rule: JsonObject, i: number) => validateOperationRule(errors, rule, `${at}.rules[${i}]`);
  validateNested(errors, objectsAt(webhook, 'rules'), validateRules);
  validateByRules(errors, policyRules, { self: webhook, at, name: '' });
  validateSelectorField(errors, webhook, { field: 'namespaceSelector', at });
  validateSelectorField(errors, webhook, { field: 'objectSelector', at });
  const again = { name: 'reinvocationPolicy', path: `${at}.reinvocationPolicy` };
  errors.push(...oneOf(webhook, again, ['IfNeeded', 'Never']));
  validateClientConfig(errors, valueAt(webhook, 'clientConfig'), `${at}.clientConfig`);
  validateMatchConditions(errors, webhook, { at: `${at}.matchConditions` });
  validateReviewVersions(errors, webhook, `${at}.admissionReviewVersions`);
  if (name !== '' && names.has(name)) errors.push(duplicate(`${at}.name`, name));
  names.add(name);
}

function qualifiedNameErrors(name: string, at: string): FieldError[] {
  if (name === '') return [required(at)];
  const problems = checkSubdomain(name);
  if (problems.length > 0) return [invalid(at, name, problems.join(','))];
  if (name.split('.').length >= 3) return [];
  return [invalid(at, name, 'should be a domain with at least three segments separated by dots')];
}

function validateReviewVersions(errors: FieldError[], webhook: JsonObject, at: string): void {
  const versions = textsAt(webhook, 'admissionReviewVersions');
  if (versions.length === 0) {
    errors.push(required(at, `must specify one of ${REVIEW_VERSIONS.join(', ')}`));
    return;
  }
  const seen = new Set<string>();
  validateEach(errors, versions, (version, i) => {
    if (seen.has(version)) return [invalid(`${at}[${i}]`, version, 'duplicate version')];
    seen.add(version);
    return faults(`${at}[${i}]`, version, checkDns1035Label(version));
  });
  if (!versions.some((version) => REVIEW_VERSIONS.includes(version))) {
    errors.push(invalid(at, versions, `must include at least one of ${REVIEW_VERSIONS.join(', ')}`));
  }
}

/** WebhookClientConfig: `url` or `service`, each with its own rules (apiserver/pkg/util/webhook). */
export function validateClientConfig(errors: FieldError[], config: unknown, at: string): void {
  const url = valueAt(config, 'url');
  const service = valueAt(config, 'service');
  if ((url === undefined) === (service === undefined)) {
    errors.push(required(at, 'exactly one of url or service is required'));
  } else if (typeof url === 'string') addAll(errors, urlErrors(url, `${at}.url`));
  else validateService(errors, service, `${at}.service`);
}

/** URL of the web standard reads `https:///path` as a host called path; Go sees that there is none. */
const HAS_HOST = /^[^:/?#]+:\/\/[^/?#]/;

function urlErrors(text: string, at: string): FieldError[] {
  const url = URL.parse(text);
  if (!url) {
    const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(text)?.[1] ?? '';
    const errors = scheme === 'https' ? [] : [invalid(at, scheme, `'https' is the only allowed URL scheme${URL_FORM}`)];
    return [...errors, invalid(at, '', `host must be specified${URL_FORM}`)];
  }
  const scheme = url.protocol.slice(0, -1);
  const user = url.password === '' ? url.username : `${url.username}:${url.password}`;
  const errors: FieldError[] = [];
  if (scheme !== 'https') errors.push(invalid(at, scheme, `'https' is the only allowed URL scheme${URL_FORM}`));
  if (url.host === '' || !HAS_HOST.test(text)) errors.push(invalid(at, '', `host must be specified${URL_FORM}`));
  if (user !== '') errors.push(invalid(at, user, 'user information is not permitted in the URL'));
  if (url.hash.length > 1) errors.push(invalid(at, url.hash.slice(1), 'fragments are not permitted in the URL'));
  if (url.search.length > 1) {
    errors.push(invalid(at, url.search.slice(1), 'query parameters are not permitted in the URL'));
  }
  return errors;
}

function validateService(errors: FieldError[], service: unknown, at: string): void {
  // Upstream's callers hand the two over in the wrong order, so that each is missed under the other's name.
  if (textAt(service, 'namespace') === '') errors.push(required(`${at}.name`));
  if (textAt(service, 'name') === '') errors.push(required(`${at}.namespace`));
  const port = valueAt(service, 'port') ?? 443;
  if (!isPort(port)) errors.push(invalid(`${at}.port`, port, `port is not valid: ${PORT_RANGE}`));
  validatePath(errors, textAt(service, 'path'), `${at}.path`);
}

function validatePath(errors: FieldError[], path: string, at: string): void {
  if (path === '' || path === '/') return;
  if (path === '//') {
    errors.push(invalid(at, path, 'segment[0] may not be empty'));
    return;
  }
  if (!path.startsWith('/')) errors.push(invalid(at, path, "must start with a '/'"));
  const steps = path.slice(1).replace(/\/$/, '').split('/');
  validateEach(errors, steps, (step, i) => {
    if (step === '') return [invalid(at, path, `segment[${i}] may not be empty`)];
    return checkSubdomain(step).map((detail) => invalid(at, path, `segment[${i}]: ${detail}`));
  });
}
