import type { MachinePlan, NodeFacts } from '../machine/machine-plan.ts';

/** The first major version of QEMU that sees every write of an emulated processor. */
const SEES_ALL_WRITES = 10;

/**
 * Whether a guest must stand still while its memory is sent: where QEMU emulates the processors and may overlook what
 * they write meanwhile, the moved guest would crash. `configureMemory` says when that is; memory that was plugged
 * (`pluggedBytes`, 0 or more) cannot have a length that is safe, and a guest of an earlier version has none.
 */
export function mustStandStill(
  plan: Pick<MachinePlan, 'accelerator' | 'heldBackBytes'>,
  { qemuVersion }: Pick<NodeFacts, 'qemuVersion'>,
  pluggedBytes: number,
): boolean {
  if (plan.accelerator !== 'tcg' || Number.parseInt(qemuVersion, 10) >= SEES_ALL_WRITES) return false;
  return plan.heldBackBytes === undefined || pluggedBytes > 0;
}
