/** `variables.x` of a policy: evaluated when first asked for, once for each evaluation of the policy. */
import { type CelBudget, CelBudgetError, CelEvaluationError, type CelType } from '@coracle/cel/cel';
import { expressionVariables, typeOfVariables } from '../../kinds/builtin/policy-expressions.ts';
import { type CompiledExpression, compileExpression, ExpressionFailed } from '../matching/compiled-expression.ts';
import type { RequestBindings } from '../matching/expression-environment.ts';
import type { Variable } from './policy-types.ts';

export type CompiledVariables = ReturnType<typeof compileVariables>;

interface Compiled {
  readonly name: string;
  readonly program: CompiledExpression;
}

/** Compiles the variables in order: each may use the ones before it. */
export function compileVariables(variables: readonly Variable[], parts: { readonly params: CelType | undefined }) {
  const fields: Record<string, CelType> = {};
  const compiled: Compiled[] = [];
  for (const { name, expression } of variables) {
    const program = compileExpression(expression, {
      variables: expressionVariables({ ...parts, authorizer: true, variables: typeOfVariables(fields) }),
    });
    compiled.push({ name, program });
    fields[name] = program.resultType;
  }
  return {
    /** The type of `variables`. */
    type: typeOfVariables(fields),
    /** Puts them into the bindings; what they cost is taken from `budget`. */
    bind(bindings: RequestBindings, budget: CelBudget): void {
      const holder: Record<string, unknown> = {};
      bindings.variables = holder;
      for (const one of compiled) defineLazy(holder, one, { bindings, budget });
    },
  };
}

function defineLazy(
  holder: Record<string, unknown>,
  { name, program }: Compiled,
  { bindings, budget }: { readonly bindings: RequestBindings; readonly budget: CelBudget },
): void {
  let failure: unknown;
  Object.defineProperty(holder, name, {
    configurable: true,
    enumerable: true,
    get(): unknown {
      if (failure !== undefined) throw failure;
      try {
        const value = program.run(bindings.values, budget);
        Object.defineProperty(holder, name, { value, enumerable: true });
        return value;
      } catch (error) {
        failure = failureOf(name, error);
        throw failure;
      }
    },
  });
}

function failureOf(name: string, error: unknown): unknown {
  if (!(error instanceof ExpressionFailed)) return error;
  if (error.outOfBudget) return new CelBudgetError('total');
  return new CelEvaluationError(`composited variable ${JSON.stringify(name)} fails to ${error.phase}: ${error.detail}`);
}
