/**
 * A plan and its files as QEMU's argument vector. Block devices, devices, network back ends and objects use the JSON
 * forms; the few classic options carry values of ours or escaped text. All socket and file names are relative to the
 * directory of the VM, which is QEMU's working directory.
 */
import type { DeviceSpec, MachinePlan, PlannedDisk } from '@coracle/kubevirt/rules/machine/machine-plan';
import { nodeNumber } from '@coracle/kubevirt/rules/machine/plug-disk';
import { pluggedCard } from './cards.ts';
import { escapeOption, optionText } from './option-text.ts';
import { createPciSlots, type NextSlot } from './pci-slots.ts';

/** A disk file ready for QEMU. Names are relative to the VM's directory or absolute, and ours. */
export interface DiskFile {
  readonly file: string;
  readonly format: 'raw' | 'qcow2';
  /** The read-only file below an overlay. */
  readonly backing?: BackingFile;
  /** Handle of the volume in the node's pool: its layers change while the guest runs, and their nodes have names. */
  readonly volume?: string;
  /** True when nothing may write to it, whatever the plan says. */
  readonly readOnly?: boolean;
}

/** What lies below an overlay, and below that. */
export interface BackingFile {
  readonly file: string;
  readonly format: 'raw' | 'qcow2';
  readonly backing?: BackingFile;
  /** Of a layer in a pool: its node is `disk-N-TAG`. */
  readonly tag?: string;
}

/** What the preparation of a VM found and made. */
interface MachineLayout {
  readonly binary: string;
  /** Absolute: also tells our processes from others in a process list. */
  readonly pidFile: string;
  /** Volume name -> file. */
  readonly disks: ReadonlyMap<string, DiskFile>;
  readonly kernel?: string;
  readonly initrd?: string;
  /** Private copy of the UEFI variables. */
  readonly efiVars?: string;
  /** Control socket of the TPM's process. */
  readonly tpmSocket?: string;
  /** Waits for the address of a migration stream instead of booting. */
  readonly incoming?: boolean;
}

/** File names in the directory of a VM. */
export const VM_FILES = {
  qmp: 'qmp.sock',
  serial: 'serial.sock',
  serialLog: 'serial.log',
  vnc: 'vnc.sock',
  guestAgent: 'agent.sock',
  output: 'qemu.log',
  pid: 'qemu.pid',
  /** Where QEMU takes the stream of a guest that comes, and its disks. */
  migrateIn: 'migrate-in.sock',
  nbdIn: 'nbd-in.sock',
  /** Where QEMU sends a guest that goes: the agent listens. */
  migrateOut: 'migrate-out.sock',
  nbdOut: 'nbd-out.sock',
  /** Where QEMU writes a guest that is saved. */
  saveOut: 'save-out.sock',
} as const;

/** What a QEMU may not do, whoever has taken it over. */
export const SANDBOX = 'on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny';

/** The memory that can be plugged. Its slot is one that no other device is given. */
export const HOT_MEMORY = { device: 'hot-memory0', backend: 'hot-memory0-pages' } as const;

/**
 * The argument vector. Ports are not forwarded here but over QMP once it runs: a port that is taken must not keep a
 * guest from starting. QEMU starts stopped (-S): the agent lets the guest run once everything is recorded.
 */
export function qemuArgv(plan: MachinePlan, layout: MachineLayout): string[] {
  const nextSlot = createPciSlots(pciBusOf(plan), countPci(plan));
  return [
    ...machineArgs(plan, layout),
    '-chardev',
    `socket,id=qmp,path=${VM_FILES.qmp},server=on,wait=off`,
    '-mon',
    'chardev=qmp,mode=control',
    ...bootArgs(plan, layout),
    ...consoleArgs(plan),
    ...boardArgs(plan, layout, nextSlot),
    ...diskArgs(plan, layout, nextSlot),
    ...networkArgs(plan, nextSlot),
    ...(layout.incoming ? ['-incoming', 'defer'] : []),
    '-msg',
    'timestamp=on',
  ];
}

const isPcie = ({ machine }: MachinePlan): boolean => !/^(pc-)?i440fx|^pc$/.test(machine.type);
const pciBusOf = (plan: MachinePlan): string => (isPcie(plan) ? 'pcie.0' : 'pci.0');
const json = (value: unknown): string => JSON.stringify(value);
const device = (spec: Record<string, unknown>): string[] => ['-device', json(spec)];

