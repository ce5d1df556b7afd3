/** JSON Web Tokens of issuers: their parts, and for whom and when they are good. Signatures are checked elsewhere. */

import { decodeBase64Url } from '@coracle/apimachinery/meta/base64';
import { goQuoteAll } from '@coracle/apimachinery/meta/go-text';
import type { JsonObject } from '@coracle/apimachinery/meta/own-property';
import { decodeProtectedHeader } from 'jose/decode/protected_header';
import { decodeJwt } from 'jose/jwt/decode';

/** Longest token looked at. */
const MAX_TOKEN = 64 * 1024;
/** Clocks may differ by this much about the beginning of a token. */
const NOT_BEFORE_LEEWAY_S = 300;

/** Header and claims of a compact JWS, which nobody vouches for yet; undefined when it is none. */
export function readToken(token: string): { readonly header: JsonObject; readonly claims: JsonObject } | undefined {
  if (token.length > MAX_TOKEN) return undefined;
  try {
    // The library reads other spellings of the same bytes: one token must not pass as several.
    for (const part of token.split('.')) decodeBase64Url(part);
    const header = { ...decodeProtectedHeader(token) };
    // Nothing here is understood that a token may declare critical.
    return header.crit === undefined ? { header, claims: decodeJwt(token) } : undefined;
  } catch {
    return undefined;
  }
}

/** Why a token is not for one of `audiences` now, as go-oidc tells it; undefined when it is. */
export function validityProblem(
  audiences: readonly string[],
  { aud, exp, nbf }: JsonObject,
  now: number,
): string | undefined {
  const said: unknown[] = Array.isArray(aud) ? aud : aud === undefined ? [] : [aud];
  if (typeof exp !== 'number' || exp * 1000 <= now) return `oidc: token is expired (Token Expiry: ${goTime(exp)})`;
  if (typeof nbf === 'number' && nbf * 1000 > now + NOT_BEFORE_LEEWAY_S * 1000)
    return `oidc: current time ${goTime(now / 1000)} before the nbf (not before) time: ${goTime(nbf)}`;
  if (audiences.some((audience) => said.includes(audience))) return undefined;
  return `oidc: expected audience in ${goQuoteAll([...audiences].sort())} got ${goQuoteAll(said.map(String))}`;
}

/** Seconds since the epoch as Go prints a time; what is none is its zero. */
function goTime(seconds: unknown): string {
  const at = new Date(typeof seconds === 'number' ? Math.trunc(seconds) * 1000 : Number.NaN);
  const text = Number.isNaN(at.getTime()) ? '0001-01-01T00:00:00' : at.toISOString().slice(0, -5);
  return `${text.replace('T', ' ')} +0000 UTC`;
}
