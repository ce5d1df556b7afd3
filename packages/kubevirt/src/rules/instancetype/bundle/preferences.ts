/** The common preferences: one row for each guest system, named as kubevirt/common-instancetypes publishes them. */
import type { PreferenceSpec } from '../../../kinds/kubevirt.ts';

/** One entry of the bundle before it is an object. */
export interface BundledPreference {
  readonly name: string;
  readonly displayName: string;
  readonly icon: string;
  readonly tags: readonly string[];
  readonly os: 'linux' | 'windows' | 'legacy';
  readonly spec: PreferenceSpec;
}

/** What sets one guest apart from the plain one of its family. */
interface Traits {
  /** Least processors and memory. */
  readonly needs?: readonly [processors: number, memory: string];
  /** UEFI: with or without enforced signatures. */
  readonly efi?: 'secure' | 'plain';
  readonly arch?: 'amd64' | 'arm64' | 's390x';
  /** IBM Secure Execution. */
  readonly secureExecution?: boolean;
  /** An I/O thread for each virtio disk. */
  readonly ioThreads?: boolean;
  /** A tablet, for guests with a graphical desktop. */
  readonly desktop?: boolean;
  readonly cpu?: NonNullable<PreferenceSpec['cpu']>;
  readonly devices?: NonNullable<PreferenceSpec['devices']>;
}

const TABLET = {
  preferredAutoattachInputDevice: true,
  preferredInputBus: 'virtio',
  preferredInputType: 'tablet',
} as const;
const spread = (ratio?: number): NonNullable<PreferenceSpec['cpu']> => ({
  preferredCPUTopology: 'spread',
  spreadOptions: { across: 'SocketsCoresThreads', ...(ratio !== undefined && { ratio }) },
});

function requirements({ needs, arch }: Traits): Pick<PreferenceSpec, 'requirements'> {
  if (needs === undefined) return {};
  const [guest, memory] = needs;
  return { requirements: { ...(arch && { architecture: arch }), cpu: { guest }, memory: { guest: memory } } };
}

function linuxSpec(traits: Traits): PreferenceSpec {
  const { efi, arch, cpu } = traits;
  return {
    annotations: { 'vm.kubevirt.io/os': 'linux' },
    ...(cpu && { cpu }),
    devices: {
      preferredDiskBus: 'virtio',
      preferredInterfaceModel: 'virtio',
      preferredRng: {},
      ...(traits.ioThreads && { preferredDiskDedicatedIoThread: true }),
      ...(traits.desktop && TABLET),
      ...traits.devices,
    },
    ...(efi === 'secure' && { features: { preferredSmm: {} } }),
    ...(efi && { firmware: { preferredEfi: { secureBoot: efi === 'secure' } } }),
    ...(arch && { preferredArchitecture: arch }),
    ...(traits.secureExecution && { preferredLaunchSecurity: {} }),
    ...requirements(traits),
  };
}

type Row = readonly [name: string, displayName: string, traits: Traits];

const linux = (icon: string, tags: readonly string[], rows: readonly Row[]): BundledPreference[] =>
  rows.map(([name, displayName, traits]) => ({
    name,
    displayName,
    icon,
    tags: traits.cpu?.spreadOptions?.ratio === 4 ? [...tags, 'dpdk'] : tags,
    os: 'linux',
    spec: linuxSpec(traits),
  }));

const MULTI_QUEUE = { preferredNetworkInterfaceMultiQueue: true } as const;
const dpdk = { cpu: spread(4), devices: MULTI_QUEUE } as const;

/** The same guest for each architecture, the first under the plain name. */
const byArchitecture = (name: string, display: string, needs: Traits['needs'], more: Traits): Row[] => [
  [name, `${display} (amd64)`, { ...more, needs: needs!, arch: 'amd64', efi: 'secure' }],
  [`${name}.arm64`, `${display} (arm64)`, { ...more, needs: needs!, arch: 'arm64' }],
  [`${name}.s390x`, `${display} (s390x)`, { ...more, needs: needs!, arch: 's390x' }],
  [
    `${name}.s390x.secex`,
    `${display} (IBM Secure Execution)`,
    { ...more, needs: needs!, arch: 's390x', secureExecution: true },
  ],
];

const EL = [1, '1.5Gi'] as const;
const FEDORA_NEEDS = '512Mi';
const io = { ioThreads: true } as const;
const secureAmd64 = { ...io, arch: 'amd64', efi: 'secure' } as const;

