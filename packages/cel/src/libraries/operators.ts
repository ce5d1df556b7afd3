/** Arithmetic, comparison, membership. Ints are 64 bits wide and never wrap. */
import { joinBytes } from '@coracle/apimachinery/meta/join-bytes';
import { COMPARISON, CONCATENATION, IN_LIST, LIST_CONCATENATION } from '../cost-models.ts';
import { type Overload, overload } from '../declarations.ts';
import { compare, equals } from '../equality.ts';
import { fail } from '../errors.ts';
import { index, mapFind, optionalIndex } from '../map-access.ts';
import {
  CelDouble,
  CelDuration,
  CelTimestamp,
  type CelUint,
  checkedInt,
  checkedUint,
  fromJson,
  MAX_INT,
  MIN_INT,
} from '../values.ts';

type Int = number | bigint;

/** Fast while both and the result are exact as JS numbers. */
const add = (a: Int, b: Int): Int => {
  if (typeof a === 'number' && typeof b === 'number') {
    const sum = a + b;
    if (Number.isSafeInteger(sum)) return sum;
  }
  return checkedInt(BigInt(a) + BigInt(b));
};
const subtract = (a: Int, b: Int): Int => {
  if (typeof a === 'number' && typeof b === 'number') {
    const difference = a - b;
    if (Number.isSafeInteger(difference)) return difference;
  }
  return checkedInt(BigInt(a) - BigInt(b));
};
const multiply = (a: Int, b: Int): Int => {
  if (typeof a === 'number' && typeof b === 'number') {
    const product = a * b;
    // `+ 0` turns -0, which no int is, into 0.
    if (Number.isSafeInteger(product)) return product + 0;
  }
  return checkedInt(BigInt(a) * BigInt(b));
};
const divide = (a: Int, b: Int): Int => {
  // biome-ignore lint/suspicious/noDoubleEquals: 0 or 0n
  if (b == 0) fail('division by zero');
  if (typeof a === 'number' && typeof b === 'number') return Math.trunc(a / b) + 0;
  return checkedInt(BigInt(a) / BigInt(b));
};
const remainder = (a: Int, b: Int): Int => {
  // biome-ignore lint/suspicious/noDoubleEquals: 0 or 0n
  if (b == 0) fail('modulus by zero');
  if (typeof a === 'number' && typeof b === 'number') return (a % b) + 0;
  if (BigInt(a) === MIN_INT && BigInt(b) === -1n) fail('integer overflow');
  return checkedInt(BigInt(a) % BigInt(b));
};

const double = (value: number): CelDouble => new CelDouble(value);

const ORDERED = ['bool', 'int', 'uint', 'double', 'string', 'bytes', 'timestamp', 'duration'];
const NUMBERS = ['int', 'uint', 'double'];
const TEXTS = ['string', 'bytes'];

const TESTS: readonly (readonly [string, (order: number) => boolean])[] = [
  ['_<_', (order) => order < 0],
  ['_<=_', (order) => order <= 0],
  ['_>_', (order) => order > 0],
  ['_>=_', (order) => order >= 0],
];

const COMPARISONS = TESTS.flatMap(([name, test]) => {
  const run = (a: unknown, b: unknown): boolean => test(compare(a, b));
  return [
    ...ORDERED.map((type) =>
      overload(name, `(${type}, ${type}): bool`, run, TEXTS.includes(type) ? COMPARISON : undefined),
    ),
    ...NUMBERS.flatMap((a) => NUMBERS.filter((b) => a !== b).map((b) => overload(name, `(${a}, ${b}): bool`, run))),
  ];
});

const contains = (item: unknown, list: readonly unknown[]): boolean =>
  list.some((element) => equals(item, fromJson(element)));

