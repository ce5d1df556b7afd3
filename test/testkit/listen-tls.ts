/** A handler of this process behind a real port with TLS, for tests of what only a connection has. */

import {
  type CertificateAuthority,
  createAuthority,
  openAuthority,
} from '../../packages/apiserver/src/auth/certificate-authority.ts';
import { type Clock, systemClock } from '../../packages/runtime/src/clock/clock.ts';
import type { ApiHandler } from '../../packages/runtime/src/http/seam.ts';
import { startTlsServer, type TlsServer, type TlsServerOptions } from '../../packages/runtime/src/http/tls-server.ts';
import { silentLogger } from '../../packages/runtime/src/log/log.ts';

/** A CA with a new key. */
export const newAuthority = async (clock: Clock = systemClock, name?: string): Promise<CertificateAuthority> =>
  openAuthority(await createAuthority(clock, name), clock);

/** Listens on 127.0.0.1. The server's own certificate and those of its clients are `authority`'s. */
export async function listenTls(
  handler: ApiHandler,
  authority: CertificateAuthority,
  {
    frontProxyCa,
    ...more
  }: { readonly frontProxyCa?: string } & Partial<Pick<TlsServerOptions, 'bodyBytes' | 'connections'>> = {},
): Promise<TlsServer> {
  const serving = await authority.issue({ commonName: 's', ipAddresses: ['127.0.0.1'], usage: 'server', days: 1 });
  const tls = { ...serving, clientCa: authority.certificate, ...(frontProxyCa && { frontProxyCa }) };
  return startTlsServer({
    handler,
    host: '127.0.0.1',
    port: 0,
    tls,
    bodiesWhenAsked: true,
    log: silentLogger,
    ...more,
  });
}
