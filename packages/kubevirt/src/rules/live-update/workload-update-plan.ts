/** Which migrations the updates of running instances need (pkg/virt-controller/watch/workload-updater): pure. */

import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import type { VirtualMachineInstance, VirtualMachineInstanceMigration } from '../../kinds/kubevirt.ts';
import { type CarrierFacts, carrierOf } from './carrier.ts';
import { hasPendingCondition, isMoving } from './pending-changes.ts';

type Vmi = DeepReadonly<VirtualMachineInstance>;
type Migration = DeepReadonly<VirtualMachineInstanceMigration>;

/** On the migrations made here. */
export const WORKLOAD_UPDATE_ANNOTATION = 'kubevirt.io/workloadUpdateMigration';
/** On an instance whose update is to be taken back. */
export const ABORTION_ANNOTATION = 'kubevirt.io/testWorkloadUpdateMigrationAbortion';

export interface WorkloadUpdateFacts extends CarrierFacts {
  readonly instances: readonly Vmi[];
  readonly migrations: readonly Migration[];
  readonly parallelMigrationsPerCluster: number;
}

export interface WorkloadUpdatePlan {
  /** Instances to make a migration for, as many as may run. */
  readonly migrate: readonly Vmi[];
  /** Migrations of updates that nobody wants any more. */
  readonly abort: readonly Migration[];
}

const isUnfinished = ({ status }: Migration): boolean => status?.phase !== 'Succeeded' && status?.phase !== 'Failed';
/** Has a target Pod, or is about to: what counts against the limit. */
const isRunning = ({ status }: Migration): boolean => !!status?.phase && status.phase !== 'Pending';

export function workloadUpdatePlan(facts: WorkloadUpdateFacts): WorkloadUpdatePlan {
  const unfinished = facts.migrations.filter(isUnfinished);
  const of = ({ metadata }: Vmi): Migration[] =>
    unfinished.filter((one) => one.metadata.namespace === metadata.namespace && one.spec.vmiName === metadata.name);
  const migrate: Vmi[] = [];
  const abort: Migration[] = [];
  for (const vmi of facts.instances) {
    if (vmi.status?.phase !== 'Running' || vmi.metadata.deletionTimestamp !== undefined) continue;
    const own = of(vmi);
    const isCalledOff = vmi.metadata.annotations?.[ABORTION_ANNOTATION] !== undefined;
    const isWanted = hasPendingCondition(vmi) && !isCalledOff;
    // Once the guest is on its target the condition is on its way out: that is no abortion.
    const hasArrived = vmi.status.migrationState?.targetNodeDomainReadyTimestamp != null;
    if (!isWanted && (isCalledOff || !hasArrived))
      abort.push(
        ...own.filter(
          ({ metadata }) =>
            metadata.annotations?.[WORKLOAD_UPDATE_ANNOTATION] !== undefined &&
            metadata.deletionTimestamp === undefined,
        ),
      );
    if (isWanted && own.length === 0 && !isMoving(vmi) && carrierOf(vmi, facts) === 'migration') migrate.push(vmi);
  }
  const free = Math.max(0, facts.parallelMigrationsPerCluster - unfinished.filter(isRunning).length);
  return { migrate: migrate.slice(0, free), abort };
}
