import type { Environment } from './declarations.ts';
import { CelBudgetError } from './errors.ts';
import type { Expr, Ident } from './syntax.ts';

export interface Frame {
  /** Bound variables first, then local names. */
  readonly values: unknown[];
  cost: number;
  readonly limit: number;
}

/**
 * One node, ready to run. Gives a CEL value, or the `CelEvaluationError` that it fails with: what surrounds it goes on
 * evaluating its other parts, as upstream does, and their cost counts. Only an exhausted budget is thrown.
 */
export type Code = (frame: Frame) => unknown;

/** Where a declared variable goes. */
export interface Binding {
  readonly name: string;
  readonly slot: number;
  readonly wrap: (raw: unknown) => unknown;
}

/** Adds to the cost. @throws CelBudgetError beyond the limit of the call */
export function spend(frame: Frame, cost: number): void {
  frame.cost += cost;
  if (frame.cost > frame.limit) throw new CelBudgetError('call');
}

/** The compiler, as the parts see it that compile one kind of node. */
export interface NodeCompiler {
  readonly environment: Environment;
  compile(expr: Expr): Code;
  /** Compiles `run` with local names in slots of their own. */
  withLocals<T>(names: readonly string[], lazy: boolean, run: (slots: readonly number[]) => T): T;
  /** Reads a variable or a local name; `cost` is 0 where cel-go charges the path that it begins, not the name. */
  name(expr: Ident, cost: 0 | 1): Code;
}
