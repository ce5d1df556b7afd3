/**
 * Validation of Endpoints and EndpointSlices. Loopback addresses are let through, which upstream refuses: guests have
 * them here.
 */

import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import { type Address, parseAddress } from '@coracle/apimachinery/meta/ip-address';
import { checkLabelName, checkQualifiedName, checkSubdomain } from '@coracle/apimachinery/meta/name-rules';
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
import {
  duplicate,
  faults,
  immutable,
  invalid,
  isPort,
  oneOf,
  PORT_RANGE,
  required,
  tooMany,
  unsupported,
  validateEach,
  validateNested,
} from '@coracle/apimachinery/validation/field-errors';
import { PROTOCOLS } from './pod-spec.ts';
import { IP_RULE } from './strict-addresses.ts';

const ADDRESS_TYPES = ['FQDN', 'IPv4', 'IPv6'];
const MAX_ADDRESSES = 100;
const MAX_ENDPOINTS = 1000;
const MAX_PORTS = 20_000;
const MAX_TOPOLOGY = 16;

/** Addresses that are nobody's: none, and those of the link. */
function specialErrors(ip: string, at: string): FieldError[] {
  const address = parseAddress(ip);
  if (!address) return [invalid(at, ip, 'must be a valid IP address')];
  if (address.bits === 0n) return [invalid(at, ip, `may not be unspecified (${ip})`)];
  if (startsWith(address, [0xa9fe, 16], [0xfe80 >> 6, 10])) {
    return [invalid(at, ip, 'may not be in the link-local range (169.254.0.0/16, fe80::/10)')];
  }
  return startsWith(address, [0xe00000, 24], [0xff02, 16])
    ? [invalid(at, ip, 'may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)')]
    : [];
}

type Prefix = readonly [bits: number, length: number];

function startsWith({ family, bits }: Address, four: Prefix, six: Prefix): boolean {
  const [prefix, length] = family === 4 ? four : six;
  return bits >> BigInt((family === 4 ? 32 : 128) - length) === BigInt(prefix);
}

/** Subsets are validated where they change: what was let in once may be labelled. */
export function validateEndpoints(object: JsonObject, old?: JsonObject): readonly FieldError[] {
  const errors: FieldError[] = [];
  const before = old === undefined ? undefined : listAt(old, 'subsets');
  if (deepEqual(listAt(object, 'subsets'), before)) return errors;
  validateNested(errors, objectsAt(object, 'subsets'), (subset, i) => validateSubset(errors, subset, `subsets[${i}]`));
  return errors;
}

function validateSubset(errors: FieldError[], subset: JsonObject, path: string): void {
  if (listAt(subset, 'addresses').length === 0 && listAt(subset, 'notReadyAddresses').length === 0) {
    errors.push(required(path, 'must specify `addresses` or `notReadyAddresses`'));
  }
  for (const list of ['addresses', 'notReadyAddresses']) {
    validateEach(errors, objectsAt(subset, list), (address, i) => {
      const at = `${path}.${list}[${i}]`;
      const ip = textAt(address, 'ip');
      if (!parseAddress(ip)) return [invalid(`${at}.ip`, ip, IP_RULE)];
      const errors = specialErrors(ip, `${at}.ip`);
      const hostname = textAt(address, 'hostname');
      if (hostname !== '') errors.push(...faults(`${at}.hostname`, hostname, checkLabelName(hostname)));
      const node = valueAt(address, 'nodeName');
      if (typeof node === 'string') errors.push(...faults(`${at}.nodeName`, node, checkSubdomain(node)));
      return errors;
    });
  }
  const ports = objectsAt(subset, 'ports');
  validateEach(errors, ports, (port, i) => {
    const at = `${path}.ports[${i}]`;
    const name = textAt(port, 'name');
    const number = valueAt(port, 'port') ?? 0;
    const errors: FieldError[] = [];
    if (name === '' && ports.length > 1) errors.push(required(`${at}.name`));
    if (name !== '') errors.push(...faults(`${at}.name`, name, checkLabelName(name)));
    if (!isPort(number)) errors.push(invalid(`${at}.port`, number, PORT_RANGE));
    return [...errors, ...portErrors(port, at)];
  });
}

