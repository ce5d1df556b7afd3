/** What the status of Services and Ingresses says of the places of a load balancer (ValidateLoadBalancerStatus). */
import { checkSubdomain } from '@coracle/apimachinery/meta/name-rules';
import type { FieldError } from '@coracle/apimachinery/meta/status';
import { type JsonObject, textAt } from '@coracle/apimachinery/types/read-value';
import { faults, invalid } from '@coracle/apimachinery/validation/field-errors';
import { DNS_NOT_IP, isIp, legacyAddressFault } from './strict-addresses.ts';

/** What is wrong with the address of one place; those that stood there before (`known`) may stay. */
export function placeIpErrors(place: JsonObject, at: string, known: ReadonlySet<string>): FieldError[] {
  const ip = textAt(place, 'ip');
  const fault = ip === '' || known.has(ip) ? undefined : legacyAddressFault(ip);
  return fault === undefined ? [] : [invalid(`${at}.ip`, ip, fault)];
}

/** What is wrong with its name. */
export function placeHostErrors(place: JsonObject, at: string): FieldError[] {
  const host = textAt(place, 'hostname');
  if (host === '') return [];
  const errors = faults(`${at}.hostname`, host, checkSubdomain(host));
  return isIp(host) ? [...errors, invalid(`${at}.hostname`, host, DNS_NOT_IP)] : errors;
}
