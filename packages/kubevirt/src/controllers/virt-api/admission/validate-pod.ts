/** Rules about names, probes, DNS, credentials and the other settings that shape the launcher pod. */

import { checkLabelName, checkSubdomain } from '@coracle/apimachinery/meta/name-rules';
import { type FieldError, fieldErrorBody } from '@coracle/apimachinery/meta/status';
import { validateAffinity, validateTopologySpread } from '@coracle/apimachinery/validation/affinity';
import { validateToleration } from '@coracle/apimachinery/validation/tolerations';
import type {
  AccessCredential,
  EvictionStrategy,
  GuestProbe,
  VirtualMachineInstanceSpec,
} from '../../../kinds/kinds.ts';
import { valuesOf } from '../../../kinds/structural-schema.ts';
import { countPresent, Findings } from './causes.ts';
import { looseAddress } from './formats.ts';

type Spec = Readonly<VirtualMachineInstanceSpec>;

const EVICTION_STRATEGIES = valuesOf<EvictionStrategy>('VirtualMachineInstanceSpec', 'evictionStrategy');
const DNS_POLICIES = ['ClusterFirstWithHostNet', 'ClusterFirst', 'Default', 'None', ''];
const MAX_NAMESERVERS = 3;
const MAX_SEARCHES = 6;
const MAX_SEARCH_CHARS = 256;

export function validatePodSettings(found: Findings, spec: Spec): void {
  validateNames(found, spec);
  validateStrategies(found, spec);
  validatePlacement(found, spec);
  validateProbe(found.at('.readinessProbe'), spec.readinessProbe, spec);
  validateProbe(found.at('.livenessProbe'), spec.livenessProbe, spec);
  validateDns(found, spec);
  found.each('.accessCredentials', spec.accessCredentials, (at, credential) =>
    validateCredential(at, credential, spec),
  );
}

function validateNames(found: Findings, spec: Spec): void {
  const check = (name: 'hostname' | 'subdomain', problems: readonly string[], rule: string): void => {
    if (problems.length === 0) return;
    const text = `does not conform to the kubernetes ${rule} rules : ${problems.join(', ')}`;
    found.invalid(`.${name}`, `${found.path}.${name} ${text}`);
  };
  if (spec.hostname) check('hostname', checkLabelName(spec.hostname), 'DNS_LABEL');
  if (spec.subdomain) check('subdomain', checkSubdomain(spec.subdomain), 'DNS_SUBDOMAIN');
  const { serviceAccountName } = spec;
  if (!serviceAccountName) return;
  const at = found.at('.serviceAccountName');
  for (const problem of checkSubdomain(serviceAccountName)) at.invalid('', `${at.path}: ${problem}`);
  const inVolume = spec.volumes?.find(({ serviceAccount }) => serviceAccount !== undefined)?.serviceAccount;
  const other = inVolume?.serviceAccountName;
  if (other && other !== serviceAccountName) {
    const text = `differs from the service account '${other}' of the serviceAccount volume`;
    at.invalid('', `${at.path} '${serviceAccountName}' ${text}`);
  }
}

function validateStrategies(found: Findings, { startStrategy, evictionStrategy, livenessProbe }: Spec): void {
  const start = found.at('.startStrategy');
  if (startStrategy !== undefined && startStrategy !== 'Paused')
    start.invalid('', `${start.path} is set with an unrecognized option: ${startStrategy as string}`);
  else if (startStrategy === 'Paused' && livenessProbe !== undefined) {
    const both = `either ${start.path} or ${found.path}.livenessProbe may be set`;
    start.invalid('', `${both}: a paused guest would fail its probe`);
  }
  const eviction = found.at('.evictionStrategy');
  if (evictionStrategy !== undefined && !EVICTION_STRATEGIES.includes(evictionStrategy))
    eviction.invalid('', `${eviction.path} is set with an unrecognized option: ${evictionStrategy as string}`);
}

/** Upstream names the members of the affinity directly below the spec. */
function validatePlacement({ path, causes }: Findings, spec: Spec): void {
  const errors: FieldError[] = [];
  validateAffinity(errors, spec.affinity, path);
  validateTopologySpread(errors, spec, `${path}.topologySpreadConstraints`);
  for (const [i, toleration] of (spec.tolerations ?? []).entries())
    for (const error of validateToleration({ ...toleration }, `${path}.tolerations[${i}]`)) errors.push(error);
  const all = new Findings('', causes);
  for (const error of errors) all.invalid(error.field, `${error.field}: ${fieldErrorBody(error)}`);
}

