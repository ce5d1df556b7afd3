/** Volumes whose files come from API objects: configMap, secret, downwardAPI, serviceAccount, sysprep. */

import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import { parseQuantity } from '@coracle/apimachinery/quantity/quantity';
import type { ReadonlyPod } from '@coracle/apimachinery/types/types';
import type { Volume } from '@coracle/kubevirt/kinds/kinds';
import type { DiskFile } from '../qemu/argv.ts';
import { type ObjectData, readConfigMap, readSecret } from './api-objects.ts';
import { createIso } from './iso.ts';
import { failedMount, type VolumeRequest } from './volume-request.ts';

const DEFAULT_LABEL = 'cfgdata';
const SYSPREP_LABEL = 'unattendCD';
/** Mode of files of such volumes in a container: any program of the guest may read them. */
const MODE = 0o644;
const TOKEN_SECONDS = 24 * 3600;

/** Makes the ISO `file` of such a volume; undefined when the volume is of another kind. */
export async function objectVolume(
  request: VolumeRequest,
  volume: DeepReadonly<Volume>,
  file: string,
): Promise<DiskFile | undefined> {
  const content = await contentOf(request, volume);
  if (!content) return undefined;
  await createIso(file, {
    directory: request.directory,
    clock: request.clock,
    signal: request.signal,
    fileMode: MODE,
    ...content,
  });
  return { file, format: 'raw' };
}

async function contentOf(
  request: VolumeRequest,
  volume: DeepReadonly<Volume>,
): Promise<{ label: string; files: ObjectData } | undefined> {
  const { name, configMap, secret, downwardAPI, serviceAccount, sysprep } = volume;
  if (configMap) {
    const ref = { name: configMap.name ?? '', volume: name, optional: configMap.optional === true };
    return { label: configMap.volumeLabel || DEFAULT_LABEL, files: (await readConfigMap(request, ref)) ?? new Map() };
  }
  if (secret) {
    const ref = { name: secret.secretName ?? '', volume: name, optional: secret.optional === true };
    return { label: secret.volumeLabel || DEFAULT_LABEL, files: (await readSecret(request, ref)) ?? new Map() };
  }
  if (downwardAPI) return { label: downwardAPI.volumeLabel || DEFAULT_LABEL, files: downwardFiles(request, volume) };
  if (serviceAccount)
    return { label: DEFAULT_LABEL, files: await serviceAccountFiles(request, name, serviceAccount.serviceAccountName) };
  if (sysprep) {
    const files = sysprep.secret
      ? await readSecret(request, { name: sysprep.secret.name ?? '', volume: name })
      : await readConfigMap(request, { name: sysprep.configMap?.name ?? '', volume: name });
    if (!files?.keys().some((key) => /^(auto)?unattend\.xml$/i.test(key)))
      throw failedMount(name, 'sysprep needs autounattend.xml or unattend.xml');
    return { label: SYSPREP_LABEL, files };
  }
  return undefined;
}

const lines = (map: Readonly<Record<string, string>> | undefined): string =>
  Object.entries(map ?? {})
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, value]) => `${key}=${JSON.stringify(value)}`)
    .join('\n');

const POD_FIELDS: Readonly<Record<string, (pod: ReadonlyPod) => string | undefined>> = {
  'metadata.name': ({ metadata }) => metadata.name,
  'metadata.namespace': ({ metadata }) => metadata.namespace,
  'metadata.uid': ({ metadata }) => metadata.uid,
  'metadata.labels': ({ metadata }) => lines(metadata.labels),
  'metadata.annotations': ({ metadata }) => lines(metadata.annotations),
  'spec.nodeName': ({ spec }) => spec.nodeName,
  'spec.serviceAccountName': ({ spec }) => spec.serviceAccountName,
  'status.podIP': ({ status }) => status?.podIP,
  'status.hostIP': ({ status }) => status?.hostIP,
};

