/** The common instance types: seven series of sizes, named and sized as kubevirt/common-instancetypes publishes them. */
import type { InstancetypeSpec } from '../../../kinds/kubevirt.ts';

/** One entry of the bundle before it is an object. */
export interface BundledInstancetype {
  readonly name: string;
  readonly displayName: string;
  readonly description: string;
  readonly class: string;
  readonly icon: string;
  readonly size: string;
  readonly spec: InstancetypeSpec;
}

/** Processors and memory of a size. */
type Sizes = Readonly<Record<string, readonly [processors: number, memory: string]>>;

interface Series {
  readonly displayName: string;
  readonly description: string;
  readonly class: string;
  readonly icon: string;
  readonly sizes: Sizes;
  /** Page sizes of the huge pages; a size ending in `1gi` is made for each 1Gi beside a smaller page. */
  readonly pages?: readonly ('2Mi' | '1Gi')[];
  readonly more: (processors: number) => {
    cpu?: Partial<InstancetypeSpec['cpu']>;
    memory?: Partial<InstancetypeSpec['memory']>;
    top?: Partial<InstancetypeSpec>;
  };
}

/** Four GiB to a processor from medium on. */
const BALANCED: Sizes = {
  medium: [1, '4Gi'],
  large: [2, '8Gi'],
  xlarge: [4, '16Gi'],
  '2xlarge': [8, '32Gi'],
  '4xlarge': [16, '64Gi'],
  '8xlarge': [32, '128Gi'],
};
const SMALL: Sizes = { micro: [1, '1Gi'], small: [1, '2Gi'] };
const NANO: Sizes = { nano: [1, '512Mi'] };
const TWICE_MEDIUM: Sizes = { '2xmedium': [2, '4Gi'] };

const exclusive = { dedicatedCPUPlacement: true, isolateEmulatorThread: true } as const;
/** Asks CRI-O to leave the processors of the guest alone. */
const UNDISTURBED = {
  'cpu-load-balancing.crio.io': 'disable',
  'cpu-quota.crio.io': 'disable',
  'irq-load-balancing.crio.io': 'disable',
};

const SERIES: Readonly<Record<string, Series>> = {
  u1: {
    displayName: 'General Purpose',
    description: 'Shared processors and four GiB for each: the one to take when nothing speaks for another.',
    class: 'general.purpose',
    icon: 'pficon-server-group',
    sizes: { ...NANO, ...SMALL, ...TWICE_MEDIUM, ...BALANCED },
    more: () => ({}),
  },
  o1: {
    displayName: 'Overcommitted',
    description: 'As u1, but the host sets aside only half of the memory: more guests fit, and may run short together.',
    class: 'overcommitted',
    icon: 'pficon-virtual-machine',
    sizes: { ...NANO, ...SMALL, ...BALANCED },
    more: () => ({ memory: { overcommitPercent: 50 } }),
  },
  cx1: {
    displayName: 'Compute Exclusive',
    description:
      'Host processors of its own, the NUMA layout of the host, huge pages and I/O threads beside them. Needs the CPU manager and huge pages on the node. Processors cannot be plugged.',
    class: 'compute.exclusive',
    icon: 'pficon-registry',
    sizes: {
      medium: [1, '2Gi'],
      large: [2, '4Gi'],
      xlarge: [4, '8Gi'],
      '2xlarge': [8, '16Gi'],
      '4xlarge': [16, '32Gi'],
      '8xlarge': [32, '64Gi'],
    },
    pages: ['2Mi', '1Gi'],
    more: (processors) => ({
      cpu: { ...exclusive, numa: { guestMappingPassthrough: {} }, maxSockets: processors },
      top: { ioThreadsPolicy: 'auto' },
    }),
  },
  m1: {
    displayName: 'Memory Intensive',
    description: 'Eight GiB for each shared processor, in huge pages. Needs huge pages on the node.',
    class: 'memory.intensive',
    icon: 'fa-memory',
    sizes: {
      large: [2, '16Gi'],
      xlarge: [4, '32Gi'],
      '2xlarge': [8, '64Gi'],
      '4xlarge': [16, '128Gi'],
      '8xlarge': [32, '256Gi'],
    },
    pages: ['2Mi', '1Gi'],
    more: () => ({}),
  },
  n1: {
    displayName: 'Network',
    description:
      'For network functions such as DPDK: host processors of its own and 1Gi pages. Needs the CPU manager and huge pages on the node.',
    class: 'network',
    icon: 'pficon-network',
    sizes: {
      medium: [4, '4Gi'],
      large: [4, '8Gi'],
      xlarge: [8, '16Gi'],
      '2xlarge': [16, '32Gi'],
      '4xlarge': [32, '64Gi'],
      '8xlarge': [64, '128Gi'],
    },
    pages: ['1Gi'],
    more: () => ({ cpu: exclusive, top: { annotations: { ...UNDISTURBED } } }),
  },
  rt1: {
    displayName: 'Realtime',
    description:
      'For real-time guests: tuned host processors of its own, their NUMA layout and 1Gi pages. Needs the CPU manager, a real-time kernel and huge pages on the node.',
    class: 'realtime',
    icon: 'pficon-server-group',
    sizes: { ...SMALL, ...BALANCED },
    pages: ['1Gi'],
    more: () => ({
      cpu: { ...exclusive, numa: { guestMappingPassthrough: {} }, realtime: {} },
      top: { annotations: { ...UNDISTURBED } },
    }),
  },
  d1: {
    displayName: 'Dedicated vCPU',
    description: 'As u1 with host processors of its own and I/O threads. Needs the CPU manager on the node.',
    class: 'dedicated.vcpu',
    icon: 'pficon-server-group',
    sizes: { ...NANO, ...SMALL, ...TWICE_MEDIUM, ...BALANCED },
    more: () => ({ cpu: exclusive, top: { ioThreadsPolicy: 'auto' } }),
  },
};

/** Every instance type of the bundle, series by series. */
export function bundledInstancetypes(): BundledInstancetype[] {
  return Object.entries(SERIES).flatMap(([series, { sizes, pages, more, ...about }]) =>
    Object.entries(sizes).flatMap(([size, [processors, memory]]) =>
      (pages ?? [undefined]).map((page) => {
        const named = page === '1Gi' && pages!.length > 1 ? `${size}1gi` : size;
        const { cpu, memory: moreMemory, top } = more(processors);
        return {
          ...about,
          name: `${series}.${named}`,
          size: named,
          spec: {
            ...top,
            cpu: { guest: processors, ...cpu },
            memory: { guest: memory, ...(page && { hugepages: { pageSize: page } }), ...moreMemory },
          },
        };
      }),
    ),
  );
}
