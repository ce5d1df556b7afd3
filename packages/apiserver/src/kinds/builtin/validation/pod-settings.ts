/** What a PodSpec says beside its containers, and what of it is no row of `pod-rules.json` (core/validation, ValidatePodSpec). */
import { checkSubdomainWithUnderscore } from '@coracle/apimachinery/meta/name-rules';
import type { FieldError } from '@coracle/apimachinery/meta/status';
import { isObject, isTrueAt, objectsAt, textAt, textsAt, valueAt } from '@coracle/apimachinery/types/read-value';
import { validateAffinity, validateTopologySpread } from '@coracle/apimachinery/validation/affinity';
import {
  addAll,
  duplicate,
  faults,
  invalid,
  required,
  validateEach,
  validateLabels,
  validateNested,
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

const MAX_ID = 2_147_483_647;
const ID_RANGE = `must be between 0 and ${MAX_ID}, inclusive`;

/** Ids of users and groups, where they are given. */
export function idErrors(holder: unknown, names: readonly string[], path: string): FieldError[] {
  return names.flatMap((name) => idError(valueAt(holder, name), `${path}.${name}`));
}

const idError = (id: unknown, at: string): FieldError[] =>
  typeof id === 'number' && (id < 0 || id > MAX_ID) ? [invalid(at, id, ID_RANGE)] : [];

/** Ports of the host: those of a Pod in its network are the container's own, and no two containers want the same. */
export function validateHostPorts(
  errors: FieldError[],
  spec: unknown,
  { path, isPod }: { readonly path: string; readonly isPod: boolean },
): void {
  for (const list of ['containers', 'initContainers']) {
    const seen = new Set<string>();
    const validateRules = (container: unknown, i: number) =>
      validateEach(errors, objectsAt(container, 'ports'), (port, j) => {
        const host = valueAt(port, 'hostPort') ?? 0;
        if (host === 0) return [];
        const key = `${textAt(port, 'protocol') || 'TCP'}/${textAt(port, 'hostIP')}/${host}`;
        // Init containers run one after the other.
        const isTaken = list === 'containers' && seen.has(key);
        seen.add(key);
        return isTaken ? [duplicate(`${path}.${list}[${i}].ports[${j}].hostPort`, key)] : [];
      });
    validateNested(errors, objectsAt(spec, list), validateRules);
  }
  if (!isTrueAt(spec, 'hostNetwork')) return;
  const validateRules = (container: unknown, i: number) =>
    validateEach(errors, objectsAt(container, 'ports'), (port, j) => {
      const host = valueAt(port, 'hostPort') ?? 0;
      if (host === valueAt(port, 'containerPort') || (host === 0 && !isPod)) return [];
      const detail = 'must match `containerPort` when `hostNetwork` is true';
      return [invalid(`${path}.containers[${i}].ports[${j}].hostPort`, host, detail)];
    });
  validateNested(errors, objectsAt(spec, 'containers'), validateRules);
}

const searches: RuleCheck = (errors, value, { at }) =>
  validateEach(errors, textsAt(value), (search, i) => {
    const domain = search.replace(/\.$/, '');
    return search === '.' ? [] : faults(`${at}[${i}]`, domain, checkSubdomainWithUnderscore(domain));
  });

/** `dnsConfig`, which the policy `None` needs. */
const dns: RuleCheck = (errors, config, { at, self: spec }) => {
  if (textAt(spec, 'dnsPolicy') === 'None' && textsAt(config, 'nameservers').length === 0) {
    const detail = 'must provide at least one DNS nameserver when `dnsPolicy` is None';
    const isThere = isObject(config);
    if (isThere) errors.push(required(`${at}.nameservers`, detail));
    else errors.push(required(at, 'must provide `dnsConfig` when `dnsPolicy` is None'));
  } else if (isObject(config)) validateByRules(errors, rules.dns, { self: config, at, name: '', checks: { searches } });
};

const CHECKS: Readonly<Record<string, RuleCheck>> = {
  sysctls,
  dns,
  labels: (errors, labels, { at }) => isObject(labels) && validateLabels(errors, labels, at),
  affinity: (errors, affinity, { at }) => validateAffinity(errors, affinity, at),
  topologySpread: (errors, _constraints, { at, self }) => validateTopologySpread(errors, self, at),
  toleration: (errors, toleration, { at }) =>
    isObject(toleration) && addAll(errors, validateToleration(toleration, at)),
};

/** Validates what a spec says of the whole Pod. */
export const validatePodSettings = (errors: FieldError[], spec: unknown, path: string): void =>
  validateByRules(errors, rules.spec, { self: spec, at: path, name: '', checks: CHECKS });
