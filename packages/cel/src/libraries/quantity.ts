/** Kubernetes quantities. */
import {
  addQuantity,
  BINARY,
  compareQuantity,
  DECIMAL,
  isQuantity,
  parseQuantity,
  type Quantity,
  quantityFromBytes,
  subtractQuantity,
} from '@coracle/apimachinery/quantity/quantity';
import { ONE, TRAVERSE_ONLY } from '../cost-models.ts';
import { type Overload, overload } from '../declarations.ts';
import { defineEquality } from '../equality.ts';
import { CelEvaluationError } from '../errors.ts';
import { CelDouble, CelOpaque, intFromBigInt, MAX_INT, MIN_INT } from '../values.ts';

const NAME = 'kubernetes.Quantity';

/**
 * A quantity with what upstream holds it in: an int64 and a power of ten, where the text was short enough for that. Only
 * such a one can be asked for its integer.
 */
interface Amount extends Quantity {
  readonly exact: { readonly value: bigint; readonly scale: number } | undefined;
}
type Boxed = CelOpaque<Amount>;

const box = (amount: Amount): Boxed => new CelOpaque(NAME, amount);
defineEquality(NAME, (a, b) => compareQuantity(a as Quantity, b as Quantity) === 0);

function parse(text: string): Boxed {
  try {
    return box({ ...parseQuantity(text), exact: exactOf(text) });
  } catch (error) {
    throw new CelEvaluationError((error as Error).message);
  }
}

const MAX_DIGITS = 18;

function exactOf(text: string): Amount['exact'] {
  const [, sign, whole = '', fraction = '', suffix = ''] = /^([+-]?)0*([0-9]*)(?:\.([0-9]*))?(.*)$/.exec(text)!;
  const digits = `${whole || '0'}${fraction}`;
  const value = BigInt(digits) * (sign === '-' ? -1n : 1n);
  const shift = Object.hasOwn(BINARY, suffix) ? BINARY[suffix]! : undefined;
  if (shift !== undefined) {
    const room = 15 - (whole || '0').length - Math.floor((shift * 3) / 10) - 1;
    const scaled = value << BigInt(shift);
    return fraction !== '' || room < 0 || !fits(scaled) ? undefined : { value: scaled, scale: 0 };
  }
  const scale = (DECIMAL[suffix] ?? Number(suffix.slice(1))) - fraction.length;
  return digits.length > MAX_DIGITS || scale < -9 ? undefined : { value, scale };
}

const fits = (value: bigint): boolean => value >= MIN_INT && value <= MAX_INT;

/** The sum, held as upstream holds it: exactly while both are, in the smaller power of ten, and within 64 bits. */
function exactSum(a: Amount['exact'], b: Amount['exact'], sign: bigint): Amount['exact'] {
  if (a === undefined || b === undefined) return undefined;
  if (b.value === 0n) return a;
  if (a.value === 0n) return { value: b.value * sign, scale: b.scale };
  const scale = Math.min(a.scale, b.scale);
  const [x, y] = [a, b].map((part) => part.value * 10n ** BigInt(Math.min(part.scale - scale, 40)));
  const value = x! + y! * sign;
  return fits(x!) && fits(y!) && fits(value) ? { value, scale } : undefined;
}

const add = (a: Amount, b: Amount): Boxed => box({ ...addQuantity(a, b), exact: exactSum(a.exact, b.exact, 1n) });
const subtract = (a: Amount, b: Amount): Boxed =>
  box({ ...subtractQuantity(a, b), exact: exactSum(a.exact, b.exact, -1n) });

function integer({ value: { exact } }: Boxed): bigint | undefined {
  if (exact === undefined || exact.scale < 0) return undefined;
  const units = exact.value * 10n ** BigInt(Math.min(exact.scale, 40));
  return fits(units) ? units : undefined;
}

function asInteger(quantity: Boxed): number | bigint {
  const value = integer(quantity);
  if (value === undefined) throw new CelEvaluationError('cannot convert value to integer');
  return intFromBigInt(value);
}

const order = (a: Boxed, b: Boxed): number => Math.sign(compareQuantity(a.value, b.value));
const ofInt = (value: number | bigint): Amount => ({
  ...quantityFromBytes(value),
  format: 'DecimalSI',
  exact: { value: BigInt(value), scale: 0 },
});

export const QUANTITY: readonly Overload[] = [
  overload('quantity', `(string): ${NAME}`, parse, TRAVERSE_ONLY),
  overload('isQuantity', '(string): bool', isQuantity, TRAVERSE_ONLY),
  // Upstream declares it as a function, so that there is no method of that name.
  overload('sign', `(${NAME}): int`, ({ value }: Boxed) => (value.nano > 0n ? 1 : value.nano < 0n ? -1 : 0), ONE),
  overload('isInteger', `${NAME}.(): bool`, (quantity: Boxed) => integer(quantity) !== undefined, ONE),
  overload('asInteger', `${NAME}.(): int`, asInteger, ONE),
  overload(
    'asApproximateFloat',
    `${NAME}.(): double`,
    ({ value }: Boxed) => new CelDouble(Number(value.nano) / 1e9),
    ONE,
  ),
  overload('isGreaterThan', `${NAME}.(${NAME}): bool`, (a: Boxed, b: Boxed) => order(a, b) > 0, ONE),
  overload('isLessThan', `${NAME}.(${NAME}): bool`, (a: Boxed, b: Boxed) => order(a, b) < 0, ONE),
  overload('compareTo', `${NAME}.(${NAME}): int`, order, ONE),
  overload('add', `${NAME}.(${NAME}): ${NAME}`, (a: Boxed, b: Boxed) => add(a.value, b.value), ONE),
  overload('add', `${NAME}.(int): ${NAME}`, (a: Boxed, b: number | bigint) => add(a.value, ofInt(b)), ONE),
  overload('sub', `${NAME}.(${NAME}): ${NAME}`, (a: Boxed, b: Boxed) => subtract(a.value, b.value), ONE),
  overload('sub', `${NAME}.(int): ${NAME}`, (a: Boxed, b: number | bigint) => subtract(a.value, ofInt(b)), ONE),
];
