/** Validation of Services (core/validation ValidateService); what needs the allocated ranges is judged where they are. */
import { deepEqual } from '../../../meta/deep-equal.ts';
import {
  checkLabelName,
  checkLabelValue,
  checkPortName,
  checkQualifiedName,
  checkSubdomain,
} from '../../../meta/name-rules.ts';
import type { FieldError } from '../../../meta/status.ts';
import { Pace, type Steps } from '../../../meta/steps.ts';
import { formatCheck } from '../../../schema/formats.ts';
import { isObject, type JsonObject, listAt, objectAt, objectsAt, textAt, textsAt, valueAt } from '../read-value.ts';
import {
  addAll,
  duplicate,
  forbidden,
  invalid,
  isPort,
  type Judging,
  judgeEach,
  oneOf,
  PORT_RANGE,
  required,
  type Stops,
  unsupported,
} from './field-errors.ts';
import { PROTOCOLS } from './pod-spec.ts';

const TYPES = ['ClusterIP', 'ExternalName', 'LoadBalancer', 'NodePort'];
const FAMILIES = ['IPv4', 'IPv6'];
const FAMILY_POLICIES = ['PreferDualStack', 'RequireDualStack', 'SingleStack'];
const DISTRIBUTIONS = ['PreferClose', 'PreferSameNode', 'PreferSameZone'];
const LB_ONLY = "may only be used when `type` is 'LoadBalancer'";
const NOT_EXTERNAL_NAME = 'may not be set for ExternalName services';
const IP_RULE = 'must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)';
const CIDR_RULE = 'must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)';
const KUBELET_PORT = 10_250;
const MAX_AFFINITY_SECONDS = 86_400;

const isCidr = formatCheck('cidr')!;
const isIpv4 = formatCheck('ipv4')!;
const isIpv6 = formatCheck('ipv6')!;
const isIp = (text: string): boolean => isIpv4(text) || isIpv6(text);

const named = (details: readonly string[], field: string, value: unknown): FieldError[] =>
  details.map((detail) => invalid(field, value, detail));

/** Every problem of a Service, and of what an update changes in it. */
export function* validateService(object: JsonObject, old?: JsonObject): Steps<readonly FieldError[]> {
  const spec = objectAt(object, 'spec');
  const type = textAt(spec, 'type');
  const headless = textsAt(spec, 'clusterIPs').join() === 'None' || textAt(spec, 'clusterIP') === 'None';
  const ports = objectsAt(spec, 'ports');
  const judging: Judging = { errors: [], pace: new Pace() };
  const { errors } = judging;
  if (ports.length === 0 && !headless && type !== 'ExternalName') errors.push(required('spec.ports'));
  addAll(errors, judgeType(spec, { type, headless }));
  yield* judgePorts(judging, ports);
  yield* judgeLabels(judging, objectAt(spec, 'selector'), 'spec.selector');
  addAll(errors, judgeAffinity(spec));
  if (type !== 'ExternalName') yield* judgeAddresses(judging, spec, old);
  yield* judgeEach(judging, textsAt(spec, 'externalIPs'), (ip, i) => judgeExternalIp(ip, `spec.externalIPs[${i}]`));
  errors.push(...oneOf(spec, { name: 'type', path: 'spec.type' }, TYPES));
  yield* judgeNumbers(judging, ports, type);
  addAll(errors, judgeBalancer(spec, { type, old }));
  addAll(errors, judgeTraffic(spec, type));
  return errors;
}

