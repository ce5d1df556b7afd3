/** What a PodSpec says beside its containers: names, DNS, security context, gates (core/validation, ValidatePodSpec). */
import {
  checkLabelName,
  checkQualifiedName,
  checkSubdomain,
  checkSubdomainWithUnderscore,
} from '@coracle/apimachinery/meta/name-rules';
import type { FieldError } from '@coracle/apimachinery/meta/status';
import {
  isObject,
  isTrueAt,
  listAt,
  objectAt,
  objectsAt,
  textAt,
  textsAt,
  valueAt,
} from '@coracle/apimachinery/types/read-value';
import {
  duplicate,
  faults,
  invalid,
  required,
  unsupported,
  validateEach,
  validateLabels,
  validateNested,
} from '@coracle/apimachinery/validation/field-errors';
import { IP_RULE, isIp } from './strict-addresses.ts';

const MAX_NAME = 253;
const SEGMENT = '[a-z0-9]([-_a-z0-9]*[a-z0-9])?';
const PATTERN = `(${SEGMENT}[\\./])*${SEGMENT}`;
const NAME = new RegExp(`^${PATTERN}$`);
const RULE = `must have at most ${MAX_NAME} characters and match regex ${PATTERN}`;

function validateSysctls(errors: FieldError[], spec: unknown, path: string): void {
  const seen = new Set<string>();
  validateEach(errors, objectsAt(spec, 'securityContext', 'sysctls'), (sysctl, i) => {
    const at = `${path}.securityContext.sysctls[${i}].name`;
    const name = textAt(sysctl, 'name');
    if (name === '') return [required(at)];
    if (name.length > MAX_NAME || !NAME.test(name)) return [invalid(at, name, RULE)];
    if (seen.has(name)) return [duplicate(at, name)];
    seen.add(name);
    return [];
  });
}

const MAX_NAMESERVERS = 3;
const MAX_SEARCHES = 32;
const MAX_SEARCH_CHARACTERS = 2048;
const MAX_ID = 2_147_483_647;
const ID_RANGE = `must be between 0 and ${MAX_ID}, inclusive`;
const GROUP_POLICIES = ['OnRootMismatch', 'Always'];
const SYSTEMS = ['linux', 'windows'];

const addressErrors = (ip: string, at: string): FieldError[] => (isIp(ip) ? [] : [invalid(at, ip, IP_RULE)]);

/** Ids of users and groups, where they are given. */
export function idErrors(holder: unknown, names: readonly string[], path: string): FieldError[] {
  return names.flatMap((name) => idError(valueAt(holder, name), `${path}.${name}`));
}

const idError = (id: unknown, at: string): FieldError[] =>
  typeof id === 'number' && (id < 0 || id > MAX_ID) ? [invalid(at, id, ID_RANGE)] : [];

/** Validates the labels that a node must have. */
export function validateNodeSelector(errors: FieldError[], spec: unknown, path: string): void {
  validateLabels(errors, objectAt(spec, 'nodeSelector'), `${path}.nodeSelector`);
}

/** Validates the security context of the Pod, and what it shares with its host. */
export function validatePodSecurity(errors: FieldError[], spec: unknown, path: string): void {
  const context = valueAt(spec, 'securityContext');
  const at = `${path}.securityContext`;
  errors.push(...idErrors(context, ['fsGroup', 'runAsUser', 'runAsGroup'], at));
  validateEach(errors, listAt(context, 'supplementalGroups'), (id, i) => idError(id, `${at}.supplementalGroups[${i}]`));
  if (isTrueAt(spec, 'shareProcessNamespace') && isTrueAt(spec, 'hostPID')) {
    const detail = 'ShareProcessNamespace and HostPID cannot both be enabled';
    errors.push(invalid(`${path}.shareProcessNamespace`, true, detail));
  }
  validateSysctls(errors, spec, path);
  const policy = valueAt(context, 'fsGroupChangePolicy');
  if (typeof policy === 'string' && !GROUP_POLICIES.includes(policy)) {
    errors.push(unsupported(`${at}.fsGroupChangePolicy`, policy, GROUP_POLICIES));
  }
}

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

