/** The figures of guests under upstream's names, labels and types (pkg/monitoring/metrics/virt-handler/domainstats). */
import type { Labels, ValueFamily } from '@coracle/runtime/metrics/metric-family';
import type { GuestStats } from './guest-stats.ts';

export interface MeasuredGuest {
  /** `node`, `namespace` and `name` of the instance, and its own labels. */
  readonly labels: Labels;
  /** What its cards are on, by the MAC address. */
  readonly cards: ReadonlyMap<string, { readonly name: string; readonly network: string }>;
  readonly figures: GuestStats;
}

/** By the name of a family: what it says, and its value. Those that only grow end in `_total`. */
type Values<T> = Readonly<Record<string, readonly [help: string, value: (of: T) => number | undefined]>>;

/** One value a guest. */
const GUEST: Values<GuestStats> = {
  cpu_usage_seconds_total: [
    'Total CPU time spent in all modes (sum of both vcpu and hypervisor usage).',
    ({ process }) => process && process.cpuNanos / 1e9,
  ],
  cpu_user_usage_seconds_total: [
    'Total CPU time spent in user mode.',
    ({ process }) => process && process.userNanos / 1e9,
  ],
  cpu_system_usage_seconds_total: [
    'Total CPU time spent in system mode.',
    ({ process }) => process && process.systemNanos / 1e9,
  ],
  node_cpu_affinity: [
    'Number of VMI CPU affinities to node physical cores.',
    ({ vcpus }) => vcpus.reduce((sum, { processors = 0 }) => sum + processors, 0),
  ],
  memory_domain_bytes: ['The amount of memory in bytes allocated to the domain.', ({ memoryBytes }) => memoryBytes],
  memory_resident_bytes: [
    'Resident set size of the process running the domain.',
    ({ process }) => process?.memoryBytes,
  ],
  memory_actual_balloon_bytes: ['Current balloon size in bytes.', ({ balloonBytes }) => balloonBytes],
  memory_available_bytes: [
    'Amount of usable memory as seen by the domain.',
    ({ balloon }) => balloon['stat-total-memory'],
  ],
  memory_usable_bytes: [
    'The amount of memory which can be reclaimed by balloon without pushing the guest system to swap.',
    ({ balloon }) => balloon['stat-available-memory'],
  ],
  memory_unused_bytes: [
    'The amount of memory left completely unused by the system.',
    ({ balloon }) => balloon['stat-free-memory'],
  ],
  memory_cached_bytes: [
    'The amount of memory that is being used to cache I/O and is available to be reclaimed.',
    ({ balloon }) => balloon['stat-disk-caches'],
  ],
  memory_pgmajfault_total: [
    'The number of page faults when disk IO was required.',
    ({ balloon }) => balloon['stat-major-faults'],
  ],
  memory_pgminfault_total: [
    'The number of other page faults, when disk IO was not required.',
    ({ balloon }) => balloon['stat-minor-faults'],
  ],
  memory_swap_in_traffic_bytes: [
    'The total amount of data read from swap space of the guest in bytes.',
    ({ balloon }) => balloon['stat-swap-in'],
  ],
  memory_swap_out_traffic_bytes: [
    'The total amount of memory written out to swap space of the guest in bytes.',
    ({ balloon }) => balloon['stat-swap-out'],
  ],
  guest_load_1m: [
    'Guest system load average over 1 minute as reported by the guest agent.',
    ({ load }) => load?.oneMinute,
  ],
  guest_load_5m: [
    'Guest system load average over 5 minutes as reported by the guest agent.',
    ({ load }) => load?.fiveMinutes,
  ],
  guest_load_15m: [
    'Guest system load average over 15 minutes as reported by the guest agent.',
    ({ load }) => load?.fifteenMinutes,
  ],
};

/** Of each state; a guest here is asked for one. */
const RUNNING_VCPU: Values<GuestStats['vcpus'][number]> = {
  vcpu_seconds_total: ['Total amount of time spent in each state by each vcpu.', ({ seconds }) => seconds],
};
const VCPU: Values<GuestStats['vcpus'][number]> = {
  vcpu_wait_seconds_total: [
    'Amount of time spent by each vcpu while waiting on I/O.',
    ({ waitSeconds }) => waitSeconds,
  ],
  vcpu_delay_seconds_total: [
    'Amount of time spent by each vcpu waiting in the queue instead of running.',
    ({ delaySeconds }) => delaySeconds,
  ],
};

