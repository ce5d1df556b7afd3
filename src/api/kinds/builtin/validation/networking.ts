/** Validation of networking.k8s.io: network policies, ingresses and their classes, addresses and ranges of Services. */
import {
  checkDomainPath,
  checkLabelName,
  checkPathSegment,
  checkPortName,
  checkSubdomain,
} from '../../../meta/name-rules.ts';
import type { FieldError } from '../../../meta/status.ts';
import type { Steps } from '../../../meta/steps.ts';
import { isObject, type JsonObject, listAt, objectsAt, textAt, textsAt, valueAt } from '../read-value.ts';
import { type IpRange, parseIpRange } from '../service-cidrs.ts';
import { judgeSelectorField } from './admission-rules.ts';
import {
  addAll,
  faults,
  forbidden,
  type GroupValidators,
  IMMUTABLE,
  immutable,
  invalid,
  isPort,
  type Judging,
  judgeEach,
  judgeNested,
  NO_STOP,
  newJudging,
  oneOf,
  PORT_RANGE,
  required,
  requiredText,
  type Stops,
  tooLong,
  unsupported,
} from './field-errors.ts';
import { placeHostErrors, placeIpErrors } from './load-balancer.ts';
import { PROTOCOLS } from './pod-spec.ts';
import { addressFault, DNS_NOT_IP, isIp, legacyNetworkFault, networkFault } from './strict-addresses.ts';

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
    errors.push(...faults(`${at}.port`, number, checkPortName(String(number))));
  }
  return errors;
}

/** Where a peer stands, and the networks that stood in the policy before: those may stay as they are. */
interface PeerPlace {
  readonly at: string;
  readonly before: ReadonlySet<string>;
}

function* judgePeer(judging: Judging, peer: JsonObject, { at, before }: PeerPlace): Steps<void> {
  const { errors } = judging;
  const named = ['podSelector', 'namespaceSelector'].filter((field) => isObject(valueAt(peer, field)));
  const block = valueAt(peer, 'ipBlock');
  for (const field of named) yield* judgeSelectorField(judging, peer, { field, at });
  if (isObject(block)) yield* judgeBlock(judging, block, { at: `${at}.ipBlock`, before });
  if (named.length === 0 && !isObject(block)) errors.push(required(at, 'must specify a peer'));
  else if (named.length > 0 && isObject(block)) {
    errors.push(forbidden(at, 'may not specify both ipBlock and another peer'));
  }
}

function judgeBlock(judging: Judging, block: JsonObject, { at, before }: PeerPlace): Stops {
  const cidr = textAt(block, 'cidr');
  if (cidr === '') {
    judging.errors.push(required(`${at}.cidr`));
    return NO_STOP;
  }
  const judge = (network: string, path: string): FieldError[] => {
    const fault = before.has(network) ? undefined : legacyNetworkFault(network);
    return fault === undefined ? [] : [invalid(path, network, fault)];
  };
  judging.errors.push(...judge(cidr, `${at}.cidr`));
  const whole = parseIpRange(cidr);
  return judgeEach(judging, textsAt(block, 'except'), (except, i) => {
    const path = `${at}.except[${i}]`;
    const part = parseIpRange(except);
    const isOutside = whole !== undefined && part !== undefined && !isWithin(part, whole);
    return [...judge(except, path), ...(isOutside ? [invalid(path, except, 'must be a strict subset of `cidr`')] : [])];
  });
}

const isWithin = (part: IpRange, whole: IpRange): boolean =>
  part.family === whole.family &&
  part.size < whole.size &&
  part.first >= whole.first &&
  part.first < whole.first + whole.size;

/** What a port, a peer or a path counts as, beside what it lists. */
const PART = 3;

const POLICY_PEERS = [
  ['ingress', 'from'],
  ['egress', 'to'],
] as const;

/** The networks that a policy names. */
const networksOf = (policy: JsonObject | undefined): string[] =>
  POLICY_PEERS.flatMap(([direction, peers]) =>
    objectsAt(policy, 'spec', direction).flatMap((rule) =>
      objectsAt(rule, peers).flatMap((peer) => [
        textAt(peer, 'ipBlock', 'cidr'),
        ...textsAt(peer, 'ipBlock', 'except'),
      ]),
    ),
  );

