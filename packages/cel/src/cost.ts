/** Static worst-case cost, as cel-go's checker computes it, from the declared bounds of the data. */
import {
  ANY_SIZE,
  addRange,
  type CallSizes,
  fixed,
  LIST_COST,
  MAP_COST,
  multiplyRange,
  type Range,
  STRUCT_COST,
  UNBOUNDED,
  unionRange,
} from './cost-models.ts';
import type { Bind, Call, Expr, Fold } from './syntax.ts';
import type { CelType } from './types.ts';
import { codePoints } from './values.ts';

/** The upper end of the estimate, in cost units; at most 2^64. `self` is the type of the variable that rules speak of. */
export const estimateCost = (root: Expr, self?: CelType): number => new Estimator(self).cost(root).max;

/** What is known of a value besides its type. */
interface Known {
  readonly size?: Range | undefined;
  /** Sizes of items of a list; of keys and values of a map. */
  readonly key?: Range | undefined;
  readonly value?: Range | undefined;
  /** Of a local name: whether it stands for a part of a variable. */
  readonly declared?: boolean;
}

class Estimator {
  readonly #known = new Map<Expr, Known>();
  readonly #locals: { readonly name: string; readonly known: Known }[] = [];
  /** The estimator of Kubernetes takes any bare name for the whole object. */
  readonly #bareName: Known;

  constructor(self: CelType | undefined) {
    this.#bareName = { size: (self && declaredSize(self)) ?? fixed(0) };
  }

