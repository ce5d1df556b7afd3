/** The components against a cluster reached over HTTPS, each with a token of its own service account. */

import type { KubeObject } from '@coracle/apimachinery/meta/object';
import { SERVICE_ACCOUNTS } from '@coracle/apimachinery/types/resource-types';
import { isApiError, isNotFound } from '@coracle/client/api-failure';
import type { Client } from '@coracle/client/client';
import { createClient } from '@coracle/client/create-client';
import { createRenewedHandler } from '@coracle/client/transport/renewed-handler';
import type { Clock } from '@coracle/runtime/clock/clock';
import { createHttpsTransport, type HttpsTransport } from '@coracle/runtime/http/https-transport';
import type { Logger } from '@coracle/runtime/log/log';
import type { KeyPairPem } from '../config/pki.ts';
import { COMPONENT_TOKEN_SECONDS, createTokenSource, type MintedToken } from './component-token.ts';
import { AGENT_ACCOUNT, COMPONENT_NAMESPACE } from './components.ts';

export interface RemoteCluster {
  readonly server: string;
  /** PEM. */
  readonly ca: string | undefined;
  /** A client that may create tokens for the components' service accounts (kube-controller-manager's way). */
  readonly client: Client;
}

/** A connection under a name of its own. */
export interface RemoteConnection {
  readonly client: Client;
  close(): Promise<void>;
}

/** Connects to the cluster, with that certificate (PEM) if one is given. */
export const transportTo = ({ server, ca }: RemoteCluster, pair?: KeyPairPem): HttpsTransport =>
  createHttpsTransport({ server, ...(ca && { ca }), ...pair });

const OUR_VERSION = /\+coracle\b/;

/** Evictions of policy/v1; budgets of it came one before. */
const LEAST_MINOR = 22;
/** Tokens that name a node, by which agents get their certificates. */
const MOVING_MINOR = 31;

/**
 * Whose server it is, by the version it gives: ours, or that of an external cluster. `lacks`: what does not work there for
 * its age, in one line. Rejects with one line when it is another one and too old. A version that cannot be read is taken for new.
 */
export async function identifyServer(client: Client, signal: AbortSignal) {
  const { gitVersion = '' } = ((await client.raw('GET', '/version', { signal })) ?? {}) as { gitVersion?: string };
  if (OUR_VERSION.test(gitVersion)) return { isOurs: true };
  const minor = Number(/^v1\.(\d+)\b/.exec(gitVersion)?.[1] ?? Number.POSITIVE_INFINITY);
  if (minor < LEAST_MINOR)
    throw new Error(`the API server is Kubernetes ${gitVersion}; Coracle needs 1.${LEAST_MINOR} or newer`);
  const lacks = `the API server is Kubernetes ${gitVersion}: guests cannot move from node to node, which takes 1.${MOVING_MINOR} or newer`;
  return { isOurs: false, ...(minor < MOVING_MINOR && { lacks }) };
}

/** A Node; a token that is bound to it names it, and ends with it. */
export interface BoundNode {
  readonly name: string;
  readonly uid: string;
}

/** Asks for tokens of a service account through TokenRequest. */
export function mintThrough(
  client: Client,
  account: string,
  { bound, signal }: { readonly bound?: BoundNode; readonly signal?: AbortSignal } = {},
): () => Promise<MintedToken> {
  return async () => {
    try {
      const answer = (await client.create(
        SERVICE_ACCOUNTS as never,
        {
          apiVersion: 'authentication.k8s.io/v1',
          kind: 'TokenRequest',
          metadata: { name: account, namespace: COMPONENT_NAMESPACE },
          spec: {
            expirationSeconds: COMPONENT_TOKEN_SECONDS,
            ...(bound && { boundObjectRef: { apiVersion: 'v1', kind: 'Node', ...bound } }),
          },
        } as KubeObject,
        { subresource: 'token', ...(signal && { signal }) },
      )) as unknown as { status: { token: string; expirationTimestamp: string } };
      return { token: answer.status.token, expires: Date.parse(answer.status.expirationTimestamp) };
    } catch (error) {
      const whose = `${COMPONENT_NAMESPACE}/${account}`;
      if (isNotFound(error))
        throw new Error(`the cluster has no service account ${whose}: is Coracle installed there?`);
      if (isApiError(error, 403))
        throw new Error(`this kubeconfig may not create tokens for ${whose}: ${error.message}`);
      throw error;
    }
  };
}

/** A connection of its own for one service account. */
export async function connectAs(
  cluster: RemoteCluster,
  account: string,
  options: { readonly clock: Clock; readonly log: Logger },
): Promise<RemoteConnection> {
  const tokens = await createTokenSource(mintThrough(cluster.client, account), options);
  const transport = transportTo(cluster);
  let held = { handler: transport, token: tokens.current() };
  const newest = (token: string) => {
    if (token !== held.token) held = { handler: transport, token };
    return held;
  };
  const handler = createRenewedHandler({
    current: async () => newest(tokens.current()),
    renew: async (refused) => newest(await tokens.renew(refused.token ?? '')),
  });
  return {
    client: createClient(handler, { userAgent: account }),
    async close() {
      tokens.stop();
      await transport.close();
    },
  };
}

/** A connection as the agents' account whose one token names the node. It is not renewed: for a call or two. */
export async function connectBound(cluster: RemoteCluster, node: BoundNode, signal: AbortSignal) {
  const { token } = await mintThrough(cluster.client, AGENT_ACCOUNT, { bound: node, signal })();
  const handler = transportTo(cluster);
  return {
    client: createClient(handler, { userAgent: AGENT_ACCOUNT, token }),
    close: async () => void (await handler.close()),
  };
}
