/** The syntax tree of an expression. The checker writes its findings into the nodes; nobody else changes them. */
import type { Overload } from './declarations.ts';
import type { CelField, CelType } from './types.ts';

interface Node {
  /** Offset in the source, as cel-go places it: of the operator, the dot, the opening bracket. */
  readonly at: number;
  /** Set by the checker. */
  type?: CelType;
}

export interface Literal extends Node {
  readonly op: 'literal';
  readonly value: unknown;
  readonly literalType: CelType;
}

export interface Ident extends Node {
  readonly op: 'ident';
  readonly name: string;
  /** Set by the checker: the value of a name that is a type or a constant. */
  constant?: { readonly value: unknown };
}

export interface Select extends Node {
  readonly op: 'select';
  readonly operand: Expr;
  readonly field: string;
  /** `has(a.b)`. */
  readonly test: boolean;
  /** `a.?b`. */
  readonly optional: boolean;
  /** Set by the checker, when the operand is an object. */
  resolved?: CelField;
  /** Set by the checker, when the chain is the qualified name of a variable (`a.b.c`) or of a type. */
  qualified?: Ident;
}

export interface Call extends Node {
  readonly op: 'call';
  /** Changed by the checker to a qualified name (`sets.contains`). */
  name: string;
  target: Expr | undefined;
  readonly args: readonly Expr[];
  /** Set by the checker: what may be called, by the static types. */
  overloads?: readonly Overload[];
}

interface Entry {
  readonly value: Expr;
  /** `?value`. */
  readonly optional: boolean;
}

export interface ListLiteral extends Node {
  readonly op: 'list';
  readonly items: readonly Entry[];
}

export interface MapLiteral extends Node {
  readonly op: 'map';
  readonly entries: readonly (Entry & { readonly at: number; readonly key: Expr })[];
}

export interface StructLiteral extends Node {
  readonly op: 'struct';
  /** Changed by the checker to the full name. */
  name: string;
  readonly fields: readonly (Entry & { readonly at: number; readonly name: string })[];
}

type Quantifier = 'all' | 'exists' | 'existsOne';
export type FoldKind = Quantifier | 'map' | 'filter' | 'transformList' | 'transformMap' | 'transformMapEntry';

/** A macro over a list or a map: one loop, without the accumulator that cel-go spells out. */
export interface Fold extends Node {
  readonly op: 'fold';
  readonly kind: FoldKind;
  readonly range: Expr;
  /** One name, or two: index and item, key and value. */
  readonly names: readonly [string] | readonly [string, string];
  /** The condition; of `map` and the transformations the optional filter. */
  readonly test: Expr | undefined;
  /** What `map` and the transformations make of an element. */
  readonly body: Expr | undefined;
}

/** `name` stands for `init` in `body` (`optMap`, `sortBy`, `cel.bind`). Evaluated at first use. */
export interface Bind extends Node {
  readonly op: 'bind';
  readonly name: string;
  readonly init: Expr;
  readonly body: Expr;
}

export type Expr = Literal | Ident | Select | Call | ListLiteral | MapLiteral | StructLiteral | Fold | Bind;

/** The text of a qualified name (`a.b.c`), or undefined when the expression is something else. */
export function qualifiedName(expr: Expr): string | undefined {
  if (expr.op === 'ident') return expr.name;
  if (expr.op !== 'select' || expr.test || expr.optional) return undefined;
  const prefix = qualifiedName(expr.operand);
  return prefix === undefined ? undefined : `${prefix}.${expr.field}`;
}

/** The direct parts of an expression, in order of the source. */
export function children(expr: Expr): readonly Expr[] {
  switch (expr.op) {
    case 'literal':
    case 'ident':
      return [];
    case 'select':
      return expr.qualified === undefined ? [expr.operand] : [];
    case 'call':
      return expr.target === undefined ? expr.args : [expr.target, ...expr.args];
    case 'list':
      return expr.items.map((item) => item.value);
    case 'map':
      return expr.entries.flatMap((entry) => [entry.key, entry.value]);
    case 'struct':
      return expr.fields.map((field) => field.value);
    case 'fold':
      return [expr.range, expr.test, expr.body].filter((part) => part !== undefined);
    case 'bind':
      return [expr.init, expr.body];
  }
}

export const literal = (at: number, literalType: CelType, value: unknown): Expr => ({
  op: 'literal',
  at,
  value,
  literalType,
});

/** A call of a function or an operator. */
export const call = (at: number, name: string, args: readonly Expr[], target?: Expr): Call => ({
  op: 'call',
  at,
  name,
  target,
  args,
});

/** `a && b && c` becomes a balanced tree, as in cel-go: a long chain stays shallow. `ats`: where the signs stand. */
export function logical(sign: '||' | '&&', terms: readonly Expr[], ats: readonly number[]): Expr {
  const balance = (low: number, high: number): Expr => {
    if (low === high) return terms[low]!;
    const middle = Math.floor((low + high) / 2);
    return call(ats[middle]!, `_${sign}_`, [balance(low, middle), balance(middle + 1, high)]);
  };
  return balance(0, terms.length - 1);
}

/** True for `operand.field`, `operand.?field` and `has(operand.field)` anywhere in the expression; an index is no field. */
export function selectsField(expr: Expr, operand: string, field: string): boolean {
  if (expr.op === 'select' && expr.field === field && expr.operand.op === 'ident' && expr.operand.name === operand) {
    return true;
  }
  return children(expr).some((part) => selectsField(part, operand, field));
}
