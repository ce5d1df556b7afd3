/**
 * Service-account tokens: JWTs signed with ES256 and bound to objects (KEP-1205). A token is good only as long as its
 * service account, and whatever it is bound to, still exist with the same uid.
 */
import { calculateJwkThumbprint } from 'jose/jwk/thumbprint';
import { compactVerify } from 'jose/jws/compact/verify';
import { SignJWT } from 'jose/jwt/sign';
import { exportJWK, exportPKCS8 } from 'jose/key/export';
import { generateKeyPair } from 'jose/key/generate/keypair';
import { importJWK, importPKCS8 } from 'jose/key/import';
import { BoundedMap } from './bounded-map.ts';
import type { CredentialNotes } from './identity.ts';
import { readToken } from './jwt.ts';
import {
  type BoundObject,
  boundValidity,
  LEGACY_ISSUER,
  type LegacyPayload,
  legacyValidity,
  type TokenPayload,
  type TokenValidity,
  type ValidityFacts,
  type VerifiedToken,
} from './token-validity.ts';

export interface TokenClaims {
  readonly namespace: string;
  readonly serviceAccount: { readonly name: string; readonly uid: string };
  readonly bound?: BoundObject;
  /** The node of the bound Pod; without a uid when there is no such Node. */
  readonly node?: { readonly name: string; readonly uid?: string };
  /** Seconds after which use of the token is late, for one that outlives what was asked for. */
  readonly warnAfterSeconds?: number;
  readonly audiences: readonly string[];
  readonly expirationSeconds: number;
}

/** What a Secret of type `kubernetes.io/service-account-token` holds a token for. */
export interface LegacyTokenClaims extends Pick<TokenClaims, 'namespace' | 'serviceAccount'> {
  readonly secret: string;
}

export interface TokenIssuer {
  /** Signs a token. Returns it, its expiry (ms since the epoch) and its id. */
  sign(claims: TokenClaims): Promise<{ token: string; expires: number; id: string }>;
  /** Signs a token without an end, good as long as the Secret holds it. */
  signLegacy(claims: LegacyTokenClaims): Promise<string>;
  /** The user of a valid token with one of the given audiences; undefined when the token is not one of ours or not valid. */
  verify(token: string, use?: TokenUse): Promise<VerifiedToken | undefined>;
  /** The public key as a JSON Web Key Set document (RFC 7517). */
  readonly keySet: Readonly<Record<string, unknown>>;
  readonly issuer: string;
}

/** One use of a token: for whom it should be good (the API when not given), and where to note what it tells of itself. */
export interface TokenUse {
  readonly audiences?: readonly string[];
  readonly notes?: CredentialNotes | undefined;
  /** Called with why a token is refused by those who take it for one of theirs. */
  readonly refused?: ((why: string) => void) | undefined;
}

export interface TokenIssuerOptions extends ValidityFacts {
  /** PKCS #8 PEM of a P-256 key. */
  readonly key: string;
}

const ALGORITHM = 'ES256';
/** Verified tokens remembered, so that the signature is checked once. */
const CACHE_BOUND = 2048;
/** Longest token looked at. */
const MAX_TOKEN = 8192;

/** Makes a new signing key, PKCS #8 PEM. */
export async function createSigningKey(): Promise<string> {
  const { privateKey } = await generateKeyPair(ALGORITHM, { extractable: true });
  return `${await exportPKCS8(privateKey)}\n`;
}

