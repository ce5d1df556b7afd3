/** The way of a clone, in order. A clone that has failed stays as it is. */
import { isDeleting } from '@coracle/apimachinery/meta/object-state';
import { cloneConditions, PROCESSING } from '../../rules/clone/clone-conditions.ts';
import { checkRestore } from './check-restore.ts';
import { checkSnapshot } from './check-snapshot.ts';
import { checkTarget } from './check-target.ts';
import type { ClonePass, CloneStep } from './clone-pass.ts';
import { releaseHelpers } from './release-helpers.ts';
import { startRestore } from './start-restore.ts';
import { startSnapshot } from './start-snapshot.ts';

const STEPS: readonly CloneStep[] = [
  startSnapshot,
  checkSnapshot,
  startRestore,
  checkRestore,
  checkTarget,
  releaseHelpers,
];

/** Takes as many steps as there are to take now. What they make of `pass.status` counts also when one throws. */
export async function takeSteps(pass: ClonePass): Promise<void> {
  const { clone, status, now } = pass;
  if (isDeleting(clone) || status.phase === 'Failed') return;
  if (status.phase !== 'Succeeded') status.conditions = cloneConditions(clone.status?.conditions, PROCESSING, now);
  for (const step of STEPS) if ((await step(pass)) === 'stop') return;
}
