/** `serviceaccounts/<name>/token`: mints tokens (authentication.k8s.io/v1 TokenRequest). */
import { formatTime, type UnstructuredObject } from '../../api/meta/object.ts';
import { badRequest, conflict, forbidden, invalid, notFound } from '../../api/meta/status.ts';
import type { ObjectStore } from '../cache/object-store.ts';
import type { BoundObject, FindUid, TokenIssuer } from './service-account-tokens.ts';

const MIN_SECONDS = 600;
const MAX_SECONDS = 2 ** 32;
/** Longest life given out; longer requests are shortened. */
const LIMIT_SECONDS = 30 * 86_400;
const DEFAULT_SECONDS = 3600;

const PREFIX = { ServiceAccount: '/serviceaccounts', Pod: '/pods', Secret: '/secrets', Node: '/nodes' } as const;
const ACCOUNTS = { group: '', resource: 'serviceaccounts' };

/** Reads uids from the published state. A terminating object still counts until it is gone. */
export const findUidIn =
  (store: Pick<ObjectStore, 'get'>): FindUid =>
  (kind, namespace, name) =>
    store.get({ prefix: PREFIX[kind], namespace: kind === 'Node' ? '' : namespace, name })?.object.metadata.uid;

interface Spec {
  audiences?: string[];
  expirationSeconds?: number;
  boundObjectRef?: { kind?: string; apiVersion?: string; name?: string; uid?: string };
}

export interface TokenRequestOptions {
  readonly store: Pick<ObjectStore, 'get'>;
  readonly tokens: TokenIssuer;
  /** The asker may have tokens bound to Pods and no others. */
  readonly podsOnly?: boolean;
}

/** Answers a TokenRequest for the service account `namespace/name`. Throws ApiError (404, 400, 409, 422). */
export async function requestToken(
  request: UnstructuredObject,
  target: { namespace: string; name: string },
  { store, tokens, podsOnly }: TokenRequestOptions,
): Promise<UnstructuredObject> {
  const spec = (request['spec'] ?? {}) as Spec;
  const { namespace, name } = target;
  const uid = findUidIn(store)('ServiceAccount', namespace, name);
  if (uid === undefined) throw notFound(ACCOUNTS, name);
  const { metadata } = request;
  const mismatch = (field: string, value: string, want: string) =>
    invalid({ group: 'authentication.k8s.io', kind: 'TokenRequest' }, name, [
      { type: 'FieldValueInvalid', field, value, detail: `must match the service account: ${want}` },
    ]);
  if (metadata?.name && metadata.name !== name) throw mismatch('metadata.name', metadata.name, name);
  if (metadata?.namespace && metadata.namespace !== namespace)
    throw mismatch('metadata.namespace', metadata.namespace, namespace);
  if (metadata?.uid && metadata.uid !== uid)
    throw conflict(
      ACCOUNTS,
      name,
      `the UID in the token request (${metadata.uid}) does not match the UID of the service account (${uid})`,
    );
  const seconds = spec.expirationSeconds ?? DEFAULT_SECONDS;
  if (seconds < MIN_SECONDS || seconds > MAX_SECONDS)
    throw invalid({ group: 'authentication.k8s.io', kind: 'TokenRequest' }, '', [
      {
        type: 'FieldValueInvalid',
        field: 'spec.expirationSeconds',
        value: seconds,
        detail:
          seconds < MIN_SECONDS
            ? 'may not specify a duration less than 10 minutes'
            : 'may not specify a duration larger than 2^32 seconds',
      },
    ]);
  if (podsOnly && spec.boundObjectRef?.kind !== 'Pod')
    throw forbidden(ACCOUNTS, name, 'a node agent may only ask for tokens bound to a pod');
  const bound = spec.boundObjectRef ? boundObject(spec.boundObjectRef, target, store) : undefined;
  const audiences = spec.audiences?.length ? spec.audiences : [tokens.issuer];
  const { token, expires } = await tokens.sign({
    namespace,
    serviceAccount: { name, uid },
    audiences,
    expirationSeconds: Math.min(seconds, LIMIT_SECONDS),
    ...(bound && { bound }),
  });
  return {
    ...request,
    metadata: { name, namespace, creationTimestamp: formatTime(expires - Math.min(seconds, LIMIT_SECONDS) * 1000) },
    spec: { ...spec, audiences, expirationSeconds: seconds },
    status: { token, expirationTimestamp: formatTime(expires) },
  };
}

function boundObject(
  ref: NonNullable<Spec['boundObjectRef']>,
  account: { namespace: string; name: string },
  store: Pick<ObjectStore, 'get'>,
): BoundObject {
  const { kind, name = '' } = ref;
  if (kind !== 'Pod' && kind !== 'Secret' && kind !== 'Node')
    throw badRequest(
      `cannot bind token for serviceaccount to object of type ${ref.apiVersion ?? ''}, Kind=${kind ?? ''}`,
    );
  const item = store.get({ prefix: PREFIX[kind], namespace: kind === 'Node' ? '' : account.namespace, name });
  const resource = { group: '', resource: PREFIX[kind].slice(1) };
  if (!item) throw notFound(resource, name);
  const uid = item.object.metadata.uid ?? '';
  if (ref.uid && ref.uid !== uid)
    throw conflict(
      resource,
      name,
      `the UID in the bound object reference (${ref.uid}) does not match the UID in record. The object might have been deleted and then recreated`,
    );
  const podAccount = (item.object as { spec?: { serviceAccountName?: string } }).spec?.serviceAccountName ?? 'default';
  if (kind === 'Pod' && podAccount !== account.name)
    throw badRequest(
      `cannot bind token for serviceaccount "${account.name}" to pod running with different serviceaccount name.`,
    );
  return { kind, name, uid };
}
