/**
 * `expand-vm-spec` over HTTPS as a client meets it: u1.medium and fedora, asked for at a steady rate whether or not answers
 * came, next to the barest request there is.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { adminOf } from '../test/testkit/control-plane-process.ts';
import { endpointOf, newDataDir, removeDataDir, startPlane } from './api/plane.ts';
import { type BenchContext, type Outcome, Runs } from './figure.ts';
import { startGenerator } from './load/child.ts';
import type { RequestTemplate } from './load/load.ts';
import { cpuMicros } from './process-cpu.ts';

const PER_SECOND = 500;
const SECONDS = 4;
const RUNS = 3;

const EXPAND: RequestTemplate = {
  method: 'PUT',
  path: '/apis/subresources.kubevirt.io/v1/namespaces/default/expand-vm-spec',
  body: JSON.stringify({
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name: 'vm' },
    spec: {
      runStrategy: 'Always',
      instancetype: { name: 'u1.medium' },
      preference: { name: 'fedora' },
      template: {
        spec: {
          domain: { devices: {} },
          volumes: [{ name: 'root', containerDisk: { image: 'quay.io/containerdisks/fedora:42' } }],
        },
      },
    },
  }),
};
/** What this machine, the client and the server take for the least there is: no part of the expansion. */
const BARE: RequestTemplate = { method: 'GET', path: '/version' };

export async function benchExpand({ say }: BenchContext): Promise<Outcome> {
  const runs = new Runs();
  const dir = newDataDir();
  const plane = await startPlane(dir);
  const generator = startGenerator();
  const admin = adminOf(dir);
  try {
    const body = JSON.parse(EXPAND.body!) as object;
    const there = async (): Promise<boolean> =>
      admin.client.raw('PUT', EXPAND.path, { body }).then(Boolean, () => false);
    while (!(await there())) await sleep(20);
    // The first run of each is a warm-up.
    for (let run = -1; run < RUNS; run++) {
      for (const [name, request] of [
        ['bare', BARE],
        ['expand', EXPAND],
      ] as const) {
        const before = cpuMicros(plane.process.pid);
        const { latencyMs, missing } = await generator.run({
          kind: 'paced',
          endpoint: endpointOf(dir, plane.process.port),
          requests: [request],
          perSecond: PER_SECOND,
          seconds: SECONDS,
        });
        const after = cpuMicros(plane.process.pid);
        if (missing > 0) throw new Error(`${missing} requests were not answered`);
        if (run < 0) continue;
        runs.add(`${name}.p50`, 'ms', { value: latencyMs.p50 });
        runs.add(`${name}.p99`, 'ms', { value: latencyMs.p99 });
        if (before !== undefined && after !== undefined)
          runs.add(`cpu.${name}`, 'µs', { value: (after - before) / (SECONDS * PER_SECOND) });
      }
      say(`run ${run + 1} of ${RUNS} done`);
    }
    return { state: 'measured', figures: runs.figures() };
  } finally {
    await generator.stop();
    await admin.close();
    await plane.process.kill('SIGTERM');
    removeDataDir(dir);
  }
}
