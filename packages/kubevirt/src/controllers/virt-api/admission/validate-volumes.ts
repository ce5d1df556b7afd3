/** Rules about volumes. */

import { byteLength } from '@coracle/apimachinery/meta/name-rules';
import type { CloudInitSource, VirtualMachineInstanceSpec, Volume } from '../../../kinds/kubevirt.ts';
import { REFUSED_VOLUMES } from '../../../rules/machine/unserved-fields.ts';
import { isPresent } from '../../../rules/machine-defaults/amounts.ts';
import type { ClusterConfig } from '../../../rules/machine-defaults/cluster-config.ts';
import {
  type Cause,
  countPresent,
  invalidValue,
  missingValue,
  requiredValue,
  type ValidatedSpec,
  validateEach,
} from './causes.ts';
import { gateMissing } from './validate-resources.ts';

type Spec = Readonly<VirtualMachineInstanceSpec>;

/** Inline cloud-init data is copied with every write of the object, so it is kept small. */
const MAX_CLOUD_INIT_BYTES = 2048;

export function validateVolumes(causes: Cause[], { path, spec, config }: ValidatedSpec): void {
  const field = `${path}.volumes`;
  const volumes = spec.volumes ?? [];
  const firstOf = new Map<string, number>();
  const validate = (volume: Readonly<Volume>, i: number): Cause[] => {
    const at = `${field}[${i}]`;
    const other = firstOf.get(volume.name);
    const found = validateVolume(at, volume, config);
    if (other === undefined) firstOf.set(volume.name, i);
    else found.unshift(invalidValue(`${at}.name`, `${at} and ${field}[${other}] must not have the same Name.`));
    return found;
  };
  validateEach(causes, volumes, validate);
  for (const [source, text] of [
    ['serviceAccount', 'serviceAccount'],
    ['downwardMetrics', 'downwardMetric'],
    ['memoryDump', 'memory dump'],
  ] as const) {
    if (volumes.filter((volume) => volume[source] !== undefined).length > 1) {
      causes.push(invalidValue(field, `${field} must have max one ${text} volume set`));
    }
  }
}

function validateVolume(field: string, volume: Readonly<Volume>, config: ClusterConfig): Cause[] {
  const causes: Cause[] = [];
  const { name: _name, ...sources } = volume;
  if (countPresent(Object.values(sources)) !== 1) {
    causes.push(invalidValue(field, `${field} must have exactly one source type set`));
  }
  const needs = (value: string | undefined, at: string): void => {
    if (!value) causes.push(invalidValue(`${field}.${at}`, `${field}.${at} is a required field`));
  };
  if (volume.dataVolume !== undefined && !volume.dataVolume.name) {
    causes.push(requiredValue(`${field}.dataVolume.name`, "DataVolume 'name' must be set"));
  }
  if (volume.configMap !== undefined) needs(volume.configMap.name, 'configMap.name');
  if (volume.secret !== undefined) needs(volume.secret.secretName, 'secret.secretName');
  if (volume.serviceAccount !== undefined) {
    needs(volume.serviceAccount.serviceAccountName, 'serviceAccount.serviceAccountName');
  }
  if (volume.cloudInitNoCloud !== undefined) {
    causes.push(...validateCloudInit(`${field}.cloudInitNoCloud`, volume.cloudInitNoCloud));
  }
  if (volume.cloudInitConfigDrive !== undefined) {
    causes.push(...validateCloudInit(`${field}.cloudInitConfigDrive`, volume.cloudInitConfigDrive));
  }
  if (volume.containerDisk?.path)
    causes.push(...validateImagePath(`${field}.containerDisk`, volume.containerDisk.path));
  if (volume.downwardMetrics !== undefined && !config.isEnabled('DownwardMetrics')) {
    causes.push(invalidValue(field, gateMissing('DownwardMetrics')));
  }
  if (volume.containerPath !== undefined && !config.isEnabled('ContainerPathVolumes')) {
    causes.push(invalidValue(field, gateMissing('ContainerPathVolumes')));
  }
  for (const [kind, why] of Object.entries(REFUSED_VOLUMES))
    if (volume[kind as keyof Volume] !== undefined)
      causes.push(invalidValue(`${field}.${kind}`, `${field}.${kind} is not supported: ${why}`));
  if (volume.hostDisk !== undefined) causes.push(...validateHostDisk(field, volume.hostDisk, config));
  return causes;
}

