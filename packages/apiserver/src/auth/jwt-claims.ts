/**
 * Claims of a token, read one by one. Only own members count: a claim has any name a user likes. What is wrong is reported in
 * the words of upstream's authenticator (apiserver plugin/pkg/authenticator/token/oidc).
 */
import { goQuote, wrongType } from '@coracle/apimachinery/meta/go-text';
import type { JsonObject } from '@coracle/apimachinery/meta/own-property';

/** The token is the issuer's, and its claims are not what they have to be. */
export class ClaimsRefused extends Error {}

const ownClaim = (claims: JsonObject, name: string): unknown =>
  Object.hasOwn(claims, name) ? claims[name] : undefined;

/** A claim that is a text; `what` says how it was read. Throws ClaimsRefused. */
export function textIn(claims: JsonObject, name: string, what = 'parse uid claim'): string {
  const value = ownClaim(claims, name);
  if (typeof value === 'string') return value;
  const why = value === undefined || value === null ? 'claim not present' : wrongType(value, 'string');
  throw new ClaimsRefused(`oidc: ${what} ${goQuote(name)}: ${why}`);
}

/** The name of the user, not empty. Throws ClaimsRefused. */
export function usernameIn(claims: JsonObject, name: string): string {
  const value = textIn(claims, name, 'parse username claims');
  if (value === '') throw new ClaimsRefused(`oidc: parse username claims ${goQuote(name)}: claim is empty`);
  // Without the claim the address is believed: not every issuer says that it has looked.
  const verified = ownClaim(claims, 'email_verified');
  if (name !== 'email' || verified === undefined || verified === true) return value;
  if (typeof verified === 'boolean' || verified === null) throw new ClaimsRefused('oidc: email not verified');
  throw new ClaimsRefused(`oidc: parse 'email_verified' claim: ${wrongType(verified, 'bool')}`);
}

/** A text or a list of texts; nothing when it is not there. Throws ClaimsRefused. */
export function groupsIn(claims: JsonObject, name: string): readonly string[] {
  const said = ownClaim(claims, name);
  if (said === undefined || said === null) return [];
  const list: readonly unknown[] = Array.isArray(said) ? said : [said];
  if (!list.every((one) => typeof one === 'string'))
    throw new ClaimsRefused(`oidc: parse groups claim ${goQuote(name)}: ${wrongType(said, 'string')}`);
  return list as readonly string[];
}

/** Throws ClaimsRefused where the claim is missing or another. */
export function requireClaim(claims: JsonObject, name: string, wanted: string): void {
  const value = ownClaim(claims, name);
  if (value === wanted) return;
  if (value === undefined) throw new ClaimsRefused(`oidc: required claim ${name} not present in ID token`);
  if (typeof value !== 'string') throw new ClaimsRefused(`oidc: parse claim ${name}: ${wrongType(value, 'string')}`);
  throw new ClaimsRefused(`oidc: required claim ${name} value does not match. Got = ${value}, want = ${wanted}`);
}
