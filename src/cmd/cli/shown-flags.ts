/** Flags as /flagz shows them. */
import type { FlagValues } from './command.ts';

/**
 * Names and values as pflag prints them: lists in brackets. `inForce`: what holds where a flag was not given, or what the
 * program made of it. Values are shown as they were given: a flag that holds a secret itself has no place in `flags`.
 */
export function shownFlags(flags: FlagValues, inForce: Readonly<Record<string, string>>): Record<string, string> {
  const given = Object.entries(flags).flatMap(([name, value]): [string, string][] =>
    value === undefined ? [] : [[name, Array.isArray(value) ? `[${value.join(',')}]` : String(value)]],
  );
  return { ...Object.fromEntries(given), ...inForce };
}
