/** KubeVirt's families of `/metrics`, read off the store: whatever process the controllers run in. */
import {
  VIRTUAL_MACHINE_INSTANCE_MIGRATIONS,
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINES,
  type VirtualMachine,
  type VirtualMachineInstance,
  type VirtualMachineInstanceMigration,
} from '../../api/kinds/kubevirt/kubevirt.ts';
import type { Clock } from '../../base/clock/clock.ts';
import type { MetricFamily } from '../../base/metrics/metric-family.ts';
import { evacuationMetrics } from '../../control/evacuation/evacuation-metrics.ts';
import { createPhaseTimes, migrationMetrics } from '../../control/migration/migration-metrics.ts';
import { identityMetrics } from '../../domain/identity/identity-metrics.ts';
import type { Change, ObjectStore } from '../../server/cache/object-store.ts';

/** Begins to count; each call of what it returns is one look at every machine, instance and migration there is. */
export function createVirtMetrics(
  store: Pick<ObjectStore, 'list' | 'watch' | 'revision'>,
  clock: Clock,
): () => MetricFamily[] {
  const prefixOf = ({ group, resource }: { readonly group: string; readonly resource: string }): string =>
    `${group}/${resource}`;
  const all = <T>(type: { readonly group: string; readonly resource: string }): T[] =>
    store.list(prefixOf(type)).items.map(({ object }) => object as unknown as T);
  const times = createPhaseTimes();
  store.watch(prefixOf(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS), store.revision(), (changes) => {
    const of = (stored: Change['current'] | undefined): VirtualMachineInstanceMigration | undefined =>
      stored?.object as unknown as VirtualMachineInstanceMigration | undefined;
    for (const { type, previous, current } of changes)
      if (type === 'MODIFIED') times.observe(of(previous), of(current) as VirtualMachineInstanceMigration);
  });
  return () => {
    const vmis = all<VirtualMachineInstance>(VIRTUAL_MACHINE_INSTANCES);
    const migrations = all<VirtualMachineInstanceMigration>(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS);
    return [
      ...evacuationMetrics(vmis, clock.now()),
      ...migrationMetrics(vmis, migrations),
      identityMetrics(all<VirtualMachine>(VIRTUAL_MACHINES), vmis),
      times.family(),
    ];
  };
}
