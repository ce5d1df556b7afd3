/**
 * A board with several node agents of one host, for tests of live migration: real QEMU, a control plane in memory, and
 * certificates of one CA. `hand` plays the migration controller: the target's Pod, and the hand-over to both agents.
 */

import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { cloneJson } from '../../packages/apimachinery/src/meta/deep-clone.ts';
import { PODS } from '../../packages/apimachinery/src/types/resource-types.ts';
import type { Pod } from '../../packages/apimachinery/src/types/types.ts';
import { createAuthority, openAuthority } from '../../packages/apiserver/src/auth/certificate-authority.ts';
import type { ObjectStore } from '../../packages/apiserver/src/cache/object-store.ts';
import { isConflict, isNotFound } from '../../packages/client/src/api-failure.ts';
import type { Client } from '../../packages/client/src/client.ts';
import { chooseComponents, runComponent } from '../../packages/coracle/src/compose/components.ts';
import { VIRTUAL_MACHINE_INSTANCES, type VirtualMachineInstance } from '../../packages/kubevirt/src/kinds/kinds.ts';
import { hostAddressOf } from '../../packages/kubevirt/src/rules/launcher/pod-address.ts';
import {
  FORWARDED_PORTS_ANNOTATION,
  type PublishedPort,
  usualHostPort,
} from '../../packages/kubevirt/src/rules/machine/host-ports.ts';
import { type Agent, createAgent } from '../../packages/node-agent/src/agent/agent.ts';
import { openImageStore } from '../../packages/node-agent/src/image/image-store.ts';
import { importImage } from '../../packages/node-agent/src/image/local-images.ts';
import { readNodeFacts } from '../../packages/node-agent/src/qemu/node-facts.ts';
import { openPool } from '../../packages/node-agent/src/storage/pool.ts';
import { systemClock } from '../../packages/runtime/src/clock/clock.ts';
import { calledInProcess } from '../../packages/runtime/src/http/in-process-peer.ts';
import { createMessagePair } from '../../packages/runtime/src/http/message-pair.ts';
import { type MessageSocket, NEVER, NO_BYTES } from '../../packages/runtime/src/http/seam.ts';
import { createLogger, type Logger, silentLogger } from '../../packages/runtime/src/log/log.ts';
import { ensureGuest } from '../../tools/guest/build-guest.ts';
import { openPlane } from '../testkit/control-plane.ts';
import { eventually } from '../testkit/eventually.ts';
import { boardComponents, NAMESPACE } from './board.ts';

export interface MigrationBoard {
  readonly directory: string;
  readonly client: Client;
  /** What lies on the disk of a server: to put objects there that an older one wrote. */
  readonly store: ObjectStore;
  /** By node name. */
  readonly agents: Map<string, Agent>;
  readonly nodes: readonly string[];
  createVmi(name: string, spec: Record<string, unknown>): Promise<VirtualMachineInstance>;
  vmi(name: string): Promise<VirtualMachineInstance>;
  until(name: string, what: string, test: (vmi: VirtualMachineInstance) => boolean): Promise<VirtualMachineInstance>;
  launchers(name: string): Promise<Pod[]>;
  /** Makes the target's Pod on the other node and hands the migration over to the agents; resolves before it has begun. */
  hand(name: string, options?: { readonly configuration?: object }): Promise<Handed>;
  /** Changes the status of a VMI as the controller would. */
  patchStatus(name: string, status: object): Promise<void>;
  removePod(name: string): Promise<void>;
  /** Ends every guest and waits until their Pods are gone: what runs on takes the processors from the next test. */
  endGuests(): Promise<void>;
  /** The agent goes at once, as if it were killed: nothing is reported, guests stay. */
  stopAgent(node: string): Promise<void>;
  startAgent(node: string): Promise<void>;
  /** The API answers this node, or not. Watches stay. */
  cut(node: string, isCut: boolean): void;
  /** The agent of this node cannot prove its name to others, for that reason; undefined: it can again. */
  obstructPeer(node: string, why: string | undefined): void;
  /** Stands before the write by which a target takes a guest over: `write` does it. Undefined: nobody stands there. */
  gate: ((write: () => Promise<unknown>) => Promise<unknown>) | undefined;
  /** Opens the console of a VMI at the node it is on, from its backlog on. */
  console(vmi: VirtualMachineInstance): Promise<MessageSocket>;
  /** Pids of the QEMUs of a VMI by node. */
  qemus(vmi: VirtualMachineInstance): Promise<Map<string, number>>;
  /** The record of the VM on a node. */
  record(node: string, vmi: VirtualMachineInstance): Promise<Record<string, unknown> | undefined>;
  close(): Promise<void>;
}

