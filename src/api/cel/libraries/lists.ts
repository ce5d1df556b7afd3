/** The lists of Kubernetes (isSorted, sum, ...), the lists extension version 3, and sets. */
import { type CostModel, fixed, LIST_COST, productModel, WALK } from '../cost-models.ts';
import { type Overload, overload } from '../declarations.ts';
import { compare, equals } from '../equality.ts';
import { CelEvaluationError } from '../errors.ts';
import { CelDouble, CelDuration, CelUint, fromJson } from '../values.ts';
import { OPERATORS } from './operators.ts';

type List = readonly unknown[];

const fail = (message: string): never => {
  throw new CelEvaluationError(message);
};
const at = (list: List, position: number): unknown => fromJson(list[position]);

const isSorted = (list: List): boolean => list.every((_, i) => i === 0 || compare(at(list, i - 1), at(list, i)) <= 0);

const additions = OPERATORS.filter(({ name }) => name === '_+_');

function add(a: unknown, b: unknown): unknown {
  const kind =
    a instanceof CelDouble ? 'double' : a instanceof CelUint ? 'uint' : a instanceof CelDuration ? 'duration' : 'int';
  const overload = additions.find(({ args }) => args.every((arg) => arg.kind === kind))!;
  return overload.run(a, b);
}

/** The zero decides the kind of an empty sum only. */
const sum =
  (zero: unknown) =>
  (list: List): unknown =>
    list.length === 0 ? zero : list.slice(1).reduce((total, _, i) => add(total, at(list, i + 1)), at(list, 0));

const extreme =
  (name: string, sign: number) =>
  (list: List): unknown => {
    if (list.length === 0) fail(`${name} called on empty list`);
    let best = at(list, 0);
    for (let i = 1; i < list.length; i++) if (compare(at(list, i), best) * sign > 0) best = at(list, i);
    return best;
  };

const indexOf = (list: List, item: unknown): number => list.findIndex((element) => equals(fromJson(element), item));
const lastIndexOf = (list: List, item: unknown): number =>
  list.findLastIndex((element) => equals(fromJson(element), item));

const ORDERED = ['int', 'uint', 'double', 'bool', 'duration', 'timestamp', 'string', 'bytes'];
const SUMMED: readonly (readonly [string, unknown])[] = [
  ['int', 0],
  ['uint', new CelUint(0n)],
  ['double', new CelDouble(0)],
  ['duration', new CelDuration(0n)],
];

export const KUBERNETES_LISTS: readonly Overload[] = [
  ...ORDERED.flatMap((type) => [
    overload('isSorted', `list(${type}).(): bool`, isSorted, WALK),
    overload('min', `list(${type}).(): ${type}`, extreme('min', -1), WALK),
    overload('max', `list(${type}).(): ${type}`, extreme('max', 1), WALK),
  ]),
  ...SUMMED.map(([type, zero]) => overload('sum', `list(${type}).(): ${type}`, sum(zero), WALK)),
  overload('indexOf', 'list(A).(A): int', indexOf, WALK),
  overload('lastIndexOf', 'list(A).(A): int', lastIndexOf, WALK),
];

function slice(list: List, start: number | bigint, end: number | bigint): List {
  if (start < 0 || end < 0) fail(`cannot slice(${start}, ${end}), negative indexes not supported`);
  if (start > end) fail(`cannot slice(${start}, ${end}), start index must be less than or equal to end index`);
  if (end > list.length) fail(`cannot slice(${start}, ${end}), list is length ${list.length}`);
  return list.slice(Number(start), Number(end));
}

function flatten(list: List, depth: number | bigint = 1): unknown[] {
  if (depth < 0) fail('level must be non-negative');
  return list.flat(Number(depth));
}

function distinct(list: List): unknown[] {
  const kept: unknown[] = [];
  const scalars = new Set<unknown>();
  for (const raw of list) {
    const item = fromJson(raw);
    if (typeof item === 'string' || typeof item === 'boolean') {
      // Only their own kind can be equal to these.
      if (scalars.has(item)) continue;
      scalars.add(item);
    } else if (kept.some((known) => equals(known, item))) {
      continue;
    }
    kept.push(item);
  }
  return kept;
}

function sortBy(list: List, keys: List): unknown[] {
  const kind = (value: unknown): string =>
    typeof value === 'object' ? (value?.constructor.name ?? 'null') : typeof value;
  const first = kind(keys[0]);
  if (keys.some((key) => kind(key) !== first && !(typeof key === 'bigint' || typeof key === 'number'))) {
    fail('list elements must have the same type');
  }
  const order = list.map((_, i) => i).sort((a, b) => compare(at(keys, a), at(keys, b)));
  return order.map((i) => at(list, i));
}

function range(count: number | bigint): number[] {
  // The result is memory, so it has a bound of its own beside the cost.
  if (count > MAX_RANGE) fail(`lists.range() argument exceeds ${MAX_RANGE}`);
  return Array.from({ length: Math.max(Number(count), 0) }, (_, i) => i);
}
/** Longest list that `lists.range` makes. */
const MAX_RANGE = 1_000_000;

/** A call that makes a list. */
const NEW_LIST = 1 + LIST_COST;
const COPY: CostModel = {
  after: true,
  run: (_, result) => NEW_LIST + (Array.isArray(result) ? result.length : 0),
  estimate: ({ sizes }) => ({
    cost: { min: NEW_LIST, max: NEW_LIST + sizes[0]!.max },
    size: { min: 0, max: sizes[0]!.max },
  }),
};
/** Every element is held against every other, and a list is made of them: `times` over. */
const square = (times: number): CostModel => ({
  run: ([list]) => NEW_LIST + times * (list as List).length ** 2,
  estimate: ({ sizes }) => ({
    cost: { min: NEW_LIST, max: Math.min(NEW_LIST + times * sizes[0]!.max ** 2, 2 ** 64) },
    size: sizes[0]!,
  }),
});
const SQUARE = square(2);
const RANGE: CostModel = {
  after: true,
  run: (_, result) => NEW_LIST + (result as List).length,
  estimate: () => ({ cost: fixed(NEW_LIST) }),
};

export const LISTS: readonly Overload[] = [
  overload('slice', 'list(A).(int, int): list(A)', slice, COPY),
  overload('flatten', 'list(list(A)).(): list(A)', flatten, COPY),
  overload('flatten', 'list(dyn).(int): list(dyn)', flatten, COPY),
  overload('distinct', 'list(A).(): list(A)', distinct, SQUARE),
  overload('reverse', 'list(A).(): list(A)', (list: List) => [...list].reverse(), COPY),
  ...ORDERED.flatMap((type) => [
    overload('sort', `list(${type}).(): list(${type})`, (list: List) => sortBy(list, list), SQUARE),
    overload('@sortByAssociatedKeys', `list(A).(list(${type})): list(A)`, sortBy, SQUARE),
  ]),
  overload('lists.range', '(int): list(int)', range, RANGE),
];

const containsAll = (list: List, part: List): boolean => part.every((item) => indexOf(list, fromJson(item)) !== -1);

const ONCE = productModel(1);
/** Each set is looked for in the other. */
const TWICE = productModel(2);

export const SETS: readonly Overload[] = [
  overload('sets.contains', '(list(A), list(A)): bool', containsAll, ONCE),
  overload('sets.equivalent', '(list(A), list(A)): bool', (a, b) => containsAll(a, b) && containsAll(b, a), TWICE),
  overload(
    'sets.intersects',
    '(list(A), list(A)): bool',
    (a: List, b: List) => a.some((item) => indexOf(b, fromJson(item)) !== -1),
    ONCE,
  ),
];
