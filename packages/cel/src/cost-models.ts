/**
 * What calls cost: once at run time from actual sizes, once as a static range from declared sizes. Numbers are cel-go's
 * and those of the Kubernetes estimator; what has no model costs 1.
 */
import { CelMap, CelOpaque, CelOptional, codePoints, isInt, isPlainObject, sizeOf } from './values.ts';

/** A closed range of a size or a cost, capped at 2^64. */
export interface Range {
  readonly min: number;
  readonly max: number;
}

export const UNBOUNDED = 2 ** 64;
/** Share of a unit for each character that is looked at. */
export const TRAVERSAL = 0.1;
const REGEX_LENGTH = 0.25;
/** What making a list, a map, an object costs. */
export const LIST_COST = 10;
export const MAP_COST = 30;
export const STRUCT_COST = 40;

const cap = (value: number): number => Math.min(value, UNBOUNDED);
export const fixed = (value: number): Range => ({ min: value, max: value });
export const ANY_SIZE: Range = { min: 0, max: UNBOUNDED };
export const addRange = (a: Range, b: Range): Range => ({ min: cap(a.min + b.min), max: cap(a.max + b.max) });
export const multiplyRange = (a: Range, b: Range): Range => ({ min: cap(a.min * b.min), max: cap(a.max * b.max) });
export const scaleRange = (a: Range, by: number): Range => ({ min: share(a.min, by), max: share(a.max, by) });
export const unionRange = (a: Range, b: Range): Range => ({ min: Math.min(a.min, b.min), max: Math.max(a.max, b.max) });

/** `size * factor`, rounded up. Products like 30 * 0.1 are rounded as Go's float64 does, so no correction here. */
const share = (size: number, factor: number): number => cap(Math.ceil(size * factor));

/** What the estimator knows about the arguments of a call, the receiver first. */
export interface CallSizes {
  readonly sizes: readonly Range[];
  /** Of lists: the size of a string or bytes element; undefined for other elements. */
  readonly elements: readonly (Range | undefined)[];
  /** The values of literal arguments; undefined for others. */
  readonly literals: readonly unknown[];
  readonly member: boolean;
  /** Whether the first argument is a list. */
  readonly list: boolean;
}

export interface CostModel {
  /** The cost depends on the result. All others are paid first, so that nothing too dear is begun. */
  readonly after?: true;
  /** Upstream knows the cost by the name of the function, also while the overload is open until the evaluation. */
  readonly byName?: true;
  run(args: readonly unknown[], result: unknown): number;
  /** `size` is the size of the result, when the model bounds it. */
  estimate(call: CallSizes): { readonly cost: Range; readonly size?: Range };
}

/** The size that costs are counted by: code points of a text; what has no size counts 1. */
export function actualSize(value: unknown): number {
  if (typeof value === 'string') return codePoints(value);
  if (value instanceof CelOptional && value.value !== undefined) return actualSize(value.value);
  if (value instanceof CelOpaque) return value.size;
  return typeof value === 'object' && value !== null ? (sizeOf(value) ?? 1) : 1;
}

export const constant = (cost: number): CostModel => ({ run: () => cost, estimate: () => ({ cost: fixed(cost) }) });

/** A look into a value of a library, or `==` of two. */
export const ONE = constant(1);

/**
 * A call that looks at so much of one argument, whatever is in it. `size` bounds the result; `byName` as in `CostModel`, and
 * true unless it is said.
 */
const walkModel = (
  part: number,
  { arg = 0, byName = true, size }: { arg?: number; byName?: boolean; size?: (call: CallSizes) => Range } = {},
): CostModel => ({
  ...(byName && { byName }),
  run: (args) => share(actualSize(args[arg]), part),
  estimate: (call) => ({ cost: scaleRange(call.sizes[arg]!, part), ...(size && { size: size(call) }) }),
});

