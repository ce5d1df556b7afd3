/**
 * Impersonate-* headers: a request made in another's name. Ignoring them would answer with the rights of the asker
 * instead. The asker needs the right to `impersonate` each identity that the request takes.
 */
import { badRequest } from '@coracle/apimachinery/meta/status';
import { headerValues, prefixedValues } from '../auth/header-values.ts';
import type { UserInfo } from '../auth/identity.ts';
import { forbiddenBy } from './authorization.ts';
import type { Exchange } from './exchange.ts';

const USER = 'impersonate-user';
const GROUP = 'impersonate-group';
const UID = 'impersonate-uid';
const EXTRA = 'impersonate-extra-';
const SERVICE_ACCOUNT = 'system:serviceaccount:';

/** Whom a request names, as its headers say. */
interface Wanted {
  readonly username: string;
  readonly groups: readonly string[];
  readonly uid: string;
  readonly extra: ReadonlyMap<string, readonly string[]>;
}

/** Whom the request names in place of the authenticated user; undefined when nobody. Throws, or rejects with, ApiError 400, 403. */
export function impersonatedUser(exchange: Exchange): Promise<UserInfo> | undefined {
  const { request } = exchange;
  let asked = false;
  for (const name in request.headers) {
    if (name.startsWith('impersonate-')) asked = true;
  }
  if (!asked) return undefined;
  const username = request.headers[USER] ?? '';
  const groups = headerValues(request, GROUP);
  const uid = request.headers[UID] ?? '';
  const extra = prefixedValues(request, EXTRA);
  if (username === '') throw badRequest('requested groups, uid or extra values without impersonating a user');
  return impersonate(exchange, { username, groups, uid, extra });
}

async function impersonate({ user, info, server }: Exchange, wanted: Wanted): Promise<UserInfo> {
  for (const identity of identities(wanted)) {
    const attributes = { group: '', version: 'v1', subresource: '', namespace: '', verb: 'impersonate', ...identity };
    const { allowed, reason } = await server.authorize(user, { type: 'resource', ...attributes });
    if (!allowed) throw forbiddenBy(user, { ...info, ...attributes, isResource: true }, reason);
  }
  return impersonated(wanted);
}

interface Identity {
  readonly group?: string;
  readonly resource: string;
  readonly subresource?: string;
  readonly namespace?: string;
  readonly name: string;
}

/** Each identity that the request takes, as what the asker needs a right to. */
function* identities({ username, groups, uid, extra }: Wanted): Generator<Identity> {
  const group = 'authentication.k8s.io';
  const account = accountOf(username);
  yield account ? { resource: 'serviceaccounts', ...account } : { resource: 'users', name: username };
  if (uid !== '') yield { group, resource: 'uids', name: uid };
  for (const name of groups) yield { resource: 'groups', name };
  for (const [subresource, values] of extra) {
    for (const name of values) yield { group, resource: 'userextras', subresource, name };
  }
}

function accountOf(username: string): { namespace: string; name: string } | undefined {
  if (!username.startsWith(SERVICE_ACCOUNT)) return undefined;
  const [namespace = '', name = '', ...rest] = username.slice(SERVICE_ACCOUNT.length).split(':');
  return namespace === '' || name === '' || rest.length > 0 ? undefined : { namespace, name };
}

function impersonated({ username, groups: asked, uid, extra }: Wanted): UserInfo {
  const account = accountOf(username);
  const groups =
    account && asked.length === 0
      ? ['system:serviceaccounts', `system:serviceaccounts:${account.namespace}`]
      : [...asked];
  const ensure = (group: string): unknown => groups.includes(group) || groups.push(group);
  if (username === 'system:anonymous') ensure('system:unauthenticated');
  else if (!groups.includes('system:unauthenticated')) ensure('system:authenticated');
  return {
    username,
    ...(uid !== '' && { uid }),
    groups,
    ...(extra.size > 0 && { extra: Object.fromEntries(extra) }),
  };
}
