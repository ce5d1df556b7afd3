/** One expression of a webhook or policy, compiled once; a compile error shows up when it is evaluated. */
import {
  type CelBudget,
  CelBudgetError,
  CelCompileError,
  type CelCompileOptions,
  type CelProgram,
  type CelType,
  CelTypeNameError,
  compileCel,
  DYN,
} from '@coracle/cel/cel';

/** The evaluation of an expression failed; the message is for the user, failurePolicy says what it means. */
export class ExpressionFailed extends Error {
  /** True when the shared budget is used up: nothing further is evaluated. */
  readonly outOfBudget: boolean;
  /** Without the words around it. */
  readonly detail: string;
  readonly phase: 'compile' | 'evaluate';

  constructor(
    message: string,
    { outOfBudget = false, detail = message, phase = 'evaluate' }: Partial<Omit<ExpressionFailed, keyof Error>> = {},
  ) {
    super(message);
    this.name = 'ExpressionFailed';
    this.outOfBudget = outOfBudget;
    this.detail = detail;
    this.phase = phase;
  }
}

export interface CompiledExpression {
  readonly resultType: CelType;
  /** Throws ExpressionFailed. */
  run(bindings: Readonly<Record<string, unknown>>, budget: CelBudget): unknown;
  /** The same as plain JSON. */
  json(bindings: Readonly<Record<string, unknown>>, budget: CelBudget): unknown;
}

/** Compiles; never throws. */
export function compileExpression(expression: string, options: CelCompileOptions): CompiledExpression {
  let program: CelProgram;
  try {
    program = compileCel(expression, options);
  } catch (error) {
    if (!(error instanceof CelCompileError)) throw error;
    const fail = (): never => {
      throw new ExpressionFailed(`compilation error: ${error.message}`, { detail: error.message, phase: 'compile' });
    };
    return { resultType: DYN, run: fail, json: fail };
  }
  const evaluation =
    (form: 'run' | 'json'): CompiledExpression['run'] =>
    (bindings, budget) => {
      try {
        return program[form](bindings, budget);
      } catch (error) {
        throw failureOf(expression, error);
      }
    };
  return { resultType: program.resultType, run: evaluation('run'), json: evaluation('json') };
}

function failureOf(expression: string, error: unknown): ExpressionFailed {
  if (error instanceof ExpressionFailed) return error;
  if (error instanceof CelBudgetError && error.scope === 'total') {
    return new ExpressionFailed(error.message, { outOfBudget: true });
  }
  if (error instanceof CelTypeNameError) return new ExpressionFailed(`type mismatch: ${error.message}`);
  const detail = error instanceof Error ? error.message : String(error);
  return new ExpressionFailed(`expression '${expression}' resulted in error: ${detail}`, { detail });
}
