/**
 * Validation of Endpoints and EndpointSlices. Loopback addresses are let through, which upstream refuses: guests have
 * them here.
 */
import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import { parseAddress } from '@coracle/apimachinery/meta/ip-address';
import { checkLabelName, checkSubdomain } from '@coracle/apimachinery/meta/name-rules';
import type { FieldError } from '@coracle/apimachinery/meta/status';
import { type JsonObject, listAt, objectsAt, textAt, textsAt } from '@coracle/apimachinery/types/read-value';
import {
  duplicate,
  invalid,
  invalidEach,
  required,
  validateEach,
  validateNested,
} from '@coracle/apimachinery/validation/field-errors';
import rules from './network-rules.json' with { type: 'json' };
import { IP_RULE, specialAddressProblem } from './strict-addresses.ts';
import { byRules, type RuleCheck, validateByRules } from './table-rules.ts';

/** Addresses that are nobody's: none, and those of the link. */
function specialErrors(ip: string, at: string): FieldError[] {
  const problem = parseAddress(ip) ? specialAddressProblem(ip, { loopback: false }) : 'must be a valid IP address';
  return problem === undefined ? [] : [invalid(at, ip, problem)];
}

const address: RuleCheck = (errors, self, { at }) => {
  const ip = textAt(self, 'ip');
  if (!parseAddress(ip)) {
    errors.push(invalid(`${at}.ip`, ip, IP_RULE));
    return;
  }
  errors.push(...specialErrors(ip, `${at}.ip`));
  validateByRules(errors, rules.address, { self, at });
};

const ports: RuleCheck = (errors, value, { at }) => {
  const all = objectsAt(value);
  validateNested(errors, all, (self, i) => {
    if (all.length > 1 && textAt(self, 'name') === '') errors.push(required(`${at}[${i}].name`));
    validateByRules(errors, rules.port, { self, at: `${at}[${i}]`, tables: rules });
  });
};

const validateSubsets = byRules(rules.endpoints, { checks: { address, ports } });

/** Subsets are validated where they change: what was let in once may be labelled. */
export const validateEndpoints = (object: JsonObject, old?: JsonObject): readonly FieldError[] =>
  old !== undefined && deepEqual(listAt(object, 'subsets'), listAt(old, 'subsets')) ? [] : validateSubsets(object, old);

const MAX_ENDPOINTS = 1000;
const MAX_PORTS = 20_000;

const endpoints: RuleCheck = (errors, value, { at, self: slice }) => {
  const all = objectsAt(value);
  const type = textAt(slice, 'addressType');
  const addresses: RuleCheck = (errors, value, { at }) =>
    validateEach(errors, textsAt(value), (address, i) => addressErrors(address, type, `${at}[${i}]`));
  validateNested(errors, all.length > MAX_ENDPOINTS ? [] : all, (self, i) =>
    validateByRules(errors, rules.endpoint, { self, at: `${at}[${i}]`, checks: { addresses } }),
  );
};

function addressErrors(address: string, type: string, at: string): FieldError[] {
  if (type === 'FQDN') {
    if (address === '') return [required(at)];
    const name = address.endsWith('.') ? address.slice(0, -1) : address;
    const details = checkSubdomain(name);
    if (details.length > 0) return invalidEach(at, address, details);
    return name.includes('.')
      ? []
      : [invalid(at, name, 'should be a domain with at least two segments separated by dots')];
  }
  const family = type === 'IPv4' ? 4 : 6;
  if (type !== 'IPv4' && type !== 'IPv6') return [];
  const wrong =
    parseAddress(address)?.family === family ? [] : [invalid(at, address, `must be a valid ${type} address`)];
  return [...wrong, ...specialErrors(address, at)];
}

const slicePorts: RuleCheck = (errors, value, { at: path }) => {
  const all = objectsAt(value);
  const names = new Set<string>();
  validateNested(errors, all.length > MAX_PORTS ? [] : all, (self, i) => {
    const at = `${path}[${i}]`;
    const name = textAt(self, 'name');
    if (name !== '') errors.push(...invalidEach(`${at}.name`, name, checkLabelName(name)));
    if (names.has(name)) errors.push(duplicate(`${at}.name`, name));
    names.add(name);
    validateByRules(errors, rules.protocols, { self, at });
  });
};

export const validateSlice = byRules(rules.slice, { checks: { endpoints, slicePorts } });
