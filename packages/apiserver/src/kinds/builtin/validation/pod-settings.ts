/** What a PodSpec says beside its containers, and what of it is no row of `pod-rules.json` (core/validation, ValidatePodSpec). */
import { checkSubdomainWithUnderscore } from '@coracle/apimachinery/meta/name-rules';
import type { FieldError } from '@coracle/apimachinery/meta/status';
import { isObject, objectsAt, textAt, textsAt } from '@coracle/apimachinery/types/read-value';
import { validateAffinity, validateTopologySpread } from '@coracle/apimachinery/validation/affinity';
import {
  addAll,
  duplicate,
  invalid,
  invalidEach,
  required,
  validateEach,
} from '@coracle/apimachinery/validation/field-errors';
import { validateToleration } from '@coracle/apimachinery/validation/tolerations';
import rules from './pod-rules.json' with { type: 'json' };
import { type RuleCheck, validateByRules } from './table-rules.ts';

const MAX_NAME = 253;
const SEGMENT = '[a-z0-9]([-_a-z0-9]*[a-z0-9])?';
const PATTERN = `(${SEGMENT}[\\./])*${SEGMENT}`;
const NAME = new RegExp(`^${PATTERN}$`);
const RULE = `must have at most ${MAX_NAME} characters and match regex ${PATTERN}`;

const sysctls: RuleCheck = (errors, value, { at: path }) => {
  const seen = new Set<string>();
  validateEach(errors, objectsAt(value), (sysctl, i) => {
    const at = `${path}[${i}].name`;
    const name = textAt(sysctl, 'name');
    if (name === '') return [required(at)];
    if (name.length > MAX_NAME || !NAME.test(name)) return [invalid(at, name, RULE)];
    if (seen.has(name)) return [duplicate(at, name)];
    seen.add(name);
    return [];
  });
};

const searches: RuleCheck = (errors, value, { at }) =>
  validateEach(errors, textsAt(value), (search, i) => {
    const domain = search.replace(/\.$/, '');
    return search === '.' ? [] : invalidEach(`${at}[${i}]`, domain, checkSubdomainWithUnderscore(domain));
  });

/** `dnsConfig`, which the policy `None` needs. */
const dns: RuleCheck = (errors, config, { at, self: spec }) => {
  if (textAt(spec, 'dnsPolicy') === 'None' && textsAt(config, 'nameservers').length === 0) {
    const detail = 'must provide at least one DNS nameserver when `dnsPolicy` is None';
    const isThere = isObject(config);
    if (isThere) errors.push(required(`${at}.nameservers`, detail));
    else errors.push(required(at, 'must provide `dnsConfig` when `dnsPolicy` is None'));
  } else if (isObject(config)) validateByRules(errors, rules.dns, { self: config, at, checks: { searches } });
};

const CHECKS: Readonly<Record<string, RuleCheck>> = {
  sysctls,
  dns,
  affinity: (errors, affinity, { at }) => validateAffinity(errors, affinity, at),
  topologySpread: (errors, _constraints, { at, self }) => validateTopologySpread(errors, self, at),
  toleration: (errors, toleration, { at }) =>
    isObject(toleration) && addAll(errors, validateToleration(toleration, at)),
};

/** Validates what a spec says of the whole Pod. */
export const validatePodSettings = (errors: FieldError[], spec: unknown): void =>
  validateByRules(errors, rules.spec, { self: spec, at: 'spec', checks: CHECKS });
