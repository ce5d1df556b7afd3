/**
 * Cloud images by short names: data, nothing else. `containerDisk` is what KubeVirt's project publishes of an image, `url` where
 * its vendor publishes it for x86-64 and `checksums` the vendor's own list of digests beside it. `preference` is the one of
 * common-instancetypes that fits, `memory` the least that it asks for, `user` whom the image's cloud-init gives keys to, `size` that
 * of its disk where it is larger than 10Gi.
 */
import { CommandError } from '../command.ts';

/** Where an image is fetched from. */
export type ImageOrigin =
  | { readonly kind: 'registry'; readonly reference: string }
  /** `checksums` is the vendor's list of digests, or a file's own. */
  | { readonly kind: 'http'; readonly url: string; readonly checksums: string };

export interface CatalogueImage {
  /** `debian:13`. */
  readonly name: string;
  readonly containerDisk?: string;
  readonly url?: string;
  readonly checksums?: string;
  readonly preference?: string;
  readonly memory: string;
  readonly user: string;
  readonly size?: string;
}

/** Upstream's namespace of images for everybody. */
export const IMAGES_NAMESPACE = 'kubevirt-os-images';

/** Name of the DataSource of an image: `debian-13`. */
export const sourceNameOf = ({ name }: Pick<CatalogueImage, 'name'>): string => name.replace(/[:.]/g, '-');

const DISKS = 'quay.io/containerdisks';

const debian = (version: string, codename: string): CatalogueImage => ({
  name: `debian:${version}`,
  containerDisk: `${DISKS}/debian:${version}`,
  url: `https://cloud.debian.org/images/cloud/${codename}/latest/debian-${version}-genericcloud-amd64.qcow2`,
  checksums: `https://cloud.debian.org/images/cloud/${codename}/latest/SHA512SUMS`,
  preference: 'debian',
  memory: '1Gi',
  user: 'debian',
});

const ubuntu = (version: string, codename: string): CatalogueImage => ({
  name: `ubuntu:${version}`,
  containerDisk: `${DISKS}/ubuntu:${version}`,
  url: `https://cloud-images.ubuntu.com/${codename}/current/${codename}-server-cloudimg-amd64.img`,
  checksums: `https://cloud-images.ubuntu.com/${codename}/current/SHA256SUMS`,
  preference: 'ubuntu',
  memory: '2Gi',
  user: 'ubuntu',
});

const centosStream = (version: string): CatalogueImage => ({
  name: `centos-stream:${version}`,
  containerDisk: `${DISKS}/centos-stream:${version}`,
  url: `https://cloud.centos.org/centos/${version}-stream/x86_64/images/CentOS-Stream-GenericCloud-${version}-latest.x86_64.qcow2`,
  checksums: `https://cloud.centos.org/centos/${version}-stream/x86_64/images/CentOS-Stream-GenericCloud-${version}-latest.x86_64.qcow2.SHA256SUM`,
  preference: `centos.stream${version}`,
  memory: '1536Mi',
  user: 'cloud-user',
});

/** The first of a name is what the name alone means. */
export const IMAGE_CATALOGUE: readonly CatalogueImage[] = [
  // Built from a checkout and imported by hand; starts its kernel without firmware.
  { name: 'tiny', containerDisk: 'localhost/coracle/tiny', memory: '128Mi', user: 'tiny' },
  debian('13', 'trixie'),
  debian('12', 'bookworm'),
  ubuntu('24.04', 'noble'),
  ubuntu('22.04', 'jammy'),
  {
    name: 'fedora:latest',
    containerDisk: `${DISKS}/fedora:latest`,
    preference: 'fedora',
    memory: '2Gi',
    user: 'fedora',
  },
  {
    name: 'alpine:3.22',
    url: 'https://dl-cdn.alpinelinux.org/alpine/v3.22/releases/cloud/nocloud_alpine-3.22.0-x86_64-bios-cloudinit-r0.qcow2',
    checksums:
      'https://dl-cdn.alpinelinux.org/alpine/v3.22/releases/cloud/nocloud_alpine-3.22.0-x86_64-bios-cloudinit-r0.qcow2.sha512',
    preference: 'alpine',
    memory: '512Mi',
    user: 'alpine',
  },
  centosStream('10'),
  centosStream('9'),
  {
    name: 'opensuse-leap:15.6',
    containerDisk: `${DISKS}/opensuse-leap:15.6`,
    url: 'https://download.opensuse.org/distribution/leap/15.6/appliances/openSUSE-Leap-15.6-Minimal-VM.x86_64-Cloud.qcow2',
    checksums:
      'https://download.opensuse.org/distribution/leap/15.6/appliances/openSUSE-Leap-15.6-Minimal-VM.x86_64-Cloud.qcow2.sha256',
    preference: 'opensuse.leap',
    memory: '2Gi',
    user: 'opensuse',
    size: '24Gi',
  },
  {
    name: 'opensuse-tumbleweed:1.0.0',
    containerDisk: `${DISKS}/opensuse-tumbleweed:1.0.0`,
    url: 'https://download.opensuse.org/tumbleweed/appliances/openSUSE-Tumbleweed-Minimal-VM.x86_64-Cloud.qcow2',
    checksums:
      'https://download.opensuse.org/tumbleweed/appliances/openSUSE-Tumbleweed-Minimal-VM.x86_64-Cloud.qcow2.sha256',
    preference: 'opensuse.tumbleweed',
    memory: '2Gi',
    user: 'opensuse',
    size: '24Gi',
  },
];

/** Where it is fetched from when nobody says: a registry, whose digest is its checksum, else its vendor. Throws CommandError. */
export function defaultOrigin({ name, containerDisk, url, checksums }: CatalogueImage): ImageOrigin {
  if (containerDisk !== undefined) return { kind: 'registry', reference: containerDisk };
  if (url !== undefined && checksums !== undefined) return { kind: 'http', url, checksums };
  throw new CommandError(`${name} has no source that is known`);
}

/** Those of the local store are put there by hand, and started from it. */
export const isBuiltHere = ({ containerDisk }: CatalogueImage): boolean =>
  containerDisk?.startsWith('localhost/') === true;

/** The image of that name; without a version the first one. Undefined when there is none. */
export const catalogueImage = (name: string): CatalogueImage | undefined =>
  IMAGE_CATALOGUE.find((image) => image.name === name || image.name.split(':')[0] === name);
