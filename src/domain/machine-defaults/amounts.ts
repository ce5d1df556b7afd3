/** Quantities of an object that nobody has validated yet. */
import type { QuantityValue } from '../../api/kinds/kubevirt/kubevirt.ts';
import { parseQuantity, type Quantity, QuantityError } from '../../api/quantity/quantity.ts';

/** The amount; undefined when it is absent or no quantity (the schema reports those). */
export function amountOf(value: QuantityValue | undefined): Quantity | undefined {
  if (value === undefined) return undefined;
  try {
    return parseQuantity(String(value));
  } catch (error) {
    if (error instanceof QuantityError) return undefined;
    throw error;
  }
}

/** True when the amount is there and not zero: what Go's IsZero asks the other way round. */
export const isPresent = (value: QuantityValue | undefined): boolean => (amountOf(value)?.nano ?? 0n) !== 0n;
