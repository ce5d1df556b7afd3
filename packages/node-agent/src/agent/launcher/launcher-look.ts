/** Where a launcher begins: what is on disk of its guest, and what the Pod says of its end. */
import type { ReadonlyPod } from '@coracle/apimachinery/types/types';
import { dropHalfResumed } from '../memory/go-on.ts';
import { simulatesCrash } from './functional-test-hooks.ts';
import { findOrphan } from './launcher-orphan.ts';
import type { LauncherState } from './launcher-state.ts';
import { ended, type StageOutcomes } from './launcher-step.ts';
import { startFailed } from './start-failure.ts';
import { ownUid } from './vm-namespace.ts';
import type { VmResult } from './vm-result.ts';

/** Starts nothing and ends nothing. Rejects with what the file system says, or with the end of the agent. */
export async function lookAround(launcher: LauncherState): Promise<StageOutcomes['look']> {
  const { environment, record, pod } = launcher;
  const buried = await environment.tombstones.has(record?.podUid ?? pod?.metadata.uid ?? '');
  // What is left behind a tombstone is the Pod; the instance was reported before it was set.
  launcher.endedBefore = buried !== undefined;
  if (buried) return ended(buried);
  await dropHalfResumed(launcher);
  if (launcher.record) return { type: 'recorded', record: launcher.record };
  const end = endOf(launcher.pod);
  if (end) {
    launcher.endedBefore = true;
    const orphan = await findOrphan(launcher, await ownUid(launcher));
    return orphan ? { type: 'orphaned', orphan } : ended(end);
  }
  if (simulatesCrash(launcher.pod)) return ended(startFailed(launcher, 'Crashed', 'simulated crash of the launcher'));
  return { type: 'unstarted' };
}

/** How a Pod ended of which nothing is left here but the object: it is not started again. Undefined while it lives. */
function endOf(pod: ReadonlyPod | undefined): VmResult | undefined {
  const { phase, reason, message = '' } = pod?.status ?? {};
  switch (phase) {
    case 'Succeeded':
      return { phase, reason: reason ?? 'Completed', message, exitCode: 0 };
    case 'Failed':
      return { phase, reason: reason ?? 'Failed', message, exitCode: 1 };
    default:
      return undefined;
  }
}
