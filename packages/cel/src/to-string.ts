/** Texts of scalars: `string(x)`, and keys in messages. */
import { formatDuration, formatTimestamp } from './time.ts';
import { CelDouble, CelDuration, CelTimestamp, CelTypeValue, CelUint } from './values.ts';

/** The text of a scalar; JSON-like for what has none of its own (messages only). */
export function stringOf(value: unknown): string {
  if (value instanceof CelDouble) return formatDouble(value.value);
  if (value instanceof CelUint) return String(value.value);
  if (value instanceof CelTimestamp) return formatTimestamp(value);
  if (value instanceof CelDuration) return formatDuration(value);
  if (value instanceof CelTypeValue) return value.name;
  return String(value);
}

/** Go's shortest form ('g'): exponents from 1e+21 on and below 1e-4, at least two digits in the exponent. */
function formatDouble(value: number): string {
  if (Number.isNaN(value)) return 'NaN';
  if (!Number.isFinite(value)) return value > 0 ? '+Inf' : '-Inf';
  if (Object.is(value, -0)) return '-0';
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-4 || size >= 1e21)) {
    return value.toExponential().replace(/e([+-])(\d)$/, 'e$10$2');
  }
  return String(value);
}
