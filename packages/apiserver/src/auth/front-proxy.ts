/**
 * Request-header authentication: a proxy that shows a certificate of its own authority says who the user is
 * (authenticator/request/headerrequest). Headers of anybody else mean nothing.
 */
import type { ApiRequest } from '@coracle/runtime/http/seam';
import { headerValues, prefixedValues } from './header-values.ts';
import type { UserInfo } from './identity.ts';

export interface FrontProxyOptions {
  /** Common names a proxy's certificate may have; empty = any of its authority. */
  readonly allowedNames: readonly string[];
}

const USER = 'x-remote-user';
const UID = 'x-remote-uid';
const GROUP = 'x-remote-group';
const EXTRA = 'x-remote-extra-';

/** The names of the headers, as extension API servers read them (ConfigMap extension-apiserver-authentication). */
export const REQUEST_HEADERS: Readonly<Record<string, readonly string[]>> = {
  'requestheader-extra-headers-prefix': ['X-Remote-Extra-'],
  'requestheader-group-headers': ['X-Remote-Group'],
  'requestheader-uid-headers': ['X-Remote-Uid'],
  'requestheader-username-headers': ['X-Remote-User'],
};

/** Whom the proxy speaks for; undefined when there is no proxy or it names nobody. */
export function proxiedUser(
  request: Pick<ApiRequest, 'headers' | 'rawHeaders' | 'peer'>,
  { allowedNames }: FrontProxyOptions,
): UserInfo | undefined {
  const { certificate } = request.peer;
  if (!certificate?.verified || certificate.authority !== 'front-proxy') return undefined;
  if (allowedNames.length > 0 && !allowedNames.includes(certificate.commonName)) return undefined;
  const username = (headerValues(request, USER)[0] ?? '').trim();
  if (username === '') return undefined;
  const uid = headerValues(request, UID)[0];
  const groups = headerValues(request, GROUP);
  const extra = prefixedValues(request, EXTRA);
  return {
    username,
    ...(uid && { uid }),
    groups: groups.includes('system:authenticated') ? groups : [...groups, 'system:authenticated'],
    ...(extra.size > 0 && { extra: Object.fromEntries(extra) }),
  };
}
