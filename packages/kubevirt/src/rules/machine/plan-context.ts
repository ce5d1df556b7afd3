/** What the parts of a machine's plan are made from. */

import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import type { VirtualMachineInstance } from '../../kinds/kinds.ts';
import type { NodeFacts, SmbiosConfig } from './machine-plan.ts';

export interface PlanContext {
  readonly vmi: DeepReadonly<VirtualMachineInstance>;
  readonly facts: NodeFacts;
  readonly smbios: SmbiosConfig;
  /** False where the serial line of this guest is not logged. */
  readonly serialLog: boolean;
}
