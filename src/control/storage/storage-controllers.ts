/** The controllers of volumes and snapshots by the names that upstream gives them: what `--controllers` chooses from. */
import type { PolicyRule } from '../../api/kinds/builtin/access-types.ts';
import type { ControllerEnvironment, Runnable } from '../../client/controller/environment.ts';
import { createVolumeController, volumeControllerRules } from './volume-controller.ts';

export interface StorageController {
  readonly name: string;
  /** The rights it needs, and no more. */
  readonly rules: readonly PolicyRule[];
  readonly create: (environment: ControllerEnvironment) => Runnable;
}

/** All of them, in no particular order. */
export const storageControllers: readonly StorageController[] = [
  { name: 'persistentvolume-binder-controller', rules: volumeControllerRules, create: createVolumeController },
];
