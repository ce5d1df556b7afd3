/** What a bench found: figures of a few runs each, or the reason why it could not run. */

export interface Spread {
  readonly min: number;
  readonly median: number;
  readonly max: number;
}

export interface Figure extends Spread {
  readonly unit: string;
  /** This figure divided by the plain server's of the same round. */
  readonly toPlain?: Spread;
}

export type Outcome =
  | {
      readonly state: 'measured';
      readonly figures: Readonly<Record<string, Figure>>;
      readonly notes?: Readonly<Record<string, unknown>>;
    }
  | { readonly state: 'skipped'; readonly reason: string };

/** What every bench is given. `say` prints a line for people. */
export interface BenchContext {
  say(line: string): void;
}

export function spreadOf(values: readonly number[]): Spread {
  const ascending = [...values].sort((a, b) => a - b);
  const middle = ascending.length >> 1;
  const median = ascending.length % 2 === 1 ? ascending[middle]! : (ascending[middle - 1]! + ascending[middle]!) / 2;
  return { min: round(ascending[0]!), median: round(median), max: round(ascending.at(-1)!) };
}

/** Three digits that count, whole numbers above a thousand. */
const round = (value: number): number => (Math.abs(value) >= 1000 ? Math.round(value) : Number(value.toPrecision(3)));

/** Runs of one figure, with the plain server's beside them. */
export class Runs {
  readonly #values = new Map<string, { unit: string; values: number[]; plain: number[] }>();

  add(name: string, unit: string, { value, plain }: { readonly value: number; readonly plain?: number }): void {
    let held = this.#values.get(name);
    if (!held) {
      held = { unit, values: [], plain: [] };
      this.#values.set(name, held);
    }
    held.values.push(value);
    if (plain !== undefined) held.plain.push(value / plain);
  }

  figures(): Record<string, Figure> {
    return Object.fromEntries(
      [...this.#values].map(([name, { unit, values, plain }]) => [
        name,
        { unit, ...spreadOf(values), ...(plain.length > 0 && { toPlain: spreadOf(plain) }) },
      ]),
    );
  }
}

export function figureLine(name: string, { unit, min, median, max, toPlain }: Figure): string {
  const ratio = toPlain ? `   plain x ${toPlain.median} (${toPlain.min}-${toPlain.max})` : '';
  return `  ${name.padEnd(28)} ${String(median).padStart(8)} ${unit.padEnd(5)} (${min}-${max})${ratio}`;
}
