/** Validation of Services (core/validation ValidateService); what needs the allocated ranges is validated where they are. */

import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import {
  checkLabelName,
  checkPortName,
  checkQualifiedName,
  checkSubdomain,
} from '@coracle/apimachinery/meta/name-rules';
import type { FieldError } from '@coracle/apimachinery/meta/status';
import {
  type JsonObject,
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
  forbidden,
  invalid,
  isPort,
  oneOf,
  PORT_RANGE,
  required,
  requiredText,
  unsupported,
  validateEach,
  validateLabels,
} from '@coracle/apimachinery/validation/field-errors';
import { PROTOCOLS } from './pod-spec.ts';
import rules from './service-rules.json' with { type: 'json' };
import { DNS_NOT_IP, isIp, legacyAddressFault, legacyNetworkFault } from './strict-addresses.ts';
import { validateByRules } from './table-rules.ts';

/** What is wrong with the address of one place; those that stood there before (`known`) may stay. */
function placeIpErrors(place: JsonObject, at: string, known: ReadonlySet<string>): FieldError[] {
  const ip = textAt(place, 'ip');
  const fault = ip === '' || known.has(ip) ? undefined : legacyAddressFault(ip);
  return fault === undefined ? [] : [invalid(`${at}.ip`, ip, fault)];
}

/** What is wrong with its name. */
function placeHostErrors(place: JsonObject, at: string): FieldError[] {
  const host = textAt(place, 'hostname');
  if (host === '') return [];
  const errors = faults(`${at}.hostname`, host, checkSubdomain(host));
  return isIp(host) ? [...errors, invalid(`${at}.hostname`, host, DNS_NOT_IP)] : errors;
}

const TYPES = ['ClusterIP', 'ExternalName', 'LoadBalancer', 'NodePort'];
const FAMILIES = ['IPv4', 'IPv6'];
const FAMILY_POLICIES = ['PreferDualStack', 'RequireDualStack', 'SingleStack'];
const LB_ONLY = "may only be used when `type` is 'LoadBalancer'";
const NOT_EXTERNAL_NAME = 'may not be set for ExternalName services';
const IP_MODES = ['Proxy', 'VIP'];
const KUBELET_PORT = 10_250;

/** Every problem of a Service, and of what an update changes in it. */
export function validateService(object: JsonObject, old?: JsonObject): readonly FieldError[] {
  const spec = objectAt(object, 'spec');
  const type = textAt(spec, 'type');
  const ips = textsAt(spec, 'clusterIPs');
  const headless = (ips.length === 1 && ips[0] === 'None') || textAt(spec, 'clusterIP') === 'None';
  const ports = objectsAt(spec, 'ports');
  const errors: FieldError[] = [];
  if (ports.length === 0 && !headless && type !== 'ExternalName') errors.push(required('spec.ports'));
  validateType(errors, spec, { type, headless });
  validatePorts(errors, ports);
  validateLabels(errors, objectAt(spec, 'selector'), 'spec.selector');
  validateByRules(errors, rules.affinity, { self: spec, at: 'spec', name: '' });
  if (type !== 'ExternalName') validateAddresses(errors, spec, old);
  const external = new Set(textsAt(old, 'spec', 'externalIPs'));
  validateEach(errors, textsAt(spec, 'externalIPs'), (ip, i) =>
    validateExternalIp(ip, `spec.externalIPs[${i}]`, external),
  );
  errors.push(...oneOf(spec, { name: 'type', path: 'spec.type' }, TYPES));
  validateNumbers(errors, ports, type);
  validateBalancer(errors, spec, { type, old });
  validateByRules(errors, rules.traffic, { self: spec, at: 'spec', name: '' });
  if (old !== undefined) validateBalancerStatus(errors, { type, object, old });
  return errors;
}

function validateType(
  errors: FieldError[],
  spec: JsonObject,
  { type, headless }: { readonly type: string; readonly headless: boolean },
): void {
  if (type === 'ExternalName') {
    const name = textAt(spec, 'externalName').replace(/\.$/, '');
    if (listAt(spec, 'clusterIPs').length > 0) errors.push(forbidden('spec.clusterIPs', NOT_EXTERNAL_NAME));
    if (listAt(spec, 'ipFamilies').length > 0) errors.push(forbidden('spec.ipFamilies', NOT_EXTERNAL_NAME));
    if (textAt(spec, 'ipFamilyPolicy') !== '') errors.push(forbidden('spec.ipFamilyPolicy', NOT_EXTERNAL_NAME));
    errors.push(...requiredText('spec.externalName', name, checkSubdomain));
    return;
  }
  if (type === 'LoadBalancer') {
    const detail = `may not expose port ${KUBELET_PORT} externally since it is used by kubelet`;
    validateEach(errors, objectsAt(spec, 'ports'), (port, i) =>
      port['port'] === KUBELET_PORT ? [invalid(`spec.ports[${i}]`, KUBELET_PORT, detail)] : [],
    );
  }
  if (headless && (type === 'NodePort' || type === 'LoadBalancer')) {
    errors.push(invalid('spec.clusterIPs[0]', 'None', `may not be set to 'None' for ${type} services`));
  }
}