function validateProbe(found: Findings, probe: Readonly<GuestProbe> | undefined, spec: Spec): void {
  if (probe === undefined) return;
  const field = found.path;
  const handlers = countPresent([probe.exec, probe.guestAgentPing, probe.httpGet, probe.tcpSocket]);
  if (handlers > 1) found.invalid('', `${field} must have exactly one probe type set`);
  if (handlers < 1) {
    const ways = `${field}.tcpSocket, ${field}.exec or ${field}.httpGet`;
    found.required('', `either ${ways} must be set if a ${field} is specified`);
  }
  // A host of a probe would be dialled from the node, where no guest may send anybody.
  for (const handler of ['httpGet', 'tcpSocket'] as const) {
    const member = `.${handler}.host`;
    if (probe[handler]?.host)
      found.invalid(member, `${field}${member} is not supported: a probe can reach only the guest`);
  }
  if (spec.networks?.some(({ pod }) => pod !== undefined)) return;
  for (const handler of ['httpGet', 'tcpSocket'] as const)
    if (probe[handler] !== undefined)
      found.invalid(`.${handler}`, `${field}.${handler} is only allowed if the Pod Network is attached`);
}

/** Upstream names what is in the settings of DNS without the path to it. */
function validateDns(found: Findings, { dnsPolicy = '', dnsConfig }: Spec): void {
  const settings = new Findings('', found.causes);
  const refuse = (field: string, text: string): void => settings.invalid(field, text);
  if (!DNS_POLICIES.includes(dnsPolicy)) {
    const known = DNS_POLICIES.join(' ');
    found.unsupported('.dnsPolicy', `DNSPolicy: ${dnsPolicy} is not supported, valid values: [${known}]`);
  }
  if (dnsPolicy === 'None' && dnsConfig === undefined) {
    found.required('.dnsConfig', 'must provide `dnsConfig` when `dnsPolicy` is None');
    return;
  }
  const { nameservers = [], searches = [], options = [] } = dnsConfig ?? {};
  if (dnsPolicy === 'None' && nameservers.length === 0) {
    settings.required('nameservers', 'must provide at least one DNS nameserver when `dnsPolicy` is None');
    return;
  }
  if (nameservers.length > MAX_NAMESERVERS) {
    const given = nameservers.join(' ');
    refuse('nameservers', `must not have more than ${MAX_NAMESERVERS} nameservers: [${given}]`);
  }
  for (const server of nameservers)
    if (!looseAddress(server)) refuse('nameservers', `must be valid IP address: ${server}`);
  if (searches.length > MAX_SEARCHES) refuse('searchDomains', `must not have more than ${MAX_SEARCHES} search paths`);
  if (searches.join(' ').length > MAX_SEARCH_CHARS) {
    const text = `must not have more than ${MAX_SEARCH_CHARS} characters (including spaces) in the search list`;
    refuse('searchDomains', text);
  }
  for (const search of searches) for (const problem of checkSubdomain(search)) refuse('searchDomains', problem);
  for (const { name } of options) if (!name) refuse('options', 'Option.Name must not be empty');
}

function validateCredential(found: Findings, credential: Readonly<AccessCredential>, spec: Spec): void {
  const field = found.path;
  const { sshPublicKey, userPassword } = credential;
  const exactlyOne = (member: string, what: string, values: readonly unknown[]): void => {
    if (countPresent(values) !== 1) found.invalid(member, `${field} must have exactly one ${what} set`);
  };
  exactlyOne('', 'access credential type', [sshPublicKey, userPassword]);
  if (sshPublicKey !== undefined) {
    const { noCloud, configDrive, qemuGuestAgent } = sshPublicKey.propagationMethod;
    const method = '.sshPublicKey.propagationMethod';
    const needsVolume = (name: string, source: 'cloudInitNoCloud' | 'cloudInitConfigDrive'): void => {
      if (spec.volumes?.some((volume) => volume[source] !== undefined)) return;
      const text = `requires a ${name} volume to exist when the ${name} propagationMethod is in use.`;
      found.invalid(method, `${field} ${text}`);
    };
    if (noCloud !== undefined) needsVolume('noCloud', 'cloudInitNoCloud');
    if (configDrive !== undefined) needsVolume('configDrive', 'cloudInitConfigDrive');
    if (qemuGuestAgent?.users.length === 0) {
      const text = `${field} requires at least one user to be present in the users list`;
      found.invalid(`${method}.qemuGuestAgent.users`, text);
    }
    exactlyOne('.sshPublicKey.source', 'source', [sshPublicKey.source.secret]);
    exactlyOne(method, 'propagationMethod', [noCloud, configDrive, qemuGuestAgent]);
  }
  if (userPassword !== undefined) {
    exactlyOne('.userPassword.source', 'source', [userPassword.source.secret]);
    exactlyOne('.userPassword.propagationMethod', 'propagationMethod', [userPassword.propagationMethod.qemuGuestAgent]);
  }
}