function portErrors(port: JsonObject, at: string): FieldError[] {
  const errors = oneOf(port, { name: 'protocol', path: `${at}.protocol` }, PROTOCOLS);
  const protocol = valueAt(port, 'appProtocol');
  if (typeof protocol === 'string') {
    errors.push(...faults(`${at}.appProtocol`, protocol, checkQualifiedName(protocol)));
  }
  return errors;
}

export function validateSlice(object: JsonObject, old?: JsonObject): readonly FieldError[] {
  const errors: FieldError[] = [];
  const type = textAt(object, 'addressType');
  if (type === '') errors.push(required('addressType'));
  else if (!ADDRESS_TYPES.includes(type)) errors.push(unsupported('addressType', type, ADDRESS_TYPES));
  const endpoints = objectsAt(object, 'endpoints');
  if (endpoints.length > MAX_ENDPOINTS) errors.push(tooMany('endpoints', endpoints.length, MAX_ENDPOINTS));
  else {
    validateNested(errors, endpoints, (endpoint, i) =>
      validateEndpoint(errors, endpoint, { path: `endpoints[${i}]`, type }),
    );
  }
  validateSlicePorts(errors, object);
  if (old !== undefined) errors.push(...immutable({ object, old, path: 'addressType' }));
  return errors;
}

function validateEndpoint(
  errors: FieldError[],
  endpoint: JsonObject,
  { path, type }: { readonly path: string; readonly type: string },
): void {
  const addresses = textsAt(endpoint, 'addresses');
  const at = `${path}.addresses`;
  if (addresses.length === 0) errors.push(required(at, 'must contain at least 1 address'));
  else if (addresses.length > MAX_ADDRESSES) errors.push(tooMany(at, addresses.length, MAX_ADDRESSES));
  validateEach(errors, addresses, (address, i) => addressErrors(address, type, `${at}[${i}]`));
  const node = valueAt(endpoint, 'nodeName');
  if (typeof node === 'string') errors.push(...faults(`${path}.nodeName`, node, checkSubdomain(node)));
  const topology = valueAt(endpoint, 'deprecatedTopology');
  if (isObject(topology) && Object.keys(topology).length > MAX_TOPOLOGY) {
    errors.push(tooMany(`${path}.deprecatedTopology`, Object.keys(topology).length, MAX_TOPOLOGY));
  }
  const hostname = valueAt(endpoint, 'hostname');
  if (typeof hostname === 'string') errors.push(...faults(`${path}.hostname`, hostname, checkLabelName(hostname)));
}

function addressErrors(address: string, type: string, at: string): FieldError[] {
  if (type === 'FQDN') {
    if (address === '') return [required(at)];
    const name = address.endsWith('.') ? address.slice(0, -1) : address;
    const details = checkSubdomain(name);
    if (details.length > 0) return faults(at, address, details);
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

function validateSlicePorts(errors: FieldError[], object: JsonObject): void {
  const ports = objectsAt(object, 'ports');
  const names = new Set<string>();
  if (ports.length > MAX_PORTS) errors.push(tooMany('ports', ports.length, MAX_PORTS));
  validateEach(errors, ports.length > MAX_PORTS ? [] : ports, (port, i) => {
    const at = `ports[${i}]`;
    const name = textAt(port, 'name');
    const errors = name === '' ? [] : faults(`${at}.name`, name, checkLabelName(name));
    if (names.has(name)) errors.push(duplicate(`${at}.name`, name));
    names.add(name);
    return [...errors, ...portErrors(port, at)];
  });
}

/** Endpoints, of the core group. */
/** The group discovery.k8s.io. */