function validatePorts(errors: FieldError[], ports: readonly JsonObject[]): void {
  const names = new Set<string>();
  validateEach(errors, ports, (port, i) => {
    const at = `spec.ports[${i}]`;
    const errors: FieldError[] = [];
    const name = textAt(port, 'name');
    if (name === '' && ports.length > 1) errors.push(required(`${at}.name`));
    if (name !== '') {
      errors.push(...faults(`${at}.name`, name, checkLabelName(name)));
      if (names.has(name)) errors.push(duplicate(`${at}.name`, name));
      names.add(name);
    }
    const number = valueAt(port, 'port');
    if (!isPort(number)) errors.push(invalid(`${at}.port`, number ?? 0, PORT_RANGE));
    errors.push(...oneOf(port, { name: 'protocol', path: `${at}.protocol` }, PROTOCOLS));
    const target = valueAt(port, 'targetPort');
    if (typeof target === 'number' && !isPort(target)) errors.push(invalid(`${at}.targetPort`, target, PORT_RANGE));
    if (typeof target === 'string') errors.push(...faults(`${at}.targetPort`, target, checkPortName(target)));
    const protocol = textAt(port, 'appProtocol');
    if (protocol !== '') errors.push(...faults(`${at}.appProtocol`, protocol, checkQualifiedName(protocol)));
    return errors;
  });
}

/** Numbers that stand twice for one protocol, and node ports where there are none. */
function validateNumbers(errors: FieldError[], ports: readonly JsonObject[], type: string): void {
  const nodePorts = new Set<string>();
  validateEach(errors, ports, (port, i) => {
    const nodePort = valueAt(port, 'nodePort');
    if (!nodePort) return [];
    const errors: FieldError[] = [];
    const field = `spec.ports[${i}].nodePort`;
    if (type === 'ClusterIP') errors.push(forbidden(field, "may not be used when `type` is 'ClusterIP'"));
    const key = `${textAt(port, 'protocol')}/${String(nodePort)}`;
    if (nodePorts.has(key)) errors.push(duplicate(field, nodePort));
    nodePorts.add(key);
    return errors;
  });
  const numbers = new Set<string>();
  validateEach(errors, ports, (port, i) => {
    const key = `${textAt(port, 'protocol')}/${String(valueAt(port, 'port'))}`;
    if (numbers.has(key)) return [duplicate(`spec.ports[${i}]`, { protocol: port['protocol'], port: port['port'] })];
    numbers.add(key);
    return [];
  });
}

function validateAddresses(errors: FieldError[], spec: JsonObject, old: JsonObject | undefined): void {
  const at = 'spec.clusterIPs';
  const ip = textAt(spec, 'clusterIP');
  const ips = textsAt(spec, 'clusterIPs');
  if (ip !== '' && ips.length > 0 && ips[0] !== ip) errors.push(invalid(at, ips, 'first value must match `clusterIP`'));
  const seen = new Set<string>();
  validateEach(errors, textsAt(spec, 'ipFamilies'), (family, i) => {
    const found: FieldError[] = [];
    if (!FAMILIES.includes(family)) found.push(unsupported(`spec.ipFamilies[${i}]`, family, FAMILIES));
    if (seen.has(family)) found.push(duplicate(`spec.ipFamilies[${i}]`, family));
    seen.add(family);
    return found;
  });
  errors.push(...oneOf(spec, { name: 'ipFamilyPolicy', path: 'spec.ipFamilyPolicy' }, FAMILY_POLICIES));
  if (ips[0] === 'None' && ips.length > 1) {
    errors.push(invalid(at, ips, "'None' must be the first and only value"));
    return;
  }
  const before = new Set(textsAt(old, 'spec', 'clusterIPs'));
  const known = errors.length;
  validateEach(errors, ips, (one, i) => {
    const fault = (one === 'None' && i === 0) || before.has(one) ? undefined : legacyAddressFault(one);
    return fault === undefined ? [] : [invalid(`${at}[${i}]`, one, fault)];
  });
  const isWrong = errors.length > known;
  if (ips.length > 2) errors.push(invalid(at, ips, 'may only hold up to 2 values'));
  if (isWrong) return;
  const isSix = ips.map((one) => one.includes(':'));
  if (ips.length > 1 && new Set(isSix).size < 2) {
    errors.push(invalid(at, ips, 'may specify no more than one IP for each IP family'));
  }
  for (const [i, family] of textsAt(spec, 'ipFamilies').slice(0, 2).entries()) {
    const one = ips[i];
    if (one === undefined || one === 'None' || isSix[i] === (family === 'IPv6')) continue;
    errors.push(invalid(`${at}[${i}]`, one, `expected an ${family} value as indicated by \`ipFamilies[${i}]\``));
  }
  const was = textAt(old, 'spec', 'clusterIP');
  if (was !== '' && was !== ip && textAt(old, 'spec', 'type') !== 'ExternalName') {
    errors.push(invalid(`${at}[0]`, ip, 'may not change once set'));
  }
}

