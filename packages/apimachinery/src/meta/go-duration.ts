/** Durations as Go writes them (package time, ParseDuration): `1h30m`, `-1.5s`, `0`. */

const SECOND = 1_000_000_000n;
/** Far more than an int64 of nanoseconds needs. */
const MAX_TEXT = 256;
const MAX_NANOS = 2n ** 63n - 1n;

const UNITS: Readonly<Record<string, bigint>> = {
  ns: 1n,
  us: 1_000n,
  µs: 1_000n,
  μs: 1_000n,
  ms: 1_000_000n,
  s: SECOND,
  m: 60n * SECOND,
  h: 3600n * SECOND,
};

/** Nanoseconds, however many; undefined when the text is no duration. */
export function readGoDuration(text: string): bigint | undefined {
  if (text.length > MAX_TEXT) return undefined;
  const match = /^([+-]?)((?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:ns|us|[\u00b5\u03bc]s|ms|s|m|h))+|0)$/.exec(text);
  if (match === null) return undefined;
  let nanos = 0n;
  for (const [, whole = '', fraction = '', unit = ''] of match[2]!.matchAll(
    /([0-9]*)\.?([0-9]*)(ns|us|[\u00b5\u03bc]s|ms|s|m|h)/g,
  )) {
    const scale = UNITS[unit]!;
    nanos += BigInt(whole || '0') * scale;
    if (fraction !== '') nanos += (BigInt(fraction) * scale) / 10n ** BigInt(fraction.length);
  }
  return match[1] === '-' ? -nanos : nanos;
}

/** Milliseconds; undefined when the text is no duration, or one beyond what Go can hold. */
export function parseGoDuration(text: string): number | undefined {
  const nanos = readGoDuration(text);
  return nanos === undefined || nanos > MAX_NANOS || nanos < -MAX_NANOS - 1n ? undefined : Number(nanos) / 1e6;
}
/** Milliseconds as Go prints a duration (time.Duration.String): `1m30s`, `500ms`. */
export function goDuration(ms: number): string {
  if (ms === 0) return '0s';
  const [sign, amount] = ms < 0 ? ['-', -ms] : ['', ms];
  if (amount < 1000) return `${sign}${amount}ms`;
  const [hours, minutes] = [Math.floor(amount / 3_600_000), Math.floor(amount / 60_000) % 60];
  const seconds = `${(amount % 60_000) / 1000}s`;
  if (hours > 0) return `${sign}${hours}h${minutes}m${seconds}`;
  return minutes > 0 ? `${sign}${minutes}m${seconds}` : `${sign}${seconds}`;
}
