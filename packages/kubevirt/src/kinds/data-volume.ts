/** Templates of DataVolumes (the CDI API, cdi.kubevirt.io/v1beta1), as they stand inside a virtual machine. */

import type { ResourceRequirements } from '@coracle/apimachinery/types/types';
import type { Static } from 'typebox';
import { anyObject, atomicList, bool, builtin, flag, list, needed, object, str, strings } from './fields.ts';
import type { TemplateMeta } from './vmi-spec.ts';

const CORE = 'io.k8s.api.core.v1';

const transport = {
  secretRef: str('Secret with the credentials.'),
  certConfigMap: str('ConfigMap with certificates to trust.'),
};

const source = object('Where the contents come from; one member only.', {
  http: object('Download.', {
    url: needed(str('URL.')),
    ...transport,
    extraHeaders: strings('Headers to send.'),
    secretExtraHeaders: strings('Secrets with headers to send.'),
    checksum: str('Checksum of the download, as algorithm:hex.'),
  }),
  s3: object('An S3 object.', { url: needed(str('URL.')), ...transport }),
  gcs: object('A Google Cloud Storage object.', { url: needed(str('URL.')), secretRef: transport.secretRef }),
  registry: object('A container image.', {
    url: str('Image, as docker://reference.'),
    imageStream: str('Image stream.'),
    pullMethod: str('pod or node.'),
    platform: object('Platform of the image.', { architecture: str('Architecture.') }),
    ...transport,
  }),
  pvc: object('A copy of a claim.', { namespace: needed(str('Namespace.')), name: needed(str('Name.')) }),
  upload: flag('An upload.'),
  blank: flag('An empty disk.'),
  imageio: object('An oVirt image.', {
    url: needed(str('URL.')),
    diskId: needed(str('Disk.')),
    ...transport,
    insecureSkipVerify: bool('Trusts any certificate.'),
  }),
  vddk: object('A VMware disk.', {
    url: str('URL.'),
    uuid: str('UUID of the machine.'),
    backingFile: str('Backing file.'),
    thumbprint: str('Thumbprint of the server.'),
    secretRef: str('Secret with the credentials.'),
    initImageURL: str('Image with the VDDK library.'),
    extraArgs: str('ConfigMap with arguments.'),
  }),
  snapshot: object('A copy of a VolumeSnapshot.', { namespace: needed(str('Namespace.')), name: needed(str('Name.')) }),
});

const claimSpec = {
  accessModes: atomicList(str('Access mode.'), 'Access modes.'),
  selector: builtin<Record<string, unknown>>(
    'io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector',
    'Selects the volume.',
  ),
  resources: builtin<ResourceRequirements>(`${CORE}.VolumeResourceRequirements`, 'Size of the volume.'),
  volumeName: str('The volume itself.'),
  storageClassName: str('Storage class.'),
  volumeMode: str('Filesystem or Block.'),
  dataSource: builtin<{ apiGroup?: string; kind: string; name: string }>(
    `${CORE}.TypedLocalObjectReference`,
    'Source of the volume.',
  ),
  dataSourceRef: builtin<{ apiGroup?: string; kind: string; name: string; namespace?: string }>(
    `${CORE}.TypedObjectReference`,
    'Source of the volume.',
  ),
};

export const dataVolumeSpec = object('What is to be filled from where.', {
  source,
  sourceRef: object('Where the contents come from, by reference.', {
    kind: needed(str('Kind, DataSource.')),
    namespace: str('Namespace.'),
    name: needed(str('Name.')),
  }),
  pvc: object('The claim to make, literally.', {
    ...claimSpec,
    volumeAttributesClassName: str('Volume attributes class.'),
  }),
  storage: object('The claim to make; what is absent follows the storage profile.', claimSpec),
  priorityClassName: str('Priority class of the worker pods.'),
  contentType: str('kubevirt or archive.'),
  checkpoints: list(
    object('One step of a warm import.', { previous: needed(str('Before.')), current: needed(str('After.')) }),
    'Steps of a warm import.',
  ),
  finalCheckpoint: bool('The last checkpoint ends the import.'),
  preallocation: bool('Allocates the disk in full.'),
});

export const dataVolumeTemplate = object('A DataVolume made for the virtual machine.', {
  apiVersion: str('Has no effect.', { nullable: true }),
  kind: str('Has no effect.', { nullable: true }),
  metadata: anyObject<TemplateMeta>('Metadata; the name is what volumes refer to.', { nullable: true }),
  spec: needed(dataVolumeSpec),
  status: object('Has no effect.', {}, { nullable: true }),
});

export type DataVolumeTemplate = Static<typeof dataVolumeTemplate>;
