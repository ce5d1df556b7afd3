/**
 * What a start costs: of a build (tools/build) with state there, next to the sources; what it holds when nobody asks; and
 * how fast the first creates of a fresh process are, next to later ones.
 */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { bundle } from '../tools/build/bundle.ts';
import { createObjects } from './api/objects.ts';
import { endpointOf, newDataDir, removeDataDir, startPlane } from './api/plane.ts';
import { type BenchContext, type Outcome, Runs } from './figure.ts';
import { startGenerator } from './load/child.ts';
import { cpuMicros } from './process-cpu.ts';
import { residentMib } from './process-memory.ts';

const STARTS = 5;
const FRESH_RUNS = 3;
/** Controllers have read all that there is, and what the start took is given back, by then: also on a busy machine. */
const IDLE_MS = 10_000;
const CREATES = 3000;
/** Between the first creates and the ones that they are held against. */
const WARM_ROUNDS = 3;
const IN_FLIGHT = 32;

export async function benchStart({ say }: BenchContext): Promise<Outcome> {
  const runs = new Runs();
  const root = join(import.meta.dirname, '..');
  const dir = newDataDir();
  try {
    const { files, bytes } = await bundle(root, join(dir, 'built'));
    const built = { main: join(dir, 'built/lib/main.js'), cache: join(dir, 'cache') };
    const data = join(dir, 'data');
    // Makes the state, and both caches of compiled code.
    for (const program of [{ built }, {}]) await (await startPlane(data, program)).process.kill('SIGTERM');
    for (let run = 0; run < STARTS; run++) {
      for (const [name, program] of [
        ['built', { built }],
        ['sources', {}],
      ] as const) {
        const plane = await startPlane(data, program);
        const { pid } = plane.process;
        const cpu = cpuMicros(pid);
        runs.add(`start.${name}`, 'ms', { value: plane.readyMs });
        if (cpu !== undefined) runs.add(`cpu.start.${name}`, 'ms', { value: cpu / 1000 });
        await sleep(IDLE_MS);
        const rss = residentMib(pid);
        if (rss !== undefined) runs.add(`rss.idle.${name}`, 'MiB', { value: rss });
        await plane.process.kill('SIGTERM');
      }
      say(`start ${run + 1} of ${STARTS} done`);
    }
    await measureFirstCreates(runs, say);
    return { state: 'measured', figures: runs.figures(), notes: { files, bytes } };
  } finally {
    removeDataDir(dir);
  }
}

/** Each run in a process of its own, on an empty directory. */
async function measureFirstCreates(runs: Runs, say: BenchContext['say']): Promise<void> {
  for (let run = 0; run < FRESH_RUNS; run++) {
    const dir = newDataDir();
    const generator = startGenerator();
    const plane = await startPlane(dir);
    try {
      const { pid, port } = plane.process;
      const create = async (round: number): Promise<{ readonly rate: number; readonly cpu: number | undefined }> => {
        const before = cpuMicros(pid);
        const result = await generator.run({
          kind: 'requests',
          endpoint: endpointOf(dir, port),
          protocol: 'http2',
          inFlight: IN_FLIGHT,
          warmUpMs: 0,
          measureMs: 60_000,
          templates: [createObjects('default', `round-${round}`)],
          count: CREATES,
          once: true,
        });
        const after = cpuMicros(pid);
        const cpu = before !== undefined && after !== undefined ? (after - before) / result.sent : undefined;
        return { rate: result.answers / result.seconds, cpu };
      };
      const first = await create(0);
      for (let round = 1; round < WARM_ROUNDS; round++) await create(round);
      const warm = await create(WARM_ROUNDS);
      runs.add('create.first3000', '/s', { value: first.rate });
      runs.add('create.later3000', '/s', { value: warm.rate });
      runs.add('create.first-to-later', '%', { value: (first.rate / warm.rate) * 100 });
      if (first.cpu !== undefined) runs.add('cpu.create.first3000', 'µs', { value: first.cpu });
      if (warm.cpu !== undefined) runs.add('cpu.create.later3000', 'µs', { value: warm.cpu });
      say(`first creates ${run + 1} of ${FRESH_RUNS} done`);
    } finally {
      await plane.process.kill('SIGKILL');
      await generator.stop();
      removeDataDir(dir);
    }
  }
}
