/** Validation of MutatingWebhookConfiguration and ValidatingWebhookConfiguration. */

import { checkDns1035Label, checkSubdomain } from '@coracle/apimachinery/meta/name-rules';
import type { FieldError } from '@coracle/apimachinery/meta/status';
import { type JsonObject, objectsAt, textAt, textsAt, valueAt } from '@coracle/apimachinery/types/read-value';
import {
  addAll,
  duplicate,
  invalid,
  invalidEach,
  isPort,
  PORT_RANGE,
  required,
  validateEach,
  validateNested,
} from '@coracle/apimachinery/validation/field-errors';
import rules from './admission-rules.json' with { type: 'json' };
import { MATCHING, validateMatchConditions } from './admission-rules.ts';
import { type RuleCheck, validateByRules } from './table-rules.ts';

const URL_FORM = '; desired format: https://host[/path]';

/** Versions of the reviews that are sent, each once. */
export function validateReviewVersions(errors: FieldError[], versions: readonly string[], at: string): void {
  const seen = new Set<string>();
  validateEach(errors, versions, (version, i) => {
    if (seen.has(version)) return [invalid(`${at}[${i}]`, version, 'duplicate version')];
    seen.add(version);
    return invalidEach(`${at}[${i}]`, version, checkDns1035Label(version));
  });
}

const CHECKS: Readonly<Record<string, RuleCheck>> = {
  ...MATCHING.checks,
  versions: (errors, versions, { at }) => validateReviewVersions(errors, textsAt(versions), at),
  client: (errors, config, { at }) => validateClientConfig(errors, config, at),
  matchConditions: (errors, _conditions, { at, self }) => validateMatchConditions(errors, self, { at }),
};

/** Both kinds. */
export function validateWebhooks(object: JsonObject): readonly FieldError[] {
  const errors: FieldError[] = [];
  const names = new Set<string>();
  validateNested(errors, objectsAt(object, 'webhooks'), (self, i) => {
    const [at, name] = [`webhooks[${i}]`, textAt(self, 'name')];
    validateByRules(errors, rules.webhook, { ...MATCHING, self, at, name, checks: CHECKS });
    if (name !== '' && names.has(name)) errors.push(duplicate(`${at}.name`, name));
    names.add(name);
  });
  return errors;
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
    return [...(scheme === 'https' ? [] : [wrongScheme(at, scheme)]), noHost(at)];
  }
  const scheme = url.protocol.slice(0, -1);
  const user = url.password === '' ? url.username : `${url.username}:${url.password}`;
  const [fragment, query] = [url.hash.slice(1), url.search.slice(1)];
  return [
    ...(scheme === 'https' ? [] : [wrongScheme(at, scheme)]),
    ...(url.host === '' || !HAS_HOST.test(text) ? [noHost(at)] : []),
    ...(user === '' ? [] : [invalid(at, user, 'user information is not permitted in the URL')]),
    ...(fragment === '' ? [] : [invalid(at, fragment, 'fragments are not permitted in the URL')]),
    ...(query === '' ? [] : [invalid(at, query, 'query parameters are not permitted in the URL')]),
  ];
}

const wrongScheme = (at: string, scheme: string): FieldError =>
  invalid(at, scheme, `'https' is the only allowed URL scheme${URL_FORM}`);
const noHost = (at: string): FieldError => invalid(at, '', `host must be specified${URL_FORM}`);

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
