/** Validation of networking.k8s.io: network policies, addresses and ranges of Services. */
import type { FieldError } from '@coracle/apimachinery/meta/status';
import { isObject, type JsonObject, objectsAt, textAt, textsAt, valueAt } from '@coracle/apimachinery/types/read-value';
import { type IpRange, parseIpRange } from '@coracle/apimachinery/types/service-cidrs';
import {
  IMMUTABLE,
  invalid,
  required,
  type Validate,
  validateEach,
} from '@coracle/apimachinery/validation/field-errors';
import rules from './network-rules.json' with { type: 'json' };
import { legacyNetworkProblem, networkProblem } from './strict-addresses.ts';
import { byRules, type RuleCheck } from './table-rules.ts';

/** The networks of a peer. Those that stood in the policy before may stay as they are. */
const blockOf =
  (before: ReadonlySet<string>): RuleCheck =>
  (errors, block, { at }) => {
    if (!isObject(block)) return;
    const cidr = textAt(block, 'cidr');
    if (cidr === '') {
      errors.push(required(`${at}.cidr`));
      return;
    }
    const validateNetwork = (network: string, path: string): FieldError[] => {
      const problem = before.has(network) ? undefined : legacyNetworkProblem(network);
      return problem === undefined ? [] : [invalid(path, network, problem)];
    };
    errors.push(...validateNetwork(cidr, `${at}.cidr`));
    const whole = parseIpRange(cidr);
    validateEach(errors, textsAt(block, 'except'), (except, i) => {
      const path = `${at}.except[${i}]`;
      const part = parseIpRange(except);
      const isOutside = whole !== undefined && part !== undefined && !isWithin(part, whole);
      const outside = isOutside ? [invalid(path, except, 'must be a strict subset of `cidr`')] : [];
      return [...validateNetwork(except, path), ...outside];
    });
  };

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

export const validateNetworkPolicy: Validate = (object, old) =>
  byRules(rules.networkPolicy, { tables: rules, checks: { block: blockOf(new Set(networksOf(old))) } })(object, old);

export const validateIpAddress = byRules(rules.ipAddress);

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
    const problem = networkProblem(range);
    if (problem !== undefined) errors.push(invalid(`${at}[${i}]`, range, problem));
  }
  const [first, second] = ranges;
  if (errors.length === 0 && second !== undefined && first!.includes(':') === second.includes(':')) {
    errors.push(invalid(at, ranges, ONE_PER_FAMILY));
  }
  return errors;
}
