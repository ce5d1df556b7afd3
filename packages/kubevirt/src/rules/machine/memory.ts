import { quantityValue, readQuantity } from '@coracle/apimachinery/quantity/quantity';
import { type MachinePlan, type PlanContext, PlanError } from './machine-plan.ts';

const MIB = 1024 * 1024;
/**
 * An emulated guest gets this much less, so that the length of its memory is no multiple of 64 pages. QEMU before
 * version 10 collects written pages of such lengths in one sweep that leaves the emulated processors their right to write
 * unseen (include/exec/ram_addr.h): a migration then leaves behind what they write next, and the moved guest crashes. It
 * goes through other lengths page by page, and rightly. Half of 64 pages: firmware counts memory in pieces of 64 KiB.
 */
const EMULATED_HELD_BACK = 128 * 1024;

/** Guest memory: memory.guest, else the memory requested, else its limit; rounded up to 1 MiB; of which an emulated guest does not get the last 128 KiB. */
export function configureMemory({ vmi }: PlanContext, plan: MachinePlan): void {
  const { memory, resources } = vmi.spec.domain;
  const amount = memory?.guest ?? resources?.requests?.['memory'] ?? resources?.limits?.['memory'];
  if (amount === undefined) throw new PlanError('the VMI names no memory: set spec.domain.memory.guest');
  const quantity = readQuantity(amount);
  const bytes = quantity === undefined ? 0 : quantityValue(quantity);
  if (!(bytes >= MIB)) throw new PlanError(`guest memory ${String(amount)} is less than 1Mi`);
  if (bytes > Number.MAX_SAFE_INTEGER) throw new PlanError(`guest memory ${String(amount)} is more than any host has`);
  plan.memoryBytes = Math.ceil(bytes / MIB) * MIB;
  if (plan.accelerator === 'tcg') plan.heldBackBytes = EMULATED_HELD_BACK;
}
