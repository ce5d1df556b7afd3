/** What the parts of a machine's plan are made from. */
import type { VirtualMachineInstance } from '../../api/kinds/kubevirt/kinds.ts';
import type { DeepReadonly } from '../../api/meta/object.ts';
import type { NodeFacts, SmbiosConfig } from './machine-plan.ts';

export interface PlanContext {
  readonly vmi: DeepReadonly<VirtualMachineInstance>;
  readonly facts: NodeFacts;
  readonly smbios: SmbiosConfig;
  /** False where the serial line of this guest is not logged. */
  readonly serialLog: boolean;
}
