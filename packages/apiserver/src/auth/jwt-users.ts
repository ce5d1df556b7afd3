/**
 * Users by tokens that an issuer signed (apiserver plugin/pkg/authenticator/token/oidc): a statement that names the
 * issuer, this cluster among its audiences, and the user.
 */
import { goQuote, goQuoteAll } from '@coracle/apimachinery/meta/go-text';
import type { JsonObject } from '@coracle/apimachinery/meta/own-property';
import type { Logger } from '@coracle/runtime/log/log';
import { BoundedMap } from './bounded-map.ts';
import type { UserInfo } from './identity.ts';
import { readToken, validityProblem } from './jwt.ts';
import { ClaimsRefused } from './jwt-claims.ts';
import { createIssuerKeys, type IssuerOptions } from './oidc-keys.ts';
import type { LookUpTokenUser } from './token-authenticator.ts';

export interface JwtIssuer extends Pick<IssuerOptions, 'issuerUrl' | 'discoveryUrl' | 'ca'> {
  /** A token is for one of these at least. */
  readonly audiences: readonly string[];
  /** Of `SIGNING_ALGORITHMS`. */
  readonly signingAlgorithms: readonly string[];
  /** The user that the claims of a good token name. Throws ClaimsRefused. */
  readonly userOf: (claims: JsonObject) => UserInfo;
}

export interface JwtServices extends Pick<IssuerOptions, 'connect' | 'clock'> {
  readonly log: Logger;
}

/** Tokens remembered, so that a signature is not checked with every request of its user. */
const CACHE_BOUND = 1024;
/** For how long; after it the issuer may have taken its key back. */
const CACHE_MS = 10_000;
const UNVERIFIED = 'oidc: verify token: ';

/** Knows the tokens of one issuer; of all others it says nothing. */
export function createJwtUsers(issuer: JwtIssuer, { connect, clock, log }: JwtServices): LookUpTokenUser {
  const { issuerUrl, signingAlgorithms } = issuer;
  const isSigned = createIssuerKeys({ ...issuer, connect, clock });
  const cache = new BoundedMap<string, { readonly user: UserInfo; readonly goodUntil: number }>(CACHE_BOUND);
  return async (token, onRefusal) => {
    const refused = (why: string): undefined => {
      log.debug('token of an issuer refused', { issuer: issuerUrl, why });
      onRefusal?.(why);
      return undefined;
    };
    const known = cache.get(token);
    if (known && clock.now() < known.goodUntil) return known.user;
    const parts = readToken(token);
    if (parts === undefined || parts.claims['iss'] !== issuerUrl) return undefined;
    const { claims } = parts;
    const { alg: algorithm } = parts.header;
    if (typeof algorithm !== 'string' || !signingAlgorithms.includes(algorithm)) {
      const got = goQuote(String(algorithm ?? ''));
      const expected = goQuoteAll(signingAlgorithms);
      return refused(`${UNVERIFIED}oidc: id token signed with unsupported algorithm, expected ${expected} got ${got}`);
    }
    // For whom and when is looked at first: the token of an unknown issuer must not cost a signature.
    const problem = validityProblem(issuer.audiences, claims, clock.now());
    if (problem !== undefined) return refused(`${UNVERIFIED}${problem}`);
    try {
      if (!(await isSigned(token, algorithm)))
        return refused(`${UNVERIFIED}failed to verify signature: failed to verify id token signature`);
    } catch (error) {
      log.warn('the OIDC issuer cannot be asked for its keys', { issuer: issuerUrl, error: String(error) });
      return refused('oidc: authenticator not initialized');
    }
    let user: UserInfo;
    try {
      user = known?.user ?? named(issuer.userOf(claims), claims);
    } catch (error) {
      if (!(error instanceof ClaimsRefused)) throw error;
      return refused(error.message);
    }
    cache.set(token, { user, goodUntil: Math.min((claims['exp'] as number) * 1000, clock.now() + CACHE_MS) });
    return user;
  };
}

/** Knows the tokens of several issuers, which may become others while the server runs. */
export function createIssuersUsers(issuers: () => readonly JwtIssuer[], services: JwtServices): LookUpTokenUser {
  let built: { readonly from: readonly JwtIssuer[]; readonly users: ReadonlyMap<unknown, LookUpTokenUser> } | undefined;
  return async (token, refused) => {
    const from = issuers();
    if (built?.from !== from) {
      built = { from, users: new Map(from.map((issuer) => [issuer.issuerUrl, createJwtUsers(issuer, services)])) };
    }
    return built.users.get(readToken(token)?.claims['iss'])?.(token, refused);
  };
}

/** With what every token of an issuer gives its user. */
function named(user: UserInfo, { jti }: JsonObject): UserInfo {
  const id =
    typeof jti === 'string' && jti !== '' ? { 'authentication.kubernetes.io/credential-id': [`JTI=${jti}`] } : {};
  const extra = { ...user.extra, ...id };
  const { extra: _replaced, ...rest } = user;
  return {
    ...rest,
    groups: [...user.groups, 'system:authenticated'],
    ...(Object.keys(extra).length > 0 && { extra }),
  };
}
