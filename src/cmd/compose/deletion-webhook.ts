/** Decisions about deletions for the API server of another make: a webhook of this process, and the word where it is. */
import type { Clock } from '../../base/clock/clock.ts';
import type { ApiHandler } from '../../base/http/seam.ts';
import { startTlsServer } from '../../base/http/tls-server.ts';
import type { Logger } from '../../base/log/log.ts';
import type { ControllerEnvironment, Runnable } from '../../client/controller/environment.ts';
import {
  createDeletionWebhookController,
  deletionWebhookControllerRules,
  type WebhookAddress,
} from '../../control/protection/deletion-webhook-controller.ts';
import {
  createDeletionWebhook,
  DELETION_WEBHOOK_PATH,
  deletionWebhookRules,
  isKubeVirtComponent,
} from '../../control/virt-api/virt-api.ts';
import { createAuthority, openAuthority } from '../../server/auth/certificate-authority.ts';

/** Rights of the component. */
export const DELETION_WEBHOOK_RULES = [...deletionWebhookRules, ...deletionWebhookControllerRules];

/** How a handler comes to be reached. */
export type ServeWebhook = (handler: ApiHandler) => Promise<WebhookAddress & { close(): Promise<void> }>;

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

/** The component: serves once it knows the machines, and has the API server told. */
export function createDeletionWebhookComponent(
  environment: ControllerEnvironment,
  { serve, namespace }: { readonly serve: ServeWebhook; readonly namespace: string },
): Runnable {
  const { client, informers } = environment;
  const ours = `system:serviceaccount:${namespace}:coracle-`;
  const handler = createDeletionWebhook({
    client,
    informers,
    isComponent: (username) => isKubeVirtComponent({ username, groups: [] }, namespace) || username.startsWith(ours),
  });
  return {
    name: 'deletion-webhook',
    async start(signal) {
      try {
        await informers.synced(signal);
      } catch (error) {
        if (signal.aborted) return;
        throw error;
      }
      const served = await serve(handler);
      try {
        await createDeletionWebhookController(environment, served).start(signal);
      } finally {
        await served.close();
      }
    },
  };
}
