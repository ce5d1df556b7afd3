/** The PodDisruptionBudget an instance should have: pure. */

import { controllerReference } from '@coracle/apimachinery/meta/controller-reference';
import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import { hasEnded, isDeleting } from '@coracle/apimachinery/meta/object-state';
import type { PodDisruptionBudget } from '@coracle/apimachinery/types/types';
import type { EvictionStrategy, ReadonlyMigration, ReadonlyVmi } from '../../kinds/kubevirt.ts';
import { evictionStrategyOf, isMigratable } from '../../rules/eviction/eviction-decision.ts';
import { CREATED_BY_LABEL } from '../../rules/launcher/launcher-labels.ts';

export type ReadonlyBudget = DeepReadonly<PodDisruptionBudget>;

export const BUDGET_PREFIX = 'kubevirt-disruption-budget-';

/** How many Pods must stay: undefined when the instance needs no budget. Two while it is between two nodes. */
export function wantedBudget(
  vmi: ReadonlyVmi,
  { clusterStrategy, unfinished }: { clusterStrategy: EvictionStrategy; unfinished: readonly ReadonlyMigration[] },
): 1 | 2 | undefined {
  if (isDeleting(vmi) || hasEnded(vmi)) return undefined;
  const strategy = evictionStrategyOf(vmi, { evictionStrategy: clusterStrategy });
  if (strategy === 'None' || (strategy === 'LiveMigrateIfPossible' && !isMigratable(vmi))) return undefined;
  return unfinished.length > 0 ? 2 : 1;
}

/** The budget as it is created. */
export const budgetFor = (vmi: ReadonlyVmi, minAvailable: number): PodDisruptionBudget => ({
  apiVersion: 'policy/v1',
  kind: 'PodDisruptionBudget',
  metadata: {
    generateName: BUDGET_PREFIX,
    namespace: vmi.metadata.namespace ?? '',
    ownerReferences: [controllerReference(vmi)],
  },
  spec: { minAvailable, selector: { matchLabels: { [CREATED_BY_LABEL]: vmi.metadata.uid ?? '' } } },
});
