/** When a filling disk stops taking writes: a pure rule with hysteresis, so that it cannot flap. */
import type { DiskState } from './backend.ts';

const MIB = 1024 * 1024;

/** Bytes of one file system. */
export interface DiskSpace {
  readonly free: number;
  readonly total: number;
}

/**
 * The marks of a disk: new objects are refused below 5 % or 64 MiB free, whichever is less; all writes below a quarter
 * of that (16 MiB on any disk above 1.25 GiB).
 */
export function diskMarks(total: number): { readonly refuseCreates: number; readonly readOnly: number } {
  const refuseCreates = Math.min(total * 0.05, 64 * MIB);
  return { refuseCreates, readOnly: refuseCreates / 4 };
}

/** Bytes to free until every state turns to `ok`. */
export const missingSpace = ({ free, total }: DiskSpace): number =>
  Math.max(0, Math.ceil(2 * diskMarks(total).refuseCreates - free) + 1);

/** The next state: worse at once when free space falls below a mark, better only above twice the mark. */
export function nextDiskState(state: DiskState, { free, total }: DiskSpace): DiskState {
  const marks = diskMarks(total);
  if (free < marks.readOnly) return 'read-only';
  if (state === 'read-only' && free <= 2 * marks.readOnly) return 'read-only';
  const hasRoom = state === 'ok' ? free >= marks.refuseCreates : free > 2 * marks.refuseCreates;
  return hasRoom ? 'ok' : 'refuse-creates';
}
