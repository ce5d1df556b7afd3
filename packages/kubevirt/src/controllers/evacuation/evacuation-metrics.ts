/** What waits for an eviction, and for how long, as samples: pure. */

import { conditionOf } from '@coracle/apimachinery/meta/object-state';
import type { ValueFamily } from '@coracle/runtime/metrics/metric-family';
import type { ReadonlyVmi } from '../../kinds/kubevirt.ts';

/** One sample for each marked instance. `now` in milliseconds. */
export function evacuationMetrics(vmis: readonly ReadonlyVmi[], now: number): ValueFamily[] {
  const marked = vmis.filter(({ status }) => status?.evacuationNodeName);
  return [
    {
      name: 'kubevirt_vmi_evacuation_mark_age_seconds',
      help: 'Seconds since the eviction of an instance was requested that has not left its node yet.',
      type: 'gauge',
      samples: marked.map((vmi) => ({
        labels: {
          node: vmi.status?.evacuationNodeName ?? '',
          namespace: vmi.metadata.namespace ?? '',
          name: vmi.metadata.name ?? '',
          strategy: vmi.spec.evictionStrategy ?? '',
        },
        value: Math.max(0, (now - markedAt(vmi, now)) / 1000),
      })),
    },
  ];
}

/** The condition is set in the same breath; until it is, the mark is new. */
function markedAt(vmi: ReadonlyVmi, now: number): number {
  const since = conditionOf(vmi, 'EvictionRequested')?.lastTransitionTime;
  return since ? Date.parse(since) : now;
}
