/** How many bytes of objects the server takes, read from the flags of `coracle up`. */
import { quantityToBytes, readQuantity } from '@coracle/apimachinery/quantity/quantity';
import { type ByteLimits, NAMESPACE_BYTES, TOTAL_BYTES } from '@coracle/apiserver/cache/namespace-bytes';
import { NAMESPACE, TOTAL } from './byte-limit-flags.ts';
import { type FlagValues, textFlag, UsageError } from './command.ts';

/** What was asked for, the defaults else. Throws UsageError. */
export function byteLimits(flags: FlagValues): ByteLimits {
  return { namespace: bytesOf(flags, NAMESPACE, NAMESPACE_BYTES), total: bytesOf(flags, TOTAL, TOTAL_BYTES) };
}

/** What is too little holds not even the objects of an empty cluster. */
const LEAST = 1024 * 1024;

function bytesOf(flags: FlagValues, name: string, or: number): number {
  const text = textFlag(flags, name);
  if (text === undefined) return or;
  const quantity = readQuantity(text);
  const bytes = quantity === undefined ? Number.NaN : quantityToBytes(quantity);
  if (!(bytes >= LEAST && bytes <= Number.MAX_SAFE_INTEGER))
    throw new UsageError(`--${name} takes an amount of bytes from 1Mi on, as 8Gi, not ${JSON.stringify(text)}`);
  return bytes;
}
