/** Validation of networking.k8s.io: network policies, ingresses and their classes, addresses and ranges of Services. */
import {
  checkDomainPath,
  checkLabelName,
  checkPathSegment,
  checkPortName,
  checkSubdomain,
} from '../../../meta/name-rules.ts';
import type { FieldError } from '../../../meta/status.ts';
import { formatCheck } from '../../../schema/formats.ts';
import { isObject, type JsonObject, listAt, objectsAt, textAt, textsAt, valueAt } from '../read-value.ts';
import { validateSelectorField } from './admission-rules.ts';
import {
  addAll,
  forbidden,
  type GroupValidators,
  IMMUTABLE,
  immutable,
  invalid,
  isPort,
  oneOf,
  PORT_RANGE,
  required,
  tooLong,
  unsupported,
} from './field-errors.ts';
import { PROTOCOLS } from './pod-spec.ts';
import { addressFault, CIDR_RULE, IP_RULE, networkFault } from './strict-addresses.ts';

const isCidr = formatCheck('cidr')!;
const isIpv4 = formatCheck('ipv4')!;
const isIpv6 = formatCheck('ipv6')!;
const isIp = (text: string): boolean => isIpv4(text) || isIpv6(text);
const DNS_NOT_IP = 'must be a DNS name, not an IP address';

function validatePolicyPort(port: JsonObject, at: string): FieldError[] {
  const number = valueAt(port, 'port');
  const end = valueAt(port, 'endPort');
  const errors = oneOf(port, { name: 'protocol', path: `${at}.protocol` }, PROTOCOLS);
  const refuseEnd = (detail: string): void => {
    if (end != null) errors.push(invalid(`${at}.endPort`, end, detail));
  };
  if (number == null) refuseEnd('may not be specified when `port` is not specified');
  else if (typeof number === 'number') {
    if (!isPort(number)) errors.push(invalid(`${at}.port`, number, PORT_RANGE));
    if (typeof end === 'number' && end < number) refuseEnd('must be greater than or equal to `port`');
    if (end != null && !isPort(end)) refuseEnd(PORT_RANGE);
  } else {
    refuseEnd('may not be specified when `port` is non-numeric');
    errors.push(...checkPortName(String(number)).map((detail) => invalid(`${at}.port`, number, detail)));
  }
  return errors;
}

function validatePeer(peer: JsonObject, at: string): FieldError[] {
  const named = ['podSelector', 'namespaceSelector'].filter((field) => isObject(valueAt(peer, field)));
  const block = valueAt(peer, 'ipBlock');
  const errors = named.flatMap((field) => validateSelectorField(peer, field, at));
  if (isObject(block)) addAll(errors, validateBlock(block, `${at}.ipBlock`));
  if (named.length === 0 && !isObject(block)) errors.push(required(at, 'must specify a peer'));
  else if (named.length > 0 && isObject(block)) {
    errors.push(forbidden(at, 'may not specify both ipBlock and another peer'));
  }
  return errors;
}

function validateBlock(block: JsonObject, at: string): FieldError[] {
  const cidr = textAt(block, 'cidr');
  if (cidr === '') return [required(`${at}.cidr`)];
  const errors = isCidr(cidr) ? [] : [invalid(`${at}.cidr`, cidr, CIDR_RULE)];
  for (const [i, except] of textsAt(block, 'except').entries()) {
    if (!isCidr(except)) errors.push(invalid(`${at}.except[${i}]`, except, CIDR_RULE));
  }
  return errors;
}

