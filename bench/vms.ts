/**
 * From VirtualMachine to launcher Pod: 100 VMs are created one after another and a watcher notes when each one's Pod
 * appears. A node that no agent serves stands by, so that the scheduler has somewhere to bind; no guest is started.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { KubeObject } from '../packages/apimachinery/src/meta/object.ts';
import { NODES, PODS } from '../packages/apimachinery/src/types/resource-types.ts';
import type { Client } from '../packages/client/src/client.ts';
import {
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINES,
  type VirtualMachine,
} from '../packages/kubevirt/src/kinds/kubevirt.ts';
import { adminOf } from '../test/testkit/control-plane-process.ts';
import { newDataDir, removeDataDir, startPlane } from './api/plane.ts';
import { type BenchContext, type Outcome, Runs } from './figure.ts';
import { quantile } from './load/load.ts';
import { residentMib } from './process-memory.ts';

const RUNS = 3;
export const VMS = 100;
export const NAMESPACE = 'default';
/** Pods that have not come by then are missing. */
const SETTLE_MS = 15_000;
const WATCHED = { namespace: NAMESPACE, resourceVersion: '0' };

export async function benchVms({ say }: BenchContext): Promise<Outcome> {
  const runs = new Runs();
  let missing = 0;
  for (let run = 0; run < RUNS; run++) {
    const { podMs, boundMs, writes, rss, createMs } = await oneRun({ prepare: createNode, machine });
    missing += VMS - podMs.length;
    if (podMs.length === 0) throw new Error('no launcher Pod came');
    const add = (name: string, values: readonly number[]): void => {
      if (values.length === 0) return;
      const ascending = [...values].sort((a, b) => a - b);
      runs.add(`${name}.p50`, 'ms', { value: quantile(ascending, 0.5) });
      runs.add(`${name}.p95`, 'ms', { value: quantile(ascending, 0.95) });
    };
    add('launcher', podMs);
    add('bound', boundMs);
    add('vm-create', createMs);
    // Until the Pod is bound; what an agent writes on top is the boot bench's affair.
    runs.add('vmi-writes', 'each', { value: writes / VMS });
    if (rss !== undefined) runs.add('rss.vms', 'MiB', { value: rss });
    say(`run ${run + 1} of ${RUNS} done`);
  }
  return { state: 'measured', figures: runs.figures(), notes: { vms: VMS, missingPods: missing } };
}

export interface VmRun {
  /** From the answer to the create until a watcher has the Pod, and until it sees it bound. */
  readonly podMs: number[];
  readonly boundMs: number[];
  readonly createMs: number[];
  /** Writes to all VMIs after their creation. */
  readonly writes: number;
  readonly rss: number | undefined;
}

/** Creates the machines one after another, without a pause. */
export async function oneRun(options: {
  /** Agents of the plane itself. */
  readonly nodes?: number;
  /** Makes what the machines need. */
  readonly prepare: (client: Client) => Promise<void>;
  readonly machine: (name: string) => VirtualMachine;
}): Promise<VmRun> {
  const dir = newDataDir();
  const stop = new AbortController();
  let kill: () => Promise<void> = async () => {};
  try {
    const plane = await startPlane(dir, { ...(options.nodes !== undefined && { nodes: options.nodes }) });
    kill = () => plane.process.kill('SIGKILL');
    const admin = adminOf(dir);
    const { client } = admin;
    await options.prepare(client);
    const answered = new Map<string, number>();
    const podSeen = new Map<string, number>();
    const boundSeen = new Map<string, number>();
    let writes = 0;
    const watching = [
      follow(client.watch(PODS, { ...WATCHED, signal: stop.signal }), (_type, pod) => {
        const vm = pod.metadata.annotations?.['kubevirt.io/domain'];
        if (vm === undefined) return;
        if (!podSeen.has(vm)) podSeen.set(vm, performance.now());
        if ((pod as { spec?: { nodeName?: string } }).spec?.nodeName && !boundSeen.has(vm))
          boundSeen.set(vm, performance.now());
      }),
      follow(client.watch(VIRTUAL_MACHINE_INSTANCES, { ...WATCHED, signal: stop.signal }), (type) => {
        if (type === 'MODIFIED') writes++;
      }),
    ];
    // Controllers have their informers by then, as they have in a plane that has been up for a while.
    await sleep(1000);
    const createMs: number[] = [];
    for (let i = 0; i < VMS; i++) {
      const sent = performance.now();
      await client.create(VIRTUAL_MACHINES, options.machine(`vm-${i}`));
      answered.set(`vm-${i}`, performance.now());
      createMs.push(performance.now() - sent);
    }
    for (let waited = 0; boundSeen.size < VMS && waited < SETTLE_MS; waited += 20) await sleep(20);
    await sleep(300);
    const rss = residentMib(plane.process.pid);
    stop.abort();
    await Promise.all(watching);
    await admin.close();
    const since = (seen: ReadonlyMap<string, number>): number[] =>
      [...seen].map(([vm, at]) => Math.max(0, at - answered.get(vm)!));
    return { podMs: since(podSeen), boundMs: since(boundSeen), createMs, writes, rss };
  } finally {
    stop.abort();
    await kill();
    removeDataDir(dir);
  }
}

async function follow<T extends KubeObject>(
  events: AsyncIterable<{ readonly type: string; readonly object: T }>,
  see: (type: string, object: T) => void,
): Promise<void> {
  try {
    for await (const { type, object } of events) see(type, object);
  } catch (error) {
    if ((error as Error).name !== 'AbortError') throw error;
  }
}

async function createNode(client: Client): Promise<void> {
  const amounts = {
    cpu: '256',
    memory: '512Gi',
    'ephemeral-storage': '1Ti',
    pods: '500',
    'devices.kubevirt.io/tun': '1k',
    'devices.kubevirt.io/kvm': '1000',
  };
  await client.create(NODES, {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name: 'node-0',
      labels: {
        'kubevirt.io/schedulable': 'true',
        'kubernetes.io/os': 'linux',
        'kubernetes.io/arch': 'amd64',
        'machine-type.node.kubevirt.io/q35': 'true',
      },
    },
  });
  const now = new Date().toISOString();
  await client.patch(
    NODES,
    { namespace: '', name: 'node-0' },
    {
      type: 'merge',
      body: {
        status: {
          capacity: amounts,
          allocatable: amounts,
          conditions: [{ type: 'Ready', status: 'True', lastHeartbeatTime: now, lastTransitionTime: now }],
        },
      },
    },
    { subresource: 'status' },
  );
}

const machine = (name: string): VirtualMachine => ({
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachine',
  metadata: { name, namespace: NAMESPACE },
  spec: {
    runStrategy: 'Always' as const,
    template: {
      metadata: { labels: { app: name } },
      spec: {
        domain: {
          memory: { guest: '128Mi' },
          devices: { disks: [{ name: 'root', disk: { bus: 'virtio' as const } }] },
        },
        volumes: [{ name: 'root', containerDisk: { image: 'registry.example/disks/small:1' } }],
      },
    },
  },
});
