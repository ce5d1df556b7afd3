/** The controllers of volumes and snapshots by the names that `--controllers` chooses from. */
import type { PolicyRule } from '@coracle/apimachinery/types/types';
import type { ControllerEnvironment, Runnable } from '@coracle/client/controller/environment';
import { createDeleterController, deleterRules } from './deleter-controller.ts';
import { createProvisionerController, provisionerRules } from './provisioner-controller.ts';
import type { PoolControllerOptions } from './provisioner-steps.ts';
import { createResizerController, resizerRules } from './resizer-controller.ts';
import { createSnapshotController, snapshotControllerRules } from './snapshot-controller.ts';
import { createSnapshotterController, snapshotterRules } from './snapshotter-controller.ts';
import { createSweeperController, sweeperRules } from './sweeper-controller.ts';
import { createVolumeController, volumeControllerRules } from './volume-controller.ts';

interface Named {
  readonly name: string;
  /** The rights it needs, and no more. */
  readonly rules: readonly PolicyRule[];
}

export interface StorageController extends Named {
  readonly create: (environment: ControllerEnvironment) => Runnable;
}

/** One that calls pools: it runs where agents can be reached. */
export interface PoolController extends Named {
  readonly create: (options: PoolControllerOptions) => Runnable;
}

export const storageControllers: readonly StorageController[] = [
  { name: 'persistentvolume-binder-controller', rules: volumeControllerRules, create: createVolumeController },
  { name: 'volume-snapshot-controller', rules: snapshotControllerRules, create: createSnapshotController },
];

export const poolControllers: readonly PoolController[] = [
  { name: 'local-volume-provisioner', rules: provisionerRules, create: createProvisionerController },
  { name: 'local-volume-deleter', rules: deleterRules, create: createDeleterController },
  { name: 'local-volume-sweeper', rules: sweeperRules, create: createSweeperController },
  { name: 'local-volume-resizer', rules: resizerRules, create: createResizerController },
  { name: 'local-volume-snapshotter', rules: snapshotterRules, create: createSnapshotterController },
];
