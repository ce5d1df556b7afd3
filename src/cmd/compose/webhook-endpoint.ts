/** Where a webhook of this process is reached: TLS on an address of this host. Apart, since a page has no sockets. */
import type { Clock } from '../../base/clock/clock.ts';
import { startTlsServer } from '../../base/http/tls-server.ts';
import type { Logger } from '../../base/log/log.ts';
import { DELETION_WEBHOOK_PATH } from '../../control/virt-api/virt-api.ts';
import { createAuthority, openAuthority } from '../../server/auth/certificate-authority.ts';
import type { ServeWebhook } from './deletion-webhook.ts';

/** The certificate ends with the process, which makes another at its next start. */
const CERTIFICATE_DAYS = 3650;

/** Serves handlers over TLS on an address of this host. */
export const webhookEndpoint =
  ({
    address,
    port,
    clock,
    log,
  }: {
    readonly address: string;
    readonly port: number;
    readonly clock: Clock;
    readonly log: Logger;
  }): ServeWebhook =>
  async (handler) => {
    const ca = await createAuthority(clock);
    const authority = await openAuthority(ca, clock);
    const { certificate, key } = await authority.issue({
      commonName: 'coracle-deletion-webhook',
      ipAddresses: [address],
      usage: 'server',
      days: CERTIFICATE_DAYS,
    });
    const server = await startTlsServer({ handler, host: address, port, tls: { certificate, key }, log });
    const host = address.includes(':') ? `[${address}]` : address;
    return {
      url: `https://${host}:${server.port}${DELETION_WEBHOOK_PATH}`,
      ca: ca.certificate,
      close: () => server.close(),
    };
  };