/** Validates `dnsConfig`, which the policy `None` needs. */
export function validateDns(errors: FieldError[], spec: unknown, path: string): void {
  const config = valueAt(spec, 'dnsConfig');
  const at = `${path}.dnsConfig`;
  const servers = textsAt(config, 'nameservers');
  if (textAt(spec, 'dnsPolicy') === 'None') {
    if (!isObject(config)) errors.push(required(at, 'must provide `dnsConfig` when `dnsPolicy` is None'));
    else if (servers.length === 0) {
      const detail = 'must provide at least one DNS nameserver when `dnsPolicy` is None';
      errors.push(required(`${at}.nameservers`, detail));
    }
    if (servers.length === 0) return;
  }
  if (!isObject(config)) return;
  if (servers.length > MAX_NAMESERVERS) {
    const detail = `must not have more than ${MAX_NAMESERVERS} nameservers`;
    errors.push(invalid(`${at}.nameservers`, servers, detail));
  }
  validateEach(errors, servers, (server, i) => addressErrors(server, `${at}.nameservers[${i}]`));
  const searches = textsAt(config, 'searches');
  if (searches.length > MAX_SEARCHES) {
    errors.push(invalid(`${at}.searches`, searches, `must not have more than ${MAX_SEARCHES} search paths`));
  }
  if (searches.join(' ').length > MAX_SEARCH_CHARACTERS) {
    const detail = `must not have more than ${MAX_SEARCH_CHARACTERS} characters (including spaces) in the search list`;
    errors.push(invalid(`${at}.searches`, searches, detail));
  }
  validateEach(errors, searches, (search, i) => {
    if (search === '.') return [];
    const domain = search.replace(/\.$/, '');
    return faults(`${at}.searches[${i}]`, domain, checkSubdomainWithUnderscore(domain));
  });
  validateEach(errors, objectsAt(config, 'options'), (option, i) =>
    textAt(option, 'name') === '' ? [required(`${at}.options[${i}]`, 'must not be empty')] : [],
  );
}

/** Conditions that must hold besides the containers' own. */
export function validateReadinessGates(errors: FieldError[], spec: unknown, path: string): void {
  validateEach(errors, objectsAt(spec, 'readinessGates'), (gate, i) => {
    const type = textAt(gate, 'conditionType');
    return faults(`${path}.readinessGates[${i}].conditionType`, type, checkQualifiedName(type));
  });
}

/** The names that a Pod gives itself, its account and its node. */
export function nameErrors(spec: unknown, path: string): FieldError[] {
  const errors: FieldError[] = [];
  for (const [field, check] of NAMES) {
    const value = textAt(spec, field);
    if (value !== '') errors.push(...faults(`${path}.${field}`, value, check(value)));
  }
  return errors;
}

const NAMES = [
  ['serviceAccountName', checkSubdomain],
  ['nodeName', checkSubdomain],
  ['hostname', checkLabelName],
  ['subdomain', checkLabelName],
] as const;

/** Validates the lines of /etc/hosts. */
export function validateHostAliases(errors: FieldError[], spec: unknown, path: string): void {
  validateNested(errors, objectsAt(spec, 'hostAliases'), (alias, i) => {
    const at = `${path}.hostAliases[${i}]`;
    errors.push(...addressErrors(textAt(alias, 'ip'), `${at}.ip`));
    validateEach(errors, textsAt(alias, 'hostnames'), (name, j) =>
      faults(`${at}.hostnames[${j}]`, name, checkSubdomain(name)),
    );
  });
}

/** The operating system, where one is named. */
export function systemErrors(spec: unknown, path: string): FieldError[] {
  const os = valueAt(spec, 'os');
  if (!isObject(os)) return [];
  const name = textAt(os, 'name');
  if (name === '') return [required(`${path}.os.name`, 'cannot be empty')];
  return SYSTEMS.includes(name) ? [] : [unsupported(`${path}.os`, name, SYSTEMS)];
}
