/** Static worst-case cost, as cel-go's checker computes it, from the declared bounds of the data. */
import {
  ANY_SIZE,
  addRange,
  type CallSizes,
  fixed,
  LIST_COST,
  MAP_COST,
  multiplyRange,
  ONE,
  type Range,
  STRUCT_COST,
  UNBOUNDED,
  unionRange,
} from './cost-models.ts';
import { type Bind, type Call, children, type Expr, type Fold, type Ident } from './syntax.ts';
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
        const cost = this.#sum(children(expr));
        this.#known.set(expr, { size: fixed(expr.items.length), value: this.#union(expr.items.map(entryValue)) });
        return addRange(cost, fixed(LIST_COST));
      }
      case 'map': {
        const { entries } = expr;
        const cost = this.#sum(children(expr));
        const key = this.#union(entries.map((entry) => entry.key));
        this.#known.set(expr, { size: fixed(entries.length), key, value: this.#union(entries.map(entryValue)) });
        return addRange(cost, fixed(MAP_COST));
      }
      case 'struct':
        return addRange(this.#sum(children(expr)), fixed(STRUCT_COST));
      case 'fold':
        return this.#fold(expr);
      case 'bind':
        return this.#bind(expr);
    }
  }

  #sum(parts: readonly Expr[]): Range {
    return parts.reduce((sum, part) => addRange(sum, this.cost(part)), fixed(0));
  }

  /** What the sizes of the members of a literal lie within. */
  #union(members: readonly Expr[]): Range {
    return members.length === 0 ? fixed(0) : members.map((member) => this.size(member)).reduce(unionRange);
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
    const name = expr.op === 'select' ? expr.qualified : expr;
    if (name?.op === 'ident' && name.constant !== undefined) return this.#bareName;
    return (expr.op === 'ident' ? this.#localOf(expr) : undefined) ?? {};
  }

  #localOf(ident: Ident): Known | undefined {
    return this.#locals.findLast(({ name }) => name === ident.name)?.known;
  }

  #call(expr: Call): Range {
    const args = children(expr);
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
      default: {
        const isGlance = expr.name === '_==_' && args.every(isOpaque);
        return addRange(sum, isGlance ? fixed(1) : this.#function(expr, args));
      }
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
    if (expr.op === 'ident') return this.#localOf(expr)?.declared ?? true;
    if (expr.op === 'select') return expr.qualified !== undefined || (!expr.optional && this.#isDeclared(expr.operand));
    return expr.op === 'call' && expr.name === '_[_]' && this.#isDeclared(expr.args[0]!);
  }

  #function(expr: Call, args: readonly Expr[]): Range {
    const sizes: CallSizes = {
      sizes: args.map((arg) => this.size(arg)),
      elements: args.map((arg) => elementSize(arg.type!, this.#isDeclared(arg))),
      literals: args.map((arg) => (arg.op === 'literal' ? arg.value : undefined)),
      member: expr.target !== undefined,
      list: args[0]?.type?.kind === 'list',
    };
    const estimates = (expr.overloads ?? []).map(({ cost = ONE }) => cost.estimate(sizes));
    const bounds = estimates.map(({ size }) => size).filter((size) => size !== undefined);
    const [a, b] = args.map((arg) => this.#knownOf(arg));
    const value = expr.name === '_+_' ? bothOrNone(a?.value, b?.value) : undefined;
    const size = bounds.length > 0 ? bounds.reduce(unionRange) : declaredSize(expr.type!);
    this.#known.set(expr, { size, value });
    return estimates.length > 0 ? estimates.map(({ cost }) => cost).reduce(unionRange) : fixed(1);
  }

  #fold(expr: Fold): Range {
    const range = this.cost(expr.range);
    const count = this.size(expr.range);
    const known = this.#knownOf(expr.range);
    const isMap = expr.range.type!.kind === 'map';
    const declared = this.#isDeclared(expr.range);
    const sizes = expr.names.length === 2 ? [known.key, known.value] : [isMap ? known.key : known.value];
    for (const [i, name] of expr.names.entries()) this.#locals.push({ name, known: { size: sizes[i], declared } });
    const test = expr.test === undefined ? undefined : this.cost(expr.test);
    const body = expr.body === undefined ? undefined : this.cost(expr.body);
    this.#locals.length -= expr.names.length;
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
    default: {
      const step = addRange(body!, fixed(JOINING[expr.kind]));
      const isList = expr.kind === 'map' || expr.kind === 'transformList';
      return {
        init: fixed((isList ? LIST_COST : MAP_COST) + 1),
        turn: test === undefined ? step : addRange(test, unionRange(fixed(1), step)),
      };
    }
  }
}

/** What it costs to join a value to the accumulator. */
const JOINING = { map: LIST_COST + 2, transformList: LIST_COST + 2, transformMap: 3, transformMapEntry: 2 };

const entryValue = ({ value }: { readonly value: Expr }): Expr => value;
const bothOrNone = (a: Range | undefined, b: Range | undefined): Range | undefined =>
  a === undefined || b === undefined ? undefined : unionRange(a, b);

function literalSize(value: unknown): Range {
  if (typeof value === 'string') return fixed(codePoints(value));
  return fixed(value instanceof Uint8Array ? value.length : 1);
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