/** Resolves `metadata.name`, `metadata.labels['x']`, ... of the pod, as the kubelet's downward API does. */
export function podField(pod: ReadonlyPod, path: string): string | undefined {
  const { metadata } = pod;
  const subscript = /^metadata\.(labels|annotations)\['([^']+)'\]$/.exec(path);
  if (subscript) {
    const map = metadata[subscript[1] as 'labels' | 'annotations'] ?? {};
    const key = subscript[2] ?? '';
    return Object.hasOwn(map, key) ? map[key] : '';
  }
  const read = Object.hasOwn(POD_FIELDS, path) ? POD_FIELDS[path] : undefined;
  return read && (read(pod) ?? '');
}

/** `resourceFieldRef`, as it stands in a volume's field. */
type ResourceFieldRef = Readonly<Partial<Record<'resource' | 'containerName' | 'divisor', unknown>>>;

const RESOURCE = /^(limits|requests)\.([a-z0-9.-]+)$/;

/**
 * `requests.memory`, `limits.cpu`, ... of a container in units of the divisor, rounded up, as the kubelet writes it; a
 * request that is not made is 0. Undefined when there is no such amount. Throws QuantityError on a bad divisor.
 */
export function resourceField(pod: ReadonlyPod, ref: ResourceFieldRef): string | undefined {
  const [, kind, resource = ''] = RESOURCE.exec(String(ref.resource)) ?? [];
  const container = pod.spec.containers.find(({ name }) => name === ref.containerName);
  if (!container || (kind !== 'limits' && kind !== 'requests')) return undefined;
  const amounts: Readonly<Record<string, unknown>> = container.resources?.[kind] ?? {};
  const amount = Object.hasOwn(amounts, resource) ? String(amounts[resource]) : kind === 'requests' ? '0' : undefined;
  if (amount === undefined) return undefined;
  const divisor = parseQuantity(String(ref.divisor ?? '1')).nano || parseQuantity('1').nano;
  const { nano } = parseQuantity(amount);
  return String((nano + divisor - 1n) / divisor);
}

function downwardFiles(request: VolumeRequest, volume: DeepReadonly<Volume>): ObjectData {
  const files = new Map<string, Uint8Array>();
  for (const item of volume.downwardAPI?.fields ?? []) {
    const path = item['path'];
    const fieldPath = (item['fieldRef'] as { fieldPath?: unknown } | undefined)?.fieldPath;
    const resource = item['resourceFieldRef'] as ResourceFieldRef | undefined;
    const value =
      typeof fieldPath === 'string'
        ? podField(request.pod, fieldPath)
        : resource
          ? resourceField(request.pod, resource)
          : undefined;
    if (typeof path !== 'string' || value === undefined) {
      const field = JSON.stringify(fieldPath ?? resource ?? null);
      throw failedMount(volume.name, `the downward API has no value for ${field}`);
    }
    files.set(path, Buffer.from(value, 'utf8'));
  }
  return files;
}

async function serviceAccountFiles(
  request: VolumeRequest,
  volume: string,
  account: string | undefined,
): Promise<ObjectData> {
  const namespace = request.vmi.metadata.namespace ?? '';
  const name = account ?? 'default';
  const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/serviceaccounts/${encodeURIComponent(name)}/token`;
  const answer = (await request.client
    .raw('POST', path, {
      signal: request.signal,
      body: {
        apiVersion: 'authentication.k8s.io/v1',
        kind: 'TokenRequest',
        // Bound to the launcher Pod: it dies with it, and an agent is given no other kind.
        spec: {
          expirationSeconds: TOKEN_SECONDS,
          boundObjectRef: {
            apiVersion: 'v1',
            kind: 'Pod',
            name: request.pod.metadata.name,
            uid: request.pod.metadata.uid,
          },
        },
      },
    })
    .catch((error: Error) => {
      throw failedMount(volume, `no token for service account ${name}: ${error.message}`, error);
    })) as { status?: { token?: string } };
  const roots = await readConfigMap(request, { name: 'kube-root-ca.crt', volume, optional: true });
  const ca = roots?.get('ca.crt');
  return new Map<string, Uint8Array>([
    ['token', Buffer.from(answer.status?.token ?? '', 'utf8')],
    ['namespace', Buffer.from(namespace, 'utf8')],
    ...(ca ? [['ca.crt', ca] as const] : []),
  ]);
}