function* validateNetworkPolicy(object: JsonObject, old?: JsonObject): Steps<readonly FieldError[]> {
  const judging = newJudging();
  const spec = valueAt(object, 'spec');
  const before = new Set(networksOf(old));
  yield* judgeSelectorField(judging, spec, { field: 'podSelector', at: 'spec' });
  for (const [direction, peers] of POLICY_PEERS) {
    yield* judgeNested(judging, objectsAt(spec, direction), (rule, i) =>
      judgePolicyRule(judging, rule, { at: `spec.${direction}[${i}]`, peers, before }),
    );
  }
  const types = listAt(spec, 'policyTypes');
  if (types.length > 2) {
    judging.errors.push(invalid('spec.policyTypes', types, 'may not specify more than two policyTypes'));
    return judging.errors;
  }
  for (const [i, type] of types.entries()) {
    if (type === 'Ingress' || type === 'Egress') continue;
    judging.errors.push(unsupported(`spec.policyTypes[${i}]`, type, ['Ingress', 'Egress']));
  }
  return judging.errors;
}

function* judgePolicyRule(
  judging: Judging,
  rule: JsonObject,
  { at, peers, before }: PeerPlace & { readonly peers: 'from' | 'to' },
): Steps<void> {
  const judgePort = (port: JsonObject, j: number) => validatePolicyPort(port, `${at}.ports[${j}]`);
  yield* judgeEach(judging, objectsAt(rule, 'ports'), judgePort, PART);
  const judge = (peer: JsonObject, j: number) => judgePeer(judging, peer, { at: `${at}.${peers}[${j}]`, before });
  yield* judgeNested(judging, objectsAt(rule, peers), judge, PART);
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
  const errors = requiredText(`${at}.service.name`, name, checkLabelName);
  const portName = textAt(service, 'port', 'name');
  const port = valueAt(service, 'port', 'number');
  const numbered = typeof port === 'number' && port !== 0;
  if (portName !== '' && numbered) errors.push(invalid(at, '', 'cannot set both port name & port number'));
  else if (portName !== '') {
    errors.push(...faults(`${at}.service.port.name`, portName, checkPortName(portName)));
  } else if (!numbered) errors.push(required(at, 'port name or number is required'));
  else if (!isPort(port)) errors.push(invalid(`${at}.service.port.number`, port, PORT_RANGE));
  return errors;
}

/** Kind and name of something else, and its group when one is given. */
function validateReference(reference: JsonObject, at: string): FieldError[] {
  const group = valueAt(reference, 'apiGroup');
  const errors = typeof group === 'string' ? faults(`${at}.apiGroup`, group, checkSubdomain(group)) : [];
  for (const field of ['kind', 'name']) {
    const text = textAt(reference, field);
    if (text === '') errors.push(required(`${at}.${field}`));
    else addAll(errors, faults(`${at}.${field}`, text, checkPathSegment(text)));
  }
  return errors;
}

function* validateIngress(object: JsonObject, old?: JsonObject): Steps<readonly FieldError[]> {
  const spec = valueAt(object, 'spec');
  const rules = objectsAt(spec, 'rules');
  const backend = valueAt(spec, 'defaultBackend');
  const judging = newJudging();
  const { errors } = judging;
  if (rules.length === 0 && !isObject(backend)) {
    errors.push(invalid('spec', [], 'either `defaultBackend` or `rules` must be specified'));
  }
  if (isObject(backend)) addAll(errors, validateBackend(backend, 'spec.defaultBackend'));
  yield* judgeNested(judging, rules, (rule, i) => judgeIngressRule(judging, rule, `spec.rules[${i}]`), PART);
  yield* judgeNested(judging, objectsAt(spec, 'tls'), (tls, i) => judgeTls(judging, tls, `spec.tls[${i}]`));
  const className = valueAt(spec, 'ingressClassName');
  if (typeof className === 'string')
    addAll(errors, faults('spec.ingressClassName', className, checkSubdomain(className)));
  const annotated = textAt(object, 'metadata', 'annotations', 'kubernetes.io/ingress.class');
  if (old === undefined && annotated !== '' && typeof className === 'string' && annotated !== className) {
    const detail = 'must match `ingressClassName` when both are specified';
    errors.push(invalid('annotations.kubernetes.io/ingress.class', annotated, detail));
  }
  yield* judgeIngressStatus(judging, object, old);
  return errors;
}

