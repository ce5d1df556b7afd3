/** An OCI image as a source: its manifest's digest is the commit, the files of its layers are the tree. */
import { createHash } from 'node:crypto';
import type { Clock } from '@coracle/runtime/clock/clock';
import { type ImageReference, parseReference } from '@coracle/runtime/oci/reference';
import { createRegistryClient, type Descriptor, type RegistryClient } from '@coracle/runtime/oci/registry-client';
import { RegistryError } from '@coracle/runtime/oci/registry-error';
import { createLinkedController } from '@coracle/runtime/signal/linked-controller';
import { treePath } from '../git/repository-url.ts';
import { authorityOf, type ReadSecret, type Source, SourceError, type SourceTree } from '../git/source.ts';
import type { OciSpec } from '../kinds/kinds.ts';
import { unpackImage } from './unpack-image.ts';

export interface OciSourceOptions {
  readonly spec: OciSpec;
  readonly secret: ReadSecret;
  readonly clock: Clock;
}

/** Manifests are the same for every processor: the commit must not depend on where this runs. Upstream's choice as well. */
const ARCHITECTURE = 'amd64';
/** Of all layers as they are sent. */
const MAX_PACKED_BYTES = 64 * 1024 ** 2;
/** For all layers. */
const PULL_MS = 5 * 60_000;

/** The image that a spec names. Throws an Error for what is no reference. */
export const imageOf = ({ image }: OciSpec): ImageReference => parseReference(image);

/** Makes the source; nothing is asked before `resolve`. Throws for a spec that cannot be meant. */
export function createOciSource({ spec, secret, clock }: OciSourceOptions): Source {
  const image = imageOf(spec);
  const dir = treePath(spec.dir ?? '');
  /** What a digest leads to does not change. */
  let pinned: string | undefined;

  const registry = async (reference: ImageReference, signal: AbortSignal): Promise<RegistryClient> => {
    const ca = await authorityOf(spec, secret, signal);
    return createRegistryClient(reference, {
      architecture: ARCHITECTURE,
      clock,
      credentialsHint: 'it asks for credentials, and auth is none',
      ...(ca !== undefined && { ca }),
    });
  };
  const unpack = (commit: string, isAll: boolean, signal: AbortSignal): Promise<SourceTree> =>
    failing(signal, async () => {
      const client = await registry({ ...image, tag: '', digest: `sha256:${commit}` }, signal);
      const { layers } = await client.manifest(signal);
      return unpackImage(await download(client, layers, { clock, signal }), { dir, isAll, signal });
    });

  return {
    resolve: (signal) =>
      failing(signal, async () => {
        if (pinned !== undefined) return pinned;
        const { digest } = await (await registry(image, signal)).manifest(signal);
        const commit = digest.slice('sha256:'.length);
        if (image.digest !== '') pinned = commit;
        return commit;
      }),
    read: (commit, signal) => unpack(commit, false, signal),
    readAll: (commit, signal) => unpack(commit, true, signal),
  };
}

/** What a registry says, as an error of the source. */
async function failing<T>(signal: AbortSignal, act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    signal.throwIfAborted();
    throw error instanceof RegistryError ? new SourceError(error.message) : error;
  }
}

/** The layers as they are sent; nothing is unpacked before its digest fits. */
async function download(
  client: RegistryClient,
  layers: readonly Descriptor[],
  { clock, signal }: { readonly clock: Clock; readonly signal: AbortSignal },
): Promise<Uint8Array[]> {
  const packed = layers.reduce((sum, { size }) => sum + size, 0);
  if (packed > MAX_PACKED_BYTES)
    throw new SourceError(`the layers of the image have ${packed} bytes; ${MAX_PACKED_BYTES} are pulled`);
  const limit = createLinkedController(signal);
  const cancel = clock.schedule(PULL_MS, () => limit.abort(new Error('too slow')));
  try {
    const all: Uint8Array[] = [];
    for (const layer of layers) all.push(await downloadOne(client, layer, limit.signal));
    return all;
  } catch (error) {
    signal.throwIfAborted();
    if (limit.signal.aborted) throw new SourceError(`the image did not arrive within ${PULL_MS} ms`);
    throw error instanceof RegistryError || error instanceof SourceError
      ? error
      : new SourceError(`the image could not be pulled: ${(error as Error).message}`);
  } finally {
    cancel();
    limit.release();
  }
}

async function downloadOne(client: RegistryClient, layer: Descriptor, signal: AbortSignal): Promise<Uint8Array> {
  const { body } = await client.blob(layer.digest, 0, signal);
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    if (size > layer.size) throw new SourceError(`the registry sent more than the ${layer.size} bytes of a layer`);
    chunks.push(chunk);
  }
  const bytes = Buffer.concat(chunks);
  if (`sha256:${createHash('sha256').update(bytes).digest('hex')}` !== layer.digest)
    throw new SourceError(`a layer does not match its digest ${layer.digest}`);
  return bytes;
}