  cost(expr: Expr): Range {
    switch (expr.op) {
      case 'literal':
        return fixed(0);
      case 'ident':
        return fixed(1);
      case 'select': {
        if (expr.qualified !== undefined) return fixed(1);
        const operand = this.cost(expr.operand);
        if (expr.test) return operand;
        const kind = expr.operand.type!.kind;
        return expr.optional || kind === 'map' || kind === 'object' ? addRange(operand, fixed(1)) : operand;
      }
      case 'call':
        return this.#call(expr);
      case 'list': {
        const cost = this.#sum(expr.items.map((item) => item.value));
        const value = expr.items.map((item) => this.size(item.value));
        this.#known.set(expr, { size: fixed(expr.items.length), value: unionAll(value) });
        return addRange(cost, fixed(LIST_COST));
      }
      case 'map': {
        const cost = this.#sum(expr.entries.flatMap((entry) => [entry.key, entry.value]));
        this.#known.set(expr, {
          size: fixed(expr.entries.length),
          key: unionAll(expr.entries.map((entry) => this.size(entry.key))),
          value: unionAll(expr.entries.map((entry) => this.size(entry.value))),
        });
        return addRange(cost, fixed(MAP_COST));
      }
      case 'struct':
        return addRange(this.#sum(expr.fields.map((field) => field.value)), fixed(STRUCT_COST));
      case 'fold':
        return this.#fold(expr);
      case 'bind':
        return this.#bind(expr);
    }
  }

  #sum(parts: readonly Expr[]): Range {
    return parts.reduce((sum, part) => addRange(sum, this.cost(part)), fixed(0));
  }

  /** The size of a value that was costed before. */
  size(expr: Expr): Range {
    // What may be inside of an optional has no bounds that anybody would know.
    if (expr.type?.kind === 'optional') return (expr.op === 'ident' ? typeSize(expr.type) : undefined) ?? ANY_SIZE;
    return this.#knownOf(expr).size ?? typeSize(expr.type!) ?? ANY_SIZE;
  }

  #knownOf(expr: Expr): Known {
    const known = this.#known.get(expr);
    if (known !== undefined) return known;
    if (expr.op === 'literal') return { size: literalSize(expr.value) };
    if (expr.op === 'ident' && expr.constant !== undefined) return this.#bareName;
    if (expr.op === 'select' && expr.qualified?.constant !== undefined) return this.#bareName;
    if (expr.op === 'ident') return this.#locals.findLast(({ name }) => name === expr.name)?.known ?? {};
    return {};
  }

  #call(expr: Call): Range {
    const args = expr.target === undefined ? expr.args : [expr.target, ...expr.args];
    const costs = args.map((arg) => this.cost(arg));
    const sum = costs.reduce(addRange, fixed(0));
    switch (expr.name) {
      case 'dyn':
        this.#known.set(expr, { ...this.#knownOf(args[0]!), size: this.size(args[0]!) });
        return addRange(sum, fixed(1));
      case '_&&_':
      case '_||_':
        return { min: costs[0]!.min, max: sum.max };
      case '_?_:_':
        return this.#conditional(expr, args, costs);
      case '_[_]':
        this.#known.set(expr, { size: this.#knownOf(args[0]!).value ?? declaredSize(expr.type!) });
        return addRange(sum, fixed(1));
      case '_==_':
        if (isOpaque(args[0]!) && isOpaque(args[1]!)) return addRange(sum, fixed(1));
        return addRange(sum, this.#function(expr, args));
      default:
        return addRange(sum, this.#function(expr, args));
    }
  }

  #conditional(expr: Call, args: readonly Expr[], [test, yes, no]: readonly Range[]): Range {
    const [a, b] = [this.#knownOf(args[1]!), this.#knownOf(args[2]!)];
    this.#known.set(expr, {
      size: unionRange(this.size(args[1]!), this.size(args[2]!)),
      key: bothOrNone(a.key, b.key),
      value: bothOrNone(a.value, b.value),
    });
    return addRange(test!, unionRange(yes!, no!));
  }

  /** Whether a value is read from a variable: only there the declared bounds of what is inside are known. */
  #isDeclared(expr: Expr): boolean {
    if (expr.op === 'ident') return this.#locals.findLast(({ name }) => name === expr.name)?.known.declared ?? true;
    if (expr.op === 'select') return expr.qualified !== undefined || (!expr.optional && this.#isDeclared(expr.operand));
    return expr.op === 'call' && expr.name === '_[_]' && this.#isDeclared(expr.args[0]!);
  }

  #function(expr: Call, args: readonly Expr[]): Range {
    let cost: Range | undefined;
    let size: Range | undefined;
    const sizes: CallSizes = {
      sizes: args.map((arg) => this.size(arg)),
      elements: args.map((arg) => elementSize(arg.type!, this.#isDeclared(arg))),
      literals: args.map((arg) => (arg.op === 'literal' ? arg.value : undefined)),
      member: expr.target !== undefined,
      list: args[0]?.type?.kind === 'list',
    };
    for (const overload of expr.overloads ?? []) {
      const estimate = overload.cost === undefined ? { cost: fixed(1) } : overload.cost.estimate(sizes);
      cost = cost === undefined ? estimate.cost : unionRange(cost, estimate.cost);
      const bound = 'size' in estimate ? estimate.size : undefined;
      if (bound !== undefined) size = size === undefined ? bound : unionRange(size, bound);
    }
    const [a, b] = args.map((arg) => this.#knownOf(arg));
    const value = expr.name === '_+_' ? bothOrNone(a?.value, b?.value) : undefined;
    this.#known.set(expr, { size: size ?? declaredSize(expr.type!), value });
    return cost ?? fixed(1);
  }

  #fold(expr: Fold): Range {
    const range = this.cost(expr.range);
    const count = this.size(expr.range);
    const known = this.#knownOf(expr.range);
    const isMap = expr.range.type!.kind === 'map';
    const declared = this.#isDeclared(expr.range);
    const key: Known = { size: known.key, declared };
    const value: Known = { size: known.value, declared };
    const locals = expr.names.length === 2 ? [key, value] : [isMap ? key : value];
    locals.forEach((local, i) => {
      this.#locals.push({ name: expr.names[i]!, known: local });
    });
    const test = expr.test === undefined ? undefined : this.cost(expr.test);
    const body = expr.body === undefined ? undefined : this.cost(expr.body);
    this.#locals.length -= locals.length;
    const collects = !['all', 'exists', 'existsOne'].includes(expr.kind);
    this.#known.set(expr, collects ? { size: count } : { size: fixed(1) });
    const { init, turn } = foldCosts(expr, test, body);
    return addRange(addRange(range, init), multiplyRange(count, turn));
  }

  #bind(expr: Bind): Range {
    const init = this.cost(expr.init);
    const known = { ...this.#knownOf(expr.init), size: this.size(expr.init), declared: false };
    this.#locals.push({ name: expr.name, known });
    const body = this.cost(expr.body);
    this.#known.set(expr, { ...this.#knownOf(expr.body), size: this.size(expr.body) });
    this.#locals.length--;
    return addRange(addRange(init, body), fixed(LIST_COST));
  }
}

