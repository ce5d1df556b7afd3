/**
 * Service-account tokens: JWTs signed with ES256 and bound to objects (KEP-1205). A token is good only as long as its
 * service account, and whatever it is bound to, still exist with the same uid.
 */
import { decodeBase64Url, encodeBase64Url } from '@coracle/apimachinery/meta/base64';
import { BoundedMap } from './bounded-map.ts';
import type { CredentialNotes } from './identity.ts';
import { decodePem, encodePem } from './pem.ts';
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
export interface LegacyTokenClaims {
  readonly namespace: string;
  readonly serviceAccount: { readonly name: string; readonly uid: string };
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

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;
/** Verified tokens remembered, so that the signature is checked once. */
const CACHE_BOUND = 2048;
/** Longest token looked at. */
const MAX_TOKEN = 8192;

const encoder = new TextEncoder();

/** Makes a new signing key, PKCS #8 PEM. */
export async function createSigningKey(): Promise<string> {
  const pair = (await crypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify'])) as CryptoKeyPair;
  return encodePem(await crypto.subtle.exportKey('pkcs8', pair.privateKey), 'PRIVATE KEY');
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
      return { token: await key.sign(payload), expires: payload.exp * 1000, id: payload.jti };
    },
    signLegacy: (claims) => key.sign(legacyPayloadOf(claims)),
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
      const answer = validity.verify(audiences, notes);
      if (typeof answer !== 'string') return answer;
      refused?.(answer);
      return undefined;
    },
  };
}

interface SigningKey {
  /** The public key as a JSON Web Key Set document (RFC 7517). */
  readonly keySet: Readonly<Record<string, unknown>>;
  /** The first part of each of its tokens. */
  readonly header: string;
  sign(payload: TokenPayload | LegacyPayload): Promise<string>;
  /** Whether it signed the first two parts of a token. Rejects when the signature is not base64. */
  hasSigned(text: string, signature: string): Promise<boolean>;
}

async function openSigningKey(pem: string): Promise<SigningKey> {
  const privateKey = await crypto.subtle.importKey('pkcs8', decodePem(pem), ALGORITHM, true, ['sign']);
  const { crv, kty, x, y } = await crypto.subtle.exportKey('jwk', privateKey);
  const publicJwk = { kty: kty!, crv: crv!, x: x!, y: y! };
  const publicKey = await crypto.subtle.importKey('jwk', publicJwk, ALGORITHM, true, ['verify']);
  // RFC 7638 thumbprint: members in lexicographic order.
  const thumbprint = encoder.encode(
    JSON.stringify({ crv: publicJwk.crv, kty: publicJwk.kty, x: publicJwk.x, y: publicJwk.y }),
  );
  const keyId = encodeBase64Url(new Uint8Array(await crypto.subtle.digest('SHA-256', thumbprint)));
  const header = encodeBase64Url(encoder.encode(JSON.stringify({ alg: 'ES256', kid: keyId })));
  return {
    header,
    keySet: { keys: [{ use: 'sig', alg: 'ES256', kid: keyId, ...publicJwk }] },
    async sign(payload) {
      const text = `${header}.${encodeBase64Url(encoder.encode(JSON.stringify(payload)))}`;
      const signature = await crypto.subtle.sign(ALGORITHM, privateKey, encoder.encode(text));
      return `${text}.${encodeBase64Url(new Uint8Array(signature))}`;
    },
    hasSigned: async (text, signature) =>
      crypto.subtle.verify(ALGORITHM, publicKey, decodeBase64Url(signature), encoder.encode(text)),
  };
}

/** What is left to ask of a token that the key signed; a text when it only says that it is one of ours. */
async function parse(
  token: string,
  key: SigningKey,
  facts: ValidityFacts,
): Promise<TokenValidity | string | undefined> {
  const [head, body, signature, ...rest] = token.split('.');
  if (!head || !body || !signature || rest.length > 0) return undefined;
  try {
    const payload = JSON.parse(new TextDecoder().decode(decodeBase64Url(body))) as TokenPayload | LegacyPayload;
    // Not believed yet: only whether it says that it is one of ours.
    if (payload?.iss !== facts.issuer && payload?.iss !== LEGACY_ISSUER) return undefined;
    if (head !== key.header) return 'invalid signature, no keys found';
    if (!(await key.hasSigned(`${head}.${body}`, signature)))
      return 'go-jose/go-jose: error in cryptographic primitive';
    return payload.iss === LEGACY_ISSUER
      ? legacyValidity(payload as LegacyPayload, token, facts)
      : boundValidity(payload as TokenPayload, facts);
  } catch {
    return undefined; // not base64, not JSON: not a token of ours
  }
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
