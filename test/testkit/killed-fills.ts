/** Fills that are killed at a step and gone on with: what is there in the end, and what is left over. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import type { FillReport } from '../../packages/cluster-rules/src/storage/pool-calls.ts';
import type { PoolState } from '../../packages/node-agent/src/storage/pool-state.ts';
import { NEVER } from '../../packages/runtime/src/http/seam.ts';
import { type RunResult, run } from '../../packages/runtime/src/process/run.ts';
import { type ImageServer, startImageServer } from './image-server.ts';

const MIB = 1024 * 1024;
export const FILL_BYTES = 16 * MIB;
export const HANDLE = '00000000-0000-4000-8000-000000000001';
const PROCESS = new URL('./fill-process.ts', import.meta.url).pathname;

/** Every step that a fill comes to, in order; those of unpacking only where something is packed. */
export const FILL_STEPS = [
  'bytes:1000000',
  'directory made',
  'fetched',
  'received',
  'unpacked',
  'ready',
  'image in place',
  'before metadata',
  'metadata written',
  'file removed',
  'removal noted',
  'taken',
] as const;

export interface FillWay {
  readonly form: string;
  readonly by: 'http' | 'upload';
}

export interface FillBench {
  readonly server: ImageServer;
  readonly image: Buffer;
  /** URL of the image in that form. */
  readonly forms: ReadonlyMap<string, string>;
  /** Runs a fill of that form below a directory, from the server or sent, killed at `step` when one is given. */
  fill(directory: string, way: FillWay, step?: string): Promise<RunResult>;
  directory(): Promise<string>;
  close(): Promise<void>;
}

const tool = async (...argv: string[]): Promise<void> => {
  const result = await run(argv, { signal: NEVER, timeoutMs: 60_000 });
  assert.ok(result.ok, result.ok ? '' : result.message);
};

/** Starts a server with an image in all forms. */
export async function openFillBench(): Promise<FillBench> {
  const root = await mkdtemp(join(tmpdir(), 'coracle-killed-fills-'));
  const server = await startImageServer();
  const image = Buffer.concat([randomBytes(3 * MIB), Buffer.alloc(MIB), randomBytes(MIB)]);
  const raw = join(root, 'raw');
  await writeFile(raw, image);
  await tool('qemu-img', 'convert', '-f', 'raw', '-O', 'qcow2', raw, `${raw}.qcow2`);
  const qcow2 = await readFile(`${raw}.qcow2`);
  const forms = new Map<string, string>();
  for (const [form, bytes] of Object.entries({ raw: image, gz: gzipSync(image), qcow2, 'qcow2.gz': gzipSync(qcow2) })) {
    forms.set(form, server.serve(`/${form}`, bytes));
    await writeFile(join(root, `sent.${form}`), bytes);
  }
  return {
    server,
    image,
    forms,
    directory: () => mkdtemp(join(root, 'run-')),
    fill: (directory, { form, by }, step = '') => {
      const file = join(root, `sent.${form}`);
      const source = by === 'http' ? { type: 'http', url: forms.get(form) } : { type: 'upload', file };
      const call = { handle: HANDLE, bytes: FILL_BYTES, mode: 'Block', format: 'qcow2', attempt: 0, source };
      return run([process.execPath, PROCESS, directory, JSON.stringify(call), step], {
        signal: NEVER,
        timeoutMs: 120_000,
        // With the cache of compiled sources, which is half of what such a process costs.
        env: process.env as Record<string, string>,
      });
    },
    async close() {
      await server.close();
      await rm(root, { recursive: true, force: true });
    },
  };
}

/** Kills a fill of that form at that step, goes on with it, and looks at what is there. False: it never came to the step. */
export async function killAndGoOn(bench: FillBench, way: FillWay, step: string): Promise<boolean> {
  const form = `${way.form} by ${way.by}`;
  const directory = await bench.directory();
  try {
    const killed = await bench.fill(directory, way, step);
    if (killed.ok) return false;
    assert.equal(killed.reason, 'signal', `${form}, ${step}: ${killed.message}`);
    const went = await bench.fill(directory, way);
    assert.ok(went.ok, went.ok ? '' : `${form}, ${step}: ${went.message}`);
    const report = JSON.parse(Buffer.from(went.stdout).toString()) as FillReport;
    assert.equal(report.state, 'done', `${form}, ${step}: ${JSON.stringify(report)}`);
    await checkFilled(bench, directory, `${form}, ${step}`);
    return true;
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/** One volume with the content, one layer, nothing else. */
async function checkFilled({ image }: FillBench, directory: string, what: string): Promise<void> {
  const claims = join(directory, 'claims');
  const state = JSON.parse(await readFile(join(claims, 'pool.json'), 'utf8')) as PoolState;
  assert.deepEqual(Object.keys(state.volumes), [HANDLE], what);
  assert.equal(Object.keys(state.layers).length, 1, what);
  assert.deepEqual(state.doomed, [], what);
  const [layer = ''] = Object.keys(state.layers);
  assert.deepEqual(await readdir(join(claims, HANDLE)), [layer.split('/')[1]], `${what}: nothing is left over`);
  const out = join(directory, 'content');
  await tool('qemu-img', 'convert', '-f', state.layers[layer]?.format ?? '', '-O', 'raw', join(claims, layer), out);
  const content = await readFile(out);
  assert.equal(content.length, FILL_BYTES, what);
  assert.ok(content.subarray(0, image.length).equals(image), `${what}: the content is that of the image`);
}