/** Processors, memory, clock, and what QEMU does at a reboot or a panic. */
function machineArgs(plan: MachinePlan, layout: MachineLayout): string[] {
  const features = plan.cpu.features.map(({ name, value }) => `${name}=${escapeOption(value)}`);
  const argv = [layout.binary, '-name', optionText(Object.entries({ guest: plan.name, 'debug-threads': 'on' }))];
  argv.push('-no-user-config', '-nodefaults', '-S', '-pidfile', layout.pidFile);
  argv.push('-uuid', plan.uuid);
  if (plan.sandbox) argv.push('-sandbox', SANDBOX);
  argv.push('-machine', machineText(plan));
  argv.push('-accel', plan.accelerator === 'kvm' ? 'kvm' : 'tcg,thread=multi');
  argv.push('-cpu', [plan.cpu.model, ...features].join(','));
  argv.push('-smp', smpText(plan));
  argv.push('-m', memoryText(plan));
  for (const { type, fields } of plan.smbios) argv.push('-smbios', `type=${type},${optionText(fields)}`);
  argv.push('-rtc', optionText(Object.entries({ ...plan.rtc, ...(plan.clock && { base: 'localtime' }) })));
  for (const { driver, property, value } of plan.globals)
    argv.push('-global', optionText(Object.entries({ driver, property, value })));
  argv.push('-boot', 'strict=on');
  argv.push('-action', `reboot=${plan.rebootPolicy === 'terminate' ? 'shutdown' : 'reset'},shutdown=pause,panic=pause`);
  if (plan.watchdogAction) argv.push('-action', `watchdog=${plan.watchdogAction}`);
  return argv;
}

/** Firmware, or the kernel that is started without one. */
function bootArgs({ firmware, kernelBoot }: MachinePlan, { efiVars, kernel, initrd }: MachineLayout): string[] {
  const argv: string[] = [];
  if (firmware.kind === 'efi' && efiVars !== undefined) {
    const fileNode = (name: string, filename: string) => ({
      'node-name': name,
      driver: 'raw',
      file: { driver: 'file', filename },
    });
    argv.push('-blockdev', json({ ...fileNode('efi-code', firmware.code), 'read-only': true }));
    argv.push('-blockdev', json(fileNode('efi-vars', efiVars)));
  }
  if (kernelBoot && kernel !== undefined) {
    argv.push('-kernel', kernel);
    if (kernelBoot.args !== undefined) argv.push('-append', kernelBoot.args);
  }
  if (kernelBoot && initrd !== undefined) argv.push('-initrd', initrd);
  return argv;
}

/** Serial line, screen, sound. */
function consoleArgs(plan: MachinePlan): string[] {
  const argv: string[] = [];
  if (plan.serial) {
    const log = plan.serial.log ? `,logfile=${VM_FILES.serialLog},logappend=on` : '';
    argv.push('-chardev', `socket,id=serial0,path=${VM_FILES.serial},server=on,wait=off${log}`);
    argv.push(...device({ driver: 'isa-serial', id: 'console0', chardev: 'serial0', index: 0 }));
  }
  argv.push('-display', 'none');
  if (plan.graphics) argv.push('-vnc', `unix:${VM_FILES.vnc}`);
  if (plan.sound) argv.push('-audiodev', json({ driver: 'none', id: 'audio0' }));
  for (const id of plan.ioThreads) argv.push('-object', json({ 'qom-type': 'iothread', id }));
  return argv;
}