/** Opens an issuer on a signing key. Throws when the key does not parse. */
export async function createTokenIssuer(options: TokenIssuerOptions): Promise<TokenIssuer> {
  const { clock, issuer } = options;
  const key = await openSigningKey(options.key);
  const cache = new BoundedMap<string, TokenValidity>(CACHE_BOUND);

  return {
    issuer,
    keySet: key.keySet,
    async sign(claims) {
      const payload = payloadOf(claims, { issuer, now: Math.floor(clock.now() / 1000) });
      return { token: await signWith(key, payload), expires: payload.exp * 1000, id: payload.jti };
    },
    signLegacy: (claims) => signWith(key, legacyPayloadOf(claims)),
    async verify(token, { audiences = [issuer], notes, refused } = {}) {
      if (token.length > MAX_TOKEN) return undefined;
      let validity = cache.get(token);
      if (!validity) {
        const parsed = await parse(token, key, options);
        if (parsed === undefined || typeof parsed === 'string') {
          if (parsed !== undefined) refused?.(parsed);
          return undefined;
        }
        validity = parsed;
        cache.set(token, validity);
      }
      const answer = validity(audiences, notes);
      if (typeof answer !== 'string') return answer;
      refused?.(answer);
      return undefined;
    },
  };
}

type SigningKey = Awaited<ReturnType<typeof openSigningKey>>;

/** The key with its id, as the header of its tokens has it (RFC 7638), and with its public key as a JSON Web Key Set. */
async function openSigningKey(pem: string) {
  const privateKey = await importPKCS8(pem, ALGORITHM, { extractable: true });
  const { d: _private, ...jwk } = await exportJWK(privateKey);
  const id = await calculateJwkThumbprint(jwk);
  const publicKey = (await importJWK(jwk, ALGORITHM)) as CryptoKey;
  return { id, privateKey, publicKey, keySet: { keys: [{ use: 'sig', alg: ALGORITHM, kid: id, ...jwk }] } };
}

const signWith = ({ id, privateKey }: SigningKey, payload: object): Promise<string> =>
  new SignJWT({ ...payload }).setProtectedHeader({ alg: ALGORITHM, kid: id }).sign(privateKey);

/** What is left to ask of a token that the key signed; a text when it only says that it is one of ours. */
async function parse(
  token: string,
  key: SigningKey,
  facts: ValidityFacts,
): Promise<TokenValidity | string | undefined> {
  // Not believed yet: only whether it says that it is one of ours.
  const { header, claims } = readToken(token) ?? {};
  if (claims?.['iss'] !== facts.issuer && claims?.['iss'] !== LEGACY_ISSUER) return undefined;
  if (header?.['kid'] !== key.id || header['alg'] !== ALGORITHM) return 'invalid signature, no keys found';
  try {
    await compactVerify(token, key.publicKey, { algorithms: [ALGORITHM] });
  } catch {
    return 'go-jose/go-jose: error in cryptographic primitive';
  }
  return claims['iss'] === LEGACY_ISSUER
    ? legacyValidity(claims as unknown as LegacyPayload, token, facts)
    : boundValidity(claims as unknown as TokenPayload, facts);
}

function payloadOf(
  claims: TokenClaims,
  { issuer, now }: { readonly issuer: string; readonly now: number },
): TokenPayload {
  const { namespace, serviceAccount, bound } = claims;
  return {
    aud: [...claims.audiences],
    exp: now + claims.expirationSeconds,
    iat: now,
    iss: issuer,
    jti: crypto.randomUUID(),
    'kubernetes.io': {
      namespace,
      serviceaccount: serviceAccount,
      ...(bound && { [bound.kind.toLowerCase()]: { name: bound.name, uid: bound.uid } }),
      ...(claims.node && { node: claims.node }),
      ...(claims.warnAfterSeconds !== undefined && { warnafter: now + claims.warnAfterSeconds }),
    },
    nbf: now,
    sub: `system:serviceaccount:${namespace}:${serviceAccount.name}`,
  };
}

const legacyPayloadOf = ({ namespace, serviceAccount, secret }: LegacyTokenClaims): LegacyPayload => ({
  iss: LEGACY_ISSUER,
  'kubernetes.io/serviceaccount/namespace': namespace,
  'kubernetes.io/serviceaccount/secret.name': secret,
  'kubernetes.io/serviceaccount/service-account.name': serviceAccount.name,
  'kubernetes.io/serviceaccount/service-account.uid': serviceAccount.uid,
  sub: `system:serviceaccount:${namespace}:${serviceAccount.name}`,
});
