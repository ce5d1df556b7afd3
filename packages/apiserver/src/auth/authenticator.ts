/**
 * The authenticator chain: front proxy, client certificate, bearer token (header or WebSocket sub-protocol), anonymous.
 * The first that knows the credential decides; one that is present and good for nothing is a 401.
 */

import { decodeBase64Url } from '@coracle/apimachinery/meta/base64';
import { unauthorized } from '@coracle/apimachinery/meta/status';
import type { Clock } from '@coracle/runtime/clock/clock';
import { getOrInsert } from '@coracle/runtime/collections/get-or-insert';
import type { ApiRequest, PeerCertificate } from '@coracle/runtime/http/seam';
import type { AnonymousRule } from './authentication-configuration.ts';
import { BoundedMap } from './bounded-map.ts';
import { type FrontProxyOptions, proxiedUser } from './front-proxy.ts';
import { BEARER_PROTOCOL } from './header-values.ts';
import type { Authenticator, CredentialNotes, UserInfo } from './identity.ts';
import type { TokenAuthenticator } from './token-authenticator.ts';

export const ANONYMOUS: UserInfo = { username: 'system:anonymous', groups: ['system:unauthenticated'] };

/** Users made from certificates, by fingerprint, so that one connection's requests share one UserInfo. */
const CERTIFICATE_USERS = 1024;

export interface AuthenticatorOptions {
  readonly tokens: Pick<TokenAuthenticator, 'verify'>;
  readonly clock: Pick<Clock, 'now'>;
  /** None when no proxy may say who the user is. */
  readonly frontProxy?: FrontProxyOptions;
  /** Who may come without a credential, looked at with each such request; everybody when not given. */
  readonly anonymous?: () => AnonymousRule;
}

/** Builds the chain. */
export function createAuthenticator(options: AuthenticatorOptions): Authenticator {
  const { clock, frontProxy } = options;
  const certificateUsers = new BoundedMap<string, UserInfo>(CERTIFICATE_USERS);
  const fromCertificate = ({ fingerprint, commonName, organizations }: PeerCertificate): UserInfo =>
    getOrInsert(certificateUsers, fingerprint, () => ({
      username: commonName,
      groups: [...organizations, 'system:authenticated'],
      extra: { 'authentication.kubernetes.io/credential-id': [`X509SHA256=${fingerprint}`] },
    }));
  /** A connection outlives the certificate it was made with: the user does not. */
  const isGood = ({ verified, authority = 'client', commonName, notAfter }: PeerCertificate): boolean =>
    verified && authority === 'client' && commonName !== '' && (notAfter === undefined || clock.now() <= notAfter);
  const ofToken = async (token: string, notes: CredentialNotes | undefined): Promise<UserInfo> => {
    const verified = await options.tokens.verify(token, { notes });
    if (!verified) throw unauthorized();
    return verified.user;
  };
  return (request, notes) => {
    const { certificate } = request.peer;
    if (certificate?.authority === 'front-proxy' && frontProxy) {
      const user = proxiedUser(request, frontProxy);
      if (user) return user;
    }
    if (certificate && isGood(certificate)) return fromCertificate(certificate);
    const token = bearerToken(request);
    if (token !== undefined) return ofToken(token, notes);
    // An untrusted or expired chain is a failed credential, not the absence of one.
    if (certificate || request.headers['authorization'] !== undefined) throw unauthorized();
    const rule = options.anonymous?.();
    if (rule && !(rule.enabled && (rule.paths?.includes(request.path) ?? true))) throw unauthorized();
    return ANONYMOUS;
  };
}

/** The bearer token of a request, from the header or (WebSocket) the sub-protocol list; undefined when there is none. */
export function bearerToken(request: Pick<ApiRequest, 'headers' | 'upgradable'>): string | undefined {
  const header = request.headers['authorization'];
  if (header !== undefined && /^bearer /i.test(header)) {
    const token = header.slice(7).trim();
    return token === '' ? undefined : token;
  }
  if (!request.upgradable) return undefined;
  const offered = (request.headers['sec-websocket-protocol'] ?? '').split(',').map((p) => p.trim());
  const encoded = offered.filter((protocol) => protocol.startsWith(BEARER_PROTOCOL));
  if (encoded.length === 0) return undefined;
  // More than one, or no protocol to speak beside it: upstream refuses both.
  if (encoded.length > 1 || offered.length < 2) throw unauthorized();
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(decodeBase64Url(encoded[0]!.slice(BEARER_PROTOCOL.length)));
  } catch {
    throw unauthorized();
  }
}