/** An address that leads somewhere else than to a place of its own. */
function validateExternalIp(ip: string, at: string, before: ReadonlySet<string>): FieldError[] {
  const fault = before.has(ip) ? undefined : legacyAddressFault(ip);
  if (fault !== undefined) return [invalid(at, ip, fault)];
  const text = ip.toLowerCase();
  if (text === '0.0.0.0' || /^[0:]+$/.test(text)) return [invalid(at, ip, `may not be unspecified (${ip})`)];
  if (text.startsWith('127.') || /^[0:]*:0*1$/.test(text)) {
    return [invalid(at, ip, 'may not be in the loopback range (127.0.0.0/8, ::1/128)')];
  }
  if (text.startsWith('169.254.') || /^fe[89ab][0-9a-f]:/.test(text)) {
    return [invalid(at, ip, 'may not be in the link-local range (169.254.0.0/16, fe80::/10)')];
  }
  if (text.startsWith('224.0.0.') || /^ff[0-9a-f]2:/.test(text)) {
    return [invalid(at, ip, 'may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)')];
  }
  return [];
}

function validateBalancer(
  errors: FieldError[],
  spec: JsonObject,
  { type, old }: { readonly type: string; readonly old: JsonObject | undefined },
): void {
  const balanced = type === 'LoadBalancer';
  const ranges = textsAt(spec, 'loadBalancerSourceRanges');
  // The path is spelled as upstream spells it.
  const at = 'spec.LoadBalancerSourceRanges';
  if (ranges.length > 0 && !balanced) errors.push(forbidden(at, LB_ONLY));
  const known = new Set(textsAt(old, 'spec', 'loadBalancerSourceRanges').map((range) => range.trim()));
  validateEach(errors, ranges, (text, i) => {
    const range = text.trim();
    const fault = known.has(range) ? undefined : legacyNetworkFault(range);
    return fault === undefined ? [] : [invalid(`${at}[${i}]`, range, fault)];
  });
  if (!balanced && typeof valueAt(spec, 'allocateLoadBalancerNodePorts') === 'boolean') {
    errors.push(forbidden('spec.allocateLoadBalancerNodePorts', LB_ONLY));
  }
  const name = valueAt(spec, 'loadBalancerClass');
  const before = valueAt(old, 'spec', 'loadBalancerClass');
  if (balanced && textAt(old, 'spec', 'type') === 'LoadBalancer' && !deepEqual(name ?? null, before ?? null)) {
    errors.push(invalid('spec.loadBalancerClass', name ?? null, 'may not change once set'));
  }
  if (typeof name !== 'string') return;
  if (balanced) errors.push(...faults('spec.loadBalancerClass', name, checkQualifiedName(name)));
  else errors.push(forbidden('spec.loadBalancerClass', LB_ONLY));
}

/** What a balancer says of itself, where that has changed (ValidateLoadBalancerStatus). */
function validateBalancerStatus(
  errors: FieldError[],
  { type, object, old }: { readonly type: string; readonly object: JsonObject; readonly old: JsonObject },
): void {
  const ingresses = objectsAt(object, 'status', 'loadBalancer', 'ingress');
  const before = objectsAt(old, 'status', 'loadBalancer', 'ingress');
  const at = 'status.loadBalancer.ingress';
  if (ingresses.length === 0 || deepEqual(ingresses, before)) return;
  if (type !== 'LoadBalancer') {
    errors.push(forbidden(at, "may only be used when `spec.type` is 'LoadBalancer'"));
    return;
  }
  const known = new Set(before.map((ingress) => textAt(ingress, 'ip')));
  validateEach(errors, ingresses, (ingress, i) => {
    const errors = placeIpErrors(ingress, `${at}[${i}]`, known);
    const [ip, mode] = [textAt(ingress, 'ip'), textAt(ingress, 'ipMode')];
    if (mode === '' && ip !== '') errors.push(required(`${at}[${i}].ipMode`, 'must be specified when `ip` is set'));
    else if (mode !== '' && ip === '') {
      errors.push(forbidden(`${at}[${i}].ipMode`, 'may not be specified when `ip` is not set'));
    } else if (mode !== '' && !IP_MODES.includes(mode)) {
      errors.push(unsupported(`${at}[${i}].ipMode`, mode, IP_MODES));
    }
    return [...errors, ...placeHostErrors(ingress, `${at}[${i}]`)];
  });
}
