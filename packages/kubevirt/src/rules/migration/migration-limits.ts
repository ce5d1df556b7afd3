/** The limits of one migration: what its state says, else upstream's defaults. */

import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import { quantityValue, readQuantity } from '@coracle/apimachinery/quantity/quantity';
import type { MigrationOptions } from '../../kinds/kinds.ts';

export interface MigrationLimits {
  /** Bytes a second; 0 = no limit. */
  readonly bandwidth: number;
  /** For each GiB that is to be moved. */
  readonly completionMsPerGiB: number;
  readonly progressMs: number;
  readonly downtimeMs: number;
  readonly autoConverge: boolean;
  /** The guest may be paused rather than the migration given up. */
  readonly workloadDisruption: boolean;
  /** Where the guest may be disrupted it goes on to post-copy rather than being paused. */
  readonly postCopy: boolean;
}

/** Reads the limits (KubeVirt's `configuration.migrations` with its defaults: 150 s per GiB, 150 s, 900 ms). */
export function migrationLimits(options: DeepReadonly<MigrationOptions> | undefined): MigrationLimits {
  const number = (value: unknown, fallback: number): number => {
    const read = Number(value ?? fallback);
    return Number.isFinite(read) && read >= 0 ? read : fallback;
  };
  const bandwidth = readQuantity(options?.bandwidthPerMigration);
  return {
    bandwidth: bandwidth === undefined ? 0 : Math.min(Math.max(0, quantityValue(bandwidth)), Number.MAX_SAFE_INTEGER),
    completionMsPerGiB: number(options?.completionTimeoutPerGiB, 150) * 1000,
    progressMs: number(options?.progressTimeout, 150) * 1000,
    downtimeMs: number(options?.maxDowntimeMs, 900),
    autoConverge: options?.allowAutoConverge === true,
    workloadDisruption: options?.allowWorkloadDisruption ?? options?.allowPostCopy ?? false,
    postCopy: options?.allowPostCopy === true,
  };
}

const GIB = 1024 ** 3;

/** How long the migration of so many bytes may take. A begun GiB counts whole. */
export const completionMs = (limits: MigrationLimits, bytes: number): number =>
  limits.completionMsPerGiB * Math.max(1, Math.ceil(bytes / GIB));

export interface Progress {
  /** Since the stream began. */
  readonly elapsedMs: number;
  /** Since less was left than ever before. */
  readonly sinceProgressMs: number;
  readonly acceptableMs: number;
  readonly paused: boolean;
  /** Memory is being sent: disks go before it, and while they do there is nothing to switch over to. */
  readonly streaming: boolean;
  /** The switch to post-copy was asked for: from then on nothing is watched any more. */
  readonly switched: boolean;
}

/** What the monitor of a migration does: upstream's rules. */
export type MonitorStep =
  | { readonly act: 'go-on' }
  | { readonly act: 'pause' }
  | { readonly act: 'post-copy' }
  | { readonly act: 'abort'; readonly reason: string };

export function monitorStep(limits: MigrationLimits, progress: Progress): MonitorStep {
  const { elapsedMs, acceptableMs, sinceProgressMs, paused, streaming, switched } = progress;
  if (switched) return { act: 'go-on' };
  // Upstream: no limit when the option is 0. A paused guest changes nothing any more: it gets the same time once more.
  const late = limits.completionMsPerGiB > 0 && elapsedMs > acceptableMs * (paused ? 2 : 1);
  const disrupt = late && limits.workloadDisruption && !paused;
  if (disrupt && !limits.postCopy) return { act: 'pause' };
  if (disrupt && streaming) return { act: 'post-copy' };
  const abort = (what: string, ms: number): MonitorStep => ({
    act: 'abort',
    reason: `Live migration ${what} ${Math.round(ms / 1000)} seconds and has been aborted`,
  });
  if (limits.progressMs > 0 && sinceProgressMs > limits.progressMs) return abort('stuck for', sinceProgressMs);
  return late && !disrupt ? abort('is not completed after', elapsedMs) : { act: 'go-on' };
}
