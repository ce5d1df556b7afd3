/** Rules about names, probes, DNS, credentials and the other settings that shape the launcher pod. */

import { parseAddress } from '@coracle/apimachinery/meta/ip-address';
import { checkLabelName, checkSubdomain } from '@coracle/apimachinery/meta/name-rules';
import { type FieldError, fieldErrorBody } from '@coracle/apimachinery/meta/status';
import { validateAffinity, validateTopologySpread } from '@coracle/apimachinery/validation/affinity';
import { validateToleration } from '@coracle/apimachinery/validation/tolerations';
import type { AccessCredential, GuestProbe, VirtualMachineInstanceSpec } from '../../../kinds/kubevirt.ts';
import { EVICTION_STRATEGIES } from '../../../kinds/kubevirt.ts';
import {
  addAll,
  type Cause,
  countPresent,
  invalidValue,
  requiredValue,
  unsupportedValue,
  validateEach,
} from './causes.ts';

type Spec = Readonly<VirtualMachineInstanceSpec>;

const DNS_POLICIES = ['ClusterFirstWithHostNet', 'ClusterFirst', 'Default', 'None', ''];
const MAX_NAMESERVERS = 3;
const MAX_SEARCHES = 6;
const MAX_SEARCH_CHARS = 256;

export function validatePodSettings(causes: Cause[], path: string, spec: Spec): void {
  addAll(causes, validateNames(path, spec));
  addAll(causes, validateStrategies(path, spec));
  validatePlacement(causes, path, spec);
  addAll(causes, validateProbe(`${path}.readinessProbe`, spec.readinessProbe, spec));
  addAll(causes, validateProbe(`${path}.livenessProbe`, spec.livenessProbe, spec));
  validateDns(causes, path, spec);
  validateEach(causes, spec.accessCredentials ?? [], (credential, i) =>
    validateCredential(`${path}.accessCredentials[${i}]`, credential, spec),
  );
}

function validateNames(path: string, spec: Spec): Cause[] {
  const causes: Cause[] = [];
  const check = (name: 'hostname' | 'subdomain', problems: readonly string[], rule: string): void => {
    if (problems.length > 0) {
      const field = `${path}.${name}`;
      causes.push(
        invalidValue(field, `${field} does not conform to the kubernetes ${rule} rules : ${problems.join(', ')}`),
      );
    }
  };
  if (spec.hostname) check('hostname', checkLabelName(spec.hostname), 'DNS_LABEL');
  if (spec.subdomain) check('subdomain', checkSubdomain(spec.subdomain), 'DNS_SUBDOMAIN');
  if (spec.serviceAccountName) {
    const field = `${path}.serviceAccountName`;
    causes.push(
      ...checkSubdomain(spec.serviceAccountName).map((problem) => invalidValue(field, `${field}: ${problem}`)),
    );
    const inVolume = spec.volumes?.find(({ serviceAccount }) => serviceAccount !== undefined)?.serviceAccount;
    if (inVolume?.serviceAccountName && inVolume.serviceAccountName !== spec.serviceAccountName) {
      causes.push(
        invalidValue(
          field,
          `${field} '${spec.serviceAccountName}' differs from the service account '${inVolume.serviceAccountName}' of the serviceAccount volume`,
        ),
      );
    }
  }
  return causes;
}

function validateStrategies(path: string, spec: Spec): Cause[] {
  const causes: Cause[] = [];
  const start = `${path}.startStrategy`;
  if (spec.startStrategy !== undefined && spec.startStrategy !== 'Paused') {
    causes.push(invalidValue(start, `${start} is set with an unrecognized option: ${spec.startStrategy as string}`));
  } else if (spec.startStrategy === 'Paused' && spec.livenessProbe !== undefined) {
    causes.push(
      invalidValue(start, `either ${start} or ${path}.livenessProbe may be set: a paused guest would fail its probe`),
    );
  }
  const eviction = `${path}.evictionStrategy`;
  if (spec.evictionStrategy !== undefined && !EVICTION_STRATEGIES.includes(spec.evictionStrategy)) {
    causes.push(
      invalidValue(eviction, `${eviction} is set with an unrecognized option: ${spec.evictionStrategy as string}`),
    );
  }
  return causes;
}

function addErrors(errors: FieldError[], more: readonly FieldError[]): void {
  for (const error of more) errors.push(error);
}

/** Upstream names the members of the affinity directly below the spec. */
function validatePlacement(causes: Cause[], path: string, spec: Spec): void {
  const errors: FieldError[] = [];
  validateAffinity(errors, spec.affinity, path);
  validateTopologySpread(errors, spec, `${path}.topologySpreadConstraints`);
  for (const [i, toleration] of (spec.tolerations ?? []).entries()) {
    addErrors(errors, validateToleration({ ...toleration }, `${path}.tolerations[${i}]`));
  }
  validateEach(causes, errors, (error) => [invalidValue(error.field, `${error.field}: ${fieldErrorBody(error)}`)]);
}

