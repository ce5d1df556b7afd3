/** Claims of a token, read one by one. Only own members count: a claim has any name a user likes. */
import type { JsonObject } from '../../api/meta/own-property.ts';

/** The token is the issuer's, and its claims are not what they have to be. */
export class ClaimsRefused extends Error {}

const ownClaim = (claims: JsonObject, name: string): unknown =>
  Object.hasOwn(claims, name) ? claims[name] : undefined;

/** A claim that is a text. Throws ClaimsRefused. */
export function textIn(claims: JsonObject, name: string): string {
  const value = ownClaim(claims, name);
  if (typeof value !== 'string') throw new ClaimsRefused(`claim ${name} is no text`);
  return value;
}

/** The name of the user, not empty. Throws ClaimsRefused. */
export function usernameIn(claims: JsonObject, name: string): string {
  const value = textIn(claims, name);
  if (value === '') throw new ClaimsRefused(`claim ${name} is empty`);
  // Without the claim the address is believed: not every issuer says that it has looked.
  const verified = ownClaim(claims, 'email_verified');
  if (name === 'email' && verified !== undefined && verified !== true)
    throw new ClaimsRefused('the address is not verified');
  return value;
}

/** A text or a list of texts; nothing when it is not there. Throws ClaimsRefused. */
export function groupsIn(claims: JsonObject, name: string): readonly string[] {
  const said = ownClaim(claims, name);
  if (said === undefined || said === null) return [];
  const list: readonly unknown[] = Array.isArray(said) ? said : [said];
  if (!list.every((one) => typeof one === 'string')) throw new ClaimsRefused(`claim ${name} is no list of texts`);
  return list as readonly string[];
}

/** Throws ClaimsRefused where the claim is missing or another. */
export function requireClaim(claims: JsonObject, name: string, value: string): void {
  if (ownClaim(claims, name) !== value) throw new ClaimsRefused(`claim ${name} is not as required`);
}