function judgeType(spec: JsonObject, { type, headless }: { type: string; headless: boolean }): FieldError[] {
  if (type === 'ExternalName') {
    const name = textAt(spec, 'externalName').replace(/\.$/, '');
    return [
      ...(listAt(spec, 'clusterIPs').length > 0 ? [forbidden('spec.clusterIPs', NOT_EXTERNAL_NAME)] : []),
      ...(listAt(spec, 'ipFamilies').length > 0 ? [forbidden('spec.ipFamilies', NOT_EXTERNAL_NAME)] : []),
      ...(textAt(spec, 'ipFamilyPolicy') !== '' ? [forbidden('spec.ipFamilyPolicy', NOT_EXTERNAL_NAME)] : []),
      ...(name === '' ? [required('spec.externalName')] : named(checkSubdomain(name), 'spec.externalName', name)),
    ];
  }
  const errors: FieldError[] = [];
  if (type === 'LoadBalancer') {
    for (const [i, port] of objectsAt(spec, 'ports').entries()) {
      if (port['port'] !== KUBELET_PORT) continue;
      const detail = `may not expose port ${KUBELET_PORT} externally since it is used by kubelet`;
      errors.push(invalid(`spec.ports[${i}]`, KUBELET_PORT, detail));
    }
  }
  if (headless && (type === 'NodePort' || type === 'LoadBalancer')) {
    errors.push(invalid('spec.clusterIPs[0]', 'None', `may not be set to 'None' for ${type} services`));
  }
  return errors;
}

function judgePorts(judging: Judging, ports: readonly JsonObject[]): Stops {
  const names = new Set<string>();
  return judgeEach(judging, ports, (port, i) => {
    const at = `spec.ports[${i}]`;
    const errors: FieldError[] = [];
    const name = textAt(port, 'name');
    if (name === '' && ports.length > 1) errors.push(required(`${at}.name`));
    if (name !== '') {
      errors.push(...named(checkLabelName(name), `${at}.name`, name));
      if (names.has(name)) errors.push(duplicate(`${at}.name`, name));
      names.add(name);
    }
    const number = valueAt(port, 'port');
    if (!isPort(number)) errors.push(invalid(`${at}.port`, number ?? 0, PORT_RANGE));
    errors.push(...oneOf(port, { name: 'protocol', path: `${at}.protocol` }, PROTOCOLS));
    const target = valueAt(port, 'targetPort');
    if (typeof target === 'number' && !isPort(target)) errors.push(invalid(`${at}.targetPort`, target, PORT_RANGE));
    if (typeof target === 'string') errors.push(...named(checkPortName(target), `${at}.targetPort`, target));
    const protocol = textAt(port, 'appProtocol');
    if (protocol !== '') errors.push(...named(checkQualifiedName(protocol), `${at}.appProtocol`, protocol));
    return errors;
  });
}

