/** `serviceaccounts/<name>/token`: mints tokens (authentication.k8s.io/v1 TokenRequest). */

import { decodeBase64 } from '@coracle/apimachinery/meta/base64';
import { formatTime, type UnstructuredObject } from '@coracle/apimachinery/meta/object';
import { badRequest, conflict, invalid, notFound } from '@coracle/apimachinery/meta/status';
import type { PodParts, TokenRequestSpec } from '@coracle/apimachinery/types/types';
import { invalid as invalidValue } from '@coracle/apimachinery/validation/field-errors';
import type { Clock } from '@coracle/runtime/clock/clock';
import type { ObjectStore } from '../cache/object-store.ts';
import type { TokenClaims, TokenIssuer } from './service-account-tokens.ts';
import type { BoundObject, FindUid } from './token-validity.ts';

const MIN_SECONDS = 600;
const MAX_SECONDS = 2 ** 32;
const DEFAULT_SECONDS = 3600;
/** What the ServiceAccount plug-in mounts asks for exactly this; programs that read such a token once still get a year. */
const MOUNTED_SECONDS = 3607;
const EXTENDED_SECONDS = 365 * 86_400;
/** A terminating object counts this much longer. */
const LEEWAY_MS = 60_000;

const PREFIX = { ServiceAccount: '/serviceaccounts', Pod: '/pods', Secret: '/secrets', Node: '/nodes' } as const;
const ACCOUNTS = { group: '', resource: 'serviceaccounts' };
const KIND = { group: 'authentication.k8s.io', kind: 'TokenRequest' };

/** Reads uids from the published state. A terminating object still counts for a minute after its time. */
export const findUidIn =
  (store: Pick<ObjectStore, 'get'>, clock: Pick<Clock, 'now'>): FindUid =>
  (kind, namespace, name) => {
    const found = store.get({ prefix: PREFIX[kind], namespace: kind === 'Node' ? '' : namespace, name });
    if (!found) return undefined;
    const { uid, deletionTimestamp } = found.object.metadata;
    return deletionTimestamp !== undefined && Date.parse(deletionTimestamp) < clock.now() - LEEWAY_MS ? undefined : uid;
  };

/** Reads the token that a Secret holds, for tokens that are good as long as it does. */
export const secretTokenIn =
  (store: Pick<ObjectStore, 'get'>) =>
  (namespace: string, name: string): string | undefined => {
    const data = store.get({ prefix: PREFIX.Secret, namespace, name })?.object['data'] as
      | Record<string, string>
      | undefined;
    return data?.['token'] === undefined ? undefined : new TextDecoder().decode(decodeBase64(data['token']));
  };

type Spec = Partial<TokenRequestSpec>;

export interface TokenRequestOptions {
  readonly store: Pick<ObjectStore, 'get'>;
  readonly tokens: TokenIssuer;
  readonly clock: Pick<Clock, 'now'>;
  /** Asked once the request says all that it will be answered for. Rejects with ApiError to refuse. */
  readonly validate: () => Promise<void>;
}

export interface RequestedToken {
  readonly object: UnstructuredObject;
  /** For the audit event. */
  readonly id: string;
}

