/** storage.k8s.io and resource.k8s.io; claims and volumes are of the core group. */
import { setClaimOfDevicesDefaults, setDeviceTemplateDefaults } from '../defaults/cluster.ts';
import { validateStorageClass } from '../validation/storage.ts';
import { storageClassWarnings } from '../warnings/storage.ts';
import type { GroupKinds } from './builtin-kind.ts';

export const STORAGE: GroupKinds = {
  csidrivers: {
    generation: 'spec',
    allowUnconditionalUpdate: false,
    deleteReturnsObject: true,
  },
  csinodes: { allowUnconditionalUpdate: false, deleteReturnsObject: true },
  csistoragecapacities: { allowUnconditionalUpdate: false, deleteReturnsObject: true },
  storageclasses: {
    validate: validateStorageClass,
    warningsOnCreate: storageClassWarnings,
    warningsOnUpdate: storageClassWarnings,
    deleteReturnsObject: true,
  },
  volumeattachments: { statusMetadata: 'reset', allowUnconditionalUpdate: false, deleteReturnsObject: true },
  volumeattributesclasses: { deleteReturnsObject: true },
};

export const DEVICES: GroupKinds = {
  deviceclasses: { generation: 'spec', deleteReturnsObject: true },
  resourceclaims: { setDefaults: setClaimOfDevicesDefaults, statusMetadata: 'reset', deleteReturnsObject: true },
  resourceclaimtemplates: { setDefaults: setDeviceTemplateDefaults, deleteReturnsObject: true },
  resourceslices: { generation: 'spec', deleteReturnsObject: true },
};
