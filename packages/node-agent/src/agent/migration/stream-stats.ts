/** How far a guest that is being sent has come: what QEMU counts, and upstream's metrics of it (virt-handler). */
import type { Labels, ValueFamily } from '@coracle/runtime/metrics/metric-family';
import type { MigrationInfo } from '../../qmp/commands.ts';

export interface StreamStats {
  /** Bytes, memory and disks. */
  readonly total: number;
  readonly processed: number;
  readonly remaining: number;
  /** Bytes a second. */
  readonly dirtyRate: number;
  readonly transferRate: number;
}

interface BlockJob {
  readonly len: number;
  readonly offset: number;
}

/** Reads the figures; undefined while QEMU knows nothing of the memory yet and no disk is on its way. */
export function streamStats({ ram }: MigrationInfo, disks: readonly BlockJob[]): StreamStats | undefined {
  if (!ram && disks.length === 0) return undefined;
  const sum = (of: (disk: BlockJob) => number): number => disks.reduce((all, disk) => all + of(disk), 0);
  return {
    total: (ram?.total ?? 0) + sum(({ len }) => len),
    processed: (ram?.transferred ?? 0) + sum(({ offset }) => offset),
    remaining: (ram?.remaining ?? 0) + sum(({ len, offset }) => Math.max(0, len - offset)),
    dirtyRate: (ram?.['dirty-pages-rate'] ?? 0) * (ram?.['page-size'] ?? 0),
    // Megabits a second.
    transferRate: ((ram?.mbps ?? 0) * 1_000_000) / 8,
  };
}

const FAMILIES: readonly (readonly [keyof StreamStats, string, ValueFamily['type'], string])[] = [
  ['total', 'data_bytes_total', 'counter', 'The total Guest OS data to be migrated to the new VM.'],
  ['processed', 'data_processed_bytes', 'gauge', 'The total Guest OS data processed and migrated to the new VM.'],
  ['remaining', 'data_remaining_bytes', 'gauge', 'The remaining guest OS data to be migrated to the new VM.'],
  ['dirtyRate', 'dirty_memory_rate_bytes', 'gauge', 'The rate of memory being dirty in the Guest OS.'],
  ['transferRate', 'memory_transfer_rate_bytes', 'gauge', 'The rate at which the memory is being transferred.'],
];

export interface SentGuest {
  /** `node`, `namespace` and `name` of the instance. */
  readonly labels: Labels;
  readonly figures: StreamStats;
}

/** One sample of each for each guest that is being sent. */
export const streamMetrics = (sent: readonly SentGuest[]): ValueFamily[] =>
  FAMILIES.map(([figure, name, type, help]) => ({
    name: `kubevirt_vmi_migration_${name}`,
    help,
    type,
    samples: sent.map(({ labels, figures }) => ({ labels, value: figures[figure] })),
  }));
