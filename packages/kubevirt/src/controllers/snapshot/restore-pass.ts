/** What one pass over a restore carries from step to step. */

import type { Client } from '@coracle/client/client';
import type { EventRecorder } from '@coracle/client/events/recorder';
import type { ReadonlyContent, ReadonlyVm, VirtualMachineRestore } from '../../kinds/kubevirt.ts';
import type { SnapshotStores } from './snapshot-stores.ts';

export interface RestorePass {
  /** A copy: steps change its status, the pass saves it. */
  readonly restore: VirtualMachineRestore;
  /** The machine that is there; undefined while a new one is still to be made. */
  readonly target: ReadonlyVm | undefined;
  readonly content: ReadonlyContent;
  readonly client: Client;
  readonly stores: SnapshotStores;
  readonly events: EventRecorder;
}

/** What keeps a restore from going on, in upstream's words: its conditions say so. */
export class RestoreProblem extends Error {}

/** `waiting`: something was done, or is still to come; the next pass looks again. */
export type StepOutcome = 'done' | 'waiting';