function validateHostDisk(
  field: string,
  { path, type, capacity }: NonNullable<Readonly<Volume>['hostDisk']>,
  config: ClusterConfig,
): Cause[] {
  const causes: Cause[] = [];
  const at = `${field}.hostDisk`;
  if (!config.isEnabled('HostDisk')) causes.push(invalidValue(field, gateMissing('HostDisk')));
  if (!path) causes.push(missingValue(`${at}.path`, `${at}.path is required for hostDisk volume`));
  if (type !== 'Disk' && type !== 'DiskOrCreate') {
    causes.push(
      invalidValue(`${at}.type`, `${at}.type has invalid value '${type}', allowed are 'Disk' or 'DiskOrCreate'`),
    );
  }
  if (type === 'Disk' && isPresent(capacity)) {
    causes.push(invalidValue(`${at}.capacity`, `${at}.capacity is only possible with ${at}.type 'DiskOrCreate'`));
  }
  return causes;
}

function validateCloudInit(field: string, source: Readonly<CloudInitSource>): Cause[] {
  const causes: Cause[] = [];
  const kinds = [
    {
      name: 'userData',
      secret: source.secretRef,
      plain: source.userData,
      base64: source.userDataBase64,
      ref: 'secretRef',
    },
    {
      name: 'networkData',
      secret: source.networkDataSecretRef,
      plain: source.networkData,
      base64: source.networkDataBase64,
      ref: 'networkDataSecretRef',
    },
  ];
  let total = 0;
  for (const { name, secret, plain, base64, ref } of kinds) {
    const given = [secret?.name, plain, base64].filter(Boolean).length;
    total += given;
    if (given > 1) causes.push(invalidValue(field, `${field} must have only one ${name} source set.`));
    const decoded = base64 ? decodedLength(base64) : 0;
    if (decoded === undefined) {
      causes.push(invalidValue(`${field}.${name}Base64`, `${field}.${name}Base64 is not a valid base64 value.`));
    }
    if (Math.max(decoded ?? 0, byteLength(plain ?? '')) > MAX_CLOUD_INIT_BYTES) {
      causes.push(
        invalidValue(
          field,
          `${field} ${name.toLowerCase()} exceeds ${MAX_CLOUD_INIT_BYTES} byte limit: put larger data into a Secret and name it in ${ref}.`,
        ),
      );
    }
  }
  if (total === 0) {
    causes.push(invalidValue(field, `${field} must have at least one source of user data or network data set.`));
  }
  return causes;
}

const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/** Bytes that a base64 text stands for, undefined when it is none: it must be padded and have no blanks. */
function decodedLength(base64: string): number | undefined {
  const text = base64.replace(/[\r\n]/g, '');
  return BASE64.test(text) ? atob(text).length : undefined;
}

/** A path in an image: absolute, to a file, without `.` and `..`. */
export function validateImagePath(field: string, path: string): Cause[] {
  if (path === '/') return [invalidValue(field, `${field} must not point to root`)];
  const parts = path.replace(/\/$/, '').split('/');
  const clean = parts[0] === '' && parts.length > 1 && parts.slice(1).every((part) => !['', '.', '..'].includes(part));
  return clean ? [] : [invalidValue(field, `${field} must be an absolute path to a file without relative components`)];
}

/** Every volume needs a device that shows it. Only instances are held to this: templates get their disks later. */
export function validateVolumeUse(path: string, spec: Spec): Cause[] {
  const { disks, filesystems } = spec.domain.devices;
  const named = new Set([...(disks ?? []), ...(filesystems ?? [])].map(({ name }) => name));
  return (spec.volumes ?? []).flatMap((volume, i) => {
    const field = `${path}.domain.volumes[${i}].name`;
    return volume.memoryDump !== undefined || named.has(volume.name)
      ? []
      : [invalidValue(field, `${field} '${volume.name}' not found.`)];
  });
}
