/**
 * Who a node agent is to its cluster. A server of ours knows it as a node: the agent makes a key, asks for a client
 * certificate as kubelets do (TLS bootstrap) and asks again, as itself, well before it expires. Any other cluster is
 * spoken to under the agents' service account, because what its nodes may do is not ours to say; there agents know each
 * other by certificates of their own (`peer-identity.ts`).
 */

import { KUBELET_CLIENT_SIGNER } from '@coracle/apimachinery/certificates/kubelet-request';
import { CERTIFICATE_SIGNING_REQUESTS, CONFIG_MAPS } from '@coracle/apimachinery/types/resource-types';
import type { CertificateSigningRequest } from '@coracle/apimachinery/types/types';
import { isApiError, orExpected } from '@coracle/client/api-failure';
import type { Client } from '@coracle/client/client';
import { createClient } from '@coracle/client/create-client';
import { createRenewedHandler } from '@coracle/client/transport/renewed-handler';
import type { PeerIdentity } from '@coracle/node-agent/network/peer';
import type { KeyPairPem } from '../config/pki.ts';
import { AGENT_ACCOUNT } from './components.ts';
import { createNodeSigningRequest, lifeLeft, RENEW_AT, waitForSignature } from './node-signing-request.ts';
import { keepPeerIdentity, type PeerIdentityOptions } from './peer-identity.ts';
import {
  connectAs,
  connectBound,
  identifyServer,
  type RemoteCluster,
  type RemoteConnection,
  transportTo,
} from './remote-components.ts';

export interface NodeIdentity extends RemoteConnection {
  /** What the node proves its name to other nodes with. */
  readonly peer?: PeerIdentity;
  /** Where the server is not ours: PEM of the authorities of the certificates that it shows to its nodes. */
  readonly serverCa?: string;
}

export interface NodeIdentityOptions extends Omit<PeerIdentityOptions, 'client' | 'connectBound'> {
  /** Called once with a line for the user when the certificate has not come for some seconds: somebody has to approve. */
  readonly onWaiting?: (line: string) => void;
}

const WAITING_AFTER_MS = 3000;
const SIGNED_WITHIN_MS = 60_000;
const RETRY_MS = 30_000;
/** Connections with the certificate before are given this long to end by themselves. */
const OLD_CONNECTION_MS = 60_000;

/** Connects as the node where the cluster knows nodes as we do, else under the agents' service account. */
export async function connectNode(cluster: RemoteCluster, options: NodeIdentityOptions): Promise<NodeIdentity> {
  const { isOurs, lacks } = await identifyServer(cluster.client, options.signal);
  if (isOurs) return connectByCertificate(cluster, options);
  if (lacks !== undefined) options.log.warn(lacks);
  const { client, close } = await connectAs(cluster, AGENT_ACCOUNT, options);
  const peer = keepPeerIdentity({
    ...options,
    client,
    connectBound: (node, signal) => connectBound(cluster, node, signal),
  });
  // Else every start of an agent would say for a moment that its guests cannot move.
  await peer.looked;
  const serverCa = (await publishedClientCa(client, options)) ?? cluster.ca;
  return {
    client,
    peer: peer.identity,
    ...(serverCa !== undefined && { serverCa }),
    async close() {
      await peer.close();
      await close();
    },
  };
}

/**
 * What an API server publishes for those behind it: the authorities of clients, its own certificate towards kubelets
 * among them. Undefined when it does not.
 */
async function publishedClientCa(client: Client, { log, signal }: NodeIdentityOptions): Promise<string | undefined> {
  const key = { namespace: 'kube-system', name: 'extension-apiserver-authentication' };
  try {
    return (await client.get(CONFIG_MAPS, key, { signal })).data?.['client-ca-file'];
  } catch (error) {
    signal.throwIfAborted();
    log.info('the API server names no authority of its clients', { error: (error as Error).message });
    return undefined;
  }
}