/** Devices of the board, pluggable memory, TPM, the guest agent's channel, random numbers. */
function boardArgs(plan: MachinePlan, layout: MachineLayout, nextSlot: NextSlot): string[] {
  const argv: string[] = [];
  const bus = pciBusOf(plan);
  if (plan.generationId !== undefined)
    argv.push(...device({ driver: 'vmgenid', id: 'generation0', guid: plan.generationId }));
  for (const spec of plan.devices) {
    if (hasOwnSlot(spec)) argv.push(...device({ ...spec, bus }));
    else argv.push(...device(isPci(spec) ? { ...spec, ...nextSlot() } : spec));
  }
  if (plan.hotMemory) {
    const { backend: memdev, device: id } = HOT_MEMORY;
    const size = plan.hotMemory.bytes;
    argv.push('-object', json({ 'qom-type': 'memory-backend-ram', id: memdev, size, reserve: false }));
    argv.push(...device({ driver: 'virtio-mem-pci', id, memdev, bus, addr: '0x1.0x0' }));
  }
  if (plan.tpm && layout.tpmSocket !== undefined) {
    argv.push('-chardev', `socket,id=tpm0-control,path=${layout.tpmSocket}`);
    argv.push('-tpmdev', 'emulator,id=tpm0,chardev=tpm0-control');
    argv.push(...device({ driver: plan.tpm.model, id: 'tpm0-device', tpmdev: 'tpm0' }));
  }
  const channel = { bus: 'virtio-serial0.0', chardev: 'agent0', name: 'org.qemu.guest_agent.0' };
  argv.push('-chardev', `socket,id=agent0,path=${VM_FILES.guestAgent},server=on,wait=off`);
  argv.push(...device({ driver: 'virtserialport', id: 'agent-port0', ...channel }));
  if (plan.rng) {
    argv.push('-object', json({ 'qom-type': 'rng-random', id: 'rng0-source', filename: '/dev/urandom' }));
    argv.push(...device({ driver: 'virtio-rng-pci', id: 'rng0', rng: 'rng0-source', ...nextSlot() }));
  }
  return argv;
}

function diskArgs(plan: MachinePlan, layout: MachineLayout, nextSlot: NextSlot): string[] {
  const argv: string[] = [];
  let sata = 0;
  for (const [index, disk] of plan.disks.entries()) {
    const node = diskNode(nodeNumber(plan, index));
    const file = disk.hasVolume ? layout.disks.get(disk.name) : undefined;
    if (file) argv.push('-blockdev', json(blockNode(node, disk, file)));
    let place: Readonly<Record<string, unknown>>;
    if (disk.place) place = disk.place;
    else if (disk.bus === 'sata') {
      // q35 brings six ports of its own; every further six need a controller.
      const controller = Math.floor(sata / 6) - (isPcie(plan) ? 1 : 0);
      if (controller >= 0 && sata % 6 === 0)
        argv.push(...device({ driver: 'ich9-ahci', id: `ahci${controller}`, ...nextSlot() }));
      place = { bus: controller < 0 ? `ide.${sata % 6}` : `ahci${controller}.${sata % 6}` };
      sata++;
    } else place = disk.bus === 'virtio' ? nextSlot() : { bus: disk.bus === 'scsi' ? 'scsi0.0' : 'usb.0' };
    argv.push(...device(diskDevice(disk, file ? node : undefined, place)));
  }
  return argv;
}

const networkArgs = (plan: MachinePlan, nextSlot: NextSlot): string[] =>
  plan.interfaces.flatMap((nic) => {
    const { netdev, device: card } = pluggedCard(nic, plan.hostname);
    return ['-netdev', json(netdev), ...device({ ...card, ...(nic.place ?? nextSlot()) })];
  });

/** With room for more sockets QEMU counts the topology by what there could be. */
function smpText({ cpu: { sockets, cores, threads, maxSockets } }: MachinePlan): string {
  const now = sockets * cores * threads;
  const topology = `sockets=${maxSockets ?? sockets},cores=${cores},threads=${threads}`;
  return maxSockets === undefined ? `${now},${topology}` : `${now},maxcpus=${maxSockets * cores * threads},${topology}`;
}

const MIB = 1024 * 1024;

function memoryText({ memoryBytes, heldBackBytes = 0, hotMemory }: MachinePlan): string {
  const amount = (bytes: number): string => (bytes % MIB === 0 ? `${bytes / MIB}M` : `${bytes / 1024}K`);
  const size = `size=${amount(memoryBytes - heldBackBytes)}`;
  return hotMemory ? `${size},slots=1,maxmem=${amount(memoryBytes + hotMemory.bytes)}` : size;
}

function machineText(plan: MachinePlan): string {
  const options: [string, string][] = Object.entries({
    'dump-guest-core': 'off',
    usb: 'off',
    vmport: 'off',
    ...plan.machine.options,
  });
  if (plan.firmware.kind === 'efi') options.push(['pflash0', 'efi-code'], ['pflash1', 'efi-vars']);
  return `${plan.machine.type},${optionText(options)}`;
}

const NOT_PCI = new Set(['usb-tablet', 'usb-kbd', 'hda-duplex', 'pvpanic', 'ramfb']);
const isPci = (spec: DeviceSpec): boolean => !NOT_PCI.has(spec.driver);

