/** Validation of MutatingWebhookConfiguration and ValidatingWebhookConfiguration. */
import { checkDns1035Label, checkSubdomain } from '../../../meta/name-rules.ts';
import type { FieldError } from '../../../meta/status.ts';
import { type JsonObject, objectsAt, textAt, textsAt, valueAt } from '../read-value.ts';
import { validateMatchConditions, validateOperationRule, validateSelectorField } from './admission-rules.ts';
import { duplicate, invalid, isPort, oneOf, PORT_RANGE, required } from './field-errors.ts';

const REVIEW_VERSIONS = ['v1', 'v1beta1'];
const URL_FORM = '; desired format: https://host[/path]';

/** Both kinds. */
export function validateWebhooks(object: JsonObject): readonly FieldError[] {
  const names = new Set<string>();
  return objectsAt(object, 'webhooks').flatMap((webhook, i) => {
    const at = `webhooks[${i}]`;
    const name = textAt(webhook, 'name');
    const errors = [...validateWebhook(webhook, at), ...reviewVersionErrors(webhook, `${at}.admissionReviewVersions`)];
    if (name !== '' && names.has(name)) errors.push(duplicate(`${at}.name`, name));
    names.add(name);
    return errors;
  });
}

function validateWebhook(webhook: JsonObject, at: string): FieldError[] {
  const sideEffects = valueAt(webhook, 'sideEffects');
  const seconds = valueAt(webhook, 'timeoutSeconds');
  return [
    ...qualifiedNameErrors(textAt(webhook, 'name'), `${at}.name`),
    ...objectsAt(webhook, 'rules').flatMap((rule, i) => validateOperationRule(rule, `${at}.rules[${i}]`)),
    ...oneOf(webhook, { name: 'failurePolicy', path: `${at}.failurePolicy` }, ['Fail', 'Ignore']),
    ...oneOf(webhook, { name: 'matchPolicy', path: `${at}.matchPolicy` }, ['Equivalent', 'Exact']),
    ...(sideEffects === undefined
      ? [required(`${at}.sideEffects`, 'must specify one of None, NoneOnDryRun')]
      : oneOf(webhook, { name: 'sideEffects', path: `${at}.sideEffects` }, ['None', 'NoneOnDryRun'])),
    ...(typeof seconds === 'number' && (seconds < 1 || seconds > 30)
      ? [invalid(`${at}.timeoutSeconds`, seconds, 'the timeout value must be between 1 and 30 seconds')]
      : []),
    ...validateSelectorField(webhook, 'namespaceSelector', at),
    ...validateSelectorField(webhook, 'objectSelector', at),
    ...oneOf(webhook, { name: 'reinvocationPolicy', path: `${at}.reinvocationPolicy` }, ['IfNeeded', 'Never']),
    ...clientConfigErrors(valueAt(webhook, 'clientConfig'), `${at}.clientConfig`),
    ...validateMatchConditions(webhook, `${at}.matchConditions`),
  ];
}

function qualifiedNameErrors(name: string, at: string): FieldError[] {
  if (name === '') return [required(at)];
  const problems = checkSubdomain(name);
  if (problems.length > 0) return [invalid(at, name, problems.join(','))];
  if (name.split('.').length >= 3) return [];
  return [invalid(at, name, 'should be a domain with at least three segments separated by dots')];
}

function reviewVersionErrors(webhook: JsonObject, at: string): FieldError[] {
  const versions = textsAt(webhook, 'admissionReviewVersions');
  if (versions.length === 0) return [required(at, `must specify one of ${REVIEW_VERSIONS.join(', ')}`)];
  const seen = new Set<string>();
  const errors = versions.flatMap((version, i) => {
    if (seen.has(version)) return [invalid(`${at}[${i}]`, version, 'duplicate version')];
    seen.add(version);
    return checkDns1035Label(version).map((detail) => invalid(`${at}[${i}]`, version, detail));
  });
  if (!versions.some((version) => REVIEW_VERSIONS.includes(version))) {
    errors.push(invalid(at, versions, `must include at least one of ${REVIEW_VERSIONS.join(', ')}`));
  }
  return errors;
}

/** WebhookClientConfig: `url` or `service`, each with its own rules (apiserver/pkg/util/webhook). */
export function clientConfigErrors(config: unknown, at: string): FieldError[] {
  const url = valueAt(config, 'url');
  const service = valueAt(config, 'service');
  if ((url === undefined) === (service === undefined)) {
    return [required(at, 'exactly one of url or service is required')];
  }
  return typeof url === 'string' ? urlErrors(url, `${at}.url`) : serviceErrors(service, `${at}.service`);
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

function serviceErrors(service: unknown, at: string): FieldError[] {
  const errors: FieldError[] = [];
  // Upstream's callers hand the two over in the wrong order, so that each is missed under the other's name.
  if (textAt(service, 'namespace') === '') errors.push(required(`${at}.name`));
  if (textAt(service, 'name') === '') errors.push(required(`${at}.namespace`));
  const port = valueAt(service, 'port') ?? 443;
  if (!isPort(port)) errors.push(invalid(`${at}.port`, port, `port is not valid: ${PORT_RANGE}`));
  return [...errors, ...pathErrors(textAt(service, 'path'), `${at}.path`)];
}

function pathErrors(path: string, at: string): FieldError[] {
  if (path === '' || path === '/') return [];
  if (path === '//') return [invalid(at, path, 'segment[0] may not be empty')];
  const errors: FieldError[] = path.startsWith('/') ? [] : [invalid(at, path, "must start with a '/'")];
  const steps = path.slice(1).replace(/\/$/, '').split('/');
  for (const [i, step] of steps.entries()) {
    if (step === '') errors.push(invalid(at, path, `segment[${i}] may not be empty`));
    else errors.push(...checkSubdomain(step).map((detail) => invalid(at, path, `segment[${i}]: ${detail}`)));
  }
  return errors;
}
