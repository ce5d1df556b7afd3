/** matchConditions of webhooks and policies (admission/plugin/webhook/matchconditions). */

import type { ResourceInfo } from '@coracle/apimachinery/types/resource';
import { BOOL, type CelType, celBudget } from '@coracle/cel/cel';
import { expressionVariables } from '../../kinds/builtin/policy-expressions.ts';
import type { AdmissionAttributes } from '../plugin.ts';
import { compileExpression, ExpressionFailed } from './compiled-expression.ts';
import { type AuthorizerFor, RequestBindings } from './expression-environment.ts';
import type { ShownObjects } from './served-kinds.ts';

export interface MatchCondition {
  readonly name: string;
  readonly expression: string;
}

/** What one run of the conditions may cost, and one condition of them. */
const BUDGET = 2_500_000;
const PER_CALL = 1_000_000;

export type MatchConditions = ReturnType<typeof compileMatchConditions>;

interface Context {
  readonly matched: ResourceInfo;
  readonly shown: ShownObjects;
  readonly params: Readonly<Record<string, unknown>> | null;
  readonly authorizer: AuthorizerFor;
}

/** Compiles the conditions. `params` is the type of `params` where there are some. */
export function compileMatchConditions(
  conditions: readonly MatchCondition[],
  { failurePolicy, params }: { readonly failurePolicy: 'Fail' | 'Ignore'; readonly params?: CelType },
) {
  const variables = expressionVariables({ params, authorizer: true });
  const programs = conditions.map(({ expression }) =>
    compileExpression(expression, { variables, resultTypes: [BOOL] }),
  );
  const failed = (error: string) => (failurePolicy === 'Fail' ? { matches: false, error } : { matches: false });
  return {
    /** One false condition decides, whatever fails beside it. `error` is set when failurePolicy Fail turns one into a no. */
    match(attributes: AdmissionAttributes, context: Context): { readonly matches: boolean; readonly error?: string } {
      // A namespace is not shown to conditions, and `request.resource` stays what was asked for.
      const scope = { ...context, resource: attributes.info, namespaceObject: null };
      const bindings = new RequestBindings(attributes, scope);
      const budget = celBudget(BUDGET, PER_CALL);
      const errors: string[] = [];
      for (const program of programs) {
        try {
          if (program.run(bindings.values, budget) === false) return { matches: false };
        } catch (error) {
          if (!(error instanceof ExpressionFailed)) throw error;
          if (error.outOfBudget) return failed(error.message);
          errors.push(error.message);
        }
      }
      if (errors.length === 0) return { matches: true };
      const distinct = [...new Set(errors)];
      return failed(distinct.length === 1 ? distinct[0]! : `[${distinct.join(', ')}]`);
    },
  };
}
