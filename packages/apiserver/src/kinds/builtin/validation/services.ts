/** Validation of Services (core/validation ValidateService); what needs the allocated ranges is validated where they are. */

import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import {
  checkLabelName,
  checkPortName,
  checkQualifiedName,
  checkSubdomain,
} from '@coracle/apimachinery/meta/name-rules';
import type { FieldError } from '@coracle/apimachinery/meta/status';
import { type JsonObject, objectAt, objectsAt, textAt, textsAt, valueAt } from '@coracle/apimachinery/types/read-value';
import {
  duplicate,
  forbidden,
  invalid,
  invalidEach,
  isPort,
  oneOf,
  PORT_RANGE,
  required,
  unsupported,
  validateEach,
  validateNested,
} from '@coracle/apimachinery/validation/field-errors';
import rules from './service-rules.json' with { type: 'json' };
import { legacyAddressProblem, legacyNetworkProblem, specialAddressProblem } from './strict-addresses.ts';
import { type RuleCheck, validateByRules } from './table-rules.ts';

const FAMILIES = ['IPv4', 'IPv6'];
const FAMILY_POLICIES = ['PreferDualStack', 'RequireDualStack', 'SingleStack'];
const KUBELET_PORT = 10_250;

/** Every problem of a Service, and of what an update changes in it. */
export function validateService(object: JsonObject, old?: JsonObject): readonly FieldError[] {
  const errors: FieldError[] = [];
  const spec = objectAt(object, 'spec');
  const before = old && objectAt(old, 'spec');
  validateByRules(errors, rules.spec, { self: spec, old: before, at: 'spec', checks: CHECKS });
  if (old !== undefined) validateBalancerStatus(errors, object, old);
  return errors;
}

const isHeadless = (spec: unknown): boolean =>
  textAt(spec, 'clusterIP') === 'None' || textsAt(spec, 'clusterIPs').join() === 'None';

const type: RuleCheck = (errors, spec, { at }) => {
  const [type, ports] = [textAt(spec, 'type'), objectsAt(spec, 'ports')];
  if (type === 'ExternalName') {
    validateByRules(errors, rules.externalName, { self: spec, at, checks: { externalName } });
    return;
  }
  if (ports.length === 0 && !isHeadless(spec)) errors.push(required(`${at}.ports`));
  if (type === 'LoadBalancer') {
    const detail = `may not expose port ${KUBELET_PORT} externally since it is used by kubelet`;
    validateEach(errors, ports, (port, i) =>
      port['port'] === KUBELET_PORT ? [invalid(`${at}.ports[${i}]`, KUBELET_PORT, detail)] : [],
    );
  }
  if (isHeadless(spec) && (type === 'NodePort' || type === 'LoadBalancer')) {
    errors.push(invalid(`${at}.clusterIPs[0]`, 'None', `may not be set to 'None' for ${type} services`));
  }
};

/** A name may end in a dot. */
const externalName: RuleCheck = (errors, value, { at }) => {
  const name = String(value ?? '').replace(/\.$/, '');
  if (value === '.') errors.push(required(at));
  else if (name !== '') errors.push(...invalidEach(at, name, checkSubdomain(name)));
};

const ports: RuleCheck = (errors, value, { at: path }) => {
  const all = objectsAt(value);
  const names = new Set<string>();
  validateNested(errors, all, (port, i) => {
    const [at, name] = [`${path}[${i}]`, textAt(port, 'name')];
    if (name === '' && all.length > 1) errors.push(required(`${at}.name`));
    if (name !== '') errors.push(...invalidEach(`${at}.name`, name, checkLabelName(name)));
    if (name !== '' && names.has(name)) errors.push(duplicate(`${at}.name`, name));
    names.add(name);
    validateByRules(errors, rules.port, { self: port, at, name, checks: { targetPort } });
  });
};

const targetPort: RuleCheck = (errors, target, { at }) => {
  if (typeof target === 'number' && !isPort(target)) errors.push(invalid(at, target, PORT_RANGE));
  if (typeof target === 'string') errors.push(...invalidEach(at, target, checkPortName(target)));
};

