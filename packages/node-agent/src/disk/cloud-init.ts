/** The files of cloud-init volumes. Pure; a constant list of names, contents passed through as they are. */
import type { IsoFiles } from './iso-image.ts';

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
