/**
 * A whole board for tests of the node agent: the control plane in memory, its controllers, the agent of one node and the
 * tiny guest in the image store. QEMU is real. `close` ends every guest.
 */

import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PODS } from '../../packages/apimachinery/src/types/resource-types.ts';
import type { Pod } from '../../packages/apimachinery/src/types/types.ts';
import { isNotFound } from '../../packages/client/src/api-failure.ts';
import type { Client } from '../../packages/client/src/client.ts';
import { type Component, chooseComponents, runComponent } from '../../packages/coracle/src/compose/components.ts';
import type { ControlPlane } from '../../packages/coracle/src/compose/control-plane.ts';
import { poolControllers } from '../../packages/kube-controllers/src/storage/storage-controllers.ts';
import {
  VIRTUAL_MACHINE_INSTANCES,
  type VirtualMachineInstance,
  type VirtualMachineInstanceSpec,
} from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { type Agent, createAgent } from '../../packages/node-agent/src/agent/agent.ts';
import type { AgentOptions } from '../../packages/node-agent/src/agent/agent-options.ts';
import type { VmRecord } from '../../packages/node-agent/src/agent/launcher/vm-record.ts';
import { type ImageStore, openImageStore } from '../../packages/node-agent/src/image/image-store.ts';
import { importImage } from '../../packages/node-agent/src/image/local-images.ts';
import { systemClock } from '../../packages/runtime/src/clock/clock.ts';
import { calledInProcess } from '../../packages/runtime/src/http/in-process-peer.ts';
import { createMessagePair } from '../../packages/runtime/src/http/message-pair.ts';
import { type MessageSocket, NEVER, NO_BYTES } from '../../packages/runtime/src/http/seam.ts';
import { createLogger, type Logger, silentLogger } from '../../packages/runtime/src/log/log.ts';
import { ensureGuest } from '../../tools/guest/build-guest.ts';
import { openPlane } from '../testkit/control-plane.ts';
import { eventually } from '../testkit/eventually.ts';

export interface Board {
  readonly directory: string;
  readonly client: Client;
  readonly images: ImageStore;
  agent: Agent;
  /** Stops the agent, keeping guests, and starts another on the same directory. */
  restartAgent(between?: () => Promise<unknown>): Promise<void>;
  /** Creates the VMI; the controllers and the agent do the rest. */
  createVmi(name: string, spec: VirtualMachineInstanceSpec): Promise<VirtualMachineInstance>;
  vmi(name: string): Promise<VirtualMachineInstance>;
  /** Waits for a VMI that fits; throws with what there is when it takes too long. */
  until(name: string, what: string, test: (vmi: VirtualMachineInstance) => boolean): Promise<VirtualMachineInstance>;
  pods(): Promise<Pod[]>;
  record(vmi: VirtualMachineInstance): Promise<VmRecord>;
  /** PUT to the node API. */
  put(path: string): Promise<number>;
  /** Opens a console or a port. */
  connect(path: string): Promise<MessageSocket>;
  close(): Promise<void>;
}

export const NAMESPACE = 'default';
export const NODE = 'test-node';

/** All that run without the keys of the cluster, and those of the others that call agents. */
export function boardComponents(): readonly Component[] {
  const callers = new Set([...poolControllers.map(({ name }) => name), 'memory', 'bin', 'data-volume']);
  return chooseComponents('*', { withKeys: true }).filter(({ name, needsKeys }) => !needsKeys || callers.has(name));
}

