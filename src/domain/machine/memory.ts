import { quantityToBytes } from '../../api/quantity/quantity.ts';
import { type MachinePlan, PlanError } from './machine-plan.ts';
import type { PlanContext } from './plan.ts';

const MIB = 1024 * 1024;

/** Guest memory: memory.guest, else the memory requested, else its limit; rounded up to 1 MiB. */
export function configureMemory({ vmi }: PlanContext, plan: MachinePlan): void {
  const { memory, resources } = vmi.spec.domain;
  const amount = memory?.guest ?? resources?.requests?.['memory'] ?? resources?.limits?.['memory'];
  if (amount === undefined) throw new PlanError('the VMI names no memory: set spec.domain.memory.guest');
  const bytes = quantityToBytes(String(amount));
  if (!(bytes >= MIB)) throw new PlanError(`guest memory ${String(amount)} is less than 1Mi`);
  plan.memoryBytes = Math.ceil(bytes / MIB) * MIB;
}
