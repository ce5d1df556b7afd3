/** Validation of networking.k8s.io: network policies, addresses and ranges of Services. */

import { checkPathSegment, checkSubdomain } from '@coracle/apimachinery/meta/name-rules';
import type { FieldError } from '@coracle/apimachinery/meta/status';
import {
  isObject,
  type JsonObject,
  listAt,
  objectsAt,
  textAt,
  textsAt,
  valueAt,
} from '@coracle/apimachinery/types/read-value';
import { type IpRange, parseIpRange } from '@coracle/apimachinery/types/service-cidrs';
import {
  addAll,
  faults,
  forbidden,
  IMMUTABLE,
  immutable,
  invalid,
  required,
  unsupported,
  validateEach,
  validateNested,
} from '@coracle/apimachinery/validation/field-errors';
import { validateSelectorField } from './admission-rules.ts';
import portRules from './policy-port-rules.json' with { type: 'json' };
import { addressFault, legacyNetworkFault, networkFault } from './strict-addresses.ts';
import { validateByRules } from './table-rules.ts';

/** Where a peer stands, and the networks that stood in the policy before: those may stay as they are. */
interface PeerPlace {
  readonly at: string;
  readonly before: ReadonlySet<string>;
}

function validatePeer(errors: FieldError[], peer: JsonObject, { at, before }: PeerPlace): void {
  const named = ['podSelector', 'namespaceSelector'].filter((field) => isObject(valueAt(peer, field)));
  const block = valueAt(peer, 'ipBlock');
  for (const field of named) validateSelectorField(errors, peer, { field, at });
  if (isObject(block)) validateBlock(errors, block, { at: `${at}.ipBlock`, before });
  if (named.length === 0 && !isObject(block)) errors.push(required(at, 'must specify a peer'));
  else if (named.length > 0 && isObject(block)) {
    errors.push(forbidden(at, 'may not specify both ipBlock and another peer'));
  }
}

function validateBlock(errors: FieldError[], block: JsonObject, { at, before }: PeerPlace): void {
  const cidr = textAt(block, 'cidr');
  if (cidr === '') {
    errors.push(required(`${at}.cidr`));
    return;
  }
  const validateRules = (network: string, path: string): FieldError[] => {
    const fault = before.has(network) ? undefined : legacyNetworkFault(network);
    return fault === undefined ? [] : [invalid(path, network, fault)];
  };
  errors.push(...validateRules(cidr, `${at}.cidr`));
  const whole = parseIpRange(cidr);
  validateEach(errors, textsAt(block, 'except'), (except, i) => {
    const path = `${at}.except[${i}]`;
    const part = parseIpRange(except);
    const isOutside = whole !== undefined && part !== undefined && !isWithin(part, whole);
    return [
      ...validateRules(except, path),
      ...(isOutside ? [invalid(path, except, 'must be a strict subset of `cidr`')] : []),
    ];
  });
}

const isWithin = (part: IpRange, whole: IpRange): boolean =>
  part.family === whole.family &&
  part.size < whole.size &&
  part.first >= whole.first &&
  part.first < whole.first + whole.size;

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

export function validateNetworkPolicy(object: JsonObject, old?: JsonObject): readonly FieldError[] {
  const errors: FieldError[] = [];
  const spec = valueAt(object, 'spec');
  const before = new Set(networksOf(old));
  validateSelectorField(errors, spec, { field: 'podSelector', at: 'spec' });
  for (const [direction, peers] of POLICY_PEERS) {
    validateNested(errors, objectsAt(spec, direction), (rule, i) =>
      validatePolicyRule(errors, rule, { at: `spec.${direction}[${i}]`, peers, before }),
    );
  }
  const types = listAt(spec, 'policyTypes');
  if (types.length > 2) {
    errors.push(invalid('spec.policyTypes', types, 'may not specify more than two policyTypes'));
    return errors;
  }
  for (const [i, type] of types.entries()) {
    if (type === 'Ingress' || type === 'Egress') continue;
    errors.push(unsupported(`spec.policyTypes[${i}]`, type, ['Ingress', 'Egress']));
  }
  return errors;
}

function validatePolicyRule(
  errors: FieldError[],
  rule: JsonObject,
  { at, peers, before }: PeerPlace & { readonly peers: 'from' | 'to' },
): void {
  validateNested(errors, objectsAt(rule, 'ports'), (port, j) =>
    validateByRules(errors, portRules, { self: port, at: `${at}.ports[${j}]`, name: '' }),
  );
  const validateRules = (peer: JsonObject, j: number) =>
    validatePeer(errors, peer, { at: `${at}.${peers}[${j}]`, before });
  validateNested(errors, objectsAt(rule, peers), validateRules);
}

export function validateIpAddress(object: JsonObject, old?: JsonObject): readonly FieldError[] {
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

export function validateServiceCidr(object: JsonObject, old?: JsonObject): readonly FieldError[] {
  const errors: FieldError[] = [];
  const at = 'spec.cidrs';
  const ranges = textsAt(object, 'spec', 'cidrs');
  const before = old === undefined ? undefined : textsAt(old, 'spec', 'cidrs');
  const validateMoved = (count: number): void =>
    validateEach(errors, ranges.slice(0, count), (range, i) =>
      range === before?.[i] ? [] : [invalid(`${at}[${i}]`, range, IMMUTABLE)],
    );
  if (before !== undefined && before.length === ranges.length) {
    validateMoved(ranges.length);
    return errors;
  }
  // A second family may be added, nothing else.
  if (before !== undefined && !(before.length === 1 && ranges.length === 2)) return [invalid(at, ranges, IMMUTABLE)];
  if (ranges.length === 0) return [required(at, 'at least one CIDR required')];
  if (ranges.length > 2) return [invalid(at, valueAt(object, 'spec'), 'may only hold up to 2 values')];
  if (before !== undefined) validateMoved(1);
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
