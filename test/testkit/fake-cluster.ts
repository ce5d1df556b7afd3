/** A control plane in memory with its real controllers, and nodes that only pretend (`fake-node.ts`). */
import { EVENTS, SERVICE_ACCOUNTS } from '../../packages/apimachinery/src/types/resource-types.ts';
import { isNotFound } from '../../packages/client/src/api-failure.ts';
import type { Client } from '../../packages/client/src/client.ts';
import type { AskAgent } from '../../packages/client/src/controller/ask-agent.ts';
import {
  COMPONENTS,
  type ComponentFacts,
  chooseComponents,
  runComponent,
} from '../../packages/coracle/src/compose/components.ts';
import type { ControlPlaneOptions } from '../../packages/coracle/src/compose/control-plane.ts';
import {
  VIRTUAL_MACHINE_INSTANCE_MIGRATIONS,
  VIRTUAL_MACHINE_INSTANCES,
  type VirtualMachineInstance,
  type VirtualMachineInstanceMigration,
} from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { NODE_VM_RULES } from '../../packages/node-agent/src/agent/rbac.ts';
import { createLogger, type LogRecord } from '../../packages/runtime/src/log/log.ts';
import { eventually } from './eventually.ts';
import { type FakeNode, startFakeNode } from './fake-node.ts';
import { type InProcessControlPlane, startInProcess } from './in-process-control-plane.ts';
import { playVolumes } from './play-volumes.ts';
import { promptClock } from './prompt-clock.ts';

export interface FakeCluster {
  readonly board: InProcessControlPlane;
  readonly client: Client;
  readonly nodes: ReadonlyMap<string, FakeNode>;
  /** What the components logged as errors. */
  readonly errors: readonly LogRecord[];
  node(name: string): FakeNode;
  /** Creates an instance in `default` and waits until it runs. */
  run(name: string, spec?: object, metadata?: object): Promise<VirtualMachineInstance>;
  vmi(name: string): Promise<VirtualMachineInstance>;
  /** Waits for an instance that fits. */
  untilVmi(name: string, what: string, test: (vmi: VirtualMachineInstance) => boolean): Promise<VirtualMachineInstance>;
  migrate(vmiName: string, more?: { metadata?: object; spec?: object }): Promise<string>;
  migration(name: string): Promise<VirtualMachineInstanceMigration | undefined>;
  migrations(vmiName?: string): Promise<VirtualMachineInstanceMigration[]>;
  untilPhase(name: string, phase: string): Promise<VirtualMachineInstanceMigration>;
  /** `Type Reason Message` of the events about an object of that name. */
  events(name: string): Promise<string[]>;
  /** Stops the components and starts them anew, as a process that was killed; `between` runs while there are none. */
  restart(between?: () => Promise<void>): Promise<void>;
  stop(): Promise<void>;
}

export interface FakeClusterOptions {
  readonly nodes?: readonly string[];
  /** As `--controllers`. */
  readonly components?: string;
  readonly plane?: Partial<ControlPlaneOptions>;
  /** More of what components may need to know. */
  readonly facts?: Partial<ComponentFacts>;
  /** Runs the controller of saved memory as well, over these agents. */
  readonly memory?: AskAgent;
}

const NAMESPACE = 'default';
const DEFAULT_COMPONENTS = 'vm,vmi,migration,evacuation,workload-update,scheduler,disruption-controller';

