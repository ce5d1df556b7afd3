import type { MachinePlan, PlannedInterface } from './machine-plan.ts';
import { freePlace } from './plug-room.ts';

/**
 * The card at the place where it is plugged into a guest that runs; undefined where there is none. A card that is plugged is
 * nothing to boot from.
 */
export function plugCard(plan: MachinePlan, wanted: PlannedInterface): PlannedInterface | undefined {
  const place = freePlace(plan, 'virtio');
  if (!place) return undefined;
  const { bootIndex: _, ...card } = wanted;
  return { ...card, place };
}
