/** Arithmetic on resource lists (`{cpu: '1', pods: '2'}`), exact, and the text upstream prints them as. */
import {
  addQuantity,
  compareQuantity,
  exceeds,
  formatQuantity,
  parseQuantity,
  type Quantity,
  subtractQuantity,
} from '../quantity/quantity.ts';

/** Amounts by resource name. */
export type Amounts = ReadonlyMap<string, Quantity>;

/** A plain number as an amount. */
export const whole = (count: number): Quantity => ({ nano: BigInt(count) * 1_000_000_000n, format: 'DecimalSI' });

/** Reads a resource list; what is absent is empty. Throws QuantityError when a value is no quantity. */
export function toAmounts(list: Readonly<Record<string, unknown>> | null | undefined): Map<string, Quantity> {
  const amounts = new Map<string, Quantity>();
  for (const [name, text] of Object.entries(list ?? {})) amounts.set(name, parseQuantity(String(text)));
  return amounts;
}

/** The list in canonical text, names in order. */
export function fromAmounts(amounts: Amounts): Record<string, string> {
  const list: Record<string, string> = {};
  for (const name of [...amounts.keys()].sort()) list[name] = formatQuantity(amounts.get(name)!);
  return list;
}

/** The names of both; `join` makes one amount of what both have of a name. */
function combined(
  a: Amounts,
  b: Amounts,
  join: (known: Quantity | undefined, amount: Quantity) => Quantity,
): Map<string, Quantity> {
  const all = new Map(a);
  for (const [name, amount] of b) all.set(name, join(all.get(name), amount));
  return all;
}

/** `a + b`, names of both. */
export const plus = (a: Amounts, b: Amounts): Map<string, Quantity> =>
  combined(a, b, (known, amount) => (known ? addQuantity(known, amount) : amount));

/** `a - b`, names of both. */
export const minus = (a: Amounts, b: Amounts): Map<string, Quantity> =>
  combined(a, b, (known, amount) => subtractQuantity(known ?? { nano: 0n, format: amount.format }, amount));

/** The larger of the two for each name of either. */
export const larger = (a: Amounts, b: Amounts): Map<string, Quantity> =>
  combined(a, b, (known, amount) => (known && compareQuantity(amount, known) <= 0 ? known : amount));

/** Only the names that `keep` knows. */
export const masked = (amounts: Amounts, keep: { has(name: string): boolean }): Map<string, Quantity> =>
  new Map([...amounts].filter(([name]) => keep.has(name)));

/** Names of `amounts` that go beyond `limits`; a name without a limit is never beyond. */
export const beyond = (amounts: Amounts, limits: Amounts): Set<string> =>
  new Set([...amounts.keys()].filter((name) => exceeds(amounts.get(name), limits.get(name))));

/** True when both name the same amounts. */
export const sameAmounts = (a: Amounts, b: Amounts): boolean =>
  a.size === b.size && [...a].every(([name, { nano }]) => b.get(name)?.nano === nano);

/** `cpu=500m,pods=1`: as quota errors print a list. */
export const printAmounts = (amounts: Amounts): string =>
  [...amounts.keys()]
    .sort()
    .map((name) => `${name}=${formatQuantity(amounts.get(name)!)}`)
    .join(',');
