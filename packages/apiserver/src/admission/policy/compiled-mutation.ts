/** The mutations of a MutatingAdmissionPolicy, compiled (policy/mutating/compilation). */
import { DYN, JSON_PATCH, listOf, MUTATION_OBJECT } from '@coracle/cel/cel';
import { expressionVariables } from '../../kinds/builtin/policy-expressions.ts';
import { type CompiledExpression, compileExpression } from '../matching/compiled-expression.ts';
import { compileMatchConditions, type MatchConditions } from '../matching/match-conditions.ts';
import type { MutatingPolicySpec } from './policy-types.ts';
import { type CompiledVariables, compileVariables } from './variables.ts';

export interface CompiledMutation {
  readonly conditions: MatchConditions | undefined;
  readonly variables: CompiledVariables;
  readonly mutations: readonly {
    readonly patchType: string;
    readonly program: CompiledExpression;
  }[];
}

const LIBRARIES = ['mutation'] as const;

/** Compiles a policy; what does not compile fails when it is evaluated. */
export function compileMutation(spec: MutatingPolicySpec): CompiledMutation {
  const { mutations = [], matchConditions = [], failurePolicy = 'Fail' } = spec;
  const params = spec.paramKind ? DYN : undefined;
  const variables = compileVariables(spec.variables ?? [], { params });
  const names = expressionVariables({ params, authorizer: true, variables: variables.type });
  return {
    conditions: matchConditions.length
      ? compileMatchConditions(matchConditions, { failurePolicy, ...(params && { params }) })
      : undefined,
    variables,
    mutations: mutations.map(({ patchType, applyConfiguration, jsonPatch }) => {
      const isPatch = patchType === 'JSONPatch';
      const { expression = '' } = (isPatch ? jsonPatch : applyConfiguration) ?? {};
      const resultTypes = [isPatch ? listOf(JSON_PATCH) : MUTATION_OBJECT];
      return {
        patchType,
        program: compileExpression(expression, { variables: names, resultTypes, libraries: LIBRARIES }),
      };
    }),
  };
}
