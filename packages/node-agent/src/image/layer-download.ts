/** Downloads one blob to a file: resumes after a cut, and believes nothing before the digest fits. */
import { createHash } from 'node:crypto';
import { open, rm, stat } from 'node:fs/promises';
import type { Clock } from '@coracle/runtime/clock/clock';
import type { Descriptor, RegistryClient } from '@coracle/runtime/oci/registry-client';
import { RegistryError } from '@coracle/runtime/oci/registry-error';

interface DownloadOptions {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Called with bytes on disk so far. */
  readonly onProgress: (bytes: number) => void;
}

const ATTEMPTS = 6;
const FIRST_PAUSE_MS = 200;
/** No byte for this long is a broken connection. */
const IDLE_MS = 30_000;

/** Fills `path` with the blob; what an earlier try left there is continued. Throws RegistryError; the part stays then. */
export async function downloadLayer(
  registry: RegistryClient,
  layer: Descriptor,
  path: string,
  options: DownloadOptions,
): Promise<void> {
  let failure: unknown;
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    options.signal.throwIfAborted();
    if (attempt > 0) await options.clock.sleep(FIRST_PAUSE_MS * 2 ** (attempt - 1), options.signal);
    try {
      await continueDownload(registry, layer, path, options);
    } catch (error) {
      options.signal.throwIfAborted();
      if (error instanceof RegistryError && error.failure !== 'failed') throw error;
      failure = error;
      continue;
    }
    if ((await sha256Of(path)) === layer.digest) return;
    await rm(path, { force: true });
    throw new RegistryError('failed', `a layer does not match its digest ${layer.digest}; it was thrown away`);
  }
  const text = failure instanceof Error ? failure.message : String(failure);
  throw new RegistryError('failed', `layer ${layer.digest} could not be downloaded in ${ATTEMPTS} tries: ${text}`, {
    cause: failure,
  });
}

async function continueDownload(
  registry: RegistryClient,
  layer: Descriptor,
  path: string,
  options: DownloadOptions,
): Promise<void> {
  const { size: have } = await stat(path).catch(() => ({ size: 0 }));
  if (have === layer.size) return;
  const idle = new AbortController();
  const signal = AbortSignal.any([options.signal, idle.signal]);
  const watch = () => options.clock.schedule(IDLE_MS, () => idle.abort(new Error(`no byte for ${IDLE_MS} ms`)));
  let cancel = watch();
  const file = await open(path, 'a', 0o600);
  try {
    let wanted = have < layer.size ? have : 0;
    const { offset, body } = await registry.blob(layer.digest, wanted, signal);
    if (offset !== wanted) {
      if (offset !== 0) throw new Error(`the registry answered from byte ${offset} instead of ${wanted}`);
      wanted = 0;
    }
    await file.truncate(wanted);
    let size = wanted;
    for await (const chunk of body) {
      cancel();
      cancel = watch();
      size += chunk.length;
      if (size > layer.size) throw new Error(`the registry sent more than the ${layer.size} bytes it announced`);
      await file.writeFile(chunk);
      options.onProgress(size);
    }
    if (size < layer.size) throw new Error(`the connection ended after ${size} of ${layer.size} bytes`);
  } finally {
    cancel();
    await file.close();
  }
}

/** `sha256:<hex>` of a file. */
async function sha256Of(path: string): Promise<string> {
  const hash = createHash('sha256');
  const file = await open(path, 'r');
  for await (const chunk of file.createReadStream({ highWaterMark: 1024 * 1024 })) hash.update(chunk as Buffer);
  return `sha256:${hash.digest('hex')}`;
}
