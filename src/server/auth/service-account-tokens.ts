/**
 * Service-account tokens: JWTs signed with ES256 and bound to objects (KEP-1205). A token is good only as long as its
 * service account, and whatever it is bound to, still exist with the same uid.
 */
import { decodeBase64Url, encodeBase64Url } from '../../api/meta/base64.ts';
import type { Clock } from '../../base/clock/clock.ts';
import { BoundedMap } from './bounded-map.ts';
import type { UserInfo } from './identity.ts';
import { decodePem, encodePem } from './pem.ts';

export interface BoundObject {
  readonly kind: 'Pod' | 'Secret' | 'Node';
  readonly name: string;
  readonly uid: string;
}

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

/** Uid of a live (not terminating for long) object, or undefined. */
export type FindUid = (
  kind: 'ServiceAccount' | BoundObject['kind'],
  namespace: string,
  name: string,
) => string | undefined;

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
  verify(token: string, audiences?: readonly string[]): Promise<VerifiedToken | undefined>;
  /** The public key as a JSON Web Key Set document (RFC 7517). */
  readonly keySet: Readonly<Record<string, unknown>>;
  readonly issuer: string;
}

export interface VerifiedToken {
  readonly user: UserInfo;
  readonly audiences: readonly string[];
}

export interface TokenIssuerOptions {
  /** PKCS #8 PEM of a P-256 key. */
  readonly key: string;
  readonly issuer: string;
  readonly clock: Clock;
  readonly findUid: FindUid;
  /** The token a Secret holds now; legacy tokens are refused without. */
  readonly secretToken?: (namespace: string, name: string) => string | undefined;
}

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;
/** Verified tokens remembered, so that the signature is checked once. */
const CACHE_BOUND = 2048;
/** Clocks may differ by this much. */
const LEEWAY_SECONDS = 60;
/** Longest token looked at. */
const MAX_TOKEN = 8192;

interface Payload {
  iss: string;
  sub: string;
  aud: string[];
  iat: number;
  nbf: number;
  exp: number;
  jti: string;
  'kubernetes.io': {
    namespace: string;
    serviceaccount: { name: string; uid: string };
    pod?: { name: string; uid: string };
    node?: { name: string; uid?: string };
    secret?: { name: string; uid: string };
    warnafter?: number;
  };
}

const LEGACY_ISSUER = 'kubernetes/serviceaccount';

interface LegacyPayload {
  iss: typeof LEGACY_ISSUER;
  sub: string;
  'kubernetes.io/serviceaccount/namespace': string;
  'kubernetes.io/serviceaccount/secret.name': string;
  'kubernetes.io/serviceaccount/service-account.name': string;
  'kubernetes.io/serviceaccount/service-account.uid': string;
}

/** A token whose signature is good: what is left to ask each time. */
interface CacheEntry {
  readonly verify: (audiences: readonly string[]) => VerifiedToken | undefined;
}

const encoder = new TextEncoder();

