/** Quantities of an object that nobody has validated yet. */
import type { QuantityValue } from '../../api/kinds/kubevirt/kubevirt.ts';
import { readQuantity } from '../../api/quantity/quantity.ts';

/** True when the amount is there and not zero: what Go's IsZero asks the other way round. */
export const isPresent = (value: QuantityValue | undefined): boolean => (readQuantity(value)?.nano ?? 0n) !== 0n;
