/**
 * Impersonate-* headers: a request made in another's name. Every user, group, uid and extra value is authorised on its
 * own with the verb `impersonate`; ignoring the headers would answer with the rights of the asker instead.
 */
import { badRequest } from '../../api/meta/status.ts';
import { headerValues, prefixedValues } from '../auth/header-values.ts';
import type { UserInfo } from '../auth/identity.ts';
import { forbiddenBy } from './authorization.ts';
import type { Exchange } from './exchange.ts';

const USER = 'impersonate-user';
const GROUP = 'impersonate-group';
const UID = 'impersonate-uid';
const EXTRA = 'impersonate-extra-';
const SERVICE_ACCOUNT = 'system:serviceaccount:';
const AUTHENTICATION = 'authentication.k8s.io';

/** Who the request is for: the authenticated user, or whom it names. Throws ApiError 400, 403. */
export function impersonatedUser(exchange: Exchange): UserInfo {
  const { request, user } = exchange;
  let asked = false;
  for (const name in request.headers) {
    if (name.startsWith('impersonate-')) asked = true;
  }
  if (!asked) return user;
  const username = request.headers[USER] ?? '';
  const groups = headerValues(request, GROUP);
  const uid = request.headers[UID] ?? '';
  const extra = prefixedValues(request, EXTRA);
  if (username === '') throw badRequest('requested groups, uid or extra values without impersonating a user');
  for (const target of targetsOf({ username, groups, uid, extra })) mayImpersonate(exchange, target);
  return {
    username,
    ...(uid !== '' && { uid }),
    groups: groupsOf(username, groups),
    ...(extra.size > 0 && { extra: Object.fromEntries(extra) }),
  };
}

interface Identity {
  readonly username: string;
  readonly groups: readonly string[];
  readonly uid: string;
  readonly extra: ReadonlyMap<string, readonly string[]>;
}

interface Target {
  readonly group: string;
  readonly resource: string;
  readonly subresource?: string;
  readonly namespace?: string;
  readonly name: string;
}

function targetsOf({ username, groups, uid, extra }: Identity): Target[] {
  const account = serviceAccountOf(username);
  return [
    account ? { group: '', resource: 'serviceaccounts', ...account } : { group: '', resource: 'users', name: username },
    ...groups.map((name) => ({ group: '', resource: 'groups', name })),
    ...(uid === '' ? [] : [{ group: AUTHENTICATION, resource: 'uids', name: uid }]),
    ...[...extra].flatMap(([key, values]) =>
      values.map((name) => ({ group: AUTHENTICATION, resource: 'userextras', subresource: key, name })),
    ),
  ];
}

function mayImpersonate({ user, info, server }: Exchange, target: Target): void {
  const attributes = {
    verb: 'impersonate',
    version: target.group === '' ? '' : 'v1',
    subresource: '',
    namespace: '',
    ...target,
  };
  const verdict = server.authorize(user, { type: 'resource', ...attributes });
  if (!verdict.allowed) throw forbiddenBy(user, { ...info, isResource: true, ...attributes }, verdict.reason);
}

function serviceAccountOf(username: string): { namespace: string; name: string } | undefined {
  if (!username.startsWith(SERVICE_ACCOUNT)) return undefined;
  const [namespace = '', name = '', ...rest] = username.slice(SERVICE_ACCOUNT.length).split(':');
  return namespace === '' || name === '' || rest.length > 0 ? undefined : { namespace, name };
}

function groupsOf(username: string, asked: readonly string[]): string[] {
  const account = serviceAccountOf(username);
  const groups =
    account && asked.length === 0
      ? ['system:serviceaccounts', `system:serviceaccounts:${account.namespace}`]
      : [...asked];
  const marked = groups.includes('system:authenticated') || groups.includes('system:unauthenticated');
  if (!marked) groups.push(username === 'system:anonymous' ? 'system:unauthenticated' : 'system:authenticated');
  return groups;
}