function validateProbe(field: string, probe: Readonly<GuestProbe> | undefined, spec: Spec): Cause[] {
  if (probe === undefined) return [];
  const causes: Cause[] = [];
  const handlers = countPresent([probe.exec, probe.guestAgentPing, probe.httpGet, probe.tcpSocket]);
  if (handlers > 1) causes.push(invalidValue(field, `${field} must have exactly one probe type set`));
  if (handlers < 1) {
    causes.push(
      requiredValue(
        field,
        `either ${field}.tcpSocket, ${field}.exec or ${field}.httpGet must be set if a ${field} is specified`,
      ),
    );
  }
  // A host of a probe would be dialled from the node, where no guest may send anybody.
  for (const handler of ['httpGet', 'tcpSocket'] as const)
    if (probe[handler]?.host)
      causes.push(
        invalidValue(
          `${field}.${handler}.host`,
          `${field}.${handler}.host is not supported: a probe reaches the guest alone`,
        ),
      );
  if (!spec.networks?.some(({ pod }) => pod !== undefined)) {
    for (const handler of ['httpGet', 'tcpSocket'] as const) {
      const at = `${field}.${handler}`;
      if (probe[handler] !== undefined) {
        causes.push(invalidValue(at, `${at} is only allowed if the Pod Network is attached`));
      }
    }
  }
  return causes;
}

function validateDns(causes: Cause[], path: string, spec: Spec): void {
  const { dnsPolicy = '', dnsConfig } = spec;
  if (!DNS_POLICIES.includes(dnsPolicy)) {
    causes.push(
      unsupportedValue(
        `${path}.dnsPolicy`,
        `DNSPolicy: ${dnsPolicy} is not supported, valid values: [${DNS_POLICIES.join(' ')}]`,
      ),
    );
  }
  if (dnsPolicy === 'None' && dnsConfig === undefined) {
    causes.push(requiredValue(`${path}.dnsConfig`, 'must provide `dnsConfig` when `dnsPolicy` is None'));
    return;
  }
  const { nameservers = [], searches = [], options = [] } = dnsConfig ?? {};
  if (dnsPolicy === 'None' && nameservers.length === 0) {
    causes.push(requiredValue('nameservers', 'must provide at least one DNS nameserver when `dnsPolicy` is None'));
    return;
  }
  if (nameservers.length > MAX_NAMESERVERS) {
    causes.push(
      invalidValue('nameservers', `must not have more than ${MAX_NAMESERVERS} nameservers: [${nameservers.join(' ')}]`),
    );
  }
  validateEach(causes, nameservers, (server) =>
    parseAddress(server) ? [] : [invalidValue('nameservers', `must be valid IP address: ${server}`)],
  );
  if (searches.length > MAX_SEARCHES) {
    causes.push(invalidValue('searchDomains', `must not have more than ${MAX_SEARCHES} search paths`));
  }
  if (searches.join(' ').length > MAX_SEARCH_CHARS) {
    causes.push(
      invalidValue(
        'searchDomains',
        `must not have more than ${MAX_SEARCH_CHARS} characters (including spaces) in the search list`,
      ),
    );
  }
  validateEach(causes, searches, (search) =>
    checkSubdomain(search).map((problem) => invalidValue('searchDomains', problem)),
  );
  validateEach(causes, options, ({ name }) => (name ? [] : [invalidValue('options', 'Option.Name must not be empty')]));
}

function validateCredential(field: string, credential: Readonly<AccessCredential>, spec: Spec): Cause[] {
  const causes: Cause[] = [];
  const { sshPublicKey, userPassword } = credential;
  if (countPresent([sshPublicKey, userPassword]) !== 1) {
    causes.push(invalidValue(field, `${field} must have exactly one access credential type set`));
  }
  const exactlyOne = (at: string, what: string, values: readonly unknown[]): void => {
    if (countPresent(values) !== 1)
      causes.push(invalidValue(`${field}.${at}`, `${field} must have exactly one ${what} set`));
  };
  if (sshPublicKey !== undefined) {
    const { noCloud, configDrive, qemuGuestAgent } = sshPublicKey.propagationMethod;
    const at = `${field}.sshPublicKey.propagationMethod`;
    const needsVolume = (
      name: 'noCloud' | 'configDrive',
      source: 'cloudInitNoCloud' | 'cloudInitConfigDrive',
    ): void => {
      if (spec.volumes?.some((volume) => volume[source] !== undefined)) return;
      causes.push(
        invalidValue(at, `${field} requires a ${name} volume to exist when the ${name} propagationMethod is in use.`),
      );
    };
    if (noCloud !== undefined) needsVolume('noCloud', 'cloudInitNoCloud');
    if (configDrive !== undefined) needsVolume('configDrive', 'cloudInitConfigDrive');
    if (qemuGuestAgent !== undefined && qemuGuestAgent.users.length === 0) {
      causes.push(
        invalidValue(
          `${at}.qemuGuestAgent.users`,
          `${field} requires at least one user to be present in the users list`,
        ),
      );
    }
    exactlyOne('sshPublicKey.source', 'source', [sshPublicKey.source.secret]);
    exactlyOne('sshPublicKey.propagationMethod', 'propagationMethod', [noCloud, configDrive, qemuGuestAgent]);
  }
  if (userPassword !== undefined) {
    exactlyOne('userPassword.source', 'source', [userPassword.source.secret]);
    exactlyOne('userPassword.propagationMethod', 'propagationMethod', [userPassword.propagationMethod.qemuGuestAgent]);
  }
  return causes;
}