/** One walk over the first argument; the result is no longer than it. */
export const TRAVERSE = walkModel(TRAVERSAL, { size: ({ sizes }) => sizes[0]! });
/** A walk whose result has no size worth knowing. */
export const TRAVERSE_ONLY = walkModel(TRAVERSAL);
/** `startsWith`, `endsWith`: no more than the argument is looked at. */
export const PREFIX = walkModel(TRAVERSAL, { arg: 1, byName: false });
/** Two walks over the first argument. */
export const TRAVERSE_TWICE = walkModel(2 * TRAVERSAL);
/** `split`: at worst one element for each character. */
export const SPLIT = walkModel(2 * TRAVERSAL, {
  size({ sizes: [text], literals: [, , limit] }) {
    if (!isInt(limit)) return { min: 0, max: text!.max };
    return { min: 0, max: limit < 0 ? UNBOUNDED : Number(limit) };
  },
});
/** `replace`. */
export const REPLACE = walkModel(2 * TRAVERSAL, { size: ({ sizes: [a, b, c] }) => replacedSize(a!, b!, c!) });
/** `bytes(string)`: at most four bytes for a character. */
export const STRING_TO_BYTES = walkModel(TRAVERSAL, {
  byName: false,
  size: ({ sizes }) => ({ min: sizes[0]!.min, max: cap(sizes[0]!.max * 4) }),
});
/** `string(bytes)`. */
export const BYTES_TO_STRING = walkModel(TRAVERSAL, {
  byName: false,
  size: ({ sizes }) => ({ min: Math.floor(sizes[0]!.min / 4), max: sizes[0]!.max }),
});
/** `strings.quote`: at worst every character is escaped. */
export const QUOTE = walkModel(TRAVERSAL, {
  byName: false,
  // As upstream counts in 64 bits: twice what has no bound is nothing.
  size: ({ sizes }) => ({
    min: sizes[0]!.min + 2,
    max: sizes[0]!.max >= UNBOUNDED ? 0 : sizes[0]!.max * 2 + 2,
  }),
});

function replacedSize(text: Range, from: Range, to: Range): Range {
  const longest = to.max <= from.min ? text.max : cap(Math.ceil(text.max / from.min) * to.max);
  const shortest = from.max <= to.min ? text.min : cap(Math.ceil(text.min / from.max) * to.min);
  return {
    min: from.max === 0 ? cap(text.min + (text.min + 1) * to.min) : shortest,
    max: from.min === 0 ? cap(text.max + cap((text.max + 1) * to.max)) : longest,
  };
}

/** `join`. */
export const JOIN: CostModel = {
  byName: true,
  after: true,
  run: (_, result) => share(actualSize(result), 2 * TRAVERSAL),
  estimate({ sizes, elements }) {
    const list = sizes[0]!;
    let size = multiplyRange(list, elements[0] ?? fixed(0));
    if (sizes[1] !== undefined) {
      const gaps = { min: Math.max(list.min - 1, 0), max: Math.max(list.max - 1, 0) };
      size = addRange(size, multiplyRange(sizes[1], gaps));
    }
    return { cost: scaleRange(size, TRAVERSAL), size };
  },
};

const regexCost = (args: readonly unknown[]): number =>
  share(1 + actualSize(args[0]), TRAVERSAL) * share(actualSize(args[1]), REGEX_LENGTH);
const regexEstimate = ({ sizes }: CallSizes): Range =>
  multiplyRange(scaleRange(addRange(sizes[0]!, fixed(1)), TRAVERSAL), scaleRange(sizes[1]!, REGEX_LENGTH));

/** `matches`: length of the text times length of the pattern. */
export const REGEX: CostModel = { run: regexCost, estimate: (call) => ({ cost: regexEstimate(call) }) };

/** `matches(text, pattern)`: cel-go estimates only the member form. */
export const REGEX_AT_RUN: CostModel = { run: regexCost, estimate: ONE.estimate };

/** `find`, `findAll`. */
export const FIND: CostModel = {
  byName: true,
  run: regexCost,
  estimate: (call) => ({ cost: regexEstimate(call), size: { min: 0, max: call.sizes[0]!.max } }),
};

