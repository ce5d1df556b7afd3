/**
 * Integers that a double cannot hold, kept as bigints: whole numbers beyond ±2^53 that still fit an int64, as Go's
 * decoder keeps them. Only objects of definitions that clients bring may hold them (`wideIntegers` of a strategy): the
 * code of the built-in kinds counts with numbers, and one bigint among them would throw.
 *
 * Importing this file lets JSON.stringify write a bigint as the digits it stands for; everywhere else it would throw.
 */

const MIN_INT64 = -(2n ** 63n);
const MAX_INT64 = 2n ** 63n - 1n;

/** In compact JSON: sixteen digits or more standing alone. Inside of a text it may match as well, which costs time only. */
const MAYBE_WIDE = /[[:,]-?\d{16,}[\],}]/;

/** What JavaScript engines have and the type library does not know yet. */
const json = JSON as typeof JSON & { readonly rawJSON?: (text: string) => unknown };
type Reviver = (key: string, value: unknown, context?: { readonly source?: string }) => unknown;

Object.defineProperty(BigInt.prototype, 'toJSON', {
  configurable: true,
  writable: true,
  value(this: bigint): unknown {
    return json.rawJSON === undefined ? Number(this) : json.rawJSON(this.toString());
  },
});

/** Characters of the longest int64. Longer ones are never made a bigint: a million digits take a second. */
export const INT64_LENGTH = 20;

/** The number a token stands for: a bigint when a double would lose digits and an int64 would not. */
export function readNumber(token: string): number | bigint {
  const value = Number(token);
  if (Number.isSafeInteger(value) || token.length > INT64_LENGTH || !/^-?\d+$/.test(token)) return value;
  const wide = BigInt(token);
  return wide >= MIN_INT64 && wide <= MAX_INT64 ? wide : value;
}

const revive: Reviver = (_key, value, context) =>
  typeof value === 'number' && !Number.isSafeInteger(value) && context?.source !== undefined
    ? readNumber(context.source)
    : value;

/** JSON.parse that keeps wide integers. Throws SyntaxError. */
export const parseWide = (text: string): unknown => JSON.parse(text, revive);

/** The same for JSON this server has written itself; nearly as fast as JSON.parse where no such integer is. */
export const parseStored = (text: string): unknown => (MAYBE_WIDE.test(text) ? parseWide(text) : JSON.parse(text));
