/**
 * Kubernetes quantities (`100m`, `1.5Gi`, `12e6`), exact. The amount is kept in nano units in a BigInt, the precision
 * upstream keeps too: what is smaller is rounded away from zero. Canonical text as apimachinery's resource.Quantity.
 */

export type QuantityFormat = 'DecimalSI' | 'BinarySI' | 'DecimalExponent';

export interface Quantity {
  /** The amount times 10^9. */
  readonly nano: bigint;
  /** How it was written, and so how it is printed. */
  readonly format: QuantityFormat;
}

/** A text that is no quantity. `message` is upstream's. */
export class QuantityError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'QuantityError';
  }
}

/** What is said of a text that is no quantity at all. */
export const NOT_A_QUANTITY =
  "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
const NANO = 1_000_000_000n;
const MAX_INT64 = (1n << 63n) - 1n;
/** Longest text accepted, and largest power of ten: a short text must not ask for a huge number. */
const MAX_TEXT = 256;
const MAX_EXPONENT = 64;

/** Powers of ten and of two by suffix. */
export const DECIMAL: Readonly<Record<string, number>> = {
  n: -9,
  u: -6,
  m: -3,
  '': 0,
  k: 3,
  M: 6,
  G: 9,
  T: 12,
  P: 15,
  E: 18,
};
export const BINARY: Readonly<Record<string, number>> = { Ki: 10, Mi: 20, Gi: 30, Ti: 40, Pi: 50, Ei: 60 };
const DECIMAL_SUFFIX = new Map(Object.entries(DECIMAL).map(([suffix, power]) => [power, suffix]));
const BINARY_SUFFIX = new Map(Object.entries(BINARY).map(([suffix, power]) => [power, suffix]));

/** Most quantities are a few short texts, and one write reads each of them many times: no more and no longer ones are kept. */
const MAX_KNOWN = 512;
const MAX_KNOWN_LENGTH = 12;
const knownQuantities = new Map<string, Quantity>();
const knownTexts = new Map<string, string>();

function remember<T>(known: Map<string, T>, text: string, read: T): T {
  if (text.length > MAX_KNOWN_LENGTH) return read;
  if (known.size >= MAX_KNOWN) known.clear();
  known.set(text, read);
  return read;
}

/**
 * Parses a quantity.
 * @throws QuantityError
 */
export function parseQuantity(text: string): Quantity {
  return knownQuantities.get(text) ?? remember(knownQuantities, text, Object.freeze(scanQuantity(text)));
}

