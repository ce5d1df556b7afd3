/** The clauses of `format` (`%s`, `%.2f`): read here for the check of a literal (`validate-formats.ts`) and for the evaluation. */
import { fail } from '../errors.ts';
import type { CelKind } from '../types.ts';

export type Verb = 's' | 'd' | 'f' | 'e' | 'b' | 'x' | 'X' | 'o';

interface Clause {
  readonly kinds: readonly CelKind[];
  readonly refusal: string;
}

const HEX: Clause = {
  kinds: ['int', 'uint', 'string', 'bytes'],
  refusal: 'only integers, byte buffers, and strings can be formatted as hex',
};

/** What each verb takes, and what is said of anything else. */
export const CLAUSES: Readonly<Record<Verb, Clause>> = {
  s: {
    kinds: ['list', 'map', 'int', 'uint', 'double', 'bool', 'string', 'timestamp', 'bytes', 'duration', 'type', 'null'],
    refusal:
      'string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps',
  },
  d: { kinds: ['int', 'uint'], refusal: 'decimal clause can only be used on integers' },
  f: { kinds: ['double', 'string'], refusal: 'fixed-point clause can only be used on doubles' },
  e: { kinds: ['double', 'string'], refusal: 'scientific clause can only be used on doubles' },
  b: { kinds: ['int', 'uint', 'bool'], refusal: 'only integers and bools can be formatted as binary' },
  x: HEX,
  X: HEX,
  o: { kinds: ['int', 'uint'], refusal: 'octal clause can only be used on integers' },
};

/**
 * The text with each clause replaced by what `make` gives for it and the index of its argument, of which there are `count`.
 * @throws CelEvaluationError for a clause that is none or has no argument
 */
export function replaceClauses(
  format: string,
  count: number,
  make: (verb: Verb, index: number, precision: number | undefined) => string,
): string {
  let next = 0;
  const unreadable = (why: string): never => fail(`could not parse formatting clause: ${why}`);
  return format.replace(/%(?:%|(\.\d*)?([\s\S]?))/gu, (clause, point: string | undefined, verb: string) => {
    if (clause === '%%') return '%';
    if (clause === '%') fail('unexpected end of string');
    if (next >= count) fail(`index ${next} out of range`);
    if (verb === '') unreadable('error while parsing precision: could not find end of precision specifier');
    if (point === '.') unreadable('error while parsing precision: no digits after the point');
    if (!Object.hasOwn(CLAUSES, verb)) unreadable(`unrecognized formatting clause "${verb}"`);
    return make(verb as Verb, next++, point === undefined ? undefined : Number(point.slice(1)));
  });
}
