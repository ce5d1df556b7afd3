/** Quantities as upstream's typed round trip leaves them. */

import {
  formatQuantity,
  type QuantityFormat,
  quantityValue,
  readQuantity,
} from '@coracle/apimachinery/quantity/quantity';
import type { QuantityValue } from '../../kinds/kubevirt.ts';

/** Most amounts are written like this and are canonical unless 1024 divides them. */
const PLAIN_BINARY = /^([1-9][0-9]{0,5})(?:Ki|Mi|Gi|Ti)$/;

/** The canonical text (`1.5Gi` is `1536Mi`); what is no quantity stays as it is: the schema says so. */
export function canonicalQuantity(value: QuantityValue): QuantityValue {
  if (typeof value === 'string') {
    const plain = PLAIN_BINARY.exec(value);
    if (plain !== null && Number(plain[1]) % 1024 !== 0) return value;
  }
  const quantity = readQuantity(value);
  return quantity === undefined ? value : formatQuantity(quantity);
}

const NANO = 1_000_000_000n;

/**
 * What a launcher asks for when `percent` of the guest's memory is overcommitted. Upstream reckons in single precision,
 * which shows from 16 MiB on.
 */
export function overcommittedMemory(guest: QuantityValue, percent: number): QuantityValue {
  const amount = readQuantity(guest);
  if (amount === undefined) return guest;
  const share = Math.fround(1 - Math.fround(Math.fround(percent) / 100));
  const bytes = Math.trunc(Math.fround(Math.fround(quantityValue(amount)) * share));
  return formatQuantity({ nano: BigInt(bytes) * NANO, format: amount.format satisfies QuantityFormat });
}
