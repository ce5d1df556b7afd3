/** Amounts of bytes that are no whole number: accepted, and rounded by whoever reads them. */
import { formatQuantity, milliValue } from '../../../quantity/quantity.ts';
import { valueAt } from '../read-value.ts';
import { readQuantity } from '../validation/resource-names.ts';

/** One warning for each of `names` in the list at `steps` that is no whole number of bytes. */
export function fractionWarnings(
  object: unknown,
  at: { readonly path: string; readonly steps: readonly string[]; readonly names: readonly string[] },
): string[] {
  return at.names.flatMap((name) => {
    const amount = readQuantity(valueAt(object, ...at.steps, name));
    if (amount === undefined || milliValue(amount) % 1000 === 0) return [];
    const where = `${at.path}.${at.steps.join('.')}[${name}]`;
    return [`${where}: fractional byte value ${JSON.stringify(formatQuantity(amount))} is invalid, must be an integer`];
  });
}

/** Those of the spec of a claim. */
export const claimWarnings = (spec: unknown, path: string): string[] =>
  ['requests', 'limits'].flatMap((list) =>
    fractionWarnings(spec, { path, steps: ['resources', list], names: ['storage'] }),
  );