async function connectByCertificate(cluster: RemoteCluster, options: NodeIdentityOptions): Promise<NodeIdentity> {
  const { nodeName, pairs, clock, log } = options;
  const name = `node-${nodeName}-client`;
  let held = pairs.read(name);
  if (!held || lifeLeft(held, clock.now()) === 0) {
    held = await askForCertificate(cluster.client, options);
    pairs.write(name, held);
  }
  let access = { handler: transportTo(cluster, held) };
  const timers = new Set<() => void>();
  const later = (ms: number, act: () => void): void => {
    const cancel = clock.schedule(ms, () => {
      timers.delete(cancel);
      act();
    });
    timers.add(cancel);
  };
  let asking: Promise<void> | undefined;
  let askedAt = Number.NEGATIVE_INFINITY;
  const renew = (isKnown: boolean): Promise<void> => {
    asking ??= (async () => {
      askedAt = clock.monotonic();
      try {
        // As itself, or by the kubeconfig when its own certificate has expired meanwhile (a host that slept).
        held = await askForCertificate(isKnown ? ownClient : cluster.client, options);
        pairs.write(name, held);
        const old = access.handler;
        access = { handler: transportTo(cluster, held) };
        later(OLD_CONNECTION_MS, () => void old.close());
      } catch (error) {
        if (!options.signal.aborted)
          log.warn('node certificate not renewed', { node: nodeName, error: (error as Error).message });
      } finally {
        asking = undefined;
      }
    })();
    return asking;
  };
  // Without the second try: the request for a certificate must not wait for itself.
  const ownClient = createClient((request) => access.handler(request), { userAgent: AGENT_ACCOUNT });
  const handler = createRenewedHandler({
    current: async () => access,
    async renew(refused) {
      if (refused !== access) return access;
      if (asking || clock.monotonic() - askedAt >= RETRY_MS) await renew(false);
      return access;
    },
  });
  // By the wall clock, at which certificates end, and in short steps: a host may sleep, and a timer has a longest time.
  const look = (): void =>
    later(RETRY_MS, () => {
      const left = lifeLeft(held!, clock.now());
      if (left <= RENEW_AT && !options.signal.aborted) void renew(left > 0).then(look);
      else look();
    });
  look();
  return {
    client: createClient(handler, { userAgent: AGENT_ACCOUNT }),
    ...(cluster.ca !== undefined && { peer: { pair: () => held!, ca: cluster.ca } }),
    async close() {
      for (const cancel of timers) cancel();
      await access.handler.close();
    },
  };
}

/** Asks for a client certificate of the node and waits until it is signed. Rejects with one line. */
async function askForCertificate(
  client: Client,
  { nodeName, clock, signal, onWaiting = () => {} }: NodeIdentityOptions,
): Promise<KeyPairPem> {
  const named = { signerName: KUBELET_CLIENT_SIGNER, generateName: 'csr-' };
  const { object, key } = await createNodeSigningRequest(nodeName, named);
  const made = await client.create(CERTIFICATE_SIGNING_REQUESTS, object, { signal }).catch((error: Error) => {
    throw new Error(`this kubeconfig cannot ask for a certificate of node ${nodeName}: ${error.message}`);
  });
  const { name = '' } = made.metadata;
  await approve(client, made, signal);
  const waiting = `certificate request ${name} of node ${nodeName} waits: kubectl certificate approve ${name}`;
  const cancel = clock.schedule(WAITING_AFTER_MS, () => onWaiting(waiting));
  const signature = await waitForSignature(client, name, { clock, withinMs: SIGNED_WITHIN_MS, signal }).finally(cancel);
  switch (signature.outcome) {
    case 'signed':
      return { certificate: signature.certificate, key };
    case 'refused':
      throw new Error(`certificate request ${name} of node ${nodeName} was refused: ${signature.message}`);
    case 'waits':
      throw new Error(waiting);
  }
}

/** Whoever may approve says so at once; for anybody else the approving controller or an administrator does. */
async function approve(client: Client, made: CertificateSigningRequest, signal: AbortSignal): Promise<void> {
  const condition = {
    type: 'Approved',
    status: 'True',
    reason: 'NodeStarted',
    message: 'Approved by the user who started the node agent.',
  };
  const status = { ...made.status, conditions: [...(made.status?.conditions ?? []), condition] };
  const how = { subresource: 'approval', signal } as const;
  await orExpected(
    client.update(CERTIFICATE_SIGNING_REQUESTS, { ...made, status }, how),
    (error) => isApiError(error, 403) || isApiError(error, 409),
  );
}
