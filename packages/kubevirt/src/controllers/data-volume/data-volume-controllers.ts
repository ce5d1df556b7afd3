/** The controllers of DataVolumes, as one component. */
import type { Runnable } from '@coracle/client/controller/environment';
import { type CdiConfigOptions, createCdiConfigController } from './cdi-config-controller.ts';
import type { ClaimFillingOptions } from './claim-filling.ts';
import { createDataSourceController } from './data-source-controller.ts';
import { createDataVolumeController } from './data-volume-controller.ts';
import { createImportCronController } from './import-cron-controller.ts';
import { createStorageProfileController } from './storage-profile-controller.ts';

/** Makes the controllers; nothing happens before `start`. */
export function createDataVolumeControllers(options: ClaimFillingOptions & CdiConfigOptions): Runnable {
  const controllers = [
    createDataVolumeController(options),
    createDataSourceController(options),
    createImportCronController(options),
    createStorageProfileController(options),
    createCdiConfigController(options),
  ];
  return {
    name: 'data-volume',
    start: async (signal) => {
      await Promise.all(controllers.map((controller) => controller.start(signal)));
    },
  };
}
