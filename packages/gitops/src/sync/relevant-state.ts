/** What of a sync, and of the objects that it watches, makes a difference. */

import type { DeepReadonly, ReadonlyObject } from '@coracle/apimachinery/meta/object';
import { healthOf } from '../apply/health.ts';
import type { ResourceStatus, Sync } from '../kinds/kinds.ts';
import type { Declared } from '../plan/declared.ts';
import { refId } from '../plan/object-ref.ts';
import { DELETE_WITH_DEPENDENTS, PROPAGATION_POLICY } from '../status/metadata-keys.ts';

/** What of a sync makes a difference: it writes its status itself. */
export const relevantState = (object: DeepReadonly<Sync> | undefined): string =>
  JSON.stringify([
    object?.metadata.uid,
    object?.metadata.generation,
    object?.metadata.deletionTimestamp,
    object?.metadata.annotations?.[PROPAGATION_POLICY],
    object?.metadata.annotations?.[DELETE_WITH_DEPENDENTS],
  ]);

/** Statuses with the health of what was applied, as it is now. */
export function withHealth(
  statuses: readonly ResourceStatus[],
  enabled: readonly Declared[],
  live: (one: Declared) => ReadonlyObject | undefined,
): ResourceStatus[] {
  const byId = new Map(enabled.map((one) => [refId(one.ref), one]));
  return statuses.map((old): ResourceStatus => {
    const one = byId.get(refId(old));
    if (!one || old.strategy !== 'Apply' || old.actuation !== 'Succeeded') return old;
    const health = healthOf(live(one));
    const reconcile = health === 'Current' ? 'Succeeded' : health === 'InProgress' ? 'Pending' : 'Failed';
    return { ...old, status: health, reconcile };
  });
}