function validateNetworkPolicy(object: JsonObject): readonly FieldError[] {
  const spec = valueAt(object, 'spec');
  const errors = isObject(spec) ? validateSelectorField(spec, 'podSelector', 'spec') : [];
  for (const [direction, peers] of [
    ['ingress', 'from'],
    ['egress', 'to'],
  ] as const) {
    for (const [i, rule] of objectsAt(spec, direction).entries()) {
      const at = `spec.${direction}[${i}]`;
      for (const [j, port] of objectsAt(rule, 'ports').entries()) {
        addAll(errors, validatePolicyPort(port, `${at}.ports[${j}]`));
      }
      for (const [j, peer] of objectsAt(rule, peers).entries()) {
        addAll(errors, validatePeer(peer, `${at}.${peers}[${j}]`));
      }
    }
  }
  const types = listAt(spec, 'policyTypes');
  if (types.length > 2) {
    return [...errors, invalid('spec.policyTypes', types, 'may not specify more than two policyTypes')];
  }
  for (const [i, type] of types.entries()) {
    if (type === 'Ingress' || type === 'Egress') continue;
    errors.push(unsupported(`spec.policyTypes[${i}]`, type, ['Ingress', 'Egress']));
  }
  return errors;
}

const WILDCARD = /^\*\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const WILDCARD_RULE =
  "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', regex used for validation is '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

function checkHost(host: string): string[] {
  if (!host.includes('*')) return checkSubdomain(host);
  return WILDCARD.test(host) ? [] : [WILDCARD_RULE];
}

const PATH_TYPES = ['Exact', 'ImplementationSpecific', 'Prefix'];

function validatePath(path: JsonObject, at: string): FieldError[] {
  const type = valueAt(path, 'pathType');
  if (type == null) return [required(`${at}.pathType`, 'pathType must be specified')];
  const text = textAt(path, 'path');
  const errors: FieldError[] = [];
  const refuse = (detail: string): void => {
    errors.push(invalid(`${at}.path`, text, detail));
  };
  if (type === 'Exact' || type === 'Prefix') {
    if (!text.startsWith('/')) refuse('must be an absolute path');
    for (const part of ['//', '/./', '/../', '%2f', '%2F']) {
      if (text.includes(part)) refuse(`must not contain '${part}'`);
    }
    for (const end of ['/..', '/.']) if (text.endsWith(end)) refuse(`cannot end with '${end}'`);
  } else if (type === 'ImplementationSpecific') {
    if (text !== '' && !text.startsWith('/')) refuse('must be an absolute path');
  } else errors.push(unsupported(`${at}.pathType`, type, PATH_TYPES));
  return [...errors, ...validateBackend(valueAt(path, 'backend'), `${at}.backend`)];
}

function validateBackend(backend: unknown, at: string): FieldError[] {
  const resource = valueAt(backend, 'resource');
  const service = valueAt(backend, 'service');
  if (isObject(resource) && isObject(service)) {
    return [invalid(at, '', 'cannot set both resource and service backends')];
  }
  if (isObject(resource)) return validateReference(resource, `${at}.resource`);
  if (!isObject(service)) return [invalid(at, '', 'resource or service backend is required')];
  const name = textAt(service, 'name');
  const errors =
    name === ''
      ? [required(`${at}.service.name`)]
      : checkLabelName(name).map((detail) => invalid(`${at}.service.name`, name, detail));
  const portName = textAt(service, 'port', 'name');
  const port = valueAt(service, 'port', 'number');
  const numbered = typeof port === 'number' && port !== 0;
  if (portName !== '' && numbered) errors.push(invalid(at, '', 'cannot set both port name & port number'));
  else if (portName !== '') {
    errors.push(...checkPortName(portName).map((detail) => invalid(`${at}.service.port.name`, portName, detail)));
  } else if (!numbered) errors.push(required(at, 'port name or number is required'));
  else if (!isPort(port)) errors.push(invalid(`${at}.service.port.number`, port, PORT_RANGE));
  return errors;
}

/** Kind and name of something else, and its group when one is given. */
function validateReference(reference: JsonObject, at: string): FieldError[] {
  const group = valueAt(reference, 'apiGroup');
  const errors = typeof group === 'string' ? named(checkSubdomain(group), `${at}.apiGroup`, group) : [];
  for (const field of ['kind', 'name']) {
    const text = textAt(reference, field);
    if (text === '') errors.push(required(`${at}.${field}`));
    else addAll(errors, named(checkPathSegment(text), `${at}.${field}`, text));
  }
  return errors;
}

