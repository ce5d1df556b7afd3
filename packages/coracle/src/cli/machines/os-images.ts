/**
 * The images of the catalogue in a cluster, as KubeVirt's own distributions have them: a DataSource for each in the namespace
 * kubevirt-os-images, which leads to a claim that is filled once and that machines copy. What fills it is a DataImportCron where the
 * image is one of a registry, whose digest is its checksum, and a DataVolume with a checksum where it is a file of its vendor.
 */

import { conditionOf } from '@coracle/apimachinery/meta/object-state';
import { NAMESPACES } from '@coracle/apimachinery/types/resource-types';
import { isAlreadyExists, orAbsent } from '@coracle/client/api-failure';
import type { Client } from '@coracle/client/client';
import {
  CDI_GROUP,
  CDI_VERSION,
  DATA_IMPORT_CRONS,
  DATA_SOURCES,
  DATA_VOLUMES,
  type DataImportCron,
  type DataVolume,
} from '@coracle/kubevirt/kinds/kinds';
import { BIND_IMMEDIATELY } from '@coracle/kubevirt/rules/data-volume/claim-of-data-volume';
import { diskState } from '@coracle/kubevirt/rules/data-volume/readiness';
import { systemClock } from '@coracle/runtime/clock/clock';
import { CommandError } from '../command.ts';
import { checksumIn } from './checksum-list.ts';
import { type CatalogueImage, IMAGES_NAMESPACE, type ImageOrigin, sourceNameOf } from './image-catalogue.ts';

/** What a fetch works with. */
export interface Fetching {
  readonly client: Client;
  readonly signal: AbortSignal;
  /** Hears how far it is. */
  readonly progress: (text: string) => void;
}

const API_VERSION = `${CDI_GROUP}/${CDI_VERSION}`;
const IMAGE_LABEL = 'coracle.dev/image';
const PREFERENCE_LABEL = 'instancetype.kubevirt.io/default-preference';
/** Enough for most cloud images; it is sparse, and copies take no room. */
const DEFAULT_SIZE = '10Gi';
const LOOK_MS = 300;
/** Longest list of digests that is read, and longest wait for it. */
const MAX_LIST = 1024 * 1024;
const LIST_MS = 30_000;
/** Imports of one image that stay: the newest, and the one before it. */
const KEPT = 2;

/**
 * Names of the DataSources that are Ready, by the claim that they lead to. Machines can be made of those without anything being
 * fetched. None where the server has no DataSources.
 */
export async function fetchedImages(client: Client, signal: AbortSignal): Promise<ReadonlyMap<string, string>> {
  const sources = await orAbsent(client.list(DATA_SOURCES, { namespace: IMAGES_NAMESPACE, signal }));
  return new Map(
    (sources?.items ?? []).flatMap(({ metadata, spec, status }) => {
      const claim = spec.source.pvc?.name;
      const ready = conditionOf({ status }, 'Ready');
      // A status may still be of what it led to before.
      const isReady = ready?.status === 'True' && status?.source?.pvc?.name === claim;
      return claim !== undefined && isReady ? [[metadata.name ?? '', claim]] : [];
    }),
  );
}

/** Fetches the image as it is now, unless that is there; machines have it from then on. Throws CommandError with what kept it. */
export async function fetchImage(image: CatalogueImage, origin: ImageOrigin, fetching: Fetching): Promise<string> {
  const { client, signal } = fetching;
  await client
    .create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: IMAGES_NAMESPACE } }, { signal })
    .catch((error: unknown) => {
      if (!isAlreadyExists(error)) throw error;
    });
  const claim =
    origin.kind === 'registry'
      ? await fromRegistry(image, origin.reference, fetching)
      : await fromVendor(image, origin, fetching);
  while ((await fetchedImages(client, signal)).get(sourceNameOf(image)) !== claim)
    await systemClock.sleep(LOOK_MS, signal);
  return claim;
}

const labelsOf = (image: CatalogueImage) => ({
  [IMAGE_LABEL]: sourceNameOf(image),
  ...(image.preference && { [PREFERENCE_LABEL]: image.preference }),
});
const storageOf = ({ size = DEFAULT_SIZE }: CatalogueImage) => ({ resources: { requests: { storage: size } } });

/** A cron that is made looks at once; its images and its DataSource outlive it. */
async function fromRegistry(
  image: CatalogueImage,
  reference: string,
  { client, signal, progress }: Fetching,
): Promise<string> {
  const source = sourceNameOf(image);
  const key = { namespace: IMAGES_NAMESPACE, name: `${source}-image-cron` };
  await orAbsent(client.delete(DATA_IMPORT_CRONS, key));
  const led = await orAbsent(client.get(DATA_SOURCES, { ...key, name: source }, { signal }));
  // One that leads to a file of the vendor is no business of a cron.
  if (led && led.metadata.labels?.[CRON_LABEL] !== key.name)
    await orAbsent(client.delete(DATA_SOURCES, { ...key, name: source }));
  const made: DataImportCron = {
    apiVersion: API_VERSION,
    kind: 'DataImportCron',
    metadata: { ...key, labels: labelsOf(image) },
    spec: {
      schedule: '',
      managedDataSource: source,
      importsToKeep: KEPT,
      template: {
        metadata: { labels: labelsOf(image) },
        spec: { source: { registry: { url: `docker://${reference}` } }, storage: storageOf(image) },
      },
    },
  };
  await client.create(DATA_IMPORT_CRONS, made, { signal });
  for (;;) {
    const { status } = await client.get(DATA_IMPORT_CRONS, key, { signal });
    const upToDate = conditionOf({ status }, 'UpToDate');
    const [current] = status?.currentImports ?? [];
    if (upToDate?.status === 'True' && current) return current.DataVolumeName;
    if (upToDate?.reason === 'PollFailed')
      throw new CommandError(`${image.name} is not fetched: ${upToDate.message ?? reference}`);
    if (current) await look(image, current.DataVolumeName, { client, signal, progress });
    await systemClock.sleep(LOOK_MS, signal);
  }
}

