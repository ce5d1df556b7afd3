/** Amounts of bytes that are no whole number: accepted, and rounded by whoever reads them. */
import { formatQuantity, milliValue, readQuantity } from '@coracle/apimachinery/quantity/quantity';
import { objectAt } from '@coracle/apimachinery/types/read-value';

/** Nearly every amount, reported without working it out. */
const WHOLE = /^[0-9]+(?:k|[MGTPE]i?|Ki)?$/;

/** One warning for each of `names` in the list at `steps` that is no whole number of bytes. */
export function fractionWarnings(
  object: unknown,
  at: { readonly path: string; readonly steps: readonly string[]; readonly names: readonly string[] },
): string[] {
  const amounts = objectAt(object, ...at.steps);
  const found: string[] = [];
  for (const name of at.names) {
    const given = Object.hasOwn(amounts, name) ? amounts[name] : undefined;
    if (given === undefined || (typeof given === 'string' && WHOLE.test(given))) continue;
    const amount = readQuantity(given);
    if (amount === undefined || milliValue(amount) % 1000 === 0) continue;
    const where = `${at.path}.${at.steps.join('.')}[${name}]`;
    const shown = JSON.stringify(formatQuantity(amount));
    found.push(`${where}: fractional byte value ${shown} is invalid, must be an integer`);
  }
  return found;
}

/** Those of the spec of a claim. */
export const claimWarnings = (spec: unknown, path: string): string[] =>
  ['requests', 'limits'].flatMap((list) =>
    fractionWarnings(spec, { path, steps: ['resources', list], names: ['storage'] }),
  );