const named = (details: readonly string[], field: string, value: string): FieldError[] =>
  details.map((detail) => invalid(field, value, detail));

function validateIngress(object: JsonObject, old?: JsonObject): readonly FieldError[] {
  const spec = valueAt(object, 'spec');
  const rules = objectsAt(spec, 'rules');
  const backend = valueAt(spec, 'defaultBackend');
  const errors: FieldError[] = [];
  if (rules.length === 0 && !isObject(backend)) {
    errors.push(invalid('spec', [], 'either `defaultBackend` or `rules` must be specified'));
  }
  if (isObject(backend)) addAll(errors, validateBackend(backend, 'spec.defaultBackend'));
  for (const [i, rule] of rules.entries()) {
    const at = `spec.rules[${i}]`;
    const host = textAt(rule, 'host');
    if (host !== '' && isIp(host)) errors.push(invalid(`${at}.host`, host, DNS_NOT_IP));
    if (host !== '') addAll(errors, named(checkHost(host), `${at}.host`, host));
    if (!isObject(valueAt(rule, 'http'))) continue;
    const paths = objectsAt(rule, 'http', 'paths');
    if (paths.length === 0) errors.push(required(`${at}.http.paths`));
    for (const [j, path] of paths.entries()) addAll(errors, validatePath(path, `${at}.http.paths[${j}]`));
  }
  for (const [i, tls] of objectsAt(spec, 'tls').entries()) {
    for (const [j, host] of textsAt(tls, 'hosts').entries()) {
      addAll(errors, named(checkHost(host), `spec.tls[${i}].hosts[${j}]`, host));
    }
    const secret = textAt(tls, 'secretName');
    if (secret !== '') addAll(errors, named(checkSubdomain(secret), `spec.tls[${i}].secretName`, secret));
  }
  const className = valueAt(spec, 'ingressClassName');
  if (typeof className === 'string')
    addAll(errors, named(checkSubdomain(className), 'spec.ingressClassName', className));
  const annotated = textAt(object, 'metadata', 'annotations', 'kubernetes.io/ingress.class');
  if (old === undefined && annotated !== '' && typeof className === 'string' && annotated !== className) {
    const detail = 'must match `ingressClassName` when both are specified';
    errors.push(invalid('annotations.kubernetes.io/ingress.class', annotated, detail));
  }
  return [...errors, ...validateIngressStatus(object)];
}

function validateIngressStatus(object: JsonObject): FieldError[] {
  return objectsAt(object, 'status', 'loadBalancer', 'ingress').flatMap((ingress, i) => {
    const at = `status.loadBalancer.ingress[${i}]`;
    const ip = textAt(ingress, 'ip');
    const host = textAt(ingress, 'hostname');
    const errors = ip === '' || isIp(ip) ? [] : [invalid(`${at}.ip`, ip, IP_RULE)];
    if (host === '') return errors;
    addAll(errors, named(checkSubdomain(host), `${at}.hostname`, host));
    if (isIp(host)) errors.push(invalid(`${at}.hostname`, host, DNS_NOT_IP));
    return errors;
  });
}

const MAX_CONTROLLER = 250;
const SCOPES = ['Cluster', 'Namespace'];

function validateIngressClass(object: JsonObject, old?: JsonObject): readonly FieldError[] {
  const controller = textAt(object, 'spec', 'controller');
  const parameters = valueAt(object, 'spec', 'parameters');
  const errors =
    controller === ''
      ? [required('spec.controller')]
      : [
          ...(controller.length > MAX_CONTROLLER ? [tooLong('spec.controller', MAX_CONTROLLER)] : []),
          ...named(checkDomainPath(controller), 'spec.controller', controller),
        ];
  if (isObject(parameters)) addAll(errors, validateClassParameters(parameters, 'spec.parameters'));
  if (old !== undefined) errors.push(...immutable({ object, old, path: 'spec.controller' }));
  return errors;
}

