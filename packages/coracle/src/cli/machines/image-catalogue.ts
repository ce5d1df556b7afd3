/**
 * Cloud images by short names: data, nothing else. `containerDisk` is what KubeVirt's project publishes of an image, `url` where
 * its vendor publishes it for x86-64 and `checksums` the vendor's own list of digests beside it. `preference` is the one of
 * common-instancetypes that fits, `memory` the least that it asks for, `user` whom the image's cloud-init gives keys to.
 */

export interface CatalogueImage {
  /** `debian:13`. */
  readonly name: string;
  readonly containerDisk?: string;
  readonly url?: string;
  readonly checksums?: string;
  readonly preference?: string;
  readonly memory: string;
  readonly user: string;
}

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
  },
];

/** The image of that name; without a version the first one. Undefined when there is none. */
export const catalogueImage = (name: string): CatalogueImage | undefined =>
  IMAGE_CATALOGUE.find((image) => image.name === name || image.name.split(':')[0] === name);
