/** A handler of this process behind a real port with TLS, for tests of what only a connection has. */
import { type Clock, systemClock } from '../../src/base/clock/clock.ts';
import type { ApiHandler } from '../../src/base/http/seam.ts';
import { startTlsServer, type TlsServer, type TlsServerOptions } from '../../src/base/http/tls-server.ts';
import { silentLogger } from '../../src/base/log/log.ts';
import {
  type CertificateAuthority,
  createAuthority,
  openAuthority,
} from '../../src/server/auth/certificate-authority.ts';

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
