/** KubeVirt's families of `/metrics`, read off the store: whatever process the controllers run in. */

import type { Change, ObjectStore } from '@coracle/apiserver/cache/object-store';
import { evacuationMetrics } from '@coracle/kubevirt/controllers/evacuation/evacuation-metrics';
import { createPhaseTimes, migrationMetrics } from '@coracle/kubevirt/controllers/migration/migration-metrics';
import {
  VIRTUAL_MACHINE_INSTANCE_MIGRATIONS,
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINES,
  type VirtualMachine,
  type VirtualMachineInstance,
  type VirtualMachineInstanceMigration,
} from '@coracle/kubevirt/kinds/kubevirt';
import { identityMetrics } from '@coracle/kubevirt/rules/identity/identity-metrics';
import type { Clock } from '@coracle/runtime/clock/clock';
import type { MetricFamily } from '@coracle/runtime/metrics/metric-family';

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
