/**
 * An image of 1 GiB, raw, from a web server on loopback into a volume, with its checksum; beside it, in turn,
 * `curl URL | sha256sum`, which writes nothing. Time of the clock and of processors.
 */
import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type BenchContext, type Outcome, Runs } from './figure.ts';

const RUNS = 5;
const MIB = 1024 ** 2;
const BYTES = 1024 * MIB;
const SHELL = 'curl --silent --show-error --fail "$0" | sha256sum';
const beside = (name: string): string => join(import.meta.dirname, name);

/** Needs curl, sha256sum, bash, and 2 GiB of room. */
export async function benchImport({ say }: BenchContext): Promise<Outcome> {
  for (const program of ['curl', 'sha256sum', 'bash'])
    if (spawnSync(program, ['--version']).status !== 0) return { state: 'skipped', reason: `no ${program} here` };
  const directory = await mkdtemp(join(tmpdir(), 'coracle-bench-'));
  let server: ChildProcess | undefined;
  try {
    const file = join(directory, 'image');
    const checksum = await writeImage(file);
    server = spawn(process.execPath, [beside('import-server.ts'), file], { stdio: ['ignore', 'pipe', 'inherit'] });
    const url = String((await once(server.stdout!, 'data'))[0]).trim();
    const runs = new Runs();
    for (let run = 0; run < RUNS; run++) {
      const plain = await plainRun(url, checksum);
      const own = await ownRun(directory, { url, checksum, run });
      runs.add('import.time', 's', { value: own.seconds, plain: plain.seconds });
      runs.add('import.cpu', 's', { value: own.cpuSeconds, plain: plain.cpuSeconds });
      runs.add('import.plain', 's', { value: plain.seconds });
      runs.add('import.plain.cpu', 's', { value: plain.cpuSeconds });
      say(`run ${run + 1} done`);
    }
    return { state: 'measured', figures: runs.figures() };
  } finally {
    server?.kill();
    await rm(directory, { recursive: true, force: true });
  }
}

/** Random throughout: nothing of it is left out. Resolves to its SHA-256. */
async function writeImage(path: string): Promise<string> {
  const file = await open(path, 'w');
  const hash = createHash('sha256');
  for (let written = 0; written < BYTES; written += 16 * MIB) {
    const piece = randomBytes(16 * MIB);
    // As a disk begins that no format claims.
    if (written === 0) piece.fill(0, 0, 512);
    hash.update(piece);
    await file.write(piece);
  }
  await file.close();
  return hash.digest('hex');
}

interface Run {
  readonly seconds: number;
  readonly cpuSeconds: number;
}

async function plainRun(url: string, checksum: string): Promise<Run> {
  const began = performance.now();
  const { stdout, stderr } = await promisify(execFile)('bash', ['-c', `TIMEFORMAT='%U %S'; time { ${SHELL}; }`, url]);
  const seconds = (performance.now() - began) / 1000;
  if (!stdout.startsWith(checksum)) throw new Error(`sha256sum says ${stdout}`);
  const [user = 0, system = 0] = stderr.trim().split(' ').map(Number);
  return { seconds, cpuSeconds: user + system };
}

async function ownRun(
  directory: string,
  { url, checksum, run }: { readonly url: string; readonly checksum: string; readonly run: number },
): Promise<Run> {
  const pool = join(directory, `pool-${run}`);
  const call = {
    handle: '00000000-0000-4000-8000-000000000001',
    bytes: BYTES,
    mode: 'Block',
    format: 'qcow2',
    attempt: 0,
    source: { type: 'http', url, checksum: `sha256:${checksum}` },
  };
  const { stdout } = await promisify(execFile)(process.execPath, [
    beside('import-fill.ts'),
    pool,
    JSON.stringify(call),
  ]);
  await rm(pool, { recursive: true, force: true });
  return JSON.parse(stdout) as Run;
}