/** Starts it; resolves when every node is registered. */
export async function startFakeCluster(options: FakeClusterOptions = {}): Promise<FakeCluster> {
  const board = await startInProcess({ clock: promptClock, agentRules: NODE_VM_RULES, ...options.plane });
  const client = await board.plane.adminClient();
  const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default', namespace: NAMESPACE } };
  await client.create(SERVICE_ACCOUNTS, account);
  const stop = new AbortController();
  const errors: LogRecord[] = [];
  const print = process.env['CORACLE_TEST_LOG'] !== undefined;
  const log = createLogger(
    (record) => {
      if (record.level === 'error') errors.push(record);
      if (print) console.error(record.level, record.message, JSON.stringify(record.fields));
    },
    print ? 'debug' : 'error',
  );
  let components: { readonly stop: AbortController; readonly running: Promise<unknown> };
  const startComponents = (): void => {
    const own = new AbortController();
    const chosen = [
      ...chooseComponents(options.components ?? DEFAULT_COMPONENTS),
      ...COMPONENTS.filter(({ name }) => name === 'memory' && options.memory),
    ];
    const running = chosen.map(async (component) =>
      runComponent({
        component,
        client: board.plane.clientFor(component.account),
        facts: { rootCa: '', askAgent: options.memory ?? board.plane.askAgent, ...options.facts },
        clock: promptClock,
        log,
        signal: own.signal,
      }),
    );
    components = { stop: own, running: Promise.all(running) };
  };
  const stopComponents = async (): Promise<void> => {
    components.stop.abort();
    await components.running;
  };
  startComponents();
  const volumes = playVolumes(client, stop.signal);
  const nodes = new Map<string, FakeNode>();
  for (const name of options.nodes ?? ['node-1', 'node-2', 'node-3']) {
    const asNode = board.plane.clientForNode(name);
    nodes.set(name, await startFakeNode({ name, client: asNode, admin: client, signal: stop.signal }));
  }
  const key = (name: string) => ({ namespace: NAMESPACE, name });
  const cluster: FakeCluster = {
    board,
    client,
    nodes,
    errors,
    node(name) {
      const node = nodes.get(name);
      if (!node) throw new Error(`no node ${name}`);
      return node;
    },
    async run(name, spec = {}, metadata = {}) {
      await client.create(VIRTUAL_MACHINE_INSTANCES, {
        apiVersion: 'kubevirt.io/v1',
        kind: 'VirtualMachineInstance',
        metadata: { name, namespace: NAMESPACE, ...metadata },
        spec: { domain: { devices: {}, memory: { guest: '64Mi' } }, ...spec },
      } as unknown as VirtualMachineInstance);
      return cluster.untilVmi(name, 'Running', ({ status }) => status?.phase === 'Running');
    },
    vmi: (name) => client.get(VIRTUAL_MACHINE_INSTANCES, key(name)),
    untilVmi: (name, what, test) => {
      let last: VirtualMachineInstance | undefined;
      return eventually(`${name} ${what}`, async () => {
        last = await cluster.vmi(name);
        return test(last) ? last : undefined;
      }).catch((error: Error) => {
        throw new Error(`${error.message}: ${JSON.stringify(last?.status)} ${JSON.stringify(last?.metadata.labels)}`);
      });
    },
    async migrate(vmiName, { metadata = {}, spec = {} } = {}) {
      const made = await client.create(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, {
        apiVersion: 'kubevirt.io/v1',
        kind: 'VirtualMachineInstanceMigration',
        metadata: { generateName: 'job-', namespace: NAMESPACE, ...metadata },
        spec: { vmiName, ...spec },
      } as unknown as VirtualMachineInstanceMigration);
      return made.metadata.name ?? '';
    },
    async migration(name) {
      try {
        return await client.get(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, key(name));
      } catch (error) {
        if (isNotFound(error)) return undefined;
        throw error;
      }
    },
    async migrations(vmiName) {
      const { items } = await client.list(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, { namespace: NAMESPACE });
      return items.filter(({ spec }) => vmiName === undefined || spec.vmiName === vmiName);
    },
    untilPhase: (name, phase) => {
      let last: VirtualMachineInstanceMigration | undefined;
      return eventually(`migration ${name} ${phase}`, async () => {
        last = await cluster.migration(name);
        return last?.status?.phase === phase ? last : undefined;
      }).catch((error: Error) => {
        throw new Error(`${error.message}: ${JSON.stringify(last?.status)}`);
      });
    },
    async events(name) {
      const { items } = await client.list(EVENTS, { namespace: NAMESPACE });
      return items
        .filter(({ involvedObject }) => involvedObject.name === name)
        .map(({ type, reason, message }) => `${type} ${reason} ${message}`);
    },
    async restart(between) {
      await stopComponents();
      await between?.();
      startComponents();
    },
    async stop() {
      stop.abort();
      await volumes;
      await stopComponents();
      await board.stop();
    },
  };
  return cluster;
}
