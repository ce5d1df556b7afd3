/** The figures of guests under upstream's names, labels and types (pkg/monitoring/metrics/virt-handler/domainstats). */
import type { Labels, ValueFamily } from '@coracle/runtime/metrics/metric-family';
import type { GuestFigures } from './guest-figures.ts';

export interface MeasuredGuest {
  /** `node`, `namespace` and `name` of the instance, and its own labels. */
  readonly labels: Labels;
  /** What its cards are on, by the MAC address. */
  readonly cards: ReadonlyMap<string, { readonly name: string; readonly network: string }>;
  readonly figures: GuestFigures;
}

type Sample = readonly [labels: Labels, value: number | undefined];
type Row = readonly [
  name: string,
  type: ValueFamily['type'],
  help: string,
  samples: (guest: MeasuredGuest) => readonly Sample[],
];

const one =
  (value: (figures: GuestFigures) => number | undefined) =>
  ({ figures }: MeasuredGuest): Sample[] => [[{}, value(figures)]];
const balloon = (stat: string) => one(({ balloon }) => balloon[stat]);
const perDisk =
  (value: (stats: GuestFigures['disks'][number]['stats']) => number) =>
  ({ figures }: MeasuredGuest): Sample[] =>
    figures.disks.map(({ name, stats }) => [{ drive: name }, value(stats)]);
const perVcpu =
  (value: (vcpu: GuestFigures['vcpus'][number]) => number | undefined, more: Labels = {}) =>
  ({ figures }: MeasuredGuest): Sample[] =>
    figures.vcpus.map((vcpu) => [{ id: String(vcpu.id), ...more }, value(vcpu)]);
const perCard =
  (value: (card: GuestFigures['cards'][number]) => number) =>
  ({ figures, cards }: MeasuredGuest): Sample[] =>
    figures.cards.flatMap((traffic) => {
      const card = cards.get(traffic.mac);
      return card ? [[{ interface: card.name, network: card.network }, value(traffic)] as const] : [];
    });
const perFilesystem =
  (value: (filesystem: GuestFigures['filesystems'][number]) => number) =>
  ({ figures }: MeasuredGuest): Sample[] => {
    const labelled = figures.filesystems.map((filesystem) => {
      const labels = {
        disk_name: filesystem.diskName,
        mount_point: filesystem.mountPoint,
        file_system_type: filesystem.fileSystemType,
      };
      return [JSON.stringify(labels), [labels, value(filesystem)]] as const;
    });
    return [...new Map<string, Sample>(labelled).values()];
  };

