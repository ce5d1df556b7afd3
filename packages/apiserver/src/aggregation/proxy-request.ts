/**
 * One request passed on to another API server, in the caller's name (kube-aggregator's proxyHandler). Who the caller is
 * stands in X-Remote-* headers, which the far end believes because of the front proxy's certificate; what the caller
 * proved it with stays here.
 */
import { HOP_BY_HOP } from '@coracle/runtime/http/hop-by-hop';
import { type ApiRequest, type ApiResponse, redirected } from '@coracle/runtime/http/seam';
import { offeredProtocols } from '../auth/header-values.ts';
import type { UserInfo } from '../auth/identity.ts';

const isPrivate = (name: string): boolean =>
  HOP_BY_HOP.has(name) || /^(?::|x-remote-|impersonate-|(?:authorization|host|content-length)$)/.test(name);

/** The request as the far end gets it: `user` in headers, nothing that would let anybody act as the caller. */
export function forwardedRequest(
  request: ApiRequest,
  { user, auditId }: { readonly user: UserInfo; readonly auditId?: string },
): ApiRequest {
  const pairs: [string, string][] = [];
  for (const [name, value] of Object.entries(request.headers)) {
    if (isPrivate(name) || name === 'x-forwarded-for' || (name === 'audit-id' && auditId !== undefined)) continue;
    const kept = name === 'sec-websocket-protocol' ? offeredProtocols(value).join(', ') : value;
    if (kept !== '') pairs.push([name, kept]);
  }
  if (auditId !== undefined) pairs.push(['audit-id', auditId]);
  const before = request.headers['x-forwarded-for'];
  const { address } = request.peer;
  if (address !== '') pairs.push(['x-forwarded-for', before === undefined ? address : `${before}, ${address}`]);
  pairs.push(...remoteUserHeaders(user));
  const headers: Record<string, string> = {};
  for (const [name, value] of pairs) headers[name] = name in headers ? `${headers[name]}, ${value}` : value;
  return redirected(request, { headers, rawHeaders: pairs.flat() });
}

/** X-Remote-User, -Uid, -Group (one each) and -Extra-*: names lower-case, as on HTTP/2. */
export function remoteUserHeaders({ username, uid, groups, extra = {} }: UserInfo): [string, string][] {
  const headers: [string, string][] = [['x-remote-user', username]];
  if (uid) headers.push(['x-remote-uid', uid]);
  for (const group of groups) headers.push(['x-remote-group', group]);
  for (const [key, values] of Object.entries(extra)) {
    for (const value of values) headers.push([`x-remote-extra-${escapeHeaderKey(key)}`, value]);
  }
  return headers;
}

/** Percent-encodes what may not stand in a header name, and the percent sign (client-go's headerKeyEscape). */
const escapeHeaderKey = (key: string): string =>
  Array.from(new TextEncoder().encode(key), (byte) => {
    const char = String.fromCharCode(byte).toLowerCase();
    return /[a-z0-9!#$&'*+.^_`|~-]/.test(char) ? char : `%${byte.toString(16).padStart(2, '0')}`;
  }).join('');

/** The far end's answer as the client gets it: its own status, headers and body. */
export function forwardedResponse(response: ApiResponse): ApiResponse {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(response.headers)) {
    // A length would be a lie when the far end breaks off; CORS is between this server and its browser.
    if (HOP_BY_HOP.has(name) || name === 'content-length' || name.startsWith('access-control-')) continue;
    headers[name] = value;
  }
  return { ...response, headers };
}
