/**
 * What a service-account token says, and whether it still counts. That is asked at each use: what a token is bound to may
 * have gone since its signature was found good.
 */
import { goQuote, goQuoteAll } from '@coracle/apimachinery/meta/go-text';
import type { Clock } from '@coracle/runtime/clock/clock';
import type { CredentialNotes, UserInfo } from './identity.ts';

export interface BoundObject {
  readonly kind: 'Pod' | 'Secret' | 'Node';
  readonly name: string;
  readonly uid: string;
}

/** Uid of a live (not terminating for long) object, or undefined. */
export type FindUid = (
  kind: 'ServiceAccount' | BoundObject['kind'],
  namespace: string,
  name: string,
) => string | undefined;

export interface VerifiedToken {
  readonly user: UserInfo;
  readonly audiences: readonly string[];
}

/** What a token that is bound to objects says. */
export interface TokenPayload {
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

export const LEGACY_ISSUER = 'kubernetes/serviceaccount';

/** What the token of a Secret says. */
export interface LegacyPayload {
  iss: typeof LEGACY_ISSUER;
  sub: string;
  'kubernetes.io/serviceaccount/namespace': string;
  'kubernetes.io/serviceaccount/secret.name': string;
  'kubernetes.io/serviceaccount/service-account.name': string;
  'kubernetes.io/serviceaccount/service-account.uid': string;
}

/** What is looked at when a token is used. */
export interface ValidityFacts {
  readonly issuer: string;
  readonly clock: Pick<Clock, 'now'>;
  readonly findUid: FindUid;
  /** The token a Secret holds now; legacy tokens are refused without. */
  readonly secretToken?: (namespace: string, name: string) => string | undefined;
}

/** A token whose signature is good: what is left to ask each time. A text says why it is refused. */
export type TokenValidity = (audiences: readonly string[], notes?: CredentialNotes) => VerifiedToken | string;

/** Clocks may differ by this much. */
const LEEWAY_SECONDS = 60;
const INVALIDATED = 'service account token has been invalidated';

/** Of a token that is bound to objects (KEP-1205). */
export function boundValidity(
  payload: TokenPayload,
  { clock, findUid }: Pick<ValidityFacts, 'clock' | 'findUid'>,
): TokenValidity {
  const verified = { user: userOf(payload), audiences: payload.aud };
  return (audiences, notes) => {
    const now = clock.now() / 1000;
    if (!payload.aud.some((audience) => audiences.includes(audience))) return wrongAudience(payload.aud, audiences);
    if (payload.exp <= now) return 'service account token has expired';
    if (payload.nbf > now + LEEWAY_SECONDS) return 'service account token is not valid yet';
    const problem = unboundProblem(payload, findUid);
    if (problem !== undefined) return problem;
    noteStale(payload, now, notes);
    return verified;
  };
}

/** Of a token without an end: it is good while the Secret it was made for holds it. */
export function legacyValidity(
  payload: LegacyPayload,
  token: string,
  { issuer, findUid, secretToken }: ValidityFacts,
): TokenValidity {
  const namespace = payload['kubernetes.io/serviceaccount/namespace'];
  const secret = payload['kubernetes.io/serviceaccount/secret.name'];
  const name = payload['kubernetes.io/serviceaccount/service-account.name'];
  const uid = payload['kubernetes.io/serviceaccount/service-account.uid'];
  const verified = { user: serviceAccountUser(namespace, name, uid), audiences: [issuer] };
  return (audiences, notes) => {
    notes?.annotate('authentication.k8s.io/legacy-token', payload.sub);
    if (!audiences.includes(issuer)) return wrongAudience([issuer], audiences);
    if (findUid('Secret', namespace, secret) === undefined) return 'Token has been invalidated';
    if (secretToken?.(namespace, secret) !== token) return "Token does not match server's copy";
    const account = findUid('ServiceAccount', namespace, name);
    if (account === undefined) return `serviceaccounts ${goQuote(name)} not found`;
    if (account !== uid) return `ServiceAccount UID (${account}) does not match claim (${uid})`;
    return verified;
  };
}

/** Why a token does not count any more; undefined while all that it is bound to is there (claims.go, Validate). */
function unboundProblem({ 'kubernetes.io': private_ }: TokenPayload, findUid: FindUid): string | undefined {
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
}

const wrongAudience = (said: readonly string[], wanted: readonly string[]): string =>
  `token audiences ${goQuoteAll(said)} is invalid for the target audiences ${goQuoteAll(wanted)}`;

/** Who still uses a token after the time that was asked for, of one that was given longer. */
function noteStale(
  { sub, 'kubernetes.io': private_ }: TokenPayload,
  now: number,
  notes: CredentialNotes | undefined,
): void {
  const { warnafter } = private_;
  if (warnafter === undefined || now <= warnafter) return;
  const seconds = Math.floor(now) - warnafter;
  notes?.annotate('authentication.k8s.io/stale-token', `subject: ${sub}, seconds after warning threshold: ${seconds}`);
}

/** The user a service account acts as, with the groups every service account has. */
function serviceAccountUser(namespace: string, name: string, uid?: string): UserInfo {
  return {
    username: `system:serviceaccount:${namespace}:${name}`,
    ...(uid !== undefined && { uid }),
    groups: ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, 'system:authenticated'],
  };
}

function userOf(payload: TokenPayload): UserInfo {
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
