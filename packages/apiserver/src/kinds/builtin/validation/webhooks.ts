/** Validation of MutatingWebhookConfiguration and ValidatingWebhookConfiguration. */
import { checkDns1035Label, checkSubdomain } from '@coracle/apimachinery/meta/name-rules';
import type { FieldError } from '@coracle/apimachinery/meta/status';
import type { Steps } from '@coracle/apimachinery/meta/steps';
import { type JsonObject, objectsAt, textAt, textsAt, valueAt } from '@coracle/apimachinery/types/read-value';
import {
  addAll,
  duplicate,
  faults,
  invalid,
  isPort,
  NO_STOP,
  newValidation,
  oneOf,
  PORT_RANGE,
  required,
  type Stops,
  type Validation,
  validateEach,
  validateNested,
} from '@coracle/apimachinery/validation/field-errors';
import { RULE, validateMatchConditions, validateOperationRule, validateSelectorField } from './admission-rules.ts';

const REVIEW_VERSIONS = ['v1', 'v1beta1'];
const URL_FORM = '; desired format: https://host[/path]';

/** Both kinds. */
export function* validateWebhooks(object: JsonObject): Steps<readonly FieldError[]> {
  const checking = newValidation();
  const names = new Set<string>();
  const validateRules = (webhook: JsonObject, i: number) =>
    validateWebhook(checking, webhook, { at: `webhooks[${i}]`, names });
  yield* validateNested(checking, objectsAt(object, 'webhooks'), validateRules, RULE);
  return checking.errors;
}

function* validateWebhook(
  checking: Validation,
  webhook: JsonObject,
  { at, names }: { readonly at: string; readonly names: Set<string> },
): Steps<void> {
  const { errors } = checking;
  const name = textAt(webhook, 'name');
  const sideEffects = valueAt(webhook, 'sideEffects');
  const seconds = valueAt(webhook, 'timeoutSeconds');
  errors.push(...qualifiedNameErrors(name, `${at}.name`));
  const validateRules = (rule: JsonObject, i: number) => validateOperationRule(checking, rule, `${at}.rules[${i}]`);
  yield* validateNested(checking, objectsAt(webhook, 'rules'), validateRules, RULE);
  errors.push(
    ...oneOf(webhook, { name: 'failurePolicy', path: `${at}.failurePolicy` }, ['Fail', 'Ignore']),
    ...oneOf(webhook, { name: 'matchPolicy', path: `${at}.matchPolicy` }, ['Equivalent', 'Exact']),
    ...(sideEffects === undefined
      ? [required(`${at}.sideEffects`, 'must specify one of None, NoneOnDryRun')]
      : oneOf(webhook, { name: 'sideEffects', path: `${at}.sideEffects` }, ['None', 'NoneOnDryRun'])),
  );
  if (typeof seconds === 'number' && (seconds < 1 || seconds > 30)) {
    const detail = 'the timeout value must be between 1 and 30 seconds';
    errors.push(invalid(`${at}.timeoutSeconds`, seconds, detail));
  }
  yield* validateSelectorField(checking, webhook, { field: 'namespaceSelector', at });
  yield* validateSelectorField(checking, webhook, { field: 'objectSelector', at });
  const again = { name: 'reinvocationPolicy', path: `${at}.reinvocationPolicy` };
  errors.push(...oneOf(webhook, again, ['IfNeeded', 'Never']));
  yield* validateClientConfig(checking, valueAt(webhook, 'clientConfig'), `${at}.clientConfig`);
  yield* validateMatchConditions(checking, webhook, { at: `${at}.matchConditions` });
  yield* validateReviewVersions(checking, webhook, `${at}.admissionReviewVersions`);
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

function* validateReviewVersions(checking: Validation, webhook: JsonObject, at: string): Steps<void> {
  const { errors } = checking;
  const versions = textsAt(webhook, 'admissionReviewVersions');
  if (versions.length === 0) {
    errors.push(required(at, `must specify one of ${REVIEW_VERSIONS.join(', ')}`));
    return;
  }
  const seen = new Set<string>();
  yield* validateEach(checking, versions, (version, i) => {
    if (seen.has(version)) return [invalid(`${at}[${i}]`, version, 'duplicate version')];
    seen.add(version);
    return faults(`${at}[${i}]`, version, checkDns1035Label(version));
  });
  if (!versions.some((version) => REVIEW_VERSIONS.includes(version))) {
    errors.push(invalid(at, versions, `must include at least one of ${REVIEW_VERSIONS.join(', ')}`));
  }
}

/** WebhookClientConfig: `url` or `service`, each with its own rules (apiserver/pkg/util/webhook). */
export function validateClientConfig(checking: Validation, config: unknown, at: string): Stops {
  const url = valueAt(config, 'url');
  const service = valueAt(config, 'service');
  if ((url === undefined) === (service === undefined)) {
    checking.errors.push(required(at, 'exactly one of url or service is required'));
  } else if (typeof url === 'string') addAll(checking.errors, urlErrors(url, `${at}.url`));
  else return validateService(checking, service, `${at}.service`);
  return NO_STOP;
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

function validateService(checking: Validation, service: unknown, at: string): Stops {
  const { errors } = checking;
  // Upstream's callers hand the two over in the wrong order, so that each is missed under the other's name.
  if (textAt(service, 'namespace') === '') errors.push(required(`${at}.name`));
  if (textAt(service, 'name') === '') errors.push(required(`${at}.namespace`));
  const port = valueAt(service, 'port') ?? 443;
  if (!isPort(port)) errors.push(invalid(`${at}.port`, port, `port is not valid: ${PORT_RANGE}`));
  return validatePath(checking, textAt(service, 'path'), `${at}.path`);
}

function validatePath(checking: Validation, path: string, at: string): Stops {
  if (path === '' || path === '/') return NO_STOP;
  if (path === '//') {
    checking.errors.push(invalid(at, path, 'segment[0] may not be empty'));
    return NO_STOP;
  }
  if (!path.startsWith('/')) checking.errors.push(invalid(at, path, "must start with a '/'"));
  const steps = path.slice(1).replace(/\/$/, '').split('/');
  return validateEach(checking, steps, (step, i) => {
    if (step === '') return [invalid(at, path, `segment[${i}] may not be empty`)];
    return checkSubdomain(step).map((detail) => invalid(at, path, `segment[${i}]: ${detail}`));
  });
}
