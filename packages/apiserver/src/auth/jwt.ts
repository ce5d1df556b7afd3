/** JSON Web Tokens of issuers: their parts, and for whom and when they are good. Signatures are checked elsewhere. */

import { decodeBase64Url } from '@coracle/apimachinery/meta/base64';
import { goQuoteAll } from '@coracle/apimachinery/meta/go-text';
import { isJsonObject, type JsonObject } from '@coracle/apimachinery/meta/own-property';

/** Longest token looked at. */
const MAX_TOKEN = 64 * 1024;
/** Clocks may differ by this much about the beginning of a token. */
const NOT_BEFORE_LEEWAY_S = 300;

export interface TokenParts {
  readonly header: JsonObject;
  readonly claims: JsonObject;
  readonly text: Uint8Array<ArrayBuffer>;
  readonly signature: Uint8Array<ArrayBuffer>;
}

/** The parts of a compact JWS; undefined when it is none. */
export function readToken(token: string): TokenParts | undefined {
  if (token.length > MAX_TOKEN) return undefined;
  const [head, body, signature, ...rest] = token.split('.');
  if (!head || !body || !signature || rest.length > 0) return undefined;
  try {
    const [header, claims] = [head, body].map((part) => JSON.parse(new TextDecoder().decode(decodeBase64Url(part))));
    // Nothing here is understood that a token may declare critical.
    if (!isJsonObject(header) || !isJsonObject(claims) || header['crit'] !== undefined) return undefined;
    const text = new TextEncoder().encode(`${head}.${body}`);
    return { header, claims, text, signature: decodeBase64Url(signature) };
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
