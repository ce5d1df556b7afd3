import type { MachinePlan } from './machine-plan.ts';
import type { PlanContext } from './plan-context.ts';
import { unservedFields } from './unserved-fields.ts';

/** Names what no other configurator looked at: asked for, accepted by the API, not offered here. */
export function refuseRest({ vmi }: PlanContext, plan: MachinePlan): void {
  for (const { text } of unservedFields(vmi.spec)) plan.unsupported.push(text);
}
