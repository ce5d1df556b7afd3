/** The machine of a guest: cpu, memory, firmware, clock, features. Its devices are in `devices.ts`. */
import type { Static } from 'typebox';
import { devices, featureState } from './devices.ts';
import { bool, count, flag, int, list, needed, object, oneOf, quantity, resourceList, str } from './fields.ts';

const enabledFlag = { enabled: bool('On unless set to false.') };

export const cpuTopology = object('Sockets, cores and threads.', {
  cores: count('Cores of each socket.'),
  sockets: count('Sockets.'),
  threads: count('Threads of each core.'),
});

export const cpuFeature = object('One processor feature.', {
  name: needed(str('Feature name as QEMU knows it.')),
  policy: str('force, require, optional, disable or forbid; require when absent.'),
});

export const numa = object('Guest NUMA layout.', {
  guestMappingPassthrough: flag('Copies the NUMA layout of the host processors that were given to the guest.'),
});

export const realtime = object('Tuning for real-time guests.', {
  mask: str('Which virtual processors are real-time: ranges such as 0-3,^1.'),
});

const cpu = object('Virtual processors.', {
  cores: count('Cores of each socket; at least 1.'),
  sockets: count('Sockets; at least 1.'),
  maxSockets: count('Up to how many sockets may be plugged while the guest runs.'),
  threads: count('Threads of each core; at least 1.'),
  model: str('Processor model, or host-model or host-passthrough.'),
  features: list(cpuFeature, 'Processor features to add or take away.'),
  dedicatedCpuPlacement: bool('Asks for host processors of its own, pinned one to one.'),
  numa,
  isolateEmulatorThread: bool('Gives the emulator thread one more dedicated processor.'),
  realtime,
});

export const hugepages = object('Backs the guest by huge pages.', {
  pageSize: str('Page size, for instance 2Mi or 1Gi.'),
});

const memory = object('Guest memory.', {
  hugepages,
  guest: quantity('What the guest sees as its memory.'),
  maxGuest: quantity('Up to how much memory may be plugged while the guest runs.'),
  reservedOverhead: object('Memory kept beside that of the guest.', {
    addedOverhead: quantity('Added to the memory limit of the launcher.'),
    memLock: oneOf(['NotRequired', 'Required'], 'Whether guest memory must stay resident.', { enforced: true }),
  }),
});

export const machine = object('Machine type.', { type: str('QEMU machine type; an alias is resolved at boot.') });

const kernelBoot = object('Boots a kernel of an image instead of a disk.', {
  kernelArgs: str('Kernel command line.'),
  container: object('Image that holds the kernel and the initrd.', {
    image: needed(str('Image reference.')),
    imagePullSecret: str('Secret with the credentials of the registry.'),
    imagePullPolicy: str('Always, Never or IfNotPresent.'),
    kernelPath: str('Absolute path of the kernel in the image.'),
    initrdPath: str('Absolute path of the initrd in the image.'),
  }),
});

export const efi = object('Boots by UEFI.', {
  secureBoot: bool('Enforces signed boot loaders; on unless set to false, needs SMM.'),
  persistent: bool('Keeps the UEFI variables over restarts.'),
});

const firmware = object('Firmware and identity of the machine.', {
  uuid: str('SMBIOS UUID of the guest.'),
  bootloader: object('Which firmware boots the guest.', {
    bios: object('Boots by BIOS.', { useSerial: bool('Sends BIOS output to the serial console.') }),
    efi,
  }),
  serial: str('SMBIOS serial number of the system.'),
  kernelBoot,
  acpi: object('Extra ACPI tables.', {
    slicNameRef: str('Name of the secret volume that holds a SLIC table.'),
    msdmNameRef: str('Name of the secret volume that holds an MSDM table.'),
  }),
});

const timerFlag = { present: bool('False keeps the timer out; on unless set.') };

const clockOffset = {
  utc: object('Clock in UTC.', { offsetSeconds: int('Seconds away from UTC.') }),
  timezone: str('Clock in this zone of the tz database.'),
};

export const preferredClockOffset = object('Offset of the clock; one member only.', clockOffset);

export const timer = object('Timers of the guest.', {
  hpet: object('High precision event timer.', {
    tickPolicy: str('Late ticks: delay, catchup, merge or discard.'),
    ...timerFlag,
  }),
  kvm: object('KVM clock.', timerFlag),
  pit: object('Programmable interval timer.', {
    tickPolicy: str('Late ticks: delay, catchup or discard.'),
    ...timerFlag,
  }),
  rtc: object('Real-time clock.', {
    tickPolicy: str('Late ticks: delay or catchup.'),
    track: str('Follows the guest or the wall clock.'),
    ...timerFlag,
  }),
  hyperv: object('Hyper-V clock.', timerFlag),
});