const ROWS: readonly Row[] = [
  [
    'cpu_usage_seconds_total',
    'counter',
    'Total CPU time spent in all modes (sum of both vcpu and hypervisor usage).',
    one(({ process }) => process && process.cpuNanos / 1e9),
  ],
  [
    'cpu_user_usage_seconds_total',
    'counter',
    'Total CPU time spent in user mode.',
    one(({ process }) => process && process.userNanos / 1e9),
  ],
  [
    'cpu_system_usage_seconds_total',
    'counter',
    'Total CPU time spent in system mode.',
    one(({ process }) => process && process.systemNanos / 1e9),
  ],
  [
    'vcpu_seconds_total',
    'counter',
    'Total amount of time spent in each state by each vcpu.',
    perVcpu(({ seconds }) => seconds, { state: 'running' }),
  ],
  [
    'vcpu_wait_seconds_total',
    'counter',
    'Amount of time spent by each vcpu while waiting on I/O.',
    perVcpu(({ waitSeconds }) => waitSeconds),
  ],
  [
    'vcpu_delay_seconds_total',
    'counter',
    'Amount of time spent by each vcpu waiting in the queue instead of running.',
    perVcpu(({ delaySeconds }) => delaySeconds),
  ],
  [
    'node_cpu_affinity',
    'gauge',
    'Number of VMI CPU affinities to node physical cores.',
    one(({ vcpus }) => vcpus.reduce((sum, { processors = 0 }) => sum + processors, 0)),
  ],
  [
    'memory_domain_bytes',
    'gauge',
    'The amount of memory in bytes allocated to the domain.',
    one(({ memoryBytes }) => memoryBytes),
  ],
  [
    'memory_resident_bytes',
    'gauge',
    'Resident set size of the process running the domain.',
    one(({ process }) => process?.memoryBytes),
  ],
  ['memory_actual_balloon_bytes', 'gauge', 'Current balloon size in bytes.', one(({ balloonBytes }) => balloonBytes)],
  ['memory_available_bytes', 'gauge', 'Amount of usable memory as seen by the domain.', balloon('stat-total-memory')],
  [
    'memory_usable_bytes',
    'gauge',
    'The amount of memory which can be reclaimed by balloon without pushing the guest system to swap.',
    balloon('stat-available-memory'),
  ],
  [
    'memory_unused_bytes',
    'gauge',
    'The amount of memory left completely unused by the system.',
    balloon('stat-free-memory'),
  ],
  [
    'memory_cached_bytes',
    'gauge',
    'The amount of memory that is being used to cache I/O and is available to be reclaimed.',
    balloon('stat-disk-caches'),
  ],
  [
    'memory_pgmajfault_total',
    'counter',
    'The number of page faults when disk IO was required.',
    balloon('stat-major-faults'),
  ],
  [
    'memory_pgminfault_total',
    'counter',
    'The number of other page faults, when disk IO was not required.',
    balloon('stat-minor-faults'),
  ],
  [
    'memory_swap_in_traffic_bytes',
    'gauge',
    'The total amount of data read from swap space of the guest in bytes.',
    balloon('stat-swap-in'),
  ],
  [
    'memory_swap_out_traffic_bytes',
    'gauge',
    'The total amount of memory written out to swap space of the guest in bytes.',
    balloon('stat-swap-out'),
  ],
  [
    'storage_iops_read_total',
    'counter',
    'Total number of I/O read operations.',
    perDisk((stats) => stats.rd_operations),
  ],
  [
    'storage_iops_write_total',
    'counter',
    'Total number of I/O write operations.',
    perDisk((stats) => stats.wr_operations),
  ],
  [
    'storage_read_traffic_bytes_total',
    'counter',
    'Total number of bytes read from storage.',
    perDisk((stats) => stats.rd_bytes),
  ],
  [
    'storage_write_traffic_bytes_total',
    'counter',
    'Total number of written bytes.',
    perDisk((stats) => stats.wr_bytes),
  ],
  [
    'storage_read_times_seconds_total',
    'counter',
    'Total time spent on read operations.',
    perDisk((stats) => stats.rd_total_time_ns / 1e9),
  ],
  [
    'storage_write_times_seconds_total',
    'counter',
    'Total time spent on write operations.',
    perDisk((stats) => stats.wr_total_time_ns / 1e9),
  ],
  [
    'storage_flush_requests_total',
    'counter',
    'Total storage flush requests.',
    perDisk((stats) => stats.flush_operations),
  ],
  [
    'storage_flush_times_seconds_total',
    'counter',
    'Total time spent on cache flushing.',
    perDisk((stats) => stats.flush_total_time_ns / 1e9),
  ],
  [
    'filesystem_capacity_bytes',
    'gauge',
    'Total VM filesystem capacity in bytes.',
    perFilesystem(({ totalBytes }) => totalBytes),
  ],
  [
    'filesystem_used_bytes',
    'gauge',
    'Used VM filesystem capacity in bytes.',
    perFilesystem(({ usedBytes }) => usedBytes),
  ],
  ['network_receive_bytes_total', 'counter', 'Total network traffic received in bytes.', perCard(({ rx }) => rx.bytes)],
  [
    'network_transmit_bytes_total',
    'counter',
    'Total network traffic transmitted in bytes.',
    perCard(({ tx }) => tx.bytes),
  ],
  [
    'network_receive_packets_total',
    'counter',
    'Total network traffic received packets.',
    perCard(({ rx }) => rx.packets),
  ],
  [
    'network_transmit_packets_total',
    'counter',
    'Total network traffic transmitted packets.',
    perCard(({ tx }) => tx.packets),
  ],
  ['network_receive_errors_total', 'counter', 'Total network received error packets.', perCard(({ rx }) => rx.errors)],
  [
    'network_transmit_errors_total',
    'counter',
    'Total network transmitted error packets.',
    perCard(({ tx }) => tx.errors),
  ],
  [
    'network_receive_packets_dropped_total',
    'counter',
    'The total number of rx packets dropped on vNIC interfaces.',
    perCard(({ rx }) => rx.dropped),
  ],
  [
    'network_transmit_packets_dropped_total',
    'counter',
    'The total number of tx packets dropped on vNIC interfaces.',
    perCard(({ tx }) => tx.dropped),
  ],
  [
    'guest_load_1m',
    'gauge',
    'Guest system load average over 1 minute as reported by the guest agent.',
    one(({ load }) => load?.oneMinute),
  ],
  [
    'guest_load_5m',
    'gauge',
    'Guest system load average over 5 minutes as reported by the guest agent.',
    one(({ load }) => load?.fiveMinutes),
  ],
  [
    'guest_load_15m',
    'gauge',
    'Guest system load average over 15 minutes as reported by the guest agent.',
    one(({ load }) => load?.fifteenMinutes),
  ],
];

/** A family of each name; a guest has a sample of what is known of it. */
export const guestMetrics = (guests: readonly MeasuredGuest[]): ValueFamily[] => [
  {
    name: 'kubevirt_virt_handler_ready_status',
    help: 'Indication for a virt-handler that is ready to serve requests.',
    type: 'gauge',
    samples: [{ labels: {}, value: 1 }],
  },
  ...ROWS.map(
    ([name, type, help, samples]): ValueFamily => ({
      name: `kubevirt_vmi_${name}`,
      help,
      type,
      samples: guests.flatMap((guest) =>
        samples(guest).flatMap(([labels, value]) =>
          value === undefined ? [] : [{ labels: { ...guest.labels, ...labels }, value }],
        ),
      ),
    }),
  ),
];