/** Values that are compared at one glance, whatever they were read from: addresses, quantities, versions. */
const GLANCE = new Set(['net.IP', 'net.CIDR', 'kubernetes.Quantity', 'kubernetes.Semver']);
const isOpaque = ({ type }: Expr): boolean => type?.kind === 'opaque' && GLANCE.has(type.name ?? '');

/** The accumulator that cel-go spells out: its start and result, and what it adds to each turn. */
function foldCosts(expr: Fold, test: Range | undefined, body: Range | undefined): { init: Range; turn: Range } {
  const whole = (min: number, max: number): Range => ({ min, max });
  switch (expr.kind) {
    case 'all':
      // `@not_strictly_false(acc)` is 2; `acc && test` at least reads `acc`.
      return { init: fixed(1), turn: whole(3, 3 + test!.max) };
    case 'exists':
      return { init: fixed(1), turn: whole(4, 4 + test!.max) };
    case 'existsOne':
      return { init: fixed(2), turn: addRange(test!, whole(1, 2)) };
    case 'filter':
      return { init: fixed(LIST_COST + 1), turn: addRange(test!, whole(1, LIST_COST + 3)) };
    case 'map':
    case 'transformList': {
      const step = addRange(body!, fixed(LIST_COST + 2));
      return {
        init: fixed(LIST_COST + 1),
        turn: test === undefined ? step : addRange(test, unionRange(fixed(1), step)),
      };
    }
    case 'transformMap':
    case 'transformMapEntry': {
      const step = addRange(body!, fixed(expr.kind === 'transformMap' ? 3 : 2));
      return {
        init: fixed(MAP_COST + 1),
        turn: test === undefined ? step : addRange(test, unionRange(fixed(1), step)),
      };
    }
  }
}

const unionAll = (ranges: readonly Range[]): Range => (ranges.length === 0 ? fixed(0) : ranges.reduce(unionRange));
const bothOrNone = (a: Range | undefined, b: Range | undefined): Range | undefined =>
  a === undefined || b === undefined ? undefined : unionRange(a, b);

function literalSize(value: unknown): Range | undefined {
  if (typeof value === 'string') return fixed(codePoints(value));
  if (value instanceof Uint8Array) return fixed(value.length);
  return fixed(1);
}

/** Declared data has a bound; scalars made in the expression have size 1. */
const declaredSize = (type: CelType): Range | undefined =>
  type.maxElements === undefined ? undefined : { min: 0, max: Math.min(type.maxElements, UNBOUNDED) };

const SCALARS = new Set(['bool', 'int', 'uint', 'double', 'duration', 'timestamp']);

function typeSize(type: CelType): Range | undefined {
  const declared = declaredSize(type);
  if (declared !== undefined) return declared;
  if (type.kind === 'optional') return typeSize(type.params[0]!);
  return SCALARS.has(type.kind) ? fixed(1) : undefined;
}

/** The size of the text in a list, for walks that look into it. */
function elementSize(type: CelType, isDeclared: boolean): Range | undefined {
  const element = type.kind === 'list' ? type.params[0]! : undefined;
  if (element?.kind !== 'string' && element?.kind !== 'bytes') return undefined;
  return (isDeclared ? declaredSize(element) : undefined) ?? ANY_SIZE;
}
