/**
 * Instance types (amounts: processors, memory, devices of the host) and preferences (how a guest likes its machine):
 * instancetype.kubevirt.io/v1beta1. The namespaced and the cluster-wide kind of each have the same spec.
 */
import type { Static } from 'typebox';
import { blockSize, featureState, gpu, hostDevice, tpm, virtualGPUOptions } from './devices.ts';
import {
  apic,
  cpuFeature,
  efi,
  hugepages,
  hyperv,
  ioThreads,
  kvmFeature,
  launchSecurity,
  numa,
  preferredClockOffset,
  realtime,
  timer,
} from './domain.ts';
import {
  atomicList,
  bool,
  count,
  flag,
  int,
  list,
  long,
  needed,
  object,
  oneOf,
  quantity,
  str,
  stringMap,
} from './fields.ts';

/** The names a preference may give a processor topology; the second half is deprecated. */
export const CPU_TOPOLOGIES = [
  'preferCores',
  'preferSockets',
  'preferThreads',
  'preferSpread',
  'preferAny',
  'cores',
  'sockets',
  'threads',
  'spread',
  'any',
] as const;

/** What processors are spread over. */
export const SPREAD_ACROSS = ['SocketsCoresThreads', 'SocketsCores', 'CoresThreads'] as const;

export const instancetypeSpec = object('Amounts that virtual machines take over as they are.', {
  nodeSelector: stringMap('Labels a node must have.'),
  schedulerName: str('Scheduler that places the launcher pod.'),
  cpu: needed(
    object('Virtual processors.', {
      guest: needed(count('How many the guest sees; 0 leaves it to the guest.')),
      model: str('Processor model, or host-model or host-passthrough.'),
      dedicatedCPUPlacement: bool('Asks for host processors of its own, pinned one to one.'),
      numa,
      isolateEmulatorThread: bool('Gives the emulator thread one more dedicated processor.'),
      realtime,
      maxSockets: count('Up to how many sockets may be plugged while the guest runs.', { minimum: 1 }),
    }),
  ),
  memory: needed(
    object('Guest memory.', {
      guest: needed(quantity('What the guest sees as its memory.')),
      hugepages,
      overcommitPercent: int('By how many percent less the launcher pod asks for.', { minimum: 0, maximum: 100 }),
      maxGuest: quantity('Up to how much memory may be plugged while the guest runs.'),
    }),
  ),
  gpus: atomicList(gpu, 'GPUs of the host.'),
  hostDevices: atomicList(hostDevice, 'Devices of the host.'),
  ioThreadsPolicy: str('shared, auto or supplementalPool; no I/O threads when absent.'),
  ioThreads,
  launchSecurity,
  annotations: stringMap('Annotations of the instance.'),
});

const preferredBool = (what: string) => bool(`${what}; applies when the guest leaves it open.`);

const devicePreferences = object('Preferences of devices.', {
  preferredAutoattachGraphicsDevice: preferredBool('Whether a display is added'),
  preferredAutoattachMemBalloon: preferredBool('Whether a memory balloon is added'),
  preferredAutoattachPodInterface: preferredBool('Whether an interface on the pod network is added'),
  preferredAutoattachSerialConsole: preferredBool('Whether a serial console is added'),
  preferredAutoattachInputDevice: preferredBool('Whether an input device is added'),
  preferredDisableHotplug: bool('Whether plugging of disks is off; also overrides the guest.'),
  preferredVirtualGPUOptions: virtualGPUOptions,
  preferredSoundModel: str('Model of a sound card: ich9 or ac97.'),
  preferredUseVirtioTransitional: preferredBool('virtio devices that old guests understand too'),
  preferredInputBus: str('Bus of input devices: usb or virtio.'),
  preferredInputType: str('Type of input devices: tablet or keyboard.'),
  preferredDiskBus: str('Bus of disks.'),
  preferredLunBus: str('Bus of LUNs.'),
  preferredCdromBus: str('Bus of CD-ROM drives.'),
  preferredDiskDedicatedIoThread: bool('Gives disks on the virtio bus an I/O thread of their own.'),
  preferredDiskCache: str('Cache mode of disks.'),
  preferredDiskIO: str('I/O mode of disks.'),
  preferredDiskBlockSize: blockSize,
  preferredInterfaceModel: str('Model of network interfaces.'),
  preferredInterfaceMasquerade: flag('Binding of unbound interfaces on the pod network.'),
  preferredRng: flag('A random number generator fed by the host.'),
  preferredBlockMultiQueue: preferredBool('One queue a virtual processor for block devices'),
  preferredNetworkInterfaceMultiQueue: preferredBool('Several queues for virtio interfaces'),
  preferredTPM: tpm,
  preferredPanicDeviceModel: str('Model of panic devices: isa, hyperv or pvpanic.'),
  preferredVideoType: str('Type of the display adapter.'),
});

