/** Gathers what a cloud-init volume holds and writes its ISO image. */

import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import type { CloudInitSource } from '@coracle/kubevirt/kinds/kinds';
import { publicKeysOf } from '@coracle/kubevirt/rules/access-credentials/agent-credentials';
import { cloudInitInstanceId } from '@coracle/kubevirt/rules/identity/cloud-init-instance';
import type { MachinePlan } from '@coracle/kubevirt/rules/machine/machine-plan';
import type { DiskFile } from '../qemu/argv.ts';
import { readSecret } from './api-objects.ts';
import { type CloudInitData, configDriveFiles, noCloudFiles } from './cloud-init.ts';
import { createIso } from './iso.ts';
import { VolumeError, type VolumeRequest } from './volume-request.ts';

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
    throw new VolumeError(
      'FailedMount',
      volume,
      `volume ${volume}: secret ${from.secret} holds no key ${from.keys.join(' or ')}`,
    );
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
  const result: { type: 'nic' | 'disk'; tag: string; detail: Record<string, string> }[] = [];
  for (const nic of interfaces) {
    const planned = plan.interfaces.find((candidate) => candidate.name === nic.name);
    if (nic.tag && planned) result.push({ type: 'nic', tag: nic.tag, detail: { bus: 'pci', mac: planned.mac } });
  }
  for (const disk of disks) {
    const planned = plan.disks.find((candidate) => candidate.name === disk.name);
    if (disk.tag && planned)
      result.push({
        type: 'disk',
        tag: disk.tag,
        detail: { bus: planned.bus, ...(planned.serial !== undefined && { serial: planned.serial }) },
      });
  }
  return result;
}
