/** Rules about volumes. */

import { byteLength } from '@coracle/apimachinery/meta/name-rules';
import type { CloudInitSource, VirtualMachineInstanceSpec, Volume } from '../../../kinds/kubevirt.ts';
import { REFUSED_VOLUMES } from '../../../rules/machine/unserved-fields.ts';
import { isPresent } from '../../../rules/machine-defaults/amounts.ts';
import type { ClusterConfig } from '../../../rules/machine-defaults/cluster-config.ts';
import { countPresent, type Findings } from './causes.ts';

type Spec = Readonly<VirtualMachineInstanceSpec>;

/** Inline cloud-init data is copied with every write of the object, so it is kept small. */
const MAX_CLOUD_INIT_BYTES = 2048;

/** Sources of which a guest has one volume at most, by the word for them. */
const SINGLE = { serviceAccount: 'serviceAccount', downwardMetrics: 'downwardMetric', memoryDump: 'memory dump' };

export function validateVolumes(spec: Findings, { volumes = [] }: Spec, config: ClusterConfig): void {
  const found = spec.at('.volumes');
  const firstOf = new Map<string, number>();
  found.each('', volumes, (at, volume, i) => {
    const other = firstOf.get(volume.name);
    if (other === undefined) firstOf.set(volume.name, i);
    else at.invalid('.name', `${at.path} and ${found.path}[${other}] must not have the same Name.`);
    validateVolume(at, volume, config);
  });
  for (const [source, word] of Object.entries(SINGLE))
    if (volumes.filter((volume) => volume[source as keyof Volume] !== undefined).length > 1)
      found.invalid('', `${found.path} must have max one ${word} volume set`);
}

function validateVolume(found: Findings, volume: Readonly<Volume>, config: ClusterConfig): void {
  const { name: _name, ...sources } = volume;
  if (countPresent(Object.values(sources)) !== 1)
    found.invalid('', `${found.path} must have exactly one source type set`);
  const needs = (value: string | undefined, member: string): void => {
    if (!value) found.invalid(member, `${found.path}${member} is a required field`);
  };
  const { dataVolume, configMap, secret, serviceAccount, containerDisk, hostDisk } = volume;
  if (dataVolume !== undefined && !dataVolume.name) found.required('.dataVolume.name', "DataVolume 'name' must be set");
  if (configMap !== undefined) needs(configMap.name, '.configMap.name');
  if (secret !== undefined) needs(secret.secretName, '.secret.secretName');
  if (serviceAccount !== undefined) needs(serviceAccount.serviceAccountName, '.serviceAccount.serviceAccountName');
  for (const source of ['cloudInitNoCloud', 'cloudInitConfigDrive'] as const)
    if (volume[source] !== undefined) validateCloudInit(found.at(`.${source}`), volume[source]);
  if (containerDisk?.path) validateImagePath(found.at('.containerDisk'), containerDisk.path);
  if (volume.downwardMetrics !== undefined) found.gated('', 'DownwardMetrics', config);
  if (volume.containerPath !== undefined) found.gated('', 'ContainerPathVolumes', config);
  for (const [kind, why] of Object.entries(REFUSED_VOLUMES))
    if (volume[kind as keyof Volume] !== undefined)
      found.invalid(`.${kind}`, `${found.path}.${kind} is not supported: ${why}`);
  if (hostDisk === undefined) return;
  found.gated('', 'HostDisk', config);
  validateHostDisk(found.at('.hostDisk'), hostDisk);
}

function validateHostDisk(found: Findings, { path, type, capacity }: NonNullable<Readonly<Volume>['hostDisk']>): void {
  const field = found.path;
  if (!path) found.missing('.path', `${field}.path is required for hostDisk volume`);
  if (type !== 'Disk' && type !== 'DiskOrCreate')
    found.invalid('.type', `${field}.type has invalid value '${type}', allowed are 'Disk' or 'DiskOrCreate'`);
  if (type === 'Disk' && isPresent(capacity))
    found.invalid('.capacity', `${field}.capacity is only possible with ${field}.type 'DiskOrCreate'`);
}

function validateCloudInit(found: Findings, source: Readonly<CloudInitSource>): void {
  const field = found.path;
  let total = 0;
  for (const [name, ref] of [
    ['userData', 'secretRef'],
    ['networkData', 'networkDataSecretRef'],
  ] as const) {
    const plain = source[name];
    const base64 = source[`${name}Base64`];
    const given = [source[ref]?.name, plain, base64].filter(Boolean).length;
    total += given;
    if (given > 1) found.invalid('', `${field} must have only one ${name} source set.`);
    const decoded = base64 ? decodedLength(base64) : 0;
    if (decoded === undefined) found.invalid(`.${name}Base64`, `${field}.${name}Base64 is not a valid base64 value.`);
    if (Math.max(decoded ?? 0, byteLength(plain ?? '')) > MAX_CLOUD_INIT_BYTES) {
      const text = `${name.toLowerCase()} exceeds ${MAX_CLOUD_INIT_BYTES} byte limit`;
      found.invalid('', `${field} ${text}: put larger data into a Secret and name it in ${ref}.`);
    }
  }
  if (total === 0) found.invalid('', `${field} must have at least one source of user data or network data set.`);
}

const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/** Bytes that a base64 text stands for, undefined when it is none: it must be padded and have no blanks. */
function decodedLength(base64: string): number | undefined {
  const text = base64.replace(/[\r\n]/g, '');
  return BASE64.test(text) ? atob(text).length : undefined;
}

/** A path in an image: absolute, to a file, without `.` and `..`. */
export function validateImagePath(found: Findings, path: string): void {
  if (path === '/') {
    found.invalid('', `${found.path} must not point to root`);
    return;
  }
  const parts = path.replace(/\/$/, '').split('/');
  const clean = parts[0] === '' && parts.length > 1 && parts.slice(1).every((part) => !['', '.', '..'].includes(part));
  if (!clean) found.invalid('', `${found.path} must be an absolute path to a file without relative components`);
}

/** Every volume needs a device that shows it. Only instances are held to this: templates get their disks later. */
export function validateVolumeUse(found: Findings, spec: Spec): void {
  const { disks = [], filesystems = [] } = spec.domain.devices;
  const named = new Set([...disks, ...filesystems].map(({ name }) => name));
  found.each('.domain.volumes', spec.volumes, (at, { name, memoryDump }) => {
    if (memoryDump === undefined && !named.has(name)) at.invalid('.name', `${at.path}.name '${name}' not found.`);
  });
}
