/** Where webhooks of this process are reached: TLS on an address of this host. Apart, since a page has no sockets. */
import { reviewProblem } from '@coracle/apimachinery/types/admission-review';
import { createAuthority, openAuthority } from '@coracle/apiserver/auth/certificate-authority';
import type { Clock } from '@coracle/runtime/clock/clock';
import type { ApiHandler } from '@coracle/runtime/http/seam';
import { startTlsServer } from '@coracle/runtime/http/tls-server';
import type { Logger } from '@coracle/runtime/log/log';
import type { ServeWebhook } from './deletion-webhook.ts';

/** The certificate ends with the process, which makes another at its next start. */
const CERTIFICATE_DAYS = 3650;

interface Serving {
  readonly base: string;
  readonly ca: string;
  close(): Promise<void>;
}

/** Serves handlers over TLS on an address of this host, each at a path of its own: one server while there is any. */
export function webhookEndpoint({
  address,
  port,
  clock,
  log,
}: {
  readonly address: string;
  readonly port: number;
  readonly clock: Clock;
  readonly log: Logger;
}): ServeWebhook {
  const handlers = new Map<string, ApiHandler>();
  let serving: Promise<Serving> | undefined;
  let closed: Promise<unknown> = Promise.resolve();

  const start = async (): Promise<Serving> => {
    await closed;
    const ca = await createAuthority(clock);
    const authority = await openAuthority(ca, clock);
    const { certificate, key } = await authority.issue({
      commonName: 'coracle-webhooks',
      ipAddresses: [address],
      usage: 'server',
      days: CERTIFICATE_DAYS,
    });
    const handler: ApiHandler = async (request) =>
      handlers.get(request.path)?.(request) ?? reviewProblem(404, `no webhook is served at ${request.path}`);
    const server = await startTlsServer({ handler, host: address, port, tls: { certificate, key }, log });
    const host = address.includes(':') ? `[${address}]` : address;
    return { base: `https://${host}:${server.port}`, ca: ca.certificate, close: () => server.close() };
  };

  return async (handler, path) => {
    if (handlers.has(path)) throw new Error(`a webhook is served at ${path} already`);
    handlers.set(path, handler);
    serving ??= start();
    const mine = serving;
    try {
      const { base, ca } = await mine;
      const close = async (): Promise<void> => {
        if (!handlers.delete(path) || handlers.size > 0 || serving !== mine) return;
        serving = undefined;
        closed = mine.then((server) => server.close());
        await closed;
      };
      return { url: `${base}${path}`, ca, close };
    } catch (error) {
      handlers.delete(path);
      if (serving === mine) serving = undefined;
      throw error;
    }
  };
}
