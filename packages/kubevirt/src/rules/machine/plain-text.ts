import { PlanError } from './machine-plan.ts';

/** Text that can be handed to QEMU: no NUL, and not longer than `max` bytes. Throws PlanError that names `field`. */
export function plainText(field: string, text: string, max: number): string {
  if (text.includes('\0')) throw new PlanError(`${field} holds a NUL character`);
  if (new TextEncoder().encode(text).length > max) throw new PlanError(`${field} is longer than ${max} bytes`);
  return text;
}
