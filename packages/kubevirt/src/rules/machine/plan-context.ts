/** What the parts of a machine's plan are made from. */

import type { ReadonlyVmi } from '../../kinds/kubevirt.ts';
import type { NodeFacts, SmbiosConfig } from './machine-plan.ts';

export interface PlanContext {
  readonly vmi: ReadonlyVmi;
  readonly facts: NodeFacts;
  readonly smbios: SmbiosConfig;
  /** False where the serial line of this guest is not logged. */
  readonly serialLog: boolean;
}