/** Numbers that stand twice for one protocol, and node ports where there are none. */
const numbers: RuleCheck = (errors, value, { at, self: spec }) => {
  const ports = objectsAt(value);
  const nodePorts = new Set<string>();
  validateEach(errors, ports, (port, i) => {
    const nodePort = valueAt(port, 'nodePort');
    if (!nodePort) return [];
    const errors: FieldError[] = [];
    const field = `${at}[${i}].nodePort`;
    if (textAt(spec, 'type') === 'ClusterIP')
      errors.push(forbidden(field, "may not be used when `type` is 'ClusterIP'"));
    const key = `${textAt(port, 'protocol')}/${String(nodePort)}`;
    if (nodePorts.has(key)) errors.push(duplicate(field, nodePort));
    nodePorts.add(key);
    return errors;
  });
  const numbers = new Set<string>();
  validateEach(errors, ports, (port, i) => {
    const key = `${textAt(port, 'protocol')}/${String(valueAt(port, 'port'))}`;
    if (numbers.has(key)) return [duplicate(`${at}[${i}]`, { protocol: port['protocol'], port: port['port'] })];
    numbers.add(key);
    return [];
  });
};

const addresses: RuleCheck = (errors, spec, { old }) => {
  if (textAt(spec, 'type') === 'ExternalName') return;
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
  const before = new Set(textsAt(old, 'clusterIPs'));
  const known = errors.length;
  validateEach(errors, ips, (one, i) => {
    const fault = (one === 'None' && i === 0) || before.has(one) ? undefined : legacyAddressProblem(one);
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
  const was = textAt(old, 'clusterIP');
  if (was !== '' && was !== ip && textAt(old, 'type') !== 'ExternalName') {
    errors.push(invalid(`${at}[0]`, ip, 'may not change once set'));
  }
};

/** Networks that stood there before may stay. */
const ranges: RuleCheck = (errors, value, { at, old }) => {
  const known = new Set(textsAt(old).map((range) => range.trim()));
  validateEach(errors, textsAt(value), (text, i) => {
    const range = text.trim();
    const fault = known.has(range) ? undefined : legacyNetworkProblem(range);
    return fault === undefined ? [] : [invalid(`${at}[${i}]`, range, fault)];
  });
};

const CHECKS: Readonly<Record<string, RuleCheck>> = {
  type,
  ports,
  numbers,
  addresses,
  ranges,
  externalIps(errors, value, { at, old }) {
    const before = new Set(textsAt(old));
    // One leads somewhere else than to a place of its own.
    validateEach(errors, textsAt(value), (ip, i) => {
      const fault =
        (before.has(ip) ? undefined : legacyAddressProblem(ip)) ?? specialAddressProblem(ip, { loopback: true });
      return fault === undefined ? [] : [invalid(`${at}[${i}]`, ip, fault)];
    });
  },
  balancerClass(errors, name, { at, self: spec }) {
    if (typeof name !== 'string' || textAt(spec, 'type') !== 'LoadBalancer') return;
    errors.push(...invalidEach(at, name, checkQualifiedName(name)));
  },
};

/** What a balancer says of itself, where that has changed (ValidateLoadBalancerStatus). */
function validateBalancerStatus(errors: FieldError[], object: JsonObject, old: JsonObject): void {
  const [ingresses, before] = [object, old].map((one) => objectsAt(one, 'status', 'loadBalancer', 'ingress')) as [
    readonly JsonObject[],
    readonly JsonObject[],
  ];
  const path = 'status.loadBalancer.ingress';
  if (ingresses.length === 0 || deepEqual(ingresses, before)) return;
  if (textAt(object, 'spec', 'type') !== 'LoadBalancer') {
    errors.push(forbidden(path, "may only be used when `spec.type` is 'LoadBalancer'"));
    return;
  }
  const known = new Set(before.map((ingress) => textAt(ingress, 'ip')));
  const ip: RuleCheck = (errors, value, { at }) => {
    const address = String(value ?? '');
    const fault = address === '' || known.has(address) ? undefined : legacyAddressProblem(address);
    if (fault !== undefined) errors.push(invalid(at, address, fault));
  };
  validateNested(errors, ingresses, (self, i) =>
    validateByRules(errors, rules.ingress, { self, at: `${path}[${i}]`, checks: { ip } }),
  );
}
