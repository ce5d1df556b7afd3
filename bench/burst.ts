/**
 * A burst: 100 machines with instance type and preference, one after another without a pause, while an agent is attached
 * that is given all of them. No guest is started: the image is one that its store does not have, which it says of each.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from '../packages/client/src/client.ts';
import type { VirtualMachine } from '../packages/kubevirt/src/kinds/kubevirt.ts';
import { nodeIsReady, whatIsMissing } from './boot.ts';
import { type BenchContext, type Outcome, Runs } from './figure.ts';
import { quantile } from './load/load.ts';
import { NAMESPACE, oneRun, VMS } from './vms.ts';

const RUNS = 3;
const INSTANCETYPE = 'u1.nano';
const PREFERENCE = 'fedora';
const WAIT_MS = 30_000;

export async function benchBurst({ say }: BenchContext): Promise<Outcome> {
  const missing = whatIsMissing();
  if (missing !== undefined) return { state: 'skipped', reason: missing };
  const runs = new Runs();
  let missingPods = 0;
  for (let run = 0; run < RUNS; run++) {
    const { podMs, createMs } = await oneRun({ nodes: 1, prepare: untilServed, machine });
    if (podMs.length === 0) throw new Error('no launcher Pod came');
    missingPods += VMS - podMs.length;
    for (const [name, values] of [
      ['burst.launcher', podMs],
      ['burst.create', createMs],
    ] as const) {
      const ascending = [...values].sort((a, b) => a - b);
      runs.add(`${name}.p50`, 'ms', { value: quantile(ascending, 0.5) });
      runs.add(`${name}.p95`, 'ms', { value: quantile(ascending, 0.95) });
    }
    say(`run ${run + 1} of ${RUNS} done`);
  }
  return { state: 'measured', figures: runs.figures(), notes: { vms: VMS, missingPods } };
}

/** The node takes machines, and type and preference are there. */
async function untilServed(client: Client): Promise<void> {
  if (!(await nodeIsReady(client))) throw new Error('the node did not become ready');
  const kinds = [
    `virtualmachineclusterinstancetypes/${INSTANCETYPE}`,
    `virtualmachineclusterpreferences/${PREFERENCE}`,
  ];
  for (const kind of kinds) {
    const deadline = performance.now() + WAIT_MS;
    const there = () => client.raw('GET', `/apis/instancetype.kubevirt.io/v1beta1/${kind}`).then(Boolean, () => false);
    while (!(await there())) {
      if (performance.now() > deadline) throw new Error(`${kind} did not come`);
      await sleep(20);
    }
  }
}

const machine = (name: string): VirtualMachine => ({
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachine',
  metadata: { name, namespace: NAMESPACE },
  spec: {
    runStrategy: 'Always',
    instancetype: { name: INSTANCETYPE },
    preference: { name: PREFERENCE },
    template: {
      metadata: { labels: { app: name } },
      spec: {
        domain: { devices: {} },
        volumes: [{ name: 'root', containerDisk: { image: 'localhost/none' } }],
      },
    },
  },
});