const DISK: Values<GuestStats['disks'][number]['stats']> = {
  storage_iops_read_total: ['Total number of I/O read operations.', (stats) => stats.rd_operations],
  storage_iops_write_total: ['Total number of I/O write operations.', (stats) => stats.wr_operations],
  storage_read_traffic_bytes_total: ['Total number of bytes read from storage.', (stats) => stats.rd_bytes],
  storage_write_traffic_bytes_total: ['Total number of written bytes.', (stats) => stats.wr_bytes],
  storage_read_times_seconds_total: ['Total time spent on read operations.', (stats) => stats.rd_total_time_ns / 1e9],
  storage_write_times_seconds_total: ['Total time spent on write operations.', (stats) => stats.wr_total_time_ns / 1e9],
  storage_flush_requests_total: ['Total storage flush requests.', (stats) => stats.flush_operations],
  storage_flush_times_seconds_total: [
    'Total time spent on cache flushing.',
    (stats) => stats.flush_total_time_ns / 1e9,
  ],
};

const FILESYSTEM: Values<GuestStats['filesystems'][number]> = {
  filesystem_capacity_bytes: ['Total VM filesystem capacity in bytes.', ({ totalBytes }) => totalBytes],
  filesystem_used_bytes: ['Used VM filesystem capacity in bytes.', ({ usedBytes }) => usedBytes],
};

const CARD: Values<GuestStats['cards'][number]> = {
  network_receive_bytes_total: ['Total network traffic received in bytes.', ({ rx }) => rx.bytes],
  network_transmit_bytes_total: ['Total network traffic transmitted in bytes.', ({ tx }) => tx.bytes],
  network_receive_packets_total: ['Total network traffic received packets.', ({ rx }) => rx.packets],
  network_transmit_packets_total: ['Total network traffic transmitted packets.', ({ tx }) => tx.packets],
  network_receive_errors_total: ['Total network received error packets.', ({ rx }) => rx.errors],
  network_transmit_errors_total: ['Total network transmitted error packets.', ({ tx }) => tx.errors],
  network_receive_packets_dropped_total: [
    'The total number of rx packets dropped on vNIC interfaces.',
    ({ rx }) => rx.dropped,
  ],
  network_transmit_packets_dropped_total: [
    'The total number of tx packets dropped on vNIC interfaces.',
    ({ tx }) => tx.dropped,
  ],
};

/** Each part that is measured, with the labels it goes by. */
type Parts<T> = (guest: MeasuredGuest) => readonly (readonly [labels: Labels, part: T])[];

const vcpus: Parts<GuestStats['vcpus'][number]> = ({ figures }) =>
  figures.vcpus.map((vcpu) => [{ id: String(vcpu.id) }, vcpu]);
const disks: Parts<GuestStats['disks'][number]['stats']> = ({ figures }) =>
  figures.disks.map(({ name, stats }) => [{ drive: name }, stats]);
const cards: Parts<GuestStats['cards'][number]> = ({ figures, cards: known }) =>
  figures.cards.flatMap((traffic) => {
    const card = known.get(traffic.mac);
    return card ? [[{ interface: card.name, network: card.network }, traffic] as const] : [];
  });
/** Of those with equal labels the last. */
const filesystems: Parts<GuestStats['filesystems'][number]> = ({ figures }) => {
  const labelled = figures.filesystems.map((filesystem) => {
    const { diskName, mountPoint, fileSystemType } = filesystem;
    const labels = { disk_name: diskName, mount_point: mountPoint, file_system_type: fileSystemType };
    return [JSON.stringify(labels), [labels, filesystem]] as const;
  });
  return [...new Map(labelled).values()];
};

function familiesOf<T>(guests: readonly MeasuredGuest[], values: Values<T>, parts: Parts<T>): ValueFamily[] {
  const found = guests.flatMap((guest) =>
    parts(guest).map(([labels, part]) => ({ labels: { ...guest.labels, ...labels }, part })),
  );
  return Object.entries(values).map(([name, [help, measure]]) => ({
    name: `kubevirt_vmi_${name}`,
    help,
    type: name.endsWith('_total') ? 'counter' : 'gauge',
    samples: found.flatMap(({ labels, part }) => {
      const value = measure(part);
      return value === undefined ? [] : [{ labels, value }];
    }),
  }));
}

/** A family of each name; a guest has a sample of what is known of it. */
export const guestMetrics = (guests: readonly MeasuredGuest[]): ValueFamily[] => [
  {
    name: 'kubevirt_virt_handler_ready_status',
    help: 'Indication for a virt-handler that is ready to serve requests.',
    type: 'gauge',
    samples: [{ labels: {}, value: 1 }],
  },
  ...familiesOf(guests, GUEST, (guest) => [[{}, guest.figures]]),
  ...familiesOf(guests, RUNNING_VCPU, (guest) =>
    vcpus(guest).map(([labels, vcpu]) => [{ ...labels, state: 'running' }, vcpu]),
  ),
  ...familiesOf(guests, VCPU, vcpus),
  ...familiesOf(guests, DISK, disks),
  ...familiesOf(guests, FILESYSTEM, filesystems),
  ...familiesOf(guests, CARD, cards),
];