const LINUX: readonly BundledPreference[] = [
  ...linux('icon-linux', ['linux'], [['linux', 'Linux Guest', {}]]),
  ...linux('icon-linux', ['linux-efi'], [['linux.efi', 'Linux EFI Guest', { efi: 'plain' }]]),
  ...linux(
    'icon-linux',
    ['linux-virtio-transitional'],
    [
      [
        'linux.virtiotransitional',
        'Linux Virtio Transitional Guest',
        { devices: { preferredUseVirtioTransitional: true } },
      ],
    ],
  ),
  ...linux('icon-alpine', ['alpine'], [['alpine', 'Alpine', { needs: [1, '512Mi'] }]]),
  ...linux('icon-cirros', ['cirros'], [['cirros', 'Cirros', { needs: [1, '256Mi'] }]]),
  ...linux('icon-debian', ['debian'], [['debian', 'Debian', { needs: [1, '512Mi'], efi: 'plain' }]]),
  // 2Gi as published, which refuses u1.nano and u1.micro; Fedora boots with what u1.nano gives.
  ...linux('icon-fedora', ['fedora'], byArchitecture('fedora', 'Fedora', [1, FEDORA_NEEDS], {})),
  ...linux('icon-opensuse-leap', ['opensuse.leap'], [['opensuse.leap', 'OpenSUSE Leap', { needs: [1, '2Gi'] }]]),
  ...linux(
    'icon-opensuse-tumbleweed',
    ['opensuse.tumbleweed'],
    [['opensuse.tumbleweed', 'OpenSUSE Tumbleweed', { needs: [1, '2Gi'] }]],
  ),
  ...linux('icon-oracle', ['oraclelinux'], [['oraclelinux', 'Oracle Linux', { needs: [2, '4Gi'], efi: 'plain' }]]),
  ...linux('icon-sles', ['sles'], [['sles', 'SUSE Linux Enterprise Server', { needs: [1, '2Gi'] }]]),
  ...linux('icon-ubuntu', ['ubuntu'], [['ubuntu', 'Ubuntu', { needs: [1, '2Gi'] }]]),
  ...linux(
    'icon-centos',
    ['linux', 'centos-stream'],
    [
      ['centos.stream9', 'CentOS Stream 9', { ...io, needs: EL }],
      ['centos.stream9.desktop', 'CentOS Stream 9', { ...io, needs: EL, desktop: true }],
      ['centos.stream9.dpdk', 'CentOS Stream 9', { ...io, ...dpdk, needs: [8, '1.5Gi'] }],
      ['centos.stream10', 'CentOS Stream 10', { ...io, needs: EL }],
      ['centos.stream10.desktop', 'CentOS Stream 10', { ...io, needs: EL, desktop: true }],
    ],
  ),
  ...linux(
    'icon-rhel',
    ['linux', 'rhel'],
    [
      ['rhel.7', 'Red Hat Enterprise Linux 7', { needs: [1, '1Gi'] }],
      ['rhel.7.desktop', 'Red Hat Enterprise Linux 7', { needs: [1, '1Gi'], desktop: true }],
      ['rhel.8', 'Red Hat Enterprise Linux 8', { needs: EL }],
      ['rhel.8.desktop', 'Red Hat Enterprise Linux 8', { needs: EL, desktop: true }],
      ['rhel.8.dpdk', 'Red Hat Enterprise Linux 8', { ...dpdk, needs: [8, '1.5Gi'] }],
      ...byArchitecture('rhel.9', 'Red Hat Enterprise Linux 9', EL, io),
      ['rhel.9.desktop', 'Red Hat Enterprise Linux 9 Desktop (amd64)', { ...secureAmd64, needs: EL, desktop: true }],
      ['rhel.9.dpdk', 'Red Hat Enterprise Linux 9 DPDK (amd64)', { ...secureAmd64, ...dpdk, needs: [8, '1.5Gi'] }],
      ...byArchitecture('rhel.10', 'Red Hat Enterprise Linux 10', EL, io),
    ],
  ),
  ...linux(
    'icon-rhel',
    ['linux', 'rhel', 'realtime'],
    [
      [
        'rhel.9.realtime',
        'Red Hat Enterprise Linux 9 Realtime (amd64)',
        {
          ...secureAmd64,
          needs: [4, '4Gi'],
          cpu: spread(),
          devices: {
            ...MULTI_QUEUE,
            preferredAutoattachGraphicsDevice: false,
            preferredAutoattachMemBalloon: false,
            preferredAutoattachSerialConsole: true,
          },
        },
      ],
    ],
  ),
];

/** A Windows release: what its firmware is, what it needs, and whether there is a variant with virtio drivers. */
interface Windows {
  readonly release: string;
  readonly displayName: string;
  readonly needs: readonly [processors: number, memory: string];
  readonly topology?: 'cores';
  /** `tpm` also keeps the state of firmware and TPM. */
  readonly firmware?: 'secure' | 'tpm';
  readonly interface?: string;
  readonly virtio?: false;
  /** Old kernels stumble over the 64-bit PCI hole. */
  readonly smallPciHole?: boolean;
}