function judgeIngressRule(judging: Judging, rule: JsonObject, at: string): Stops {
  const { errors } = judging;
  const host = textAt(rule, 'host');
  if (host !== '' && isIp(host)) errors.push(invalid(`${at}.host`, host, DNS_NOT_IP));
  if (host !== '') addAll(errors, faults(`${at}.host`, host, checkHost(host)));
  if (!isObject(valueAt(rule, 'http'))) return NO_STOP;
  const paths = objectsAt(rule, 'http', 'paths');
  if (paths.length === 0) errors.push(required(`${at}.http.paths`));
  return judgeEach(judging, paths, (path, j) => validatePath(path, `${at}.http.paths[${j}]`), PART);
}

function* judgeTls(judging: Judging, tls: JsonObject, at: string): Steps<void> {
  yield* judgeEach(judging, textsAt(tls, 'hosts'), (host, j) => faults(`${at}.hosts[${j}]`, host, checkHost(host)));
  const secret = textAt(tls, 'secretName');
  if (secret !== '') addAll(judging.errors, faults(`${at}.secretName`, secret, checkSubdomain(secret)));
}

function judgeIngressStatus(judging: Judging, object: JsonObject, old: JsonObject | undefined): Stops {
  const before = new Set(objectsAt(old, 'status', 'loadBalancer', 'ingress').map((ingress) => textAt(ingress, 'ip')));
  return judgeEach(judging, objectsAt(object, 'status', 'loadBalancer', 'ingress'), (ingress, i) => {
    const at = `status.loadBalancer.ingress[${i}]`;
    return [...placeIpErrors(ingress, at, before), ...placeHostErrors(ingress, at)];
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
          ...faults('spec.controller', controller, checkDomainPath(controller)),
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
  } else addAll(errors, faults(`${at}.namespace`, namespace, checkLabelName(namespace)));
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
    if (group !== '') addAll(errors, faults('spec.parentRef.group', group, checkSubdomain(group)));
    for (const field of ['resource', 'name', 'namespace']) {
      const text = textAt(parent, field);
      if (text !== '') addAll(errors, faults(`spec.parentRef.${field}`, text, checkPathSegment(text)));
      else if (field !== 'namespace') errors.push(required(`spec.parentRef.${field}`));
    }
  }
  return old === undefined ? errors : [...errors, ...immutable({ object, old, path: 'spec.parentRef' })];
}

const ONE_PER_FAMILY = 'may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64';

function* validateServiceCidr(object: JsonObject, old?: JsonObject): Steps<readonly FieldError[]> {
  const judging = newJudging();
  const { errors } = judging;
  const at = 'spec.cidrs';
  const ranges = textsAt(object, 'spec', 'cidrs');
  const before = old === undefined ? undefined : textsAt(old, 'spec', 'cidrs');
  const judgeMoved = (count: number): Stops =>
    judgeEach(judging, ranges.slice(0, count), (range, i) =>
      range === before?.[i] ? [] : [invalid(`${at}[${i}]`, range, IMMUTABLE)],
    );
  if (before !== undefined && before.length === ranges.length) {
    yield* judgeMoved(ranges.length);
    return errors;
  }
  // A second family may be added, nothing else.
  if (before !== undefined && !(before.length === 1 && ranges.length === 2)) return [invalid(at, ranges, IMMUTABLE)];
  if (ranges.length === 0) return [required(at, 'at least one CIDR required')];
  if (ranges.length > 2) return [invalid(at, valueAt(object, 'spec'), 'may only hold up to 2 values')];
  if (before !== undefined) yield* judgeMoved(1);
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
