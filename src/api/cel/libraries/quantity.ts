/** Kubernetes quantities. */
import {
  addQuantity,
  compareQuantity,
  parseQuantity,
  type Quantity,
  quantityFromBytes,
  subtractQuantity,
} from '../../quantity/quantity.ts';
import { constant, TRAVERSE_ONLY } from '../cost-models.ts';
import { type Overload, overload } from '../declarations.ts';
import { defineEquality } from '../equality.ts';
import { CelEvaluationError } from '../errors.ts';
import { CelDouble, CelOpaque, intFromBigInt, MAX_INT, MIN_INT } from '../values.ts';

const NAME = 'kubernetes.Quantity';
const NANO = 1_000_000_000n;
type Boxed = CelOpaque<Quantity>;

const box = (quantity: Quantity): Boxed => new CelOpaque(NAME, quantity);
defineEquality(NAME, (a, b) => compareQuantity(a as Quantity, b as Quantity) === 0);

function parse(text: string): Boxed {
  try {
    return box(parseQuantity(text));
  } catch (error) {
    throw new CelEvaluationError((error as Error).message);
  }
}

function isQuantity(text: string): boolean {
  try {
    parseQuantity(text);
    return true;
  } catch {
    return false;
  }
}

function integer({ value }: Boxed): bigint | undefined {
  const units = value.nano / NANO;
  return value.nano % NANO === 0n && units >= MIN_INT && units <= MAX_INT ? units : undefined;
}

function asInteger(quantity: Boxed): number | bigint {
  const value = integer(quantity);
  if (value === undefined) throw new CelEvaluationError('cannot convert value to integer');
  return intFromBigInt(value);
}

const order = (a: Boxed, b: Boxed): number => Math.sign(compareQuantity(a.value, b.value));
const ofInt = (value: number | bigint): Quantity => ({ ...quantityFromBytes(value), format: 'DecimalSI' });
const ONE = constant(1);

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
  overload('add', `${NAME}.(${NAME}): ${NAME}`, (a: Boxed, b: Boxed) => box(addQuantity(a.value, b.value)), ONE),
  overload('add', `${NAME}.(int): ${NAME}`, (a: Boxed, b: number | bigint) => box(addQuantity(a.value, ofInt(b))), ONE),
  overload('sub', `${NAME}.(${NAME}): ${NAME}`, (a: Boxed, b: Boxed) => box(subtractQuantity(a.value, b.value)), ONE),
  overload(
    'sub',
    `${NAME}.(int): ${NAME}`,
    (a: Boxed, b: number | bigint) => box(subtractQuantity(a.value, ofInt(b))),
    ONE,
  ),
];