export const OPERATORS: readonly Overload[] = [
  overload('_&&_', '(bool, bool): bool', fail),
  overload('_||_', '(bool, bool): bool', fail),
  overload('_?_:_', '(bool, A, A): A', fail),
  overload('!_', '(bool): bool', (value: boolean) => !value),
  overload('_==_', '(A, A): bool', equals, COMPARISON),
  overload('_!=_', '(A, A): bool', (a, b) => !equals(a, b), COMPARISON),
  ...COMPARISONS,
  overload('_+_', '(int, int): int', add),
  overload('_+_', '(uint, uint): uint', (a: CelUint, b: CelUint) => checkedUint(a.value + b.value)),
  overload('_+_', '(double, double): double', (a: CelDouble, b: CelDouble) => double(a.value + b.value)),
  overload('_+_', '(string, string): string', (a: string, b: string) => a + b, CONCATENATION),
  overload('_+_', '(bytes, bytes): bytes', (a: Uint8Array, b: Uint8Array) => joinBytes([a, b]), CONCATENATION),
  overload(
    '_+_',
    '(list(A), list(A)): list(A)',
    (a: readonly unknown[], b: readonly unknown[]) => [...a, ...b],
    LIST_CONCATENATION,
  ),
  overload('_+_', '(duration, duration): duration', (a: CelDuration, b: CelDuration) => plus(a, b)),
  overload('_+_', '(timestamp, duration): timestamp', (a: CelTimestamp, b: CelDuration) => moved(a, b.nanos)),
  overload('_+_', '(duration, timestamp): timestamp', (a: CelDuration, b: CelTimestamp) => moved(b, a.nanos)),
  overload('_-_', '(int, int): int', subtract),
  overload('_-_', '(uint, uint): uint', (a: CelUint, b: CelUint) => checkedUint(a.value - b.value)),
  overload('_-_', '(double, double): double', (a: CelDouble, b: CelDouble) => double(a.value - b.value)),
  overload('_-_', '(timestamp, timestamp): duration', (a: CelTimestamp, b: CelTimestamp) => between(a, b)),
  overload('_-_', '(timestamp, duration): timestamp', (a: CelTimestamp, b: CelDuration) => moved(a, -b.nanos)),
  overload(
    '_-_',
    '(duration, duration): duration',
    (a: CelDuration, b: CelDuration) => new CelDuration(a.nanos - b.nanos),
  ),
  overload('_*_', '(int, int): int', multiply),
  overload('_*_', '(uint, uint): uint', (a: CelUint, b: CelUint) => checkedUint(a.value * b.value)),
  overload('_*_', '(double, double): double', (a: CelDouble, b: CelDouble) => double(a.value * b.value)),
  overload('_/_', '(int, int): int', divide),
  overload('_/_', '(uint, uint): uint', (a: CelUint, b: CelUint) =>
    b.value === 0n ? fail('division by zero') : checkedUint(a.value / b.value),
  ),
  overload('_/_', '(double, double): double', (a: CelDouble, b: CelDouble) => double(a.value / b.value)),
  overload('_%_', '(int, int): int', remainder),
  overload('_%_', '(uint, uint): uint', (a: CelUint, b: CelUint) =>
    b.value === 0n ? fail('modulus by zero') : checkedUint(a.value % b.value),
  ),
  overload('-_', '(double): double', (a: CelDouble) => double(-a.value)),
  overload('-_', '(int): int', (a: Int) => subtract(0, a)),
  overload('@in', '(A, list(A)): bool', contains, IN_LIST),
  overload('@in', '(A, map(A, B)): bool', (key: unknown, map: unknown) => mapFind(map, key) !== undefined),
  overload('_[_]', '(list(A), int): A', index),
  overload('_[_]', '(map(A, B), A): B', index),
  overload('_[_]', '(optional(list(A)), int): optional(A)', optionalIndex),
  overload('_[_]', '(optional(map(A, B)), A): optional(B)', optionalIndex),
  overload('_[?_]', '(list(A), int): optional(A)', optionalIndex),
  overload('_[?_]', '(optional(list(A)), int): optional(A)', optionalIndex),
  overload('_[?_]', '(map(A, B), A): optional(B)', optionalIndex),
  overload('_[?_]', '(optional(map(A, B)), A): optional(B)', optionalIndex),
];

const plus = (a: CelDuration, b: CelDuration): CelDuration => new CelDuration(a.nanos + b.nanos);
const moved = (at: CelTimestamp, by: bigint): CelTimestamp => new CelTimestamp(at.nanos + by);

function between(a: CelTimestamp, b: CelTimestamp): CelDuration {
  const nanos = a.nanos - b.nanos;
  return nanos < MIN_INT || nanos > MAX_INT ? fail('integer overflow') : new CelDuration(nanos);
}
