/** The plan of one guest: everything that decides its hardware, nothing about where files and sockets are. */
import type { ReadonlyVmi } from '../../kinds/kubevirt.ts';
import type { Segment } from '../launcher/network-attachments.ts';

/** What the node's QEMU can do; found out by `node-agent/qemu` once for each QEMU version and kernel. */
export interface NodeFacts {
  /** Go's name of the architecture. */
  readonly architecture: 'amd64';
  readonly qemuVersion: string;
  readonly accelerator: 'kvm' | 'tcg';
  /** Machine types by name. */
  readonly machineTypes: readonly string[];
  /** Alias -> machine type (`q35` -> `pc-q35-7.2`). */
  readonly machineAliases: Readonly<Record<string, string>>;
  readonly cpuModels: readonly string[];
  /** Properties of the `max` processor; empty when unknown. */
  readonly cpuFeatures: readonly string[];
  /** Those of them a guest here can have; unknown when absent. */
  readonly offeredCpuFeatures?: readonly string[];
  /** Device types QEMU was built with. */
  readonly devices: readonly string[];
  /** UEFI images of the host. */
  readonly efi?: { readonly code: string; readonly vars: string };
  /** Guests can have a TPM: its emulator is installed. */
  readonly tpm?: true;
  /** True when QEMU confines itself by seccomp. */
  readonly sandbox: boolean;
  /** Why guests cannot come here in post-copy; absent when they can. */
  readonly postCopyObstacle?: string;
}

/** SMBIOS texts that the cluster configures. */
export interface SmbiosConfig {
  readonly manufacturer: string;
  readonly product: string;
  readonly family: string;
  readonly version?: string;
  readonly sku?: string;
}

/** KubeVirt's defaults. */
export const DEFAULT_SMBIOS: SmbiosConfig = { manufacturer: 'KubeVirt', product: 'None', family: 'KubeVirt' };

/** What the parts of a machine's plan are made from. */
export interface PlanContext {
  readonly vmi: ReadonlyVmi;
  readonly facts: NodeFacts;
  readonly smbios: SmbiosConfig;
  /** False where the serial line of this guest is not logged. */
  readonly serialLog: boolean;
}

/** A device as QEMU's JSON form takes it: a flat object. PCI slots are given out later. */
export type DeviceSpec = {
  readonly driver: string;
  readonly id: string;
} & Readonly<Record<string, string | number | boolean>>;

export type DiskBus = 'virtio' | 'sata' | 'scsi' | 'usb';
export type ErrorPolicy = 'stop' | 'ignore' | 'report' | 'enospace';

/** One disk or CD-ROM drive. */
export interface PlannedDisk {
  /** Name of disk and volume. */
  readonly name: string;
  /** QEMU device id: `ua-<name>`. */
  readonly id: string;
  readonly kind: 'disk' | 'cdrom';
  readonly bus: DiskBus;
  /** `vda`, `sdb`: as volumeStatus shows it. */
  readonly target: string;
  /** False for an empty CD-ROM drive. */
  readonly hasVolume: boolean;
  readonly readOnly: boolean;
  readonly serial?: string;
  readonly bootIndex?: number;
  readonly cache: 'none' | 'writethrough' | 'writeback' | 'directsync';
  readonly io: 'native' | 'threads';
  readonly errorPolicy: ErrorPolicy;
  readonly shareable: boolean;
  readonly blockSize?: { readonly logical: number; readonly physical: number; readonly discardGranularity?: number };
  /** Id of the I/O thread, virtio only. */
  readonly ioThread?: string;
  /**
   * Queues of a virtio disk, 1 to `MAX_QUEUES`: they stay when processors are plugged, since a guest moves only to a disk of as
   * many. Absent in plans of earlier versions, which left them to QEMU.
   */
  readonly queues?: number;
  /** May be plugged and unplugged while the guest runs; of a CD-ROM drive, its medium. */
  readonly hotpluggable?: true;
  /** Number of its block node in QEMU; absent is its place in the list. */
  readonly node?: number;
  /** Where it hangs, as QEMU's device form takes it; absent is the next free place in the order of the list. */
  readonly place?: DevicePlace;
}

/** A place on a bus: `bus` and `scsi-id`, or `bus` and `addr`. */
export type DevicePlace = Readonly<Record<string, string | number>>;

export interface ForwardedPort {
  readonly protocol: 'tcp' | 'udp';
  readonly port: number;
  /** False for the ports we forward because none was declared: failing to bind those is no news. */
  readonly declared: boolean;
}

