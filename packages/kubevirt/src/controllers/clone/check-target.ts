/** Looks for the target: with it the clone has succeeded, and a clone whose target is gone goes too. */
import { formatTime } from '@coracle/apimachinery/meta/object';
import { cloneConditions, SUCCEEDED } from '../../rules/clone/clone-conditions.ts';
import type { CloneStep } from './clone-pass.ts';

export const checkTarget: CloneStep = async ({ clone, status, cluster, record, now }) => {
  if (status.phase !== 'CreatingTargetVM' && status.phase !== 'Succeeded') return 'stop';
  const name = status.targetName ?? '';
  if ((await cluster.machine(name)) === undefined) {
    // A restore is complete only when its target is there: somebody has deleted it since.
    await cluster.deleteClone(clone);
    return 'stop';
  }
  if (status.phase === 'Succeeded') return 'continue';
  record('Normal', 'TargetVMCreated', `created target VM ${name} for clone ${clone.metadata.name}`);
  status.phase = 'Succeeded';
  status.creationTime = formatTime(now);
  status.conditions = cloneConditions(clone.status?.conditions, SUCCEEDED, now);
  // Nothing is let go before it is stored that it is not needed any more: else the next pass would miss it.
  return 'stop';
};
