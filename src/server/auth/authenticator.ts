/** The authenticator chain: client certificate, bearer token (header or WebSocket sub-protocol), anonymous. */

import { decodeBase64Url } from '../../api/meta/base64.ts';
import { unauthorized } from '../../api/meta/status.ts';
import type { ApiRequest, PeerCertificate } from '../../base/http/seam.ts';
import { BoundedMap } from './bounded-map.ts';
import type { Authenticator, UserInfo } from './identity.ts';
import type { TokenIssuer } from './service-account-tokens.ts';

export const ANONYMOUS: UserInfo = { username: 'system:anonymous', groups: ['system:unauthenticated'] };

const BEARER_PROTOCOL = 'base64url.bearer.authorization.k8s.io.';
/** Users made from certificates, by fingerprint, so that one connection's requests share one UserInfo. */
const CERTIFICATE_USERS = 1024;

export interface AuthenticatorOptions {
  readonly tokens: Pick<TokenIssuer, 'verify'>;
  /** False answers 401 to requests without a credential. */
  readonly anonymous?: boolean;
}

/** Builds the chain. A credential that is present but not valid is a 401, never anonymous. */
export function createAuthenticator(options: AuthenticatorOptions): Authenticator {
  const certificateUsers = new BoundedMap<string, UserInfo>(CERTIFICATE_USERS);
  const fromCertificate = (certificate: PeerCertificate): UserInfo => {
    const known = certificateUsers.get(certificate.fingerprint);
    if (known) return known;
    const user: UserInfo = {
      username: certificate.commonName,
      groups: [...certificate.organizations, 'system:authenticated'],
      extra: { 'authentication.kubernetes.io/credential-id': [`X509SHA256=${certificate.fingerprint}`] },
    };
    certificateUsers.set(certificate.fingerprint, user);
    return user;
  };
  return async (request) => {
    const { certificate } = request.peer;
    if (certificate?.verified) {
      if (certificate.commonName === '') throw unauthorized();
      return fromCertificate(certificate);
    }
    const token = bearerToken(request);
    if (token !== undefined) {
      const verified = await options.tokens.verify(token);
      if (!verified) throw unauthorized();
      return verified.user;
    }
    // An untrusted or expired chain is a failed credential, not the absence of one.
    if (certificate || request.headers['authorization'] !== undefined || options.anonymous === false)
      throw unauthorized();
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
  const encoded = offered.find((protocol) => protocol.startsWith(BEARER_PROTOCOL))?.slice(BEARER_PROTOCOL.length);
  if (encoded === undefined || offered.length < 2) return undefined;
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(decodeBase64Url(encoded));
  } catch {
    throw unauthorized();
  }
}
