/** Node agents in this process: each with its own directory, its own port, and the agents' service account. */
import { mkdirSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import type { Client } from '@coracle/client/client';
import type { Agent } from '@coracle/node-agent/agent/agent';
import { guestMetrics } from '@coracle/node-agent/agent/guest/guest-metrics';
import { streamMetrics } from '@coracle/node-agent/agent/migration/stream-stats';
import type { PeerIdentity } from '@coracle/node-agent/network/peer';
import type { Pool } from '@coracle/node-agent/storage/pool';
import type { Clock } from '@coracle/runtime/clock/clock';
import { nextTurn } from '@coracle/runtime/clock/next-turn';
import { startTlsServer, type TlsServer } from '@coracle/runtime/http/tls-server';
import type { Logger } from '@coracle/runtime/log/log';
import type { MetricFamily } from '@coracle/runtime/metrics/metric-family';
import type { DataDir } from '../config/data-dir.ts';
import type { Pki } from '../config/pki.ts';
import { LOOPBACK } from '../config/serving-address.ts';
import { VERSION } from '../config/version.ts';
import { VIRT_API_COMMON_NAME } from './node-connection.ts';
import { keepNodePair } from './node-pair.ts';

export interface AgentsOptions {
  /** Names of the nodes to run. */
  readonly names: readonly string[];
  /** A client that acts as the agent of that node. */
  readonly clientFor: (nodeName: string) => Client;
  readonly dir: DataDir;
  /** Issues the serving certificates. */
  readonly pki: Pki;
  /** PEM of the CA that virt-api's client certificate chains to. */
  readonly clientCa: string;
  /**
   * What a node proves its name to other nodes with. Not given: a certificate is issued where `pki` is the cluster's own,
   * else guests of these nodes do not move.
   */
  readonly peer?: PeerIdentity;
  /** The API server is not ours, and asks its nodes as kubelets are asked. */
  readonly asKubelet?: boolean;
  /** Port of the first node's API; 0 picks free ones. */
  readonly port?: number;
  /** Address on which the nodes' APIs are served, and that their Node objects name; loopback when not given. */
  readonly address?: string;
  /** Directories below which hostDisk volumes may lie; none = the volume type is refused. */
  readonly hostDiskRoots?: readonly string[];
  /** Guests may have ports of their address under their own number. */
  readonly allowsHostPorts?: boolean;
  readonly clock: Clock;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

export type RunningAgents = ReturnType<typeof startAgents>;

const SERVING_DAYS = 365;

/** Names of `count` nodes of this host: its host name, then numbered. */
export function nodeNames(count: number): string[] {
  const host =
    hostname()
      .toLowerCase()
      .replace(/[^a-z0-9.-]/g, '-')
      .replace(/^[^a-z0-9]+|[^a-z0-9]+$/g, '') || 'coracle';
  return Array.from({ length: count }, (_, at) => (at === 0 ? host : `${host}-${at + 1}`));
}

/** Starts the agents in the background: the API is of use before its nodes are, and without them. */
export function startAgents(options: AgentsOptions) {
  const parts: StartedParts = { agents: [], pool: undefined };
  const started = parts.agents;
  const ready = options.names.length === 0 ? Promise.resolve() : startAll(options, parts);
  return {
    /** Resolves when every node has registered; rejects with what keeps one from it (no QEMU, a lost lock). */
    ready,
    /** What `/metrics` says of the guests of these nodes. */
    async metrics(): Promise<readonly MetricFamily[]> {
      const measured = await Promise.all(started.map(({ agent }) => agent.measured()));
      if (started.length === 0) return [];
      return [...streamMetrics(started.flatMap(({ agent }) => agent.sending())), ...guestMetrics(measured.flat())];
    },
    /** The guests that `close` waits for. */
    stopping: () => started.flatMap(({ agent }) => agent.stopping()),
    /** Ends all guests at once, for a `close` that is not to wait. */
    async forceStop() {
      await Promise.all(started.map(({ agent }) => agent.forceStop()));
    },
    async close({ keepVms }: { readonly keepVms: boolean }) {
      await ready.catch(() => {});
      await Promise.all(
        started.map(async ({ agent, server }) => {
          await agent.stop({ keepVms });
          await server.close();
        }),
      );
      await parts.pool?.close();
    },
  };
}

interface StartedParts {
  readonly agents: { readonly agent: Agent; readonly server: TlsServer }[];
  pool: Pool | undefined;
}

async function startAll(options: AgentsOptions, started: StartedParts): Promise<void> {
  const { dir, clock, log, signal, address = LOOPBACK } = options;
  mkdirSync(dir.nodes, { recursive: true, mode: 0o700 });
  // What only nodes need is loaded when there are some, and once the API has said that it is ready.
  await nextTurn();
  const [{ createAgent }, { openImageStore }, { readNodeFacts }, { openPool }, { createFills }] = await Promise.all([
    import('@coracle/node-agent/agent/agent'),
    import('@coracle/node-agent/image/image-store'),
    import('@coracle/node-agent/qemu/node-facts'),
    import('@coracle/node-agent/storage/pool'),
    import('@coracle/node-agent/fill/fills'),
  ]);
  const facts = await readNodeFacts({ directory: dir.nodes, clock, log, signal });
  const images = await openImageStore(dir.images, { clock, log, architecture: facts.architecture });
  const pool = await openPool({ directory: join(dir.root, 'claims'), clock, log, signal });
  const fills = createFills({ pool, images, clock, log, signal, architecture: facts.architecture });
  started.pool = pool;
  await Promise.all(
    options.names.map(async (nodeName, at) => {
      const serving = await options.pki.pair(`node-${nodeName}`, {
        commonName: `system:node:${nodeName}`,
        organizations: ['system:nodes'],
        dnsNames: [nodeName],
        ipAddresses: [address],
        usage: 'server',
        days: SERVING_DAYS,
      });
      const peer = options.peer ?? (await issuePeer(options, nodeName));
      let handler: Agent['handler'] = async () => ({ status: 503, headers: { 'retry-after': '1' } });
      const server = await startTlsServer({
        handler: (request) => handler(request),
        host: address,
        port: at === 0 ? (options.port ?? 0) : 0,
        tls: { certificate: serving.certificate, key: serving.key, clientCa: options.clientCa },
        bodiesWhenAsked: true,
        log,
      });
      const agent = createAgent({
        client: options.clientFor(nodeName),
        nodeName,
        dataDir: join(dir.nodes, nodeName),
        clock,
        log,
        options: {
          facts,
          images,
          addressesDir: join(dir.root, 'addresses'),
          pool,
          fills,
          memoryDir: join(dir.root, 'memory'),
          address,
          ...(peer && { peer }),
          ...(options.asKubelet && { asKubelet: true }),
          servingCa: options.pki.ca,
          ...(options.hostDiskRoots && { hostDiskRoots: options.hostDiskRoots }),
          ...(options.allowsHostPorts && { allowsHostPorts: true }),
          servingPort: server.port,
          allowedClients: [VIRT_API_COMMON_NAME],
          version: `v${VERSION}`,
          share: options.names.length,
        },
      });
      handler = agent.handler;
      started.agents.push({ agent, server });
      await agent.start(signal);
    }),
  );
}

async function issuePeer(options: AgentsOptions, nodeName: string): Promise<PeerIdentity | undefined> {
  const { pki, clientCa } = options;
  return pki.ca === clientCa ? { pair: await keepNodePair({ ...options, nodeName }), ca: clientCa } : undefined;
}