/** Answers a TokenRequest for the service account `namespace/name`. Throws ApiError (404, 400, 409, 422). */
export async function requestToken(
  request: UnstructuredObject,
  target: { namespace: string; name: string },
  { store, tokens, clock, validate }: TokenRequestOptions,
): Promise<RequestedToken> {
  const spec: Spec = (request['spec'] as Spec | undefined) ?? {};
  const { namespace, name } = target;
  checkNames(request, target);
  const uid = store.get({ prefix: PREFIX.ServiceAccount, namespace, name })?.object.metadata.uid;
  if (uid === undefined) throw notFound(ACCOUNTS, name);
  const wanted = request.metadata.uid;
  if (wanted && wanted !== uid) {
    const detail = `the UID in the token request (${wanted}) does not match the UID of the service account (${uid})`;
    throw conflict({ group: KIND.group, resource: KIND.kind }, name, detail);
  }
  const seconds = spec.expirationSeconds ?? DEFAULT_SECONDS;
  if (seconds < MIN_SECONDS || seconds > MAX_SECONDS) {
    const bound = seconds < MIN_SECONDS ? 'less than 10 minutes' : 'larger than 2^32 seconds';
    throw invalid(KIND, '', [invalidValue('spec.expirationSeconds', seconds, `may not specify a duration ${bound}`)]);
  }
  const audiences = spec.audiences?.length ? spec.audiences : [tokens.issuer];
  Object.assign(request.metadata, { name, namespace, uid, creationTimestamp: formatTime(clock.now()) });
  request['spec'] = { ...spec, audiences, expirationSeconds: seconds };
  delete request['status'];
  await validate();
  const found = spec.boundObjectRef ? boundObject(spec.boundObjectRef, target, store) : undefined;
  const extended = seconds === MOUNTED_SECONDS && found?.bound.kind === 'Pod' && audiences.join() === tokens.issuer;
  const lifetime = extended ? EXTENDED_SECONDS : seconds;
  const { token, expires, id } = await tokens.sign({
    namespace,
    serviceAccount: { name, uid },
    audiences,
    expirationSeconds: lifetime,
    ...found,
    ...(extended && { warnAfterSeconds: seconds }),
  });
  const issued = expires - lifetime * 1000;
  const { boundObjectRef = null } = spec;
  const object = {
    kind: KIND.kind,
    apiVersion: `${KIND.group}/v1`,
    metadata: { ...request.metadata, name, namespace, uid, creationTimestamp: formatTime(issued) },
    spec: { audiences, expirationSeconds: seconds, boundObjectRef },
    status: { token, expirationTimestamp: formatTime(issued + seconds * 1000) },
  };
  return { object, id };
}

/** What the body says of the account must be what the URL says. */
function checkNames({ metadata }: UnstructuredObject, account: { namespace: string; name: string }): void {
  if (metadata.namespace && metadata.namespace !== account.namespace) {
    throw badRequest('the namespace of the provided object does not match the namespace sent on the request');
  }
  if (!metadata.name || metadata.name === account.name) return;
  const detail = 'must match the service account name if specified';
  throw invalid(KIND, account.name, [invalidValue('metadata.name', metadata.name, detail)]);
}

function boundObject(
  ref: NonNullable<Spec['boundObjectRef']>,
  account: { namespace: string; name: string },
  store: Pick<ObjectStore, 'get'>,
): Pick<TokenClaims, 'node'> & { readonly bound: BoundObject } {
  const { kind, name = '' } = ref;
  const apiVersion = ref.apiVersion ?? '';
  const isCore = !apiVersion.includes('/');
  if (!isCore || (kind !== 'Pod' && kind !== 'Secret' && kind !== 'Node')) {
    const type = `${isCore ? '/' : ''}${apiVersion}, Kind=${kind ?? ''}`;
    throw badRequest(`cannot bind token for serviceaccount to object of type ${type}`);
  }
  const item = store.get({ prefix: PREFIX[kind], namespace: kind === 'Node' ? '' : account.namespace, name });
  const resource = { group: '', resource: PREFIX[kind].slice(1) };
  if (!item) throw notFound(resource, name);
  const { serviceAccountName = 'default', nodeName } = (item.object as PodParts).spec ?? {};
  if (kind === 'Pod' && serviceAccountName !== account.name)
    throw badRequest(
      `cannot bind token for serviceaccount "${account.name}" to pod running with different serviceaccount name.`,
    );
  const uid = item.object.metadata.uid ?? '';
  if (ref.uid && ref.uid !== uid)
    throw conflict(
      { group: '', resource: kind },
      name,
      `the UID in the bound object reference (${ref.uid}) does not match the UID in record. The object might have been deleted and then recreated`,
    );
  const bound = { kind, name, uid } as const;
  if (kind !== 'Pod' || !nodeName) return { bound };
  const node = store.get({ prefix: PREFIX.Node, namespace: '', name: nodeName })?.object.metadata.uid;
  return { bound, node: { name: nodeName, ...(node !== undefined && { uid: node }) } };
}