/** One network card. */
export interface PlannedInterface {
  readonly name: string;
  readonly id: string;
  readonly driver: string;
  readonly mac: string;
  readonly bootIndex?: number;
  readonly linkUp: boolean;
  /** Of a card on a network beside that of Pods. All others, of which there is at most one, have `network`. */
  readonly segment?: Segment;
  /** `macspoofchk` of that network's definition: the card sends under its own hardware address alone. */
  readonly checksAddress?: true;
  /** The guest's side of the address translation. */
  readonly network?: { readonly cidr: string; readonly gateway: string; readonly guest: string };
  /** Where it hangs; absent is the next free slot in the order of the list. */
  readonly place?: DevicePlace;
  readonly ports: readonly ForwardedPort[];
  /** DHCP options. */
  readonly dhcp: {
    readonly bootFile?: string;
    readonly tftpServer?: string;
    /** Domains that short names are looked for in. */
    readonly searches?: readonly string[];
    readonly ntpServers?: readonly string[];
    readonly privateOptions?: readonly { readonly option: number; readonly value: string }[];
  };
  /** Who answers for names; absent: the cluster for its own, and the host for all others. */
  readonly resolvers?: Resolvers;
}

/** Who answers a guest for names: each is asked where those before it have nothing to say. */
export interface Resolvers {
  /** The cluster, for its own names. */
  readonly cluster: boolean;
  /** The resolver of the host. */
  readonly host: boolean;
  /** Servers of the machine's own. */
  readonly servers: readonly string[];
}

export interface CpuPlan {
  readonly model: string;
  readonly features: readonly { readonly name: string; readonly value: 'on' | 'off' | string }[];
  /** Those the guest has now: more may be plugged while it runs. */
  readonly sockets: number;
  readonly cores: number;
  readonly threads: number;
  /** Sockets there is room for; absent where none can be plugged. */
  readonly maxSockets?: number;
}

/** A virtio-mem device: memory that a running guest can be given, and asked to give back. */
export interface HotMemoryPlan {
  /** All it could hold, in bytes. */
  readonly bytes: number;
  /** What the guest has been asked to take of it, in bytes. */
  readonly requestedBytes: number;
}

export interface MachinePlan {
  /** `<namespace>_<name>`, QEMU's name of the guest. */
  name: string;
  /** SMBIOS UUID; also how a running QEMU is recognised. */
  uuid: string;
  /**
   * Virtual machine generation id: another one tells the guest that it goes on from a saved state. Absent where the
   * machine has no such device, and in plans of versions before it.
   */
  generationId?: string;
  accelerator: 'kvm' | 'tcg';
  sandbox: boolean;
  /** A type this QEMU has, and its options. */
  machine: { type: string; options: Record<string, string> };
  cpu: CpuPlan;
  /** What the guest boots with: bytes, a multiple of 1 MiB. */
  memoryBytes: number;
  /** What of `memoryBytes` the guest does not get (`configureMemory` says why), a multiple of 64 KiB; absent is none. */
  heldBackBytes?: number;
  /** Absent where memory cannot be plugged. */
  hotMemory?: HotMemoryPlan;
  /** SMBIOS tables: type and fields in order. */
  smbios: { type: number; fields: [name: string, value: string][] }[];
  firmware:
    | { kind: 'bios' }
    | {
        kind: 'efi';
        code: string;
        /** The variables that the first guest finds. */
        vars: string;
        /** The variables outlive the guest. */
        persistent?: true;
      };
  /** Direct kernel boot. */
  kernelBoot?: { kernel: boolean; initrd: boolean; args?: string };
  rtc: Record<string, string>;
  /** Where the clock starts, when not at UTC: so many seconds away, or in a zone of the tz database. */
  clock?: { readonly offsetSeconds: number } | { readonly timezone: string };
  globals: { driver: string; property: string; value: string }[];
  disks: PlannedDisk[];
  interfaces: PlannedInterface[];
  ioThreads: string[];
  /** Controllers and devices without a backend of ours. */
  devices: DeviceSpec[];
  /** What of the TPM a guest sees, and whether its state outlives the guest; absent where there is none. */
  tpm?: { model: 'tpm-tis' | 'tpm-crb'; persistent: boolean };
  serial?: { log: boolean };
  graphics: boolean;
  rng: boolean;
  sound: boolean;
  watchdogAction?: 'poweroff' | 'reset' | 'shutdown';
  rebootPolicy: 'reboot' | 'terminate';
  /** The guest waits for an unpause after it was started. */
  startPaused: boolean;
  /** Host name given by DHCP. */
  hostname: string;
  /** What the spec asks for and this node cannot give, one sentence each. */
  unsupported: string[];
}

/** A spec no machine can be made of; the VMI fails with this text. */
export class PlanError extends Error {
  override name = 'PlanError';
}

/** Text that can be handed to QEMU: no NUL, and not longer than `max` bytes. Throws PlanError that names `field`. */
export function plainText(field: string, text: string, max: number): string {
  if (text.includes('\0')) throw new PlanError(`${field} holds a NUL character`);
  if (new TextEncoder().encode(text).length > max) throw new PlanError(`${field} is longer than ${max} bytes`);
  return text;
}
