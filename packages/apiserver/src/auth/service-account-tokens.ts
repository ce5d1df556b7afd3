/**
 * Service-account tokens: JWTs signed with ES256 and bound to objects (KEP-1205). A token is good only as long as its
 * service account, and whatever it is bound to, still exist with the same uid.
 */
import { decodeBase64Url, encodeBase64Url } from '@coracle/apimachinery/meta/base64';
import { goQuote, goQuoteAll } from '@coracle/apimachinery/meta/go-text';
import type { Clock } from '@coracle/runtime/clock/clock';
import { BoundedMap } from './bounded-map.ts';
import type { CredentialNotes, UserInfo } from './identity.ts';
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

/** A token whose signature is good: what is left to ask each time. A text says why it is refused. */
interface CacheEntry {
  readonly verify: (audiences: readonly string[], notes?: CredentialNotes) => VerifiedToken | string;
}

const INVALIDATED = 'service account token has been invalidated';

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

  /** Why a token does not count any more; undefined while all that it is bound to is there (claims.go, Validate). */
  const unboundProblem = ({ 'kubernetes.io': private_ }: Payload): string | undefined => {
    const { namespace, serviceaccount, pod, node, secret } = private_;
    const account = findUid('ServiceAccount', namespace, serviceaccount.name);
    if (account === undefined) return `serviceaccounts ${goQuote(serviceaccount.name)} not found`;
    if (account !== serviceaccount.uid)
      return `service account UID (${account}) does not match claim (${serviceaccount.uid})`;
    const bound: [BoundObject['kind'], { name: string; uid?: string } | undefined][] = [
      ['Secret', secret],
      ['Pod', pod],
      // The node of a Pod's token is a remark: what counts is the Pod.
      ['Node', pod === undefined ? node : undefined],
    ];
    for (const [kind, ref] of bound) {
      if (ref === undefined) continue;
      const uid = findUid(kind, kind === 'Node' ? '' : namespace, ref.name);
      if (uid === undefined) return INVALIDATED;
      const word = kind.toLowerCase();
      if (uid !== ref.uid) return `${word} UID (${uid}) does not match service account ${word} ref claim (${ref.uid})`;
    }
    return undefined;
  };

  const boundEntry = (payload: Payload): CacheEntry => {
    const user = userOf(payload);
    const verified = { user, audiences: payload.aud };
    return {
      verify(audiences, notes) {
        const now = clock.now() / 1000;
        if (!payload.aud.some((audience) => audiences.includes(audience))) return wrongAudience(payload.aud, audiences);
        if (payload.exp <= now) return 'service account token has expired';
        if (payload.nbf > now + LEEWAY_SECONDS) return 'service account token is not valid yet';
        const problem = unboundProblem(payload);
        if (problem !== undefined) return problem;
        noteStale(payload, now, notes);
        return verified;
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
      verify(audiences, notes) {
        notes?.annotate('authentication.k8s.io/legacy-token', payload.sub);
        if (!audiences.includes(issuer)) return wrongAudience([issuer], audiences);
        if (findUid('Secret', namespace, secret) === undefined) return 'Token has been invalidated';
        if (options.secretToken?.(namespace, secret) !== token) return "Token does not match server's copy";
        const account = findUid('ServiceAccount', namespace, name);
        if (account === undefined) return `serviceaccounts ${goQuote(name)} not found`;
        if (account !== uid) return `ServiceAccount UID (${account}) does not match claim (${uid})`;
        return verified;
      },
    };
  };

  const parse = async (token: string): Promise<CacheEntry | string | undefined> => {
    const [head, body, signature, ...rest] = token.split('.');
    if (!head || !body || !signature || rest.length > 0) return undefined;
    try {
      const payload = JSON.parse(new TextDecoder().decode(decodeBase64Url(body))) as Payload | LegacyPayload;
      // Not believed yet: only whether it says that it is one of ours.
      if (payload?.iss !== issuer && payload?.iss !== LEGACY_ISSUER) return undefined;
      if (head !== header) return 'invalid signature, no keys found';
      const good = await crypto.subtle.verify(
        ALGORITHM,
        publicKey,
        decodeBase64Url(signature),
        encoder.encode(`${head}.${body}`),
      );
      if (!good) return 'go-jose/go-jose: error in cryptographic primitive';
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
    async verify(token, { audiences = [issuer], notes, refused } = {}) {
      if (token.length > MAX_TOKEN) return undefined;
      let entry = cache.get(token);
      if (!entry) {
        const parsed = await parse(token);
        if (parsed === undefined || typeof parsed === 'string') {
          if (parsed !== undefined) refused?.(parsed);
          return undefined;
        }
        entry = parsed;
        cache.set(token, entry);
      }
      const answer = entry.verify(audiences, notes);
      if (typeof answer !== 'string') return answer;
      refused?.(answer);
      return undefined;
    },
  };
}

const wrongAudience = (said: readonly string[], wanted: readonly string[]): string =>
  `token audiences ${goQuoteAll(said)} is invalid for the target audiences ${goQuoteAll(wanted)}`;

/** Who still uses a token after the time that was asked for, of one that was given longer. */
function noteStale({ sub, 'kubernetes.io': private_ }: Payload, now: number, notes: CredentialNotes | undefined): void {
  const { warnafter } = private_;
  if (warnafter === undefined || now <= warnafter) return;
  const seconds = Math.floor(now) - warnafter;
  notes?.annotate('authentication.k8s.io/stale-token', `subject: ${sub}, seconds after warning threshold: ${seconds}`);
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
