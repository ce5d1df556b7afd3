/** The cluster's settings of live migrations, every knob with a value (pkg/virt-config, defaults of `migrations`). */

import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import type { MigrationConfiguration, MigrationOptions } from '../../kinds/kinds.ts';
import type { ReadonlyKubeVirt } from '../../kinds/kubevirt.ts';

export interface MigrationSettings {
  readonly parallelMigrationsPerCluster: number;
  readonly parallelOutboundMigrationsPerNode: number;
  readonly nodeDrainTaintKey: string;
  /** What a migration is given in `migrationState.migrationConfiguration`. */
  readonly options: MigrationOptions;
}

const DEFAULTS = {
  allowAutoConverge: false,
  allowPostCopy: false,
  bandwidthPerMigration: '0',
  completionTimeoutPerGiB: 150,
  disableTLS: false,
  matchSELinuxLevelOnMigration: true,
  maxDowntimeMs: 900,
  nodeDrainTaintKey: 'kubevirt.io/drain',
  parallelMigrationsPerCluster: 5,
  parallelOutboundMigrationsPerNode: 2,
  progressTimeout: 150,
  unsafeMigrationOverride: false,
  utilityVolumesTimeout: 150,
};

/** Reads the settings; without a KubeVirt object they are the defaults. */
export function migrationSettings(kubevirt: ReadonlyKubeVirt | undefined): MigrationSettings {
  const written = kubevirt?.spec?.configuration?.migrations ?? {};
  const copy: MigrationConfiguration = cloneJson(written);
  const { crossClusterNetwork: _, decentralizedLiveMigrationDatapath: __, ...own } = copy;
  const options = { ...DEFAULTS, ...own } as MigrationOptions;
  // Whoever allows post-copy allows the pause it may bring, unless set otherwise.
  options.allowWorkloadDisruption ??= options.allowPostCopy ?? false;
  return {
    parallelMigrationsPerCluster: options.parallelMigrationsPerCluster ?? DEFAULTS.parallelMigrationsPerCluster,
    parallelOutboundMigrationsPerNode:
      options.parallelOutboundMigrationsPerNode ?? DEFAULTS.parallelOutboundMigrationsPerNode,
    nodeDrainTaintKey: options.nodeDrainTaintKey || DEFAULTS.nodeDrainTaintKey,
    options,
  };
}
