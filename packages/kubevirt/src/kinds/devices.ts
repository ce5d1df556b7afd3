/** The devices of a guest. Network interfaces are in `network.ts`. */
import type { Static } from 'typebox';
import { atomicList, bool, count, flag, list, needed, object, str } from './fields.ts';
import { networkInterface } from './network.ts';

export const featureState = (description: string) => object(description, { enabled: bool('On unless set to false.') });

const diskTarget = object('A plain disk.', {
  bus: str('virtio, sata, scsi or usb.'),
  readonly: bool('Refuses writes.'),
  pciAddress: str('Fixed PCI address in the guest, for instance 0000:81:01.10.'),
});

const lunTarget = object('A disk whose SCSI commands reach the storage.', {
  bus: str('scsi, sata or virtio.'),
  readonly: bool('Refuses writes.'),
  reservation: bool('Lets the guest take SCSI persistent reservations.'),
});

const cdromTarget = object('A CD-ROM drive.', {
  bus: str('sata, scsi or usb.'),
  readonly: bool('Refuses writes; on unless set to false.'),
  tray: str('open or closed; closed when absent.'),
});

export const blockSize = object('Block sizes shown to the guest; one member only.', {
  custom: object('Given sizes in bytes.', {
    logical: count('Logical block size.'),
    physical: count('Physical block size.'),
    discardGranularity: count('Smallest range of a discard.'),
  }),
  matchVolume: featureState('Takes over the block size of the volume.'),
});

export const disk = object('A disk device for a volume of the same name.', {
  name: needed(str('Name of the volume.')),
  disk: diskTarget,
  lun: lunTarget,
  cdrom: cdromTarget,
  bootOrder: count('Place in the boot order, from 1; unique over disks and interfaces.'),
  serial: str('Serial number shown to the guest.'),
  dedicatedIOThread: bool('Gives the disk an I/O thread of its own.'),
  cache: str('none, writethrough, writeback or directsync.'),
  io: str('native, threads or default.'),
  tag: str('Tag in the metadata of the config drive.'),
  blockSize,
  shareable: bool('Lets several guests write at a time.'),
  errorPolicy: str('On I/O errors: stop, ignore, report or enospace.'),
  changedBlockTracking: bool('Tracks changed blocks for backups.'),
});

const watchdogAction = { action: str('poweroff, reset or shutdown; reset when absent.') };

const watchdog = object('A watchdog device.', {
  name: needed(str('Name of the device.')),
  i6300esb: object('The i6300esb PCI watchdog.', watchdogAction),
  diag288: object('The diag288 watchdog of s390x.', watchdogAction),
});

const input = object('An input device.', {
  bus: str('usb or virtio.'),
  type: needed(str('tablet or keyboard.')),
  name: needed(str('Name of the device.')),
});

const claimRequest = {
  claimName: str('Entry of spec.resourceClaims.'),
  requestName: str('Request of that claim.'),
};

export const virtualGPUOptions = object('Options of a virtual GPU.', {
  display: object('Display of the virtual GPU.', {
    enabled: bool('On unless set to false.'),
    ramFB: featureState('Frame buffer until the driver is loaded.'),
  }),
});

export const gpu = object('A GPU of the host.', {
  name: str('Name of the device.'),
  deviceName: str('Resource name of the device plug-in.'),
  ...claimRequest,
  virtualGPUOptions,
  tag: str('Tag in the metadata of the config drive.'),
});

export const hostDevice = object('A device of the host.', {
  name: needed(str('Name of the device.')),
  deviceName: str('Resource name of the device plug-in.'),
  ...claimRequest,
  tag: str('Tag in the metadata of the config drive.'),
});

export const tpm = object('A TPM.', {
  enabled: bool('False means no TPM, also when a preference wants one.'),
  persistent: bool('Keeps the TPM state over restarts.'),
});

export const devices = object('Disks, interfaces and the other devices.', {
  useVirtioTransitional: bool('virtio devices that old guests understand too.'),
  disableHotplug: bool('No disks may be plugged while the guest runs.'),
  disks: list(disk, 'Disks, CD-ROM drives and LUNs.', { maxItems: 256 }),
  watchdog,
  interfaces: list(networkInterface, 'Network interfaces.', { maxItems: 256 }),
  inputs: list(input, 'Input devices.'),
  autoattachPodInterface: bool('Adds an interface on the pod network when none is listed; on unless set to false.'),
  autoattachGraphicsDevice: bool('Adds a display; on unless set to false.'),
  autoattachSerialConsole: bool('Adds a serial console; on unless set to false.'),
  logSerialConsole: bool('Logs the serial console.'),
  autoattachMemBalloon: bool('Adds a memory balloon; on unless set to false.'),
  autoattachInputDevice: bool('Adds an input device when none is listed.'),
  autoattachVSOCK: bool('Adds a VSOCK device.'),
  rng: flag('Adds a random number generator fed by the host.'),
  blockMultiQueue: bool('One queue a virtual processor for block devices.'),
  networkInterfaceMultiqueue: bool('Several queues for virtio interfaces.'),
  gpus: atomicList(gpu, 'GPUs of the host.'),
  downwardMetrics: flag('Metrics of the host over a virtio serial port.'),
  panicDevices: list(
    object('A panic device.', { model: str('isa, hyperv or pvpanic.') }),
    'Devices by which a guest tells of its panic.',
  ),
  filesystems: atomicList(
    object('A file system shared with the guest.', {
      name: needed(str('Name of the volume.')),
      virtiofs: needed(flag('Shared by virtiofs.')),
    }),
    'Shared file systems.',
  ),
  hostDevices: atomicList(hostDevice, 'Devices of the host.'),
  clientPassthrough: flag('Lets clients redirect USB devices.'),
  sound: object('A sound card.', {
    name: needed(str('Name of the device.')),
    model: str('ich9 or ac97; ich9 when absent.'),
  }),
  tpm,
  video: object('The display adapter.', { type: str('virtio, vga, bochs, cirrus or ramfb.') }),
});

export type Devices = Static<typeof devices>;
export type Disk = Static<typeof disk>;
export type Input = Static<typeof input>;