/** `contains`. */
export const CONTAINS: CostModel = {
  run: (args) => share(actualSize(args[0]), TRAVERSAL) * share(actualSize(args[1]), TRAVERSAL),
  estimate: ({ sizes }) => ({
    cost: multiplyRange(scaleRange(sizes[0]!, TRAVERSAL), scaleRange(sizes[1]!, TRAVERSAL)),
  }),
};

/** `==`, `<`, ... : up to the shorter operand. */
export const COMPARISON: CostModel = {
  run([a, b]) {
    if (typeof a !== 'object' && typeof a !== 'string') return 1;
    return share(Math.min(actualSize(a), actualSize(b)), TRAVERSAL);
  },
  estimate({ sizes }) {
    const max = Math.min(sizes[0]!.max, sizes[1]!.max);
    return { cost: scaleRange({ min: max > 0 ? 1 : 0, max }, TRAVERSAL) };
  },
};

/** `+` of strings and bytes. */
export const CONCATENATION: CostModel = {
  run: (args) => share(actualSize(args[0]) + actualSize(args[1]), TRAVERSAL),
  estimate({ sizes }) {
    const size = addRange(sizes[0]!, sizes[1]!);
    return { cost: scaleRange(size, TRAVERSAL), size };
  },
};

/** `+` of lists. */
export const LIST_CONCATENATION: CostModel = {
  run: () => 1,
  estimate: ({ sizes }) => ({ cost: fixed(1), size: addRange(sizes[0]!, sizes[1]!) }),
};

/** `x in list`: every element may be looked at. */
export const IN_LIST: CostModel = {
  run: (args) => actualSize(args[1]),
  estimate: ({ sizes }) => ({ cost: sizes[1]! }),
};

/** `isSorted`, `sum`, `min`, `max`, `indexOf`: one walk over all that is inside. */
export const WALK: CostModel = {
  byName: true,
  run: (args) => walk(args[0]),
  estimate({ sizes, elements, list }) {
    if (!list) return { cost: scaleRange(sizes[0]!, TRAVERSAL) };
    const element = elements[0];
    const each = element === undefined ? fixed(1) : addRange(fixed(1), scaleRange(element, TRAVERSAL));
    return { cost: multiplyRange(sizes[0]!, each) };
  },
};

function walk(value: unknown): number {
  if (typeof value === 'string') return Math.floor(Buffer.byteLength(value) * TRAVERSAL);
  if (value instanceof Uint8Array) return Math.floor(value.length * TRAVERSAL);
  if (Array.isArray(value)) return value.reduce((sum: number, item) => sum + walk(item), 0);
  const entries = value instanceof CelMap ? [...value.entries.values()] : isPlainObject(value) && Object.entries(value);
  return entries ? entries.reduce((sum, [key, item]) => sum + walk(key) + walk(item), 0) : 1;
}

/** Sets: every element against every other, `times` over. */
export const productModel = (times: number): CostModel => ({
  run: (args) => 1 + actualSize(args[0]) * actualSize(args[1]) * times,
  estimate: ({ sizes }) => ({ cost: addRange(fixed(1), scaleRange(multiplyRange(sizes[0]!, sizes[1]!), times)) }),
});

/** An address inside a network: twice the bytes of an address, and the text when it must be parsed. */
export const containsModel = (network: boolean, text: boolean): CostModel => ({
  byName: true,
  run(args) {
    const size = actualSize(args[0]);
    const base = share(2 * size, TRAVERSAL) + (network ? share(size, TRAVERSAL) + 1 : 0);
    return base + (text ? share(actualSize(args[1]), TRAVERSAL) : 0);
  },
  estimate({ sizes }) {
    const address = { min: 4, max: 16 };
    let cost = scaleRange(addRange(address, address), TRAVERSAL);
    if (network) cost = addRange(cost, addRange(scaleRange(address, TRAVERSAL), fixed(1)));
    if (text) cost = addRange(cost, scaleRange(sizes[1]!, TRAVERSAL));
    return { cost };
  },
});