function scanQuantity(text: string): Quantity {
  if (text.length === 0 || text.length > MAX_TEXT) throw new QuantityError(NOT_A_QUANTITY);
  const match = /^([+-]?)([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)$/.exec(text);
  if (match === null) throw new QuantityError(NOT_A_QUANTITY);
  const [, sign = '', whole = '', fraction = '', suffix = ''] = match;
  const { factor, power, format } = parseSuffix(suffix);
  // Upstream reads a sign or a suffix alone as zero, unless the suffix takes it off its fast path.
  if (whole === '' && fraction === '' && factor >= 1n << 50n) {
    throw new QuantityError('unable to parse numeric part of quantity');
  }

  // amount = digits * factor * 10^power / 10^fraction.length
  const digits = BigInt(whole + fraction || '0') * factor;
  const scale = power - fraction.length + 9;
  let nano = scale >= 0 ? digits * 10n ** BigInt(scale) : divideUp(digits, 10n ** BigInt(-scale));
  let shown = format;
  if (format === 'BinarySI') {
    // Upstream caps binary amounts, and prints fractions of one as decimals.
    if (nano > MAX_INT64 * NANO) nano = MAX_INT64 * NANO;
    if (nano > 0n && nano < NANO) shown = 'DecimalSI';
  }
  return { nano: sign === '-' ? -nano : nano, format: shown };
}

/**
 * The text a quantity is shown as after it was read: what upstream takes for canonical stays as it was written, which is
 * more than `formatQuantity` writes (`1.234`, `+5`, `5E3`).
 * @throws QuantityError
 */
export function quantityText(text: string): string {
  const known = knownTexts.get(text);
  if (known !== undefined) return known;
  const quantity = parseQuantity(text);
  return remember(knownTexts, text, isKeptText(text) ? text : formatQuantity(quantity));
}

/** The amount of a value that nobody has validated yet; undefined when it is absent or none (its schema tells of that). */
export function readQuantity(value: unknown): Quantity | undefined {
  if (typeof value !== 'string' && typeof value !== 'number') return undefined;
  try {
    return parseQuantity(String(value));
  } catch (error) {
    if (error instanceof QuantityError) return undefined;
    throw error;
  }
}

/** True when both are there and the first is larger. */
export const exceeds = (a: Quantity | undefined, b: Quantity | undefined): boolean =>
  a !== undefined && b !== undefined && compareQuantity(a, b) > 0;

const MILLI = 1_000_000n;

/**
 * The text of an amount in a list of resources, where nothing is finer than a thousandth: what is, is rounded up.
 * @throws QuantityError
 */
export function resourceText(text: string): string {
  const { nano, format } = parseQuantity(text);
  if (nano % MILLI === 0n) return quantityText(text);
  const milli = divideUp(abs(nano), MILLI) * MILLI;
  return formatQuantity({ nano: nano < 0n ? -milli : milli, format });
}

/** Upstream's fast path: few digits, and what it calls canonical form. */
function isKeptText(text: string): boolean {
  const [, zeros = '', number = '', fraction = '', suffix = ''] =
    /^[+-]?(0*)([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)$/.exec(text) ?? [];
  if (zeros + number + fraction === '' || number === '') return false;
  const { power, factor, format } = parseSuffix(suffix);
  if (format === 'BinarySI') {
    const exponent = BINARY[suffix]!;
    const isShort = fraction === '' && 15 - number.length - Math.trunc((exponent * 3) / 10) - 1 >= 0;
    return isShort && BigInt(number) * factor <= MAX_INT64 && (BigInt(number) & 7n) !== 0n;
  }
  const scale = power - fraction.length;
  const digits = number + fraction;
  return digits.length <= 18 && scale >= -9 && scale % 3 === 0 && !digits.endsWith('000');
}

const WELL_FORMED = /^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[numkMGTPE]|[KMGTPE]i|[eE][+-]?(?:[0-9]|[1-5][0-9]))?$/;

/** Tells whether a text is a quantity, mostly without working out its amount. */
export const isQuantity = (text: string): boolean => quantityProblem(text) === undefined;

/** Why a text is no quantity, in upstream's words; undefined when it is one. */
export function quantityProblem(text: string): string | undefined {
  if (text.length <= MAX_TEXT && WELL_FORMED.test(text)) return undefined;
  try {
    parseQuantity(text);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

function parseSuffix(suffix: string): { factor: bigint; power: number; format: QuantityFormat } {
  if (Object.hasOwn(DECIMAL, suffix)) return { factor: 1n, power: DECIMAL[suffix]!, format: 'DecimalSI' };
  if (Object.hasOwn(BINARY, suffix)) return { factor: 1n << BigInt(BINARY[suffix]!), power: 0, format: 'BinarySI' };
  const exponent = /^[eE]([-+]?[0-9]+)$/.exec(suffix);
  const power = exponent === null ? Number.NaN : Number(exponent[1]);
  if (!(Math.abs(power) <= MAX_EXPONENT)) throw new QuantityError("unable to parse quantity's suffix");
  return { factor: 1n, power, format: 'DecimalExponent' };
}

/** Division of a non-negative number, rounding up. */
const divideUp = (value: bigint, by: bigint): bigint => (value + by - 1n) / by;

const abs = (value: bigint): bigint => (value < 0n ? -value : value);

/** The canonical text: no fraction, the largest suffix that allows it. */
export function formatQuantity(quantity: Quantity): string {
  const { nano } = quantity;
  if (nano === 0n) return '0';
  const sign = nano < 0n ? '-' : '';
  const amount = abs(nano);
  // As upstream: below 1024, or with a fraction of a unit, a binary quantity is printed as a decimal one, exactly.
  if (quantity.format === 'BinarySI' && amount >= 1024n * NANO && amount % NANO === 0n) {
    return sign + formatBinary(amount / NANO);
  }
  return sign + formatDecimal(amount, quantity.format === 'DecimalExponent');
}

function formatBinary(units: bigint): string {
  let value = units;
  let power = 0;
  while (power < 60 && value % 1024n === 0n) {
    value /= 1024n;
    power += 10;
  }
  return `${value}${BINARY_SUFFIX.get(power) ?? ''}`;
}

function formatDecimal(nano: bigint, exponent: boolean): string {
  let value = nano;
  let power = -9;
  while ((exponent || power < 18) && value % 1000n === 0n) {
    value /= 1000n;
    power += 3;
  }
  if (exponent) return power === 0 ? `${value}` : `${value}e${power}`;
  return `${value}${DECIMAL_SUFFIX.get(power)}`;
}

/** Negative, zero or positive, like a sort comparison. */
export function compareQuantity(a: Quantity, b: Quantity): number {
  return a.nano < b.nano ? -1 : a.nano > b.nano ? 1 : 0;
}

/** The sum; printed like the first unless that is zero. */
export const addQuantity = (a: Quantity, b: Quantity): Quantity => ({
  nano: a.nano + b.nano,
  format: a.nano === 0n ? b.format : a.format,
});

/** The difference; printed like the first unless that is zero. */
export const subtractQuantity = (a: Quantity, b: Quantity): Quantity => addQuantity(a, { ...b, nano: -b.nano });

/** In whole units, rounded away from zero, exactly: for amounts of bytes that no node has. */
export function wholeUnits({ nano }: Quantity): bigint {
  const units = divideUp(abs(nano), NANO);
  return nano < 0n ? -units : units;
}

/** In thousandths, rounded away from zero: `250m` -> 250, `2` -> 2000. Never beyond 64 bits, as upstream. */
export const milliValue = (quantity: Quantity): number => scaled(quantity, MILLI);

/** In whole units, rounded away from zero. Never beyond 64 bits, as upstream: so it is finite, and still larger than all there is. */
export const quantityValue = (quantity: Quantity): number => scaled(quantity, NANO);

function scaled({ nano }: Quantity, by: bigint): number {
  const units = divideUp(abs(nano), by);
  const capped = units > MAX_INT64 ? MAX_INT64 : units;
  return Number(nano < 0n ? -capped : capped);
}

/**
 * Bytes of a memory or storage amount, rounded up.
 * @throws QuantityError, also when the amount is negative or beyond 2^53
 */
export function quantityToBytes(quantity: Quantity | string): number {
  const parsed = typeof quantity === 'string' ? parseQuantity(quantity) : quantity;
  const bytes = quantityValue(parsed);
  if (bytes < 0 || bytes > Number.MAX_SAFE_INTEGER) {
    throw new QuantityError(`${formatQuantity(parsed)} is not an amount of bytes this system can hold`);
  }
  return bytes;
}

/** A byte count as a binary quantity. */
export const quantityFromBytes = (bytes: number | bigint): Quantity => inNano(BigInt(bytes) * NANO, 'BinarySI');

/** A count of thousandths as a decimal quantity. */
export const quantityFromMilli = (milli: number | bigint): Quantity => inNano(BigInt(milli) * MILLI, 'DecimalSI');

const inNano = (nano: bigint, format: QuantityFormat): Quantity => ({ nano, format });