/** Starts a board. Set CORACLE_TEST_LOG to see its log. */
export async function startBoard(
  options: { readonly agent?: AgentOptions; readonly log?: Logger } = {},
): Promise<Board> {
  const log = process.env['CORACLE_TEST_LOG']
    ? createLogger((r) => console.error(r.level, r.message, JSON.stringify(r.fields)), 'debug')
    : (options.log ?? silentLogger);
  const clock = systemClock;
  const directory = await mkdtemp(join(tmpdir(), 'coracle-board-'));
  const stop = new AbortController();
  const images = await openImageStore(join(directory, 'images'), { clock });
  const guest = await ensureGuest();
  await importImage(images, 'tiny', guest.disk, { kernel: guest.kernel, initrd: guest.initrd, signal: stop.signal });

  const connectNode = async () => calledInProcess(board.agent.handler);
  const plane: ControlPlane = await openPlane({ clock, log, connectNode, signal: stop.signal });
  const running: Promise<void>[] = [];
  for (const component of boardComponents()) {
    const client = plane.clientFor(component.account);
    running.push(
      runComponent({
        component,
        client,
        facts: { rootCa: '', askAgent: plane.askAgent, connectNode },
        clock,
        log,
        signal: stop.signal,
      }),
    );
  }
  const client = await plane.adminClient();
  const agentClient = plane.clientForNode(NODE);
  const newAgent = (): Agent =>
    createAgent({
      client: agentClient,
      nodeName: NODE,
      dataDir: join(directory, 'node'),
      clock,
      log,
      options: { images, accelerator: 'tcg', ...options.agent },
    });

  const board: Board = {
    directory,
    client,
    images,
    agent: newAgent(),
    async restartAgent(between) {
      await board.agent.stop({ keepVms: true });
      await between?.();
      board.agent = newAgent();
      await board.agent.start(stop.signal);
    },
    createVmi: (name, spec) =>
      client.create(VIRTUAL_MACHINE_INSTANCES, {
        apiVersion: 'kubevirt.io/v1',
        kind: 'VirtualMachineInstance',
        metadata: { name, namespace: NAMESPACE },
        spec,
      }),
    vmi: (name) => client.get(VIRTUAL_MACHINE_INSTANCES, { namespace: NAMESPACE, name }),
    async until(name, what, test) {
      let last: VirtualMachineInstance | undefined;
      try {
        await eventually(what, async () => {
          // Not there yet, or between two instances of a VM.
          last = await board.vmi(name).catch((error: unknown) => {
            if (isNotFound(error)) return undefined;
            throw error;
          });
          return last !== undefined && test(last);
        });
      } catch (error) {
        const pods = (await board.pods()).map((pod) => pod.status);
        throw new Error(
          `${(error as Error).message}; status ${JSON.stringify(last?.status)}; pods ${JSON.stringify(pods)}`,
        );
      }
      return last as VirtualMachineInstance;
    },
    pods: async () => (await client.list(PODS, { namespace: NAMESPACE })).items,
    record: async (vmi) =>
      JSON.parse(
        await readFile(join(directory, 'node/vms', vmi.metadata.uid ?? '', 'record.json'), 'utf8'),
      ) as VmRecord,
    async put(path) {
      const response = await calledInProcess(board.agent.handler)({
        method: 'PUT',
        path: `/v1/namespaces/${NAMESPACE}/virtualmachineinstances/${path}`,
        query: '',
        headers: {},
        body: NO_BYTES,
        peer: { address: '' },
        signal: NEVER,
      });
      return response.status;
    },
    async connect(path) {
      const response = await calledInProcess(board.agent.handler)({
        method: 'GET',
        path: `/v1/namespaces/${NAMESPACE}/virtualmachineinstances/${path.split('?')[0]}`,
        query: path.split('?')[1] ?? '',
        headers: { 'sec-websocket-protocol': 'plain.kubevirt.io' },
        body: NO_BYTES,
        peer: { address: '' },
        signal: NEVER,
        upgradable: true,
      });
      if (!response.upgrade) throw new Error(`${path}: status ${response.status}`);
      const [near, far] = createMessagePair(response.upgrade.protocol);
      response.upgrade.accept(far);
      return near;
    },
    async close() {
      await board.agent.stop({ keepVms: true });
      stop.abort(new Error('the test is over'));
      await Promise.allSettled(running);
      await plane.close(AbortSignal.timeout(1000));
      // Guests are ended by the record of the process each one was started with.
      for (const uid of await readdir(join(directory, 'node/vms')).catch(() => [] as string[])) {
        const pid = await readFile(join(directory, 'node/vms', uid, 'qemu.pid'), 'utf8').catch(() => '');
        if (pid.trim() !== '') {
          try {
            process.kill(Number(pid), 'SIGKILL');
          } catch {
            // Gone already.
          }
        }
      }
      await rm(directory, { recursive: true, force: true, maxRetries: 5 });
    },
  };
  await board.agent.start(stop.signal);
  return board;
}

/** A spec that boots the tiny guest by its kernel: the fastest way up. */
export const kernelSpec = (change: Partial<VirtualMachineInstanceSpec> = {}): VirtualMachineInstanceSpec => ({
  terminationGracePeriodSeconds: 10,
  domain: {
    devices: { interfaces: [{ name: 'default', masquerade: {}, ports: [{ port: 8080 }] }] },
    memory: { guest: '128Mi' },
    firmware: {
      kernelBoot: {
        kernelArgs: 'console=ttyS0',
        container: { image: 'localhost/tiny', kernelPath: '/boot/vmlinuz', initrdPath: '/boot/initrd' },
      },
    },
  },
  networks: [{ name: 'default', pod: {} }],
  ...change,
});

/** A spec that boots nothing: its firmware waits for ever, hears no power button, and takes next to no processor time. */
export function bareSpec(change: Partial<VirtualMachineInstanceSpec> = {}): VirtualMachineInstanceSpec {
  const { domain, ...spec } = kernelSpec(change);
  const { firmware: _, ...bare } = domain;
  return { ...spec, domain: bare };
}

/** Collects what a socket receives; `has` waits for a text. */
export function collect(socket: MessageSocket): {
  readonly text: () => string;
  has(part: string | RegExp): Promise<unknown>;
} {
  let text = '';
  const decoder = new TextDecoder();
  socket.onMessage((data) => {
    text += decoder.decode(data, { stream: true });
  });
  return {
    text: () => text,
    has: (part) =>
      eventually(`output ${part}`, () => (typeof part === 'string' ? text.includes(part) : part.test(text))).catch(
        (error: Error) => {
          throw new Error(`${error.message}; got: ${text.slice(-500)}`);
        },
      ),
  };
}