/** Numbers that stand twice for one protocol, and node ports where there are none. */
function* judgeNumbers(judging: Judging, ports: readonly JsonObject[], type: string): Steps<void> {
  const nodePorts = new Set<string>();
  yield* judgeEach(judging, ports, (port, i) => {
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
  yield* judgeEach(judging, ports, (port, i) => {
    const key = `${textAt(port, 'protocol')}/${String(valueAt(port, 'port'))}`;
    if (numbers.has(key)) return [duplicate(`spec.ports[${i}]`, internalPort(port))];
    numbers.add(key);
    return [];
  });
}

/** The key upstream compares, as its text shows it: a value of an internal type, which has no JSON names. */
const internalPort = (port: JsonObject): JsonObject => ({
  Name: '',
  Protocol: textAt(port, 'protocol'),
  AppProtocol: null,
  Port: valueAt(port, 'port'),
  TargetPort: 0,
  NodePort: 0,
});

const judgeLabels = (judging: Judging, labels: JsonObject, at: string): Stops =>
  judgeEach(judging, Object.keys(labels), (key) => [
    ...named(checkQualifiedName(key), at, key),
    ...named(checkLabelValue(String(labels[key])), at, labels[key]),
  ]);

function judgeAffinity(spec: JsonObject): FieldError[] {
  const at = 'spec.sessionAffinityConfig';
  const config = valueAt(spec, 'sessionAffinityConfig');
  const errors = oneOf(spec, { name: 'sessionAffinity', path: 'spec.sessionAffinity' }, ['ClientIP', 'None']);
  if (textAt(spec, 'sessionAffinity') === 'None' && isObject(config)) {
    errors.push(forbidden(at, 'must not be set when session affinity is None'));
  }
  if (textAt(spec, 'sessionAffinity') !== 'ClientIP') return errors;
  const seconds = valueAt(config, 'clientIP', 'timeoutSeconds');
  if (typeof seconds === 'number' && (seconds <= 0 || seconds > MAX_AFFINITY_SECONDS)) {
    const detail = `must be greater than 0 and less than or equal to ${MAX_AFFINITY_SECONDS}`;
    errors.push(invalid(`${at}.clientIP.timeoutSeconds`, seconds, detail));
  }
  return errors;
}

function* judgeAddresses(judging: Judging, spec: JsonObject, old: JsonObject | undefined): Steps<void> {
  const { errors } = judging;
  const at = 'spec.clusterIPs';
  const ip = textAt(spec, 'clusterIP');
  const ips = textsAt(spec, 'clusterIPs');
  if (ip !== '' && ips.length > 0 && ips[0] !== ip) errors.push(invalid(at, ips, 'first value must match `clusterIP`'));
  const seen = new Set<string>();
  yield* judgeEach(judging, textsAt(spec, 'ipFamilies'), (family, i) => {
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
  yield* judgeEach(judging, ips, (one, i) =>
    (one === 'None' && i === 0) || isIp(one) || before.has(one) ? [] : [invalid(`${at}[${i}]`, one, IP_RULE)],
  );
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
function judgeExternalIp(ip: string, at: string): FieldError[] {
  if (!isIp(ip)) return [invalid(at, ip, IP_RULE)];
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

function judgeBalancer(
  spec: JsonObject,
  { type, old }: { readonly type: string; readonly old: JsonObject | undefined },
): FieldError[] {
  const balanced = type === 'LoadBalancer';
  const errors: FieldError[] = [];
  const ranges = textsAt(spec, 'loadBalancerSourceRanges');
  // The path is spelled as upstream spells it.
  const at = 'spec.LoadBalancerSourceRanges';
  if (ranges.length > 0 && !balanced) errors.push(forbidden(at, LB_ONLY));
  for (const [i, range] of ranges.entries()) {
    if (!isCidr(range.trim())) errors.push(invalid(`${at}[${i}]`, range.trim(), CIDR_RULE));
  }
  if (!balanced && typeof valueAt(spec, 'allocateLoadBalancerNodePorts') === 'boolean') {
    errors.push(forbidden('spec.allocateLoadBalancerNodePorts', LB_ONLY));
  }
  const name = valueAt(spec, 'loadBalancerClass');
  const before = valueAt(old, 'spec', 'loadBalancerClass');
  if (balanced && textAt(old, 'spec', 'type') === 'LoadBalancer' && !deepEqual(name ?? null, before ?? null)) {
    errors.push(invalid('spec.loadBalancerClass', name ?? null, 'may not change once set'));
  }
  if (typeof name !== 'string') return errors;
  if (balanced) return [...errors, ...named(checkQualifiedName(name), 'spec.loadBalancerClass', name)];
  return [...errors, forbidden('spec.loadBalancerClass', LB_ONLY)];
}

function judgeTraffic(spec: JsonObject, type: string): FieldError[] {
  const errors: FieldError[] = [];
  const policy = textAt(spec, 'externalTrafficPolicy');
  const isOpen =
    type === 'NodePort' || type === 'LoadBalancer' || (type === 'ClusterIP' && textsAt(spec, 'externalIPs').length > 0);
  const at = 'spec.externalTrafficPolicy';
  if (!isOpen) {
    if (policy !== '') errors.push(invalid(at, policy, 'may only be set for externally-accessible services'));
  } else errors.push(...oneOf(spec, { name: 'externalTrafficPolicy', path: at }, ['Cluster', 'Local']));
  const health = valueAt(spec, 'healthCheckNodePort');
  if (health && !(type === 'LoadBalancer' && policy === 'Local')) {
    const detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
    errors.push(invalid('spec.healthCheckNodePort', health, detail));
  }
  const internal = { name: 'internalTrafficPolicy', path: 'spec.internalTrafficPolicy' };
  errors.push(...oneOf(spec, internal, ['Cluster', 'Local']));
  errors.push(...oneOf(spec, { name: 'trafficDistribution', path: 'spec.trafficDistribution' }, DISTRIBUTIONS));
  return errors;
}