export const preferenceSpec = object('How a guest likes its machine. Fills in what a virtual machine leaves open.', {
  clock: object('Preferences of the clock.', { preferredClockOffset, preferredTimer: timer }),
  cpu: object('Preferences of the processors.', {
    preferredCPUTopology: oneOf(CPU_TOPOLOGIES, 'How processors are shown; sockets when absent.', { enforced: true }),
    spreadOptions: object('How spread lays processors out.', {
      across: oneOf(SPREAD_ACROSS, 'What they are spread over; SocketsCores when absent.', { enforced: true }),
      ratio: count('Cores of a socket, or threads of a core with CoresThreads; 2 when absent.', { minimum: 1 }),
    }),
    preferredCPUFeatures: list(cpuFeature, 'Processor features.'),
  }),
  devices: devicePreferences,
  features: object('Preferences of the machine features.', {
    preferredAcpi: featureState('ACPI; also overrides the guest.'),
    preferredApic: apic,
    preferredHyperv: hyperv,
    preferredKvm: kvmFeature,
    preferredPvspinlock: featureState('Paravirtual spin locks.'),
    preferredSmm: featureState('System management mode.'),
  }),
  firmware: object('Preferences of the firmware.', {
    preferredUseBios: bool('Boots by BIOS.'),
    preferredUseBiosSerial: bool('Sends BIOS output to the serial console.'),
    preferredUseEfi: bool('Boots by UEFI. Deprecated: use preferredEfi.'),
    preferredUseSecureBoot: bool('Enforces signed boot loaders. Deprecated: use preferredEfi.'),
    preferredEfi: efi,
  }),
  machine: object('Preferences of the machine type.', { preferredMachineType: str('QEMU machine type.') }),
  volumes: object('Preferences of volumes.', {
    preferredStorageClassName: str('Storage class of DataVolume templates.'),
  }),
  preferredSubdomain: str('Subdomain of the guest.'),
  preferredTerminationGracePeriodSeconds: long('Seconds the guest has to shut down.'),
  requirements: object('What a guest needs at least.', {
    cpu: object('Virtual processors.', { guest: needed(count('How many.')) }),
    memory: object('Memory.', { guest: needed(quantity('How much.')) }),
    architecture: str('The one architecture it runs on.'),
  }),
  annotations: stringMap('Annotations of the instance.'),
  preferSpreadSocketToCoreRatio: count('Cores of a socket when processors are spread; 2 when absent.'),
  preferredArchitecture: str('amd64, arm64 or s390x.'),
  preferredLaunchSecurity: launchSecurity,
});

export type InstancetypeSpec = Static<typeof instancetypeSpec>;
export type PreferenceSpec = Static<typeof preferenceSpec>;
export type DevicePreferences = Static<typeof devicePreferences>;
export type CpuTopologyName = (typeof CPU_TOPOLOGIES)[number];
export type SpreadAcross = (typeof SPREAD_ACROSS)[number];