/** Makes a new signing key, PKCS #8 PEM. */
export async function createSigningKey(): Promise<string> {
  const pair = (await crypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify'])) as CryptoKeyPair;
  return encodePem(await crypto.subtle.exportKey('pkcs8', pair.privateKey), 'PRIVATE KEY');
}

/** Opens an issuer on a signing key. Throws when the key does not parse. */
export async function createTokenIssuer(options: TokenIssuerOptions): Promise<TokenIssuer> {
  const { clock, issuer, findUid } = options;
  const privateKey = await crypto.subtle.importKey('pkcs8', decodePem(options.key), ALGORITHM, true, ['sign']);
  const { crv, kty, x, y } = await crypto.subtle.exportKey('jwk', privateKey);
  const publicJwk = { kty: kty!, crv: crv!, x: x!, y: y! };
  const publicKey = await crypto.subtle.importKey('jwk', publicJwk, ALGORITHM, true, ['verify']);
  // RFC 7638 thumbprint: members in lexicographic order.
  const thumbprint = encoder.encode(
    JSON.stringify({ crv: publicJwk.crv, kty: publicJwk.kty, x: publicJwk.x, y: publicJwk.y }),
  );
  const keyId = encodeBase64Url(new Uint8Array(await crypto.subtle.digest('SHA-256', thumbprint)));
  const header = encodeBase64Url(encoder.encode(JSON.stringify({ alg: 'ES256', kid: keyId })));
  const cache = new BoundedMap<string, CacheEntry>(CACHE_BOUND);

  const stillBound = ({ 'kubernetes.io': private_ }: Payload): boolean => {
    const { namespace, serviceaccount, pod, node, secret } = private_;
    if (findUid('ServiceAccount', namespace, serviceaccount.name) !== serviceaccount.uid) return false;
    if (pod && findUid('Pod', namespace, pod.name) !== pod.uid) return false;
    if (secret && findUid('Secret', namespace, secret.name) !== secret.uid) return false;
    return !node || pod !== undefined || findUid('Node', '', node.name) === node.uid;
  };

  const boundEntry = (payload: Payload): CacheEntry => {
    const user = userOf(payload);
    const verified = { user, audiences: payload.aud };
    return {
      verify(audiences) {
        const now = clock.now() / 1000;
        if (payload.iss !== issuer || payload.exp <= now || payload.nbf > now + LEEWAY_SECONDS) return undefined;
        if (!payload.aud.some((audience) => audiences.includes(audience))) return undefined;
        return stillBound(payload) ? verified : undefined;
      },
    };
  };

  const legacyEntry = (payload: LegacyPayload, token: string): CacheEntry => {
    const namespace = payload['kubernetes.io/serviceaccount/namespace'];
    const secret = payload['kubernetes.io/serviceaccount/secret.name'];
    const name = payload['kubernetes.io/serviceaccount/service-account.name'];
    const uid = payload['kubernetes.io/serviceaccount/service-account.uid'];
    const verified = { user: serviceAccountUser(namespace, name, uid), audiences: [issuer] };
    return {
      verify: (audiences) =>
        audiences.includes(issuer) &&
        findUid('Secret', namespace, secret) !== undefined &&
        options.secretToken?.(namespace, secret) === token &&
        findUid('ServiceAccount', namespace, name) === uid
          ? verified
          : undefined,
    };
  };

  const parse = async (token: string): Promise<CacheEntry | undefined> => {
    const [head, body, signature, ...rest] = token.split('.');
    if (head !== header || !body || !signature || rest.length > 0) return undefined;
    try {
      const good = await crypto.subtle.verify(
        ALGORITHM,
        publicKey,
        decodeBase64Url(signature),
        encoder.encode(`${head}.${body}`),
      );
      if (!good) return undefined;
      const payload = JSON.parse(new TextDecoder().decode(decodeBase64Url(body))) as Payload | LegacyPayload;
      return payload.iss === LEGACY_ISSUER
        ? legacyEntry(payload as LegacyPayload, token)
        : boundEntry(payload as Payload);
    } catch {
      return undefined; // not base64, not JSON: not a token of ours
    }
  };

  const signed = async (payload: Payload | LegacyPayload): Promise<string> => {
    const text = `${header}.${encodeBase64Url(encoder.encode(JSON.stringify(payload)))}`;
    const signature = await crypto.subtle.sign(ALGORITHM, privateKey, encoder.encode(text));
    return `${text}.${encodeBase64Url(new Uint8Array(signature))}`;
  };

  return {
    issuer,
    keySet: { keys: [{ use: 'sig', alg: 'ES256', kid: keyId, ...publicJwk }] },
    async sign(claims) {
      const now = Math.floor(clock.now() / 1000);
      const { namespace, serviceAccount, bound } = claims;
      const payload: Payload = {
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
      return { token: await signed(payload), expires: payload.exp * 1000, id: payload.jti };
    },
    signLegacy: ({ namespace, serviceAccount, secret }) =>
      signed({
        iss: LEGACY_ISSUER,
        'kubernetes.io/serviceaccount/namespace': namespace,
        'kubernetes.io/serviceaccount/secret.name': secret,
        'kubernetes.io/serviceaccount/service-account.name': serviceAccount.name,
        'kubernetes.io/serviceaccount/service-account.uid': serviceAccount.uid,
        sub: `system:serviceaccount:${namespace}:${serviceAccount.name}`,
      }),
    async verify(token, audiences = [issuer]) {
      if (token.length > MAX_TOKEN) return undefined;
      let entry = cache.get(token);
      if (!entry) {
        entry = await parse(token);
        if (!entry) return undefined;
        cache.set(token, entry);
      }
      return entry.verify(audiences);
    },
  };
}

/** The user a service account acts as, with the groups every service account has. */
export function serviceAccountUser(namespace: string, name: string, uid?: string): UserInfo {
  return {
    username: `system:serviceaccount:${namespace}:${name}`,
    ...(uid !== undefined && { uid }),
    groups: ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, 'system:authenticated'],
  };
}

function userOf(payload: Payload): UserInfo {
  const { namespace, serviceaccount, pod, node } = payload['kubernetes.io'];
  const extra: Record<string, string[]> = { 'authentication.kubernetes.io/credential-id': [`JTI=${payload.jti}`] };
  if (pod) {
    extra['authentication.kubernetes.io/pod-name'] = [pod.name];
    extra['authentication.kubernetes.io/pod-uid'] = [pod.uid];
  }
  if (node) {
    extra['authentication.kubernetes.io/node-name'] = [node.name];
    if (node.uid !== undefined) extra['authentication.kubernetes.io/node-uid'] = [node.uid];
  }
  return { ...serviceAccountUser(namespace, serviceaccount.name, serviceaccount.uid), extra };
}