export interface Handed {
  readonly uid: string;
  readonly source: string;
  readonly target: string;
  readonly targetPod: string;
}

const NAMES = ['one', 'two'];

/** Starts a board with two nodes. Set CORACLE_TEST_LOG to see its log. */
export async function startMigrationBoard(
  options: {
    readonly log?: Logger;
    /** The real controller of migrations runs: nothing is to be handed by hand. */
    readonly controller?: boolean;
    /** Path of another QEMU, made in the board's directory. */
    readonly binary?: (directory: string) => Promise<string>;
    /** The address of each node; that of the loopback where there is none. */
    readonly addresses?: Readonly<Record<string, string>>;
    /** What the nodes believe keeps guests from coming in post-copy. */
    readonly postCopyObstacle?: string;
  } = {},
): Promise<MigrationBoard> {
  const log = options.log
    ? options.log
    : process.env['CORACLE_TEST_LOG']
      ? createLogger((r) => console.error(r.level, r.message, JSON.stringify(r.fields)), 'debug')
      : silentLogger;
  const clock = systemClock;
  const directory = await mkdtemp(join(tmpdir(), 'coracle-migration-'));
  const stop = new AbortController();
  const pool = await openPool({ directory: join(directory, 'claims'), clock, log, signal: stop.signal });
  const binary = await options.binary?.(directory);
  const { postCopyObstacle } = options;
  const facts = postCopyObstacle && {
    ...(await readNodeFacts({ directory, clock, log, signal: stop.signal, accelerator: 'tcg' })),
    postCopyObstacle,
  };
  const images = await openImageStore(join(directory, 'images'), { clock });
  const guest = await ensureGuest();
  await importImage(images, 'tiny', guest.disk, { kernel: guest.kernel, initrd: guest.initrd, signal: stop.signal });
  const ca = await createAuthority(clock);
  const authority = await openAuthority(ca, clock);
  const agents = new Map<string, Agent>();
  const connectNode = async (name: string) => calledInProcess(agents.get(name)!.handler);
  const plane = await openPlane({ clock, log, connectNode, signal: stop.signal });
  const running: Promise<void>[] = [];
  for (const component of boardComponents().filter(
    ({ name }) => options.controller || (name !== 'migration' && name !== 'evacuation'),
  )) {
    const client = plane.clientFor(component.account);
    running.push(
      runComponent({
        component,
        client,
        facts: { rootCa: '', connectNode, askAgent: plane.askAgent },
        clock,
        log,
        signal: stop.signal,
      }),
    );
  }
  const client = await plane.adminClient();
  // The status of an instance, and labels of ours on it, are the controllers' to change.
  const controller = plane.clientFor(chooseComponents('vmi')[0]!.account);
  const isCut = new Set<string>();
  const obstacles = new Map<string, string>();
  const peerListeners = new Set<() => void>();
  let made = 0;

  const newAgent = async (nodeName: string): Promise<Agent> => {
    const pair = await authority.issue({
      commonName: `system:node:${nodeName}`,
      organizations: ['system:nodes'],
      usage: 'client',
      days: 1,
    });
    const near = plane.clientForNode(nodeName);
    // Every verb of the client goes through here, so that a test can take the API away from one node.
    const guarded = new Proxy(near, {
      get(target, property) {
        const value = Reflect.get(target, property) as unknown;
        if (typeof value !== 'function' || property === 'watch') return value;
        return (...args: unknown[]) => {
          if (isCut.has(nodeName)) return Promise.reject(new Error('the API cannot be reached'));
          const call = (): Promise<unknown> => (value as (...args: unknown[]) => Promise<unknown>).apply(target, args);
          const body = (args[2] as { body?: { status?: { nodeName?: string } } } | undefined)?.body;
          return property === 'patch' && body?.status?.nodeName !== undefined && board.gate ? board.gate(call) : call();
        };
      },
    });
    return createAgent({
      client: guarded,
      nodeName,
      dataDir: join(directory, nodeName),
      clock,
      log,
      options: {
        images,
        accelerator: 'tcg',
        ...(options.addresses?.[nodeName] !== undefined && { address: options.addresses[nodeName] }),
        ...(binary && { binary }),
        ...(facts && { facts }),
        addressesDir: join(directory, 'addresses'),
        memoryDir: join(directory, 'memory'),
        pool,
        peer: {
          pair: () => pair,
          ca: ca.certificate,
          obstacle: () => obstacles.get(nodeName),
          onChange: (listener) => void peerListeners.add(listener),
        },
      },
    });
  };
  const start = async (name: string): Promise<void> => {
    const agent = await newAgent(name);
    agents.set(name, agent);
    await agent.start(stop.signal);
  };

  const board: MigrationBoard = {
    directory,
    client,
    store: plane.store,
    agents,
    nodes: NAMES,
    gate: undefined,
    async console(vmi) {
      const response = await calledInProcess(agents.get(vmi.status?.nodeName ?? '')!.handler)({
        method: 'GET',
        path: `/v1/namespaces/${NAMESPACE}/virtualmachineinstances/${vmi.metadata.name}/console`,
        query: 'backlog=true',
        headers: { 'sec-websocket-protocol': 'plain.kubevirt.io' },
        body: NO_BYTES,
        peer: { address: '' },
        signal: NEVER,
        upgradable: true,
      });
      if (!response.upgrade) throw new Error(`no console: status ${response.status}`);
      const [near, far] = createMessagePair(response.upgrade.protocol);
      response.upgrade.accept(far);
      return near;
    },
    createVmi: (name, spec) =>
      client.create(VIRTUAL_MACHINE_INSTANCES, {
        apiVersion: 'kubevirt.io/v1',
        kind: 'VirtualMachineInstance',
        metadata: { name, namespace: NAMESPACE },
        spec,
      } as unknown as VirtualMachineInstance),
    vmi: (name) => client.get(VIRTUAL_MACHINE_INSTANCES, { namespace: NAMESPACE, name }),
    async until(name, what, test) {
      let last: VirtualMachineInstance | undefined;
      try {
        await eventually(what, async () => {
          last = await board.vmi(name);
          return test(last);
        });
      } catch (error) {
        const pods = (await board.launchers(name)).map((pod) => [pod.metadata.name, pod.status]);
        throw new Error(
          `${(error as Error).message}; status ${JSON.stringify(last?.status)}; pods ${JSON.stringify(pods)}`,
        );
      }
      return last as VirtualMachineInstance;
    },
    async launchers(name) {
      const { items } = await client.list(PODS, { namespace: NAMESPACE });
      return items.filter((pod) => pod.metadata.ownerReferences?.some((owner) => owner.name === name));
    },
    async hand(name, options = {}) {
      const vmi = await board.vmi(name);
      const source = vmi.status?.nodeName ?? '';
      const target = NAMES.find((node) => node !== source) ?? '';
      const own = (await board.launchers(name)).find(
        (pod) => pod.spec.nodeName === source && pod.status?.phase === 'Running',
      ) as Pod;
      const uid = crypto.randomUUID();
      const targetPod = `virt-launcher-${name}-to-${target}-${++made}`;
      const template = cloneJson(own);
      await client.create(PODS, {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: {
          name: targetPod,
          namespace: NAMESPACE,
          labels: { ...template.metadata.labels, 'kubevirt.io/migrationJobUID': uid },
          annotations: { ...template.metadata.annotations, 'kubevirt.io/migrationJobName': 'by-hand' },
          ownerReferences: template.metadata.ownerReferences,
        },
        spec: { ...template.spec, nodeName: target },
      } as unknown as Pod);
      await eventually('the target pod is ready', async () => {
        const pod = await client.get(PODS, { namespace: NAMESPACE, name: targetPod });
        return pod.status?.phase === 'Running' && pod.status.containerStatuses?.every(({ ready }) => ready) === true;
      });
      await board.patchStatus(name, {
        migrationState: null,
      });
      await board.patchStatus(name, {
        migrationState: {
          migrationUid: uid,
          sourceNode: source,
          sourcePod: own.metadata.name,
          targetNode: target,
          targetPod,
          migrationConfiguration: options.configuration ?? {},
          sourceState: { node: source, pod: own.metadata.name, migrationUID: uid },
          targetState: { node: target, pod: targetPod, migrationUID: uid },
        },
      });
      await controller.patch(
        VIRTUAL_MACHINE_INSTANCES,
        { namespace: NAMESPACE, name },
        { type: 'merge', body: { metadata: { labels: { 'kubevirt.io/migrationTargetNodeName': target } } } },
      );
      return { uid, source, target, targetPod };
    },
    async patchStatus(name, status) {
      for (;;) {
        try {
          await controller.patch(
            VIRTUAL_MACHINE_INSTANCES,
            { namespace: NAMESPACE, name },
            { type: 'merge', body: { status } },
            { subresource: 'status' },
          );
          return;
        } catch (error) {
          if (!isConflict(error)) throw error;
        }
      }
    },
    async removePod(name) {
      await client.delete(PODS, { namespace: NAMESPACE, name }).catch((error: unknown) => {
        if (!isNotFound(error)) throw error;
      });
    },
    async endGuests() {
      const { items } = await client.list(PODS, { namespace: NAMESPACE });
      const removed = items.map(({ metadata: { name = '' } }) =>
        client.delete(PODS, { namespace: NAMESPACE, name }, { gracePeriodSeconds: 1 }).catch((error: unknown) => {
          if (!isNotFound(error)) throw error;
        }),
      );
      await Promise.all(removed);
      await eventually(
        'all guests are gone',
        async () => (await client.list(PODS, { namespace: NAMESPACE })).items.length === 0,
      );
    },
    async stopAgent(node) {
      await agents.get(node)?.stop({ keepVms: true });
    },
    startAgent: start,
    cut(node, cut) {
      if (cut) isCut.add(node);
      else isCut.delete(node);
    },
    obstructPeer(node, why) {
      if (why === undefined) obstacles.delete(node);
      else obstacles.set(node, why);
      for (const listener of peerListeners) listener();
    },
    async qemus(vmi) {
      const found = new Map<string, number>();
      for (const name of (await readdir('/proc')).filter((entry) => /^\d+$/.test(entry))) {
        const line = (await readFile(`/proc/${name}/cmdline`, 'utf8').catch(() => '')).split('\0');
        const pidFile = line[line.indexOf('-pidfile') + 1] ?? '';
        const state = (await readFile(`/proc/${name}/stat`, 'utf8').catch(() => ') Z')).split(') ')[1]?.[0];
        if (state === 'Z') continue;
        for (const node of NAMES)
          if (pidFile.startsWith(join(directory, node, 'vms', vmi.metadata.uid ?? ''))) found.set(node, Number(name));
      }
      return found;
    },
    async record(node, vmi) {
      const path = join(directory, node, 'vms', vmi.metadata.uid ?? '', 'record.json');
      const text = await readFile(path, 'utf8').catch(() => undefined);
      return text === undefined ? undefined : (JSON.parse(text) as Record<string, unknown>);
    },
    async close() {
      await Promise.all([...agents.values()].map((agent) => agent.stop({ keepVms: true })));
      stop.abort(new Error('the test is over'));
      await Promise.allSettled(running);
      await plane.close(AbortSignal.timeout(1000));
      for (const node of NAMES)
        for (const uid of await readdir(join(directory, node, 'vms')).catch(() => [] as string[])) {
          const pid = await readFile(join(directory, node, 'vms', uid, 'qemu.pid'), 'utf8').catch(() => '');
          try {
            if (pid.trim() !== '') process.kill(Number(pid), 'SIGKILL');
          } catch {
            // Gone already.
          }
        }
      await rm(directory, { recursive: true, force: true, maxRetries: 5 });
    },
  };
  await Promise.all(NAMES.map(start));
  return board;
}

/** Where the launcher Pod says that port 8080 of its guest is. */
export function httpPortOf(pod: Pod | undefined): number {
  const ports = JSON.parse(pod?.metadata.annotations?.[FORWARDED_PORTS_ANNOTATION] ?? '[]') as PublishedPort[];
  return ports.find(({ containerPort }) => containerPort === 8080)?.hostPort ?? usualHostPort(8080);
}

/** The counter of the tiny guest, tenths of a second since it booted. */
export async function heartbeat(
  vmi: VirtualMachineInstance,
  port: () => Promise<number> = async () => usualHostPort(8080),
): Promise<number> {
  const address = hostAddressOf(vmi.status?.interfaces?.[0]?.ipAddress ?? '');
  // Booting, or between two nodes, it does not answer.
  const text = await eventually(`a heartbeat at ${address}`, async () => {
    const response = await fetch(`http://${address}:${await port()}/heartbeat`, { signal: AbortSignal.timeout(3000) });
    return response.ok && (await response.text()).trim();
  });
  return Number(text);
}
