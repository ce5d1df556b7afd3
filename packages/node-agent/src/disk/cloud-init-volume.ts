/** Gathers what a cloud-init volume holds, as the files that cloud-init reads, and writes its ISO image. */

import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import type { CloudInitSource } from '@coracle/kubevirt/kinds/kinds';
import { publicKeysOf } from '@coracle/kubevirt/rules/access-credentials/agent-credentials';
import { cloudInitInstanceId } from '@coracle/kubevirt/rules/identity/cloud-init-instance';
import type { MachinePlan } from '@coracle/kubevirt/rules/machine/machine-plan';
import type { DiskFile } from '../qemu/argv.ts';
import { readSecret } from './api-objects.ts';
import { createIso } from './iso.ts';
import type { IsoFiles } from './iso-image.ts';
import { failedMount, type VolumeRequest } from './volume-request.ts';

export interface CloudInitData {
  /** What cloud-init knows the machine by: the firmware UUID, as a rule. */
  readonly instanceId: string;
  readonly name: string;
  readonly namespace: string;
  readonly hostname: string;
  readonly instanceType?: string;
  readonly publicKeys: readonly string[];
  readonly userData: Uint8Array;
  readonly networkData?: Uint8Array;
  /** Tagged devices, for the config drive. */
  readonly devices: readonly {
    readonly type: 'nic' | 'disk';
    readonly tag: string;
    readonly detail: Record<string, string>;
  }[];
}

type Flavour = 'noCloud' | 'configDrive';

/** Makes the ISO `file` of a cloud-init volume. */
export async function cloudInitVolume(
  request: VolumeRequest,
  plan: MachinePlan,
  volume: {
    readonly name: string;
    readonly file: string;
    readonly flavour: Flavour;
    readonly source: DeepReadonly<CloudInitSource>;
  },
): Promise<DiskFile> {
  const { vmi, directory, clock, signal } = request;
  const { source, name } = volume;
  const userData = await contentOf(request, name, {
    text: source.userData,
    base64: source.userDataBase64,
    secret: source.secretRef?.name,
    keys: ['userdata', 'userData'],
  });
  const networkData = await contentOf(request, name, {
    text: source.networkData,
    base64: source.networkDataBase64,
    secret: source.networkDataSecretRef?.name,
    keys: ['networkdata', 'networkData'],
  });
  const annotations = vmi.metadata.annotations ?? {};
  const instanceType =
    annotations['kubevirt.io/instancetype-name'] ?? annotations['kubevirt.io/cluster-instancetype-name'];
  const data: CloudInitData = {
    instanceId: cloudInitInstanceId(plan.uuid, annotations),
    name: vmi.metadata.name ?? '',
    namespace: vmi.metadata.namespace ?? '',
    hostname: plan.hostname,
    ...(instanceType !== undefined && { instanceType }),
    publicKeys: await publicKeys(request, name, volume.flavour),
    userData: userData ?? new Uint8Array(0),
    ...(networkData && { networkData }),
    devices: taggedDevices(request, plan),
  };
  await createIso(volume.file, {
    directory,
    label: volume.flavour === 'noCloud' ? 'cidata' : 'config-2',
    files: volume.flavour === 'noCloud' ? noCloudFiles(data) : configDriveFiles(data),
    clock,
    signal,
  });
  return { file: volume.file, format: 'raw' };
}

async function contentOf(
  request: VolumeRequest,
  volume: string,
  from: {
    readonly text: string | undefined;
    readonly base64: string | undefined;
    readonly secret: string | undefined;
    readonly keys: readonly string[];
  },
): Promise<Uint8Array | undefined> {
  if (from.secret !== undefined) {
    const data = await readSecret(request, { name: from.secret, volume });
    for (const key of from.keys) {
      const value = data?.get(key);
      if (value) return value;
    }
    throw failedMount(volume, `secret ${from.secret} holds no key ${from.keys.join(' or ')}`);
  }
  if (from.base64 !== undefined && from.base64 !== '') return Buffer.from(from.base64, 'base64');
  return from.text === undefined || from.text === '' ? undefined : Buffer.from(from.text, 'utf8');
}

/** SSH keys whose propagation method is this kind of disk: one a line in each key of the Secret. */
async function publicKeys(request: VolumeRequest, volume: string, flavour: Flavour): Promise<string[]> {
  const keys: string[] = [];
  for (const credential of request.vmi.spec.accessCredentials ?? []) {
    const ssh = credential.sshPublicKey;
    const secret = ssh?.source.secret?.secretName;
    if (!ssh?.propagationMethod[flavour] || secret === undefined) continue;
    const data = await readSecret(request, { name: secret, volume });
    if (data) keys.push(...publicKeysOf(data));
  }
  return keys;
}

function taggedDevices(request: VolumeRequest, plan: MachinePlan): CloudInitData['devices'] {
  const { interfaces = [], disks = [] } = request.vmi.spec.domain.devices;
  const nics = interfaces.flatMap(({ name, tag }) => {
    const planned = plan.interfaces.find((candidate) => candidate.name === name);
    return tag && planned ? [{ type: 'nic' as const, tag, detail: { bus: 'pci', mac: planned.mac } }] : [];
  });
  const tagged = disks.flatMap(({ name, tag }) => {
    const planned = plan.disks.find((candidate) => candidate.name === name);
    if (!tag || !planned) return [];
    const { bus, serial } = planned;
    return [{ type: 'disk' as const, tag, detail: { bus, ...(serial !== undefined && { serial }) } }];
  });
  return [...nics, ...tagged];
}

const keysByNumber = (keys: readonly string[]): Record<string, string> =>
  Object.fromEntries(keys.map((key, i) => [String(i), key]));

/** NoCloud: label `cidata`. */
export function noCloudFiles(data: CloudInitData): IsoFiles {
  const metaData = {
    ...(data.instanceType !== undefined && { 'instance-type': data.instanceType }),
    'instance-id': data.instanceId,
    'local-hostname': data.hostname,
    ...(data.publicKeys.length > 0 && { 'public-keys': keysByNumber(data.publicKeys) }),
  };
  return new Map<string, Uint8Array | string>([
    ['meta-data', JSON.stringify(metaData)],
    ['user-data', data.userData],
    ...(data.networkData ? [['network-config', data.networkData] as const] : []),
  ]);
}

/** ConfigDrive: label `config-2`. */
export function configDriveFiles(data: CloudInitData): IsoFiles {
  const metaData = {
    ...(data.instanceType !== undefined && { instance_type: data.instanceType }),
    instance_id: `${data.name}.${data.namespace}`,
    local_hostname: data.hostname,
    hostname: data.hostname,
    uuid: data.instanceId,
    ...(data.devices.length > 0 && {
      devices: data.devices.map(({ type, tag, detail }) => ({ type, ...detail, tags: [tag] })),
    }),
    ...(data.publicKeys.length > 0 && { public_keys: keysByNumber(data.publicKeys) }),
  };
  return new Map<string, Uint8Array | string>([
    ['openstack/latest/meta_data.json', JSON.stringify(metaData)],
    ['openstack/latest/user_data', data.userData],
    ...(data.networkData ? [['openstack/latest/network_data.json', data.networkData] as const] : []),
  ]);
}
