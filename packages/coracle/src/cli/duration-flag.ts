/** Flags that take a duration as Go writes it: `90s`, `2m0s`. */
import { parseGoDuration } from '@coracle/apimachinery/meta/go-duration';
import { type FlagValues, textFlag, UsageError } from './command.ts';

/**
 * The flag in milliseconds; `or` when it is absent. `bareSeconds` also takes a whole number without a unit. Throws
 * UsageError for what is no duration, and for one below zero.
 */
export function durationFlag(
  flags: FlagValues,
  name: string,
  { or, bareSeconds = false }: { readonly or: number; readonly bareSeconds?: boolean },
): number {
  const text = textFlag(flags, name);
  if (text === undefined) return or;
  const ms = parseGoDuration(bareSeconds && /^[0-9]{1,9}$/.test(text) ? `${text}s` : text);
  if (ms === undefined || ms < 0)
    throw new UsageError(`--${name} takes a duration such as 30s or 5m, not ${JSON.stringify(text)}`);
  return ms;
}
