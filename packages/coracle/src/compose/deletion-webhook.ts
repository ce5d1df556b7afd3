/** Decisions about deletions for the external API server: a webhook of this process, and the word where it is. */

import type { ControllerEnvironment, Runnable } from '@coracle/client/controller/environment';
import {
  createDeletionWebhookController,
  deletionWebhookControllerRules,
  type WebhookAddress,
} from '@coracle/kubevirt/controllers/protection/deletion-webhook-controller';
import {
  createDeletionWebhook,
  DELETION_WEBHOOK_PATH,
  deletionWebhookRules,
  isKubeVirtComponent,
} from '@coracle/kubevirt/controllers/virt-api/virt-api';
import type { ApiHandler } from '@coracle/runtime/http/seam';

/** Rights of the component. */
export const DELETION_WEBHOOK_RULES = [...deletionWebhookRules, ...deletionWebhookControllerRules];

/** How a handler comes to be reached; `path` is its own. */
export type ServeWebhook = (handler: ApiHandler, path: string) => Promise<WebhookAddress & { close(): Promise<void> }>;

/** The component: serves once it knows the machines, and has the API server informed. */
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
      const served = await serve(handler, DELETION_WEBHOOK_PATH);
      try {
        await createDeletionWebhookController(environment, served).start(signal);
      } finally {
        await served.close();
      }
    },
  };
}