const clock = object('Clock and timers.', { ...clockOffset, timer }, { 'x-kubernetes-preserve-unknown-fields': true });

export const hyperv = object('Hyper-V enlightenments.', {
  relaxed: featureState('No watchdog timeouts in the guest.'),
  vapic: featureState('Paravirtual interrupt controller.'),
  spinlocks: object('Retries of spin locks before the host is notified.', {
    ...enabledFlag,
    spinlocks: count('Number of retries; 4096 or more.'),
  }),
  vpindex: featureState('Virtual processor index.'),
  runtime: featureState('Processor time accounting.'),
  synic: featureState('Synthetic interrupt controller.'),
  synictimer: object('Synthetic timers.', { ...enabledFlag, direct: featureState('Direct mode of the timers.') }),
  reset: featureState('Reset by the hypervisor interface.'),
  vendorid: object('Vendor id of the hypervisor.', { ...enabledFlag, vendorid: str('Up to twelve characters.') }),
  frequencies: featureState('Frequencies by model-specific registers.'),
  reenlightenment: featureState('Notice of a changed TSC frequency.'),
  tlbflush: object('Paravirtual TLB flush.', {
    ...enabledFlag,
    direct: featureState('Flush calls of nested guests go straight to the hypervisor.'),
    extended: featureState('Flushes of parts of the TLB.'),
  }),
  ipi: featureState('Paravirtual inter-processor interrupts.'),
  evmcs: featureState('Enlightened VMCS for nested guests.'),
});

export const apic = object('APIC.', {
  ...enabledFlag,
  endOfInterrupt: bool('Tells the guest of the end of interrupts.'),
});

export const kvmFeature = object('How KVM shows itself.', { hidden: bool('Hides KVM from the guest.') });

const features = object('Features of the machine.', {
  acpi: featureState('ACPI; on unless set to false.'),
  apic,
  hypervPassthrough: object('All Hyper-V enlightenments the host has.', {
    enabled: bool('Switches it on.'),
  }),
  hyperv,
  smm: featureState('System management mode.'),
  kvm: kvmFeature,
  pvspinlock: featureState('Paravirtual spin locks.'),
});

export const launchSecurity = object('Encrypted guests.', {
  sev: object('AMD SEV.', {
    policy: object('Guest policy.', { encryptedState: bool('Also encrypts the registers (SEV-ES).') }),
    attestation: flag('Stops before boot until the guest was attested.'),
    session: str('Session blob, base64.'),
    dhCert: str('Diffie-Hellman key of the guest owner, base64.'),
  }),
  snp: object('AMD SEV-SNP.', {
    policy: str('Guest policy.'),
    vcek: str('Versioned chip endorsement key.'),
    authorKey: str('Author key.'),
    kernelHashes: str('Measured boot of kernel hashes.'),
    cbitpos: str('Position of the encryption bit.'),
    idBlock: str('Identity block.'),
    idAuth: str('Identity authentication data.'),
    reducedPhysBits: str('Physical address bits taken by encryption.'),
  }),
  tdx: flag('Intel TDX.'),
});

export const ioThreads = object('I/O threads.', {
  supplementalPoolThreadCount: count('Threads of the supplemental pool.'),
});

export const domain = object('The machine.', {
  resources: object('What the guest asks of the host.', {
    requests: resourceList('Reserved amounts; cpu and memory count.'),
    limits: resourceList('Upper bounds; cpu and memory count.'),
    overcommitGuestOverhead: bool('Leaves the overhead of the emulator out of the request.'),
  }),
  cpu,
  memory,
  machine,
  firmware,
  clock,
  features,
  devices: needed(devices),
  ioThreadsPolicy: str('shared, auto or supplementalPool; no I/O threads when absent.'),
  ioThreads,
  chassis: object('SMBIOS chassis data.', {
    manufacturer: str('Manufacturer.'),
    version: str('Version.'),
    serial: str('Serial number.'),
    asset: str('Asset tag.'),
    sku: str('Stock keeping unit.'),
  }),
  launchSecurity,
  rebootPolicy: oneOf(['Reboot', 'Terminate'], 'What a reboot of the guest does.', { enforced: true }),
});

export type DomainSpec = Static<typeof domain>;
export type Cpu = Static<typeof cpu>;
export type Memory = Static<typeof memory>;
export type Firmware = Static<typeof firmware>;
export type Clock = Static<typeof clock>;
export type Features = Static<typeof features>;
export type FeatureHyperv = Static<typeof hyperv>;
export type Machine = Static<typeof machine>;
