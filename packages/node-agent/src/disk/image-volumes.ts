/** Container disks and kernels: files of the image store, linked into the VM's directory so that the store may forget them. */
import { join } from 'node:path';
import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import { parseReference } from '@coracle/runtime/oci/reference';
import type { Credentials } from '@coracle/runtime/oci/registry-client';
import { ImageError, type PullPolicy, type StoredImage } from '../image/image-store.ts';
import type { WantedFiles } from '../image/store-entries.ts';
import type { DiskFile } from '../qemu/argv.ts';
import { readSecret } from './api-objects.ts';
import { createQcow2 } from './empty-image.ts';
import { linkFile } from './saved-files.ts';
import { VolumeError, type VolumeRequest } from './volume-request.ts';

interface ImageSource {
  readonly image: string;
  readonly imagePullSecret?: string | undefined;
  readonly imagePullPolicy?: string | undefined;
}

/** The overlay `<prefix>.qcow2` over the disk of an image. */
export async function containerDisk(
  request: VolumeRequest,
  volume: string,
  source: DeepReadonly<ImageSource & { path?: string }>,
  prefix: string,
): Promise<DiskFile> {
  const image = await ensureImage(request, volume, source, { disk: source.path || '/disk' });
  const { disk } = image;
  if (!disk) throw new VolumeError('ErrImagePull', volume, `image ${source.image} holds no disk`);
  const backing = { file: `${prefix}.base`, format: disk.format };
  await linkFile(disk.path, join(request.directory, backing.file));
  const file = `${prefix}.qcow2`;
  await createQcow2(request, file, { size: disk.virtualSize, backing });
  return { file, format: 'qcow2', backing };
}

/** Kernel and initrd of spec.domain.firmware.kernelBoot, as names in the VM's directory. */
export async function kernelFiles(request: VolumeRequest): Promise<{ kernel?: string; initrd?: string }> {
  const container = request.vmi.spec.domain.firmware?.kernelBoot?.container;
  if (!container) return {};
  const wanted: WantedFiles = {
    ...(container.kernelPath && { kernel: container.kernelPath }),
    ...(container.initrdPath && { initrd: container.initrdPath }),
  };
  const image = await ensureImage(request, '', container, wanted);
  if (image.kernel) await linkFile(image.kernel.path, join(request.directory, 'kernel'));
  if (image.initrd) await linkFile(image.initrd.path, join(request.directory, 'initrd'));
  return { ...(image.kernel && { kernel: 'kernel' }), ...(image.initrd && { initrd: 'initrd' }) };
}

async function ensureImage(
  request: VolumeRequest,
  volume: string,
  source: DeepReadonly<ImageSource>,
  wanted: WantedFiles,
): Promise<StoredImage> {
  const { image } = source;
  const { credentials, lost } = await credentialsFor(request, volume, source);
  let started = false;
  try {
    const policy = source.imagePullPolicy;
    const stored = await request.images.ensure({
      reference: image,
      wanted,
      signal: request.signal,
      ...((policy === 'Always' || policy === 'IfNotPresent' || policy === 'Never') && {
        policy: policy satisfies PullPolicy,
      }),
      ...(credentials && { credentials }),
      onProgress: () => {
        if (!started) request.onImage?.({ type: 'pulling', volume, image, digest: '' });
        started = true;
      },
    });
    request.onImage?.({ type: stored.pulled ? 'pulled' : 'present', volume, image, digest: stored.digest });
    return stored;
  } catch (error) {
    if (!(error instanceof ImageError)) throw error;
    const why = lost.length === 0 ? '' : `; pull secret ${lost.join(', ')} does not exist`;
    throw new VolumeError(error.reason, volume, error.message + why, { cause: error });
  }
}

/** Credentials for the registry of the image: the source's own secret, else those of the pod. One that is lost is no failure: the image may be public. */
async function credentialsFor(
  request: VolumeRequest,
  volume: string,
  source: DeepReadonly<ImageSource>,
): Promise<{ readonly credentials?: Credentials; readonly lost: readonly string[] }> {
  const pod = (request.pod.spec.imagePullSecrets ?? []) as readonly { readonly name?: string }[];
  const names = [source.imagePullSecret ?? '', ...pod.map((ref) => ref.name ?? '')].filter((name) => name !== '');
  const lost: string[] = [];
  for (const name of new Set(names)) {
    const data = await readSecret(request, { name, volume, optional: true });
    if (!data) lost.push(name);
    const credentials = data && credentialsOf(data, source.image);
    if (credentials) return { credentials, lost };
  }
  return { lost };
}

/** Finds the registry of `image` in a dockerconfigjson (or the old dockercfg). */
export function credentialsOf(data: ReadonlyMap<string, Uint8Array>, image: string): Credentials | undefined {
  let registry: string;
  let auths: Record<string, { username?: string; password?: string; auth?: string } | undefined>;
  try {
    ({ registry } = parseReference(image));
    const config = data.get('.dockerconfigjson');
    const old = data.get('.dockercfg');
    const text = new TextDecoder().decode(config ?? old ?? new Uint8Array(0));
    const parsed = JSON.parse(text) as { auths?: typeof auths };
    auths = (config ? parsed.auths : (parsed as typeof auths)) ?? {};
  } catch {
    return undefined;
  }
  const names = registry === 'docker.io' ? ['docker.io', 'index.docker.io', 'registry-1.docker.io'] : [registry];
  for (const [key, entry] of Object.entries(auths)) {
    const host = key.replace(/^https?:\/\//, '').replace(/\/.*$/, '');
    if (!names.includes(host) || !entry) continue;
    if (entry.username !== undefined && entry.password !== undefined)
      return { username: entry.username, password: entry.password };
    const pair = Buffer.from(entry.auth ?? '', 'base64').toString('utf8');
    const colon = pair.indexOf(':');
    if (colon > 0) return { username: pair.slice(0, colon), password: pair.slice(colon + 1) };
  }
  return undefined;
}