const WINDOWS: readonly Windows[] = [
  {
    release: 'xp',
    displayName: 'Microsoft Windows XP',
    needs: [1, '128Mi'],
    virtio: false,
    smallPciHole: true,
  },
  {
    release: '2k3',
    displayName: 'Microsoft Windows Server 2003',
    needs: [1, '256Mi'],
    interface: 'rtl8139',
    virtio: false,
    smallPciHole: true,
  },
  { release: '7', displayName: 'Microsoft Windows 7', needs: [1, '2Gi'] },
  {
    release: '2k8',
    displayName: 'Microsoft Windows Server 2008/2008 R2',
    needs: [1, '512Mi'],
    interface: 'e1000',
  },
  { release: '2k12', displayName: 'Microsoft Windows Server 2012/2012 R2', needs: [1, '512Mi'] },
  { release: '2k16', displayName: 'Microsoft Windows Server 2016', needs: [1, '2Gi'], firmware: 'secure' },
  { release: '2k19', displayName: 'Microsoft Windows Server 2019', needs: [1, '2Gi'], firmware: 'secure' },
  { release: '2k22', displayName: 'Microsoft Windows Server 2022', needs: [1, '2Gi'], firmware: 'tpm' },
  { release: '2k25', displayName: 'Microsoft Windows Server 2025', needs: [1, '2Gi'], firmware: 'tpm' },
  {
    release: '10',
    displayName: 'Microsoft Windows 10',
    needs: [1, '2Gi'],
    topology: 'cores',
    firmware: 'secure',
  },
  {
    release: '11',
    displayName: 'Microsoft Windows 11',
    needs: [2, '4Gi'],
    topology: 'cores',
    firmware: 'tpm',
  },
];

function windowsSpec(of: Windows, virtio: boolean): PreferenceSpec {
  return {
    annotations: {
      'vm.kubevirt.io/os': 'windows',
      ...(of.smallPciHole && { 'kubevirt.io/disablePCIHole64': 'true' }),
    },
    clock: {
      preferredClockOffset: { utc: {} },
      preferredTimer: {
        hpet: { present: false },
        hyperv: {},
        pit: { tickPolicy: 'delay' },
        rtc: { tickPolicy: 'catchup' },
      },
    },
    cpu: { preferredCPUTopology: of.topology ?? 'sockets' },
    devices: {
      preferredAutoattachInputDevice: true,
      preferredDiskBus: virtio ? 'virtio' : 'sata',
      preferredInterfaceModel: virtio ? 'virtio' : (of.interface ?? 'e1000e'),
      ...(virtio && { preferredInputBus: 'virtio', preferredInputType: 'tablet', preferredVideoType: 'virtio' }),
      ...(of.firmware === 'tpm' && { preferredTPM: { persistent: true } }),
    },
    features: {
      preferredAcpi: {},
      preferredApic: {},
      preferredHyperv: {
        frequencies: {},
        ipi: {},
        reenlightenment: {},
        relaxed: {},
        reset: {},
        runtime: {},
        spinlocks: { spinlocks: 8191 },
        synic: {},
        synictimer: { direct: {} },
        tlbflush: {},
        vapic: {},
        vpindex: {},
      },
      ...(of.firmware && { preferredSmm: {} }),
    },
    ...(of.firmware && {
      firmware: { preferredEfi: { secureBoot: true, ...(of.firmware === 'tpm' && { persistent: true }) } },
    }),
    preferredTerminationGracePeriodSeconds: 3600,
    ...requirements({ needs: of.needs }),
  };
}

const LEGACY: BundledPreference = {
  name: 'legacy',
  displayName: 'Legacy Guest',
  icon: 'icon-other',
  tags: ['legacy'],
  os: 'legacy',
  spec: {
    annotations: { 'vm.kubevirt.io/os': 'legacy' },
    devices: { preferredDiskBus: 'sata', preferredInterfaceModel: 'e1000' },
  },
};

/** Every preference of the bundle. */
export function bundledPreferences(): BundledPreference[] {
  const windows = WINDOWS.flatMap((of) =>
    [false, ...(of.virtio === false ? [] : [true])].map(
      (virtio): BundledPreference => ({
        name: `windows.${of.release}${virtio ? '.virtio' : ''}`,
        displayName: `${of.displayName}${virtio ? ' (virtio)' : ''}`,
        icon: 'icon-windows',
        tags: ['windows'],
        os: 'windows',
        spec: windowsSpec(of, virtio),
      }),
    ),
  );
  return [LEGACY, ...LINUX, ...windows];
}
