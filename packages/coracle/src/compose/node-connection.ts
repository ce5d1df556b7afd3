/**
 * How virt-api reaches a node's own API: the Node object names address, port and the CA its agent serves under; virt-api
 * shows a client certificate of the cluster's CA, and the agent answers nobody else.
 */

import { NODES } from '@coracle/apimachinery/types/resource-types';
import type { Client } from '@coracle/client/client';
import { SERVING_CA_ANNOTATION } from '@coracle/node-agent/agent/registration/node-object';
import { createHttpsTransport, type HttpsTransport } from '@coracle/runtime/http/https-transport';
import type { ApiHandler } from '@coracle/runtime/http/seam';
import { inUrl } from '../config/serving-address.ts';

/** Common name of the certificate virt-api shows to agents. */
export const VIRT_API_COMMON_NAME = 'coracle:virt-api';
/** Connections kept, one a node. */
const MAX_CONNECTIONS = 256;

export type NodeConnector = ReturnType<typeof createNodeConnector>;

/** Makes a connector that shows `identity` (PEM). */
export function createNodeConnector(identity: { readonly certificate: string; readonly key: string }) {
  const held = new Map<string, { readonly endpoint: string; readonly transport: HttpsTransport }>();
  return {
    /** Rejects with one line when the node is unknown or names no endpoint. */
    async connect(nodeName: string, client: Client): Promise<ApiHandler> {
      const node = await client.get(NODES, { namespace: '', name: nodeName });
      const address = node.status?.addresses?.find(({ type }) => type === 'InternalIP')?.address;
      const port = node.status?.daemonEndpoints?.kubeletEndpoint?.Port;
      const ca = node.metadata.annotations?.[SERVING_CA_ANNOTATION];
      if (!address || !port || !ca) throw new Error(`node ${nodeName} names no endpoint of its agent`);
      const endpoint = `https://${address}:${port}\n${ca}`;
      const known = held.get(nodeName);
      if (known?.endpoint === endpoint) return known.transport;
      void known?.transport.close();
      const transport = createHttpsTransport({ server: `https://${inUrl(address)}:${port}`, ca, ...identity });
      held.delete(nodeName);
      held.set(nodeName, { endpoint, transport });
      const [oldest] = held.keys();
      if (held.size > MAX_CONNECTIONS && oldest !== undefined) {
        void held.get(oldest)?.transport.close();
        held.delete(oldest);
      }
      return transport;
    },
    async close(): Promise<void> {
      await Promise.all([...held.values()].map(({ transport }) => transport.close()));
      held.clear();
    },
  };
}
