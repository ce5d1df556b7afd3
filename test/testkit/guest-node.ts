/**
 * A node behind a real port whose Pods have guests that are servers of this process: what an agent answers about Pods,
 * without a QEMU. For tests of what leads through the API server to a port of a guest.
 */

import type { Launcher } from '../../packages/node-agent/src/agent/launcher/launcher.ts';
import { createNodeHandler } from '../../packages/node-agent/src/agent/requests/handler.ts';
import type { MeasuredPod } from '../../packages/node-agent/src/agent/requests/node-summary.ts';
import { createHttpsTransport } from '../../packages/runtime/src/http/https-transport.ts';
import type { ApiHandler, ApiRequest } from '../../packages/runtime/src/http/seam.ts';
import { silentLogger } from '../../packages/runtime/src/log/log.ts';
import type { InProcessServer } from './in-process-server.ts';
import { listenTls, newAuthority } from './listen-tls.ts';
import { promptClock } from './prompt-clock.ts';

export interface GuestNode {
  /** What the API server is given. */
  readonly connectNode: (nodeName: string) => Promise<ApiHandler>;
  /** Every request that reached the node, newest last. */
  readonly seen: readonly ApiRequest[];
  /** From now on that Pod (`namespace/name`) has a guest, whose ports are these on 127.0.0.1. */
  run(pod: string, ports: Readonly<Record<number, number>>): void;
  close(): Promise<void>;
}

/** The name of the node. */
export const GUEST_NODE = 'n1';

/** Starts one; `pods` are those it says are bound to it. */
export async function startGuestNode(pods: () => readonly MeasuredPod[] = () => []): Promise<GuestNode> {
  const guests = new Map<string, Readonly<Record<number, number>>>();
  const seen: ApiRequest[] = [];
  const launcherOf = (namespace: string, name: string): Launcher | undefined => {
    const ports = guests.get(`${namespace}/${name}`);
    if (!ports) return undefined;
    const endpoint = async (port: number) => {
      const at = ports[port];
      if (at === undefined) throw new Error(`connect ECONNREFUSED to port ${port} of the guest`);
      return { host: '127.0.0.1', port: at };
    };
    return { guest: { forwarder: { endpoint } }, record: {} } as unknown as Launcher;
  };
  const handler = createNodeHandler({
    find: () => undefined,
    metrics: async () => [],
    node: { nodeName: GUEST_NODE, dataDir: '.', pods },
    findPod: launcherOf,
    directoryOf: () => '',
    memoryDirectory: '',
    authorize: ({ peer }) => peer.certificate?.verified === true,
    clock: promptClock,
    log: silentLogger,
  });
  const authority = await newAuthority();
  const tls = await listenTls((request) => {
    seen.push(request);
    return handler(request);
  }, authority);
  const identity = await authority.issue({ commonName: 'api', usage: 'client', days: 1 });
  const transport = createHttpsTransport({
    server: `https://127.0.0.1:${tls.port}`,
    ca: authority.certificate,
    ...identity,
  });
  return {
    connectNode: async (nodeName) => {
      if (nodeName !== GUEST_NODE) throw new Error(`node ${nodeName} names no endpoint of its agent`);
      return transport;
    },
    seen,
    run: (pod, ports) => void guests.set(pod, ports),
    async close() {
      transport.close();
      await tls.close();
    },
  };
}

/** A Pod on the node as its agent would report it: bound, running, with an address. */
export async function createGuestPod(
  server: InProcessServer,
  name: string,
  more: {
    readonly namespace?: string;
    readonly ip?: string;
    readonly ports?: readonly number[];
    nodeName?: string;
  } = {},
): Promise<void> {
  const { namespace = 'default', ip = '127.64.0.1', ports = [], nodeName = GUEST_NODE } = more;
  const pods = `/api/v1/namespaces/${namespace}/pods`;
  const containers = [{ name: 'compute', image: 'i', ports: ports.map((containerPort) => ({ containerPort })) }];
  await server.create(pods, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, labels: { guest: name } },
    spec: { containers },
  });
  await server.request('POST', `${pods}/${name}/binding`, {
    body: { apiVersion: 'v1', kind: 'Binding', metadata: { name }, target: { kind: 'Node', name: nodeName } },
  });
  await server.request('PATCH', `${pods}/${name}/status`, {
    body: { status: { phase: 'Running', podIP: ip, podIPs: [{ ip }] } },
  });
}
