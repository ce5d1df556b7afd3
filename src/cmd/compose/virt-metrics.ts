/** KubeVirt's families of `/metrics`, read off the store: whatever process the controllers run in. */
import {
  VIRTUAL_MACHINE_INSTANCE_MIGRATIONS,
  VIRTUAL_MACHINE_INSTANCES,
  type VirtualMachineInstance,
  type VirtualMachineInstanceMigration,
} from '../../api/kinds/kubevirt/kubevirt.ts';
import type { Clock } from '../../base/clock/clock.ts';
import type { MetricFamily } from '../../base/metrics/metric-family.ts';
import { evacuationMetrics } from '../../control/evacuation/evacuation-metrics.ts';
import { migrationMetrics } from '../../control/migration/migration-metrics.ts';
import type { ObjectStore } from '../../server/cache/object-store.ts';

/** One look at every instance and migration there is. */
export function virtMetrics(store: Pick<ObjectStore, 'list'>, clock: Clock): MetricFamily[] {
  const all = <T>({ group, resource }: { readonly group: string; readonly resource: string }): T[] =>
    store.list(`${group}/${resource}`).items.map(({ object }) => object as unknown as T);
  const vmis = all<VirtualMachineInstance>(VIRTUAL_MACHINE_INSTANCES);
  const migrations = all<VirtualMachineInstanceMigration>(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS);
  return [...evacuationMetrics(vmis, clock.now()), ...migrationMetrics(vmis, migrations)];
}
