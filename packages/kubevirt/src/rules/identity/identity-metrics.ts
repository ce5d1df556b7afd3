/** Machines that share a firmware UUID, as samples: pure. */

import type { ValueFamily } from '@coracle/runtime/metrics/metric-family';
import type { ReadonlyVm, ReadonlyVmi } from '../../kinds/kubevirt.ts';
import { findSharedUuids } from './shared-uuids.ts';

/** One sample for each machine whose UUID another has; no sample where all is well. */
export const identityMetrics = (vms: readonly ReadonlyVm[], vmis: readonly ReadonlyVmi[]): ValueFamily => ({
  name: 'kubevirt_firmware_uuid_machines',
  help: 'Machines that have the firmware UUID of this one, itself included, where there is more than one.',
  type: 'gauge',
  samples: findSharedUuids(vms, vmis).flatMap(({ uuid, machines }) =>
    machines.map(({ kind, namespace, name }) => ({
      labels: { kind, namespace, name, uuid },
      value: machines.length,
    })),
  ),
});
