/** Arithmetic on resource lists (`{cpu: '1', pods: '2'}`), exact, and the text upstream prints them as. */
import { addQuantity, compareQuantity, formatQuantity, parseQuantity, type Quantity } from '../quantity/quantity.ts';

/** Amounts by resource name. */
export type Amounts = ReadonlyMap<string, Quantity>;

const ZERO: Quantity = { nano: 0n, format: 'DecimalSI' };

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

/** `a + b`, names of both. */
export function plus(a: Amounts, b: Amounts): Map<string, Quantity> {
  const sum = new Map(a);
  for (const [name, amount] of b) {
    const known = sum.get(name);
    sum.set(name, known ? addQuantity(known, amount) : amount);
  }
  return sum;
}

/** `a - b`, names of both. */
export function minus(a: Amounts, b: Amounts): Map<string, Quantity> {
  const rest = new Map(a);
  for (const [name, amount] of b) {
    rest.set(
      name,
      addQuantity(rest.get(name) ?? { ...ZERO, format: amount.format }, { ...amount, nano: -amount.nano }),
    );
  }
  return rest;
}

/** The larger of the two for each name of either. */
export function larger(a: Amounts, b: Amounts): Map<string, Quantity> {
  const most = new Map(a);
  for (const [name, amount] of b) {
    const known = most.get(name);
    if (!known || compareQuantity(amount, known) > 0) most.set(name, amount);
  }
  return most;
}

/** Only the names that `keep` knows. */
export function masked(amounts: Amounts, keep: { has(name: string): boolean }): Map<string, Quantity> {
  return new Map([...amounts].filter(([name]) => keep.has(name)));
}

/** Names of `amounts` that go beyond `limits`; a name without a limit is never beyond. */
export const beyond = (amounts: Amounts, limits: Amounts): Set<string> =>
  new Set(
    [...amounts]
      .filter(([name, amount]) => {
        const limit = limits.get(name);
        return limit !== undefined && compareQuantity(amount, limit) > 0;
      })
      .map(([name]) => name),
  );

/** True when both name the same amounts. */
export const sameAmounts = (a: Amounts, b: Amounts): boolean =>
  a.size === b.size && [...a].every(([name, { nano }]) => b.get(name)?.nano === nano);

/** `cpu=500m,pods=1`: as quota errors print a list. */
export const printAmounts = (amounts: Amounts): string =>
  [...amounts.keys()]
    .sort()
    .map((name) => `${name}=${formatQuantity(amounts.get(name)!)}`)
    .join(',');
