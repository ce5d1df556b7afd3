/**
 * Bootstrap tokens: Secrets in kube-system by which machines that are no nodes yet speak to the API
 * (plugin/pkg/auth/authenticator/token/bootstrap).
 */
import { decodeBase64 } from '@coracle/apimachinery/meta/base64';
import type { Clock } from '@coracle/runtime/clock/clock';
import type { ObjectStore } from '../cache/object-store.ts';
import { BoundedMap } from './bounded-map.ts';
import type { UserInfo } from './identity.ts';
import type { FindTokenUser } from './token-authenticator.ts';

const TOKEN = /^([a-z0-9]{6})\.([a-z0-9]{16})$/;
const TYPE = 'bootstrap.kubernetes.io/token';
const EXTRA_GROUP = /^system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]$/;
/** Users by the state of their Secret, so that one token's requests share one UserInfo. */
const USERS = 256;

/** Finds the user of a bootstrap token in the store's Secrets. */
export function bootstrapTokens(store: Pick<ObjectStore, 'get'>, clock: Pick<Clock, 'now'>): FindTokenUser {
  const users = new BoundedMap<string, UserInfo>(USERS);
  return (token) => {
    const [, id = '', wanted = ''] = TOKEN.exec(token) ?? [];
    if (id === '') return undefined;
    const found = store.get({ prefix: '/secrets', namespace: 'kube-system', name: `bootstrap-token-${id}` });
    if (!found || found.object['type'] !== TYPE || found.object.metadata.deletionTimestamp !== undefined)
      return undefined;
    const data = textData(found.object['data']);
    if (data['token-id'] !== id || !sameText(data['token-secret'] ?? '', wanted)) return undefined;
    if (data['usage-bootstrap-authentication'] !== 'true' || isExpired(data['expiration'], clock.now()))
      return undefined;
    const key = `${id} ${found.revision}`;
    let user = users.get(key);
    if (!user) {
      const groups = groupsOf(data['auth-extra-groups'] ?? '');
      if (!groups) return undefined;
      user = { username: `system:bootstrap:${id}`, groups: [...groups, 'system:authenticated'] };
      users.set(key, user);
    }
    return user;
  };
}

function textData(data: unknown): Record<string, string> {
  const decoder = new TextDecoder();
  return Object.fromEntries(
    Object.entries((data ?? {}) as Record<string, string>).map(([name, text]) => [
      name,
      decoder.decode(decodeBase64(text)),
    ]),
  );
}

/** Without a hint, by the time it takes, of how much of a guess was right. */
function sameText(a: string, b: string): boolean {
  let difference = a.length ^ b.length;
  for (let i = 0; i < b.length; i++) difference |= a.charCodeAt(i) ^ b.charCodeAt(i);
  return difference === 0;
}

/** What does not parse counts as over. */
function isExpired(expiration: string | undefined, now: number): boolean {
  if (!expiration) return false;
  const time = Date.parse(expiration);
  return Number.isNaN(time) || now > time;
}

/** Undefined when one of them is no group of bootstrappers: a token must not make its bearer anything else. */
function groupsOf(extra: string): string[] | undefined {
  const groups = new Set(['system:bootstrappers']);
  for (const group of extra === '' ? [] : extra.split(',')) {
    const name = group.trim();
    if (!EXTRA_GROUP.test(name)) return undefined;
    groups.add(name);
  }
  return [...groups].sort();
}
