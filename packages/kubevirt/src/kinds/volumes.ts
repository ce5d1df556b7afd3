/** Volumes: where the contents of disks come from. */

import type { LocalObjectReference } from '@coracle/apimachinery/types/types';
import type { Static } from 'typebox';
import { bool, builtin, flag, list, needed, object, quantity, str } from './fields.ts';

const localReference = (description: string) =>
  builtin<LocalObjectReference>('io.k8s.api.core.v1.LocalObjectReference', description);

const volumeLabel = { volumeLabel: str('Label of the resulting disk in the guest.') };
const optional = { optional: bool('The guest may start without the object.') };
const claim = {
  claimName: needed(str('PersistentVolumeClaim of the same namespace.')),
  readOnly: bool('Attached read-only.'),
};
const hotpluggable = { hotpluggable: bool('May be plugged and unplugged while the guest runs.') };

const cloudInit = {
  secretRef: localReference('Secret with the user data.'),
  userDataBase64: str('User data, base64.'),
  userData: str('User data.'),
  networkDataSecretRef: localReference('Secret with the network data.'),
  networkDataBase64: str('Network data, base64.'),
  networkData: str('Network data.'),
};

const persistentVolumeClaim = object('A PersistentVolumeClaim, attached to the guest.', { ...claim, ...hotpluggable });
const dataVolume = object('A DataVolume and the claim it fills.', {
  name: needed(str('Name of the DataVolume and of its claim.')),
  ...hotpluggable,
});

const containerDisk = object('A disk in a container image.', {
  image: needed(str('Image reference.')),
  imagePullSecret: str('Secret with the credentials of the registry.'),
  path: str('Path of the disk in the image; the one file below /disk when absent.'),
  imagePullPolicy: str('Always, Never or IfNotPresent.'),
});

export const volume = object('A named volume with one source.', {
  name: needed(str('Name, a DNS label, unique over the guest.')),
  hostDisk: object('A disk image on the host.', {
    path: needed(str('Path of the image.')),
    type: needed(str('Disk, or DiskOrCreate.')),
    capacity: quantity('Size of an image that is created.'),
    shared: bool('The path is shared between nodes.'),
  }),
  persistentVolumeClaim,
  cloudInitNoCloud: object('cloud-init data as a NoCloud disk.', cloudInit),
  cloudInitConfigDrive: object('cloud-init data as a config drive.', cloudInit),
  sysprep: object('An answer file for Windows set-up.', {
    secret: localReference('Secret with the answer file.'),
    configMap: localReference('ConfigMap with the answer file.'),
  }),
  containerDisk,
  ephemeral: object('A copy-on-write layer that is lost at stop.', {
    persistentVolumeClaim: object('The claim below the layer.', claim),
  }),
  emptyDisk: object('An empty disk that is lost at stop.', { capacity: needed(quantity('Size.')) }),
  dataVolume,
  configMap: object('A ConfigMap as a disk.', {
    name: str('Name of the ConfigMap.'),
    ...optional,
    ...volumeLabel,
  }),
  secret: object('A Secret as a disk.', { secretName: str('Name of the Secret.'), ...optional, ...volumeLabel }),
  downwardAPI: object('Facts about the pod as a disk.', {
    fields: list(
      builtin<Record<string, unknown>>('io.k8s.api.core.v1.DownwardAPIVolumeFile', 'One file.'),
      'Files of the disk.',
    ),
    ...volumeLabel,
  }),
  serviceAccount: object('The token of a service account as a disk.', {
    serviceAccountName: str('Name of the service account.'),
  }),
  downwardMetrics: flag('Metrics of the host as a small disk.'),
  memoryDump: object('A claim that takes a memory dump.', { ...claim, ...hotpluggable }),
  containerPath: object('A directory of the launcher, shared by virtiofs.', {
    path: needed(str('Absolute path in the launcher.', { maxLength: 4096 })),
    readOnly: bool('Must be true: writing is not supported.', { default: true }),
  }),
});

/** Sources that can be plugged while the guest runs. */
export const hotplugVolumeSource = object('Source of a plugged volume.', { persistentVolumeClaim, dataVolume });

export const utilityVolume = object('A volume for the launcher alone, without a disk in the guest.', {
  name: needed(str('Name, unique over all volumes of the guest.')),
  ...claim,
  type: str('MemoryDump or Backup.'),
});

export type Volume = Static<typeof volume>;
export type CloudInitSource = NonNullable<Volume['cloudInitNoCloud']>;
