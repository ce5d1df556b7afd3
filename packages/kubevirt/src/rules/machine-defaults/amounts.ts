/** Quantities of an object that nobody has validated yet. */

import { readQuantity } from '@coracle/apimachinery/quantity/quantity';
import type { QuantityValue } from '../../kinds/kubevirt.ts';

/** True when the amount is there and not zero: what Go's IsZero asks the other way round. */
export const isPresent = (value: QuantityValue | undefined): boolean => (readQuantity(value)?.nano ?? 0n) !== 0n;