const hasOwnSlot = (spec: DeviceSpec): boolean => spec['addr'] !== undefined;

const countPci = (plan: MachinePlan): number =>
  plan.devices.filter((spec) => isPci(spec) && !hasOwnSlot(spec)).length +
  plan.disks.filter((disk) => disk.bus === 'virtio' && !disk.place).length +
  Math.ceil(plan.disks.filter((disk) => disk.bus === 'sata').length / 6) +
  plan.interfaces.filter(({ place }) => !place).length +
  1;

/** Name of the block node of a disk, by its number (`nodeNumber`). */
export const diskNode = (number: number): string => `disk-${number}`;

/** A disk for `blockdev-add` and `device_add`, at the place that it was given. */
export function pluggedDisk(
  disk: PlannedDisk,
  file: DiskFile,
): { readonly block: Record<string, unknown>; readonly device: { driver: string; id: string } } {
  const node = diskNode(disk.node ?? 0);
  const { driver, id, ...rest } = diskDevice(disk, node, disk.place ?? {});
  return { block: blockNode(node, disk, file), device: { driver: String(driver), id: String(id), ...rest } };
}

/** The block graph of a disk: format node over file node, the backing file named by us and not by its header. */
function blockNode(node: string, disk: PlannedDisk, file: DiskFile): Record<string, unknown> {
  const direct = disk.cache === 'none' || disk.cache === 'directsync';
  const readOnly = disk.readOnly || file.readOnly === true;
  const shared = { 'read-only': readOnly, cache: { direct, 'no-flush': false }, discard: 'unmap' };
  return {
    'node-name': node,
    driver: file.format,
    ...shared,
    file: {
      driver: 'file',
      ...(file.volume !== undefined && { 'node-name': `${node}-f` }),
      filename: file.file,
      ...shared,
      aio: disk.io,
      ...(disk.shareable && { locking: 'off' }),
    },
    ...(file.format === 'qcow2' && { backing: file.backing ? backingNode(node, file.backing) : null }),
  };
}

/** A layer of a pool may be written to by a merge: its file follows what is said of the layer. */
function backingNode(node: string, { file, format, tag, backing }: BackingFile): Record<string, unknown> {
  const name = `${node}-${tag}`;
  const ownFile = { driver: 'file', filename: file };
  return {
    ...(tag !== undefined && { 'node-name': name }),
    driver: format,
    'read-only': true,
    file: { ...ownFile, ...(tag === undefined ? { 'read-only': true } : { 'node-name': `${name}-f` }) },
    ...(format === 'qcow2' && { backing: backing ? backingNode(node, backing) : null }),
  };
}

const ERROR_ACTIONS = {
  stop: { werror: 'stop', rerror: 'stop' },
  ignore: { werror: 'ignore', rerror: 'ignore' },
  report: { werror: 'report', rerror: 'report' },
  enospace: { werror: 'enospc', rerror: 'report' },
} as const;

function diskDevice(
  disk: PlannedDisk,
  node: string | undefined,
  place: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  const drivers = {
    virtio: 'virtio-blk-pci',
    sata: disk.kind === 'cdrom' ? 'ide-cd' : 'ide-hd',
    scsi: disk.kind === 'cdrom' ? 'scsi-cd' : 'scsi-hd',
    usb: 'usb-storage',
  } as const;
  const driver = drivers[disk.bus];
  const writeBack = disk.cache === 'none' || disk.cache === 'writeback';
  return {
    driver,
    id: disk.id,
    ...(node !== undefined && { drive: node }),
    ...place,
    ...(disk.serial !== undefined && { serial: disk.serial }),
    ...(disk.bootIndex !== undefined && { bootindex: disk.bootIndex }),
    ...(disk.kind === 'disk' && { 'write-cache': writeBack ? 'on' : 'off', ...ERROR_ACTIONS[disk.errorPolicy] }),
    ...(disk.shareable && { 'share-rw': true }),
    ...(disk.blockSize && {
      logical_block_size: disk.blockSize.logical,
      physical_block_size: disk.blockSize.physical,
      ...(disk.blockSize.discardGranularity !== undefined && {
        discard_granularity: disk.blockSize.discardGranularity,
      }),
    }),
    ...(disk.ioThread !== undefined && disk.bus === 'virtio' && { iothread: disk.ioThread }),
    ...(disk.queues !== undefined && { 'num-queues': disk.queues }),
  };
}