const CRON_LABEL = 'cdi.kubevirt.io/dataImportCron';

async function fromVendor(
  image: CatalogueImage,
  { url, checksums }: Extract<ImageOrigin, { kind: 'http' }>,
  { client, signal, progress }: Fetching,
): Promise<string> {
  const checksum = await vendorChecksum(url, checksums, signal);
  const source = sourceNameOf(image);
  const name = `${source}-${checksum.split(':')[1]!.slice(0, 12)}`;
  const made: DataVolume = {
    apiVersion: API_VERSION,
    kind: 'DataVolume',
    metadata: {
      namespace: IMAGES_NAMESPACE,
      name,
      labels: labelsOf(image),
      annotations: { [BIND_IMMEDIATELY]: 'true' },
    },
    spec: { source: { http: { url, checksum } }, storage: storageOf(image) },
  };
  await client.create(DATA_VOLUMES, made, { signal }).catch((error: unknown) => {
    if (!isAlreadyExists(error)) throw error;
  });
  while (!(await look(image, name, { client, signal, progress }))) await systemClock.sleep(LOOK_MS, signal);
  await leadTo(client, image, name);
  await collect(client, image, name);
  return name;
}

/** Whether the DataVolume is full. One whose first attempt failed is taken away, so that the next refresh begins anew. */
async function look(image: CatalogueImage, name: string, { client, signal, progress }: Fetching): Promise<boolean> {
  const key = { namespace: IMAGES_NAMESPACE, name };
  const found = await orAbsent(client.get(DATA_VOLUMES, key, { signal }));
  const status = found?.status;
  if (status?.phase === 'Succeeded') return true;
  const running = conditionOf({ status }, 'Running');
  if (found && diskState([found]) === 'error') {
    await orAbsent(client.delete(DATA_VOLUMES, key));
    throw new CommandError(`${image.name} is not fetched: ${running?.message ?? status?.phase ?? 'it failed'}`);
  }
  const done = status?.progress && status.progress !== 'N/A' ? ` ${status.progress}` : '';
  progress(`${image.name}${done}${running?.message ? `: ${running.message}` : ''}`);
  return false;
}

async function leadTo(client: Client, image: CatalogueImage, claim: string): Promise<void> {
  const key = { namespace: IMAGES_NAMESPACE, name: sourceNameOf(image) };
  const spec = { source: { pvc: { namespace: IMAGES_NAMESPACE, name: claim } } };
  await orAbsent(client.delete(DATA_IMPORT_CRONS, { ...key, name: `${key.name}-image-cron` }));
  const body = { metadata: { labels: { ...labelsOf(image), [CRON_LABEL]: null } }, spec };
  const led = await orAbsent(client.patch(DATA_SOURCES, key, { type: 'merge', body }));
  if (led) return;
  const metadata = { ...key, labels: labelsOf(image) };
  await client.create(DATA_SOURCES, { apiVersion: API_VERSION, kind: 'DataSource', metadata, spec });
}

/** Takes the older imports of an image away; machines that were made of them keep their disks. */
async function collect(client: Client, image: CatalogueImage, current: string): Promise<void> {
  const labelSelector = `${IMAGE_LABEL}=${sourceNameOf(image)}`;
  const { items } = await client.list(DATA_VOLUMES, { namespace: IMAGES_NAMESPACE, labelSelector });
  const older = items
    .filter(({ metadata }) => metadata.name !== current)
    .sort((a, b) => (b.metadata.creationTimestamp ?? '').localeCompare(a.metadata.creationTimestamp ?? ''));
  for (const { metadata } of older.slice(KEPT - 1))
    await orAbsent(client.delete(DATA_VOLUMES, { namespace: IMAGES_NAMESPACE, name: metadata.name ?? '' }));
}

/** What the vendor says that the file is. Throws CommandError. */
async function vendorChecksum(url: string, checksums: string, signal: AbortSignal): Promise<string> {
  const file = decodeURIComponent(new URL(url).pathname.split('/').at(-1) ?? '');
  let text: string;
  try {
    text = await readText(checksums, AbortSignal.any([signal, AbortSignal.timeout(LIST_MS)]));
  } catch (error) {
    signal.throwIfAborted();
    const { cause, message } = error as Error;
    throw new CommandError(`cannot fetch ${checksums}: ${cause instanceof Error ? cause.message : message}`);
  }
  const checksum = checksumIn(text, file);
  if (checksum === undefined) throw new CommandError(`${checksums} has no SHA-256 or SHA-512 of ${file}`);
  return checksum;
}

async function readText(url: string, signal: AbortSignal): Promise<string> {
  const response = await fetch(url, { signal });
  if (!response.ok) throw new Error(`the server answers ${response.status}`);
  const decoder = new TextDecoder();
  let text = '';
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk, { stream: true });
    if (text.length > MAX_LIST) throw new Error(`it is longer than ${MAX_LIST} bytes`);
  }
  return text;
}