function validateClassParameters(parameters: JsonObject, at: string): FieldError[] {
  const errors = validateReference(parameters, at);
  const scope = valueAt(parameters, 'scope');
  const namespace = valueAt(parameters, 'namespace');
  if (scope == null) return [...errors, required(`${at}.scope`)];
  if (!SCOPES.includes(String(scope))) return [...errors, unsupported(`${at}.scope`, scope, SCOPES)];
  if (scope === 'Cluster') {
    if (namespace != null) errors.push(forbidden(`${at}.namespace`, "`parameters.scope` is set to 'Cluster'"));
  } else if (typeof namespace !== 'string') {
    errors.push(required(`${at}.namespace`, "`parameters.scope` is set to 'Namespace'"));
  } else addAll(errors, named(checkLabelName(namespace), `${at}.namespace`, namespace));
  return errors;
}

function validateIpAddress(object: JsonObject, old?: JsonObject): readonly FieldError[] {
  const name = textAt(object, 'metadata', 'name');
  const parent = valueAt(object, 'spec', 'parentRef');
  const fault = addressFault(name);
  const errors = fault === undefined ? [] : [invalid('metadata.name', name, fault)];
  if (!isObject(parent)) errors.push(required('spec.parentRef'));
  else {
    const group = textAt(parent, 'group');
    if (group !== '') addAll(errors, named(checkSubdomain(group), 'spec.parentRef.group', group));
    for (const field of ['resource', 'name', 'namespace']) {
      const text = textAt(parent, field);
      if (text !== '') addAll(errors, named(checkPathSegment(text), `spec.parentRef.${field}`, text));
      else if (field !== 'namespace') errors.push(required(`spec.parentRef.${field}`));
    }
  }
  return old === undefined ? errors : [...errors, ...immutable({ object, old, path: 'spec.parentRef' })];
}

const ONE_PER_FAMILY = 'may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64';

function validateServiceCidr(object: JsonObject, old?: JsonObject): readonly FieldError[] {
  const at = 'spec.cidrs';
  const ranges = textsAt(object, 'spec', 'cidrs');
  const before = old === undefined ? undefined : textsAt(old, 'spec', 'cidrs');
  const moved = (count: number): FieldError[] =>
    ranges
      .slice(0, count)
      .flatMap((range, i) => (range === before?.[i] ? [] : [invalid(`${at}[${i}]`, range, IMMUTABLE)]));
  if (before !== undefined && before.length === ranges.length) return moved(ranges.length);
  // A second family may be added, nothing else.
  if (before !== undefined && !(before.length === 1 && ranges.length === 2)) return [invalid(at, ranges, IMMUTABLE)];
  if (ranges.length === 0) return [required(at, 'at least one CIDR required')];
  if (ranges.length > 2) return [invalid(at, valueAt(object, 'spec'), 'may only hold up to 2 values')];
  const errors = before === undefined ? [] : moved(1);
  for (const [i, range] of ranges.entries()) {
    const fault = networkFault(range);
    if (fault !== undefined) errors.push(invalid(`${at}[${i}]`, range, fault));
  }
  const [first, second] = ranges;
  if (errors.length === 0 && second !== undefined && first!.includes(':') === second.includes(':')) {
    errors.push(invalid(at, ranges, ONE_PER_FAMILY));
  }
  return errors;
}

export const NETWORKING_VALIDATORS: GroupValidators = {
  networkpolicies: validateNetworkPolicy,
  ingresses: validateIngress,
  ingressclasses: validateIngressClass,
  ipaddresses: validateIpAddress,
  servicecidrs: validateServiceCidr,
};
