/**
 * Users by ID tokens of an OpenID Connect issuer (apiserver plugin/pkg/authenticator/token/oidc): a signed statement
 * that names the issuer, this cluster as its audience, and the user in one of its claims.
 */
import { decodeBase64Url } from '../../api/meta/base64.ts';
import { isJsonObject, type JsonObject } from '../../api/meta/own-property.ts';
import type { Clock } from '../../base/clock/clock.ts';
import type { Logger } from '../../base/log/log.ts';
import type { ConnectOutbound } from '../outbound/outbound.ts';
import { BoundedMap } from './bounded-map.ts';
import type { UserInfo } from './identity.ts';
import { createIssuerKeys } from './oidc-keys.ts';
import type { AskTokenUser } from './token-authenticator.ts';

export interface OidcSettings {
  /** https, as the `iss` of tokens has it. */
  readonly issuerUrl: string;
  readonly clientId: string;
  readonly usernameClaim: string;
  /** Put before every name; '' = nothing. */
  readonly usernamePrefix: string;
  /** None when absent: users have no groups but `system:authenticated`. */
  readonly groupsClaim?: string;
  readonly groupsPrefix: string;
  /** Of `SIGNING_ALGORITHMS`. */
  readonly signingAlgorithms: readonly string[];
  /** Claims a token must have, with these values. */
  readonly requiredClaims: Readonly<Record<string, string>>;
  /** PEM; absent = what the host trusts. */
  readonly ca?: string;
}

/** As kube-apiserver has them when the flags are not given. */
export const oidcDefaults = ({ issuerUrl, usernameClaim = 'sub' }: { issuerUrl: string; usernameClaim?: string }) => ({
  usernameClaim,
  // Names of different issuers must not meet; addresses are theirs alone.
  usernamePrefix: usernameClaim === 'email' ? '' : `${issuerUrl}#`,
  groupsPrefix: '',
  signingAlgorithms: ['RS256'],
  requiredClaims: {},
});

/** Longest token looked at. */
const MAX_TOKEN = 64 * 1024;
/** Tokens remembered, so that a signature is not checked with every request of its user. */
const CACHE_BOUND = 1024;
/** For how long; after it the issuer may have taken its key back. */
const CACHE_MS = 10_000;
/** Clocks may differ by this much about the beginning of a token. */
const NOT_BEFORE_LEEWAY_S = 300;

interface Cached {
  readonly user: UserInfo;
  readonly expires: number;
  goodUntil: number;
}

/** Knows the tokens of one issuer; of all others it says nothing. */
export function createOidcUsers(
  settings: OidcSettings,
  { connect, clock, log }: { readonly connect: ConnectOutbound; readonly clock: Clock; readonly log: Logger },
): AskTokenUser {
  const { issuerUrl, ca, signingAlgorithms } = settings;
  const keys = createIssuerKeys({ issuerUrl, connect, clock, ...(ca !== undefined && { ca }) });
  const cache = new BoundedMap<string, Cached>(CACHE_BOUND);
  return async (token) => {
    const known = cache.get(token);
    if (known && clock.now() < known.goodUntil) return known.user;
    const parts = token.length > MAX_TOKEN ? undefined : readToken(token);
    if (parts === undefined || parts.claims['iss'] !== issuerUrl) return undefined;
    const { header, claims, text, signature } = parts;
    const { alg: algorithm, kid } = header;
    if (typeof algorithm !== 'string' || !signingAlgorithms.includes(algorithm)) return undefined;
    // What is said is looked at first: a stranger's token must not cost a signature.
    const read = readClaims(settings, claims, clock.now());
    if ('refused' in read) {
      log.debug('token of the OIDC issuer refused', { why: read.refused });
      return undefined;
    }
    const keyId = typeof kid === 'string' ? kid : undefined;
    try {
      if (!(await keys.verify({ algorithm, keyId, signature, text }))) return undefined;
    } catch (error) {
      log.warn('the OIDC issuer cannot be asked for its keys', { issuer: issuerUrl, error: String(error) });
      return undefined;
    }
    const user = known?.user ?? read.user;
    const { expires } = read;
    cache.set(token, { user, expires, goodUntil: Math.min(expires, clock.now() + CACHE_MS) });
    return user;
  };
}

interface TokenParts {
  readonly header: JsonObject;
  readonly claims: JsonObject;
  readonly text: Uint8Array<ArrayBuffer>;
  readonly signature: Uint8Array<ArrayBuffer>;
}

/** The parts of a compact JWS; undefined when it is none. */
function readToken(token: string): TokenParts | undefined {
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

type Read = { readonly user: UserInfo; readonly expires: number } | { readonly refused: string };

function readClaims(settings: OidcSettings, claims: JsonObject, now: number): Read {
  const { clientId, usernameClaim, requiredClaims } = settings;
  const { aud, exp, nbf, jti } = claims;
  if (aud !== clientId && !(Array.isArray(aud) && aud.includes(clientId))) return { refused: 'another audience' };
  if (typeof exp !== 'number' || exp * 1000 <= now) return { refused: 'expired' };
  if (typeof nbf === 'number' && nbf * 1000 > now + NOT_BEFORE_LEEWAY_S * 1000) return { refused: 'not valid yet' };
  const missing = Object.entries(requiredClaims).find(([name, value]) => ownClaim(claims, name) !== value);
  if (missing) return { refused: `claim ${missing[0]} is not as required` };
  const name = ownClaim(claims, usernameClaim);
  if (typeof name !== 'string' || name === '') return { refused: `no claim ${usernameClaim}` };
  // Without the claim the address is believed: not every issuer says that it has looked.
  if (usernameClaim === 'email' && claims['email_verified'] !== undefined && claims['email_verified'] !== true) {
    return { refused: 'the address is not verified' };
  }
  const groups = groupsOf(settings, claims);
  if (groups === undefined) return { refused: `claim ${settings.groupsClaim} is no list of texts` };
  return {
    expires: exp * 1000,
    user: {
      username: `${settings.usernamePrefix}${name}`,
      groups: [...groups, 'system:authenticated'],
      ...(typeof jti === 'string' &&
        jti !== '' && { extra: { 'authentication.kubernetes.io/credential-id': [`JTI=${jti}`] } }),
    },
  };
}

/** A text or a list of texts; undefined for anything else. */
function groupsOf({ groupsClaim, groupsPrefix }: OidcSettings, claims: JsonObject): string[] | undefined {
  const said = groupsClaim === undefined ? undefined : ownClaim(claims, groupsClaim);
  if (said === undefined || said === null) return [];
  const list = Array.isArray(said) ? said : [said];
  return list.every((one) => typeof one === 'string') ? list.map((one) => `${groupsPrefix}${one}`) : undefined;
}

const ownClaim = (claims: JsonObject, name: string): unknown =>
  Object.hasOwn(claims, name) ? claims[name] : undefined;
