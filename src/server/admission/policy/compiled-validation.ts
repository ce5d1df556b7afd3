/** The expressions of a ValidatingAdmissionPolicy, compiled, and one evaluation of them (policy/validating/validator). */
import { BOOL, type CelBudget, celBudget, DYN, NULL, STRING } from '../../../api/cel/cel.ts';
import { expressionVariables } from '../../../api/kinds/builtin/policy-expressions.ts';
import type { ResourceInfo } from '../../../api/kinds/resource.ts';
import { type CompiledExpression, compileExpression, ExpressionFailed } from '../matching/compiled-expression.ts';
import { type AuthorizerFor, NO_AUTHORIZER, RequestBindings } from '../matching/expression-environment.ts';
import { compileMatchConditions } from '../matching/match-conditions.ts';
import type { ShownObjects } from '../matching/served-kinds.ts';
import type { AdmissionAttributes } from '../plugin.ts';
import type { Param } from './params.ts';
import type { ValidatingPolicySpec } from './policy-types.ts';
import { compileVariables } from './variables.ts';

/** What one evaluation of a policy may cost, and one expression of it. */
const BUDGET = 10_000_000;
const PER_CALL = 1_000_000;
/** Longer messages are not shown. */
const MAX_MESSAGE_BYTES = 5 * 1024;
const MAX_ANNOTATION_BYTES = 10 * 1024;

/** One validation that did not hold, or could not be decided and so counts as not holding. */
export interface Denial {
  readonly message: string;
  /** '' for a failure of the evaluation itself. */
  readonly reason: string;
  readonly expressionIndex: number;
}

export interface Evaluation {
  readonly denials: readonly Denial[];
  /** Errors of audit annotations under failurePolicy Fail: they refuse the request, whatever the actions are. */
  readonly annotationErrors: readonly string[];
  readonly annotations: readonly { readonly key: string; readonly value: string }[];
}

const NOTHING: Evaluation = { denials: [], annotationErrors: [], annotations: [] };

export interface EvaluationContext {
  readonly matched: ResourceInfo;
  /** The objects in its version. */
  readonly shown: ShownObjects;
  readonly param: Param;
  readonly namespaceObject: Readonly<Record<string, unknown>> | null;
  readonly authorizer: AuthorizerFor;
}

export interface CompiledValidation {
  evaluate(attributes: AdmissionAttributes, context: EvaluationContext): Evaluation;
}

/** Compiles a policy; what does not compile fails when it is evaluated. */
export function compileValidation(spec: ValidatingPolicySpec): CompiledValidation {
  const { validations = [], auditAnnotations = [], matchConditions = [], failurePolicy = 'Fail' } = spec;
  const fails = failurePolicy === 'Fail';
  const params = spec.paramKind ? DYN : undefined;
  const conditions = matchConditions.length
    ? compileMatchConditions(matchConditions, { failurePolicy, ...(params && { params }) })
    : undefined;
  const variables = compileVariables(spec.variables ?? [], { params });
  const full = expressionVariables({ params, authorizer: true, variables: variables.type });
  const plain = expressionVariables({ params, authorizer: false, variables: variables.type });
  const programs = validations.map((validation) => ({
    validation,
    program: compileExpression(validation.expression, {
      variables: full,
      resultTypes: [BOOL],
    }),
    message: validation.messageExpression
      ? compileExpression(validation.messageExpression, {
          variables: plain,
          resultTypes: [STRING],
        })
      : undefined,
  }));
  const annotations = auditAnnotations.map(({ key, valueExpression }) => ({
    key,
    program: compileExpression(valueExpression, {
      variables: full,
      resultTypes: [STRING, NULL],
    }),
  }));

  return {
    evaluate(attributes, { matched, shown, param, namespaceObject, authorizer }) {
      if (conditions) {
        const outcome = conditions.match(attributes, { matched, shown, params: param, authorizer });
        if (outcome.error !== undefined) return onlyFailure(outcome.error);
        if (!outcome.matches) return NOTHING;
      }
      const bindings = new RequestBindings(attributes, { matched, shown, params: param, namespaceObject, authorizer });
      const budget = celBudget(BUDGET, PER_CALL);
      variables.bind(bindings, budget);
      const outcomes: (boolean | string)[] = [];
      for (const { program } of programs) {
        try {
          outcomes.push(program.run(bindings.values, budget) === true);
        } catch (error) {
          if (!(error instanceof ExpressionFailed)) throw error;
          if (error.outOfBudget) return fails ? onlyFailure(error.message) : NOTHING;
          outcomes.push(error.message);
        }
      }
      const denials = denied(outcomes, { bindings, budget });
      try {
        return {
          ...annotate(annotations, { attributes, matched, shown, param, namespaceObject, authorizer, fails }),
          denials,
        };
      } catch (error) {
        // Annotations that use up their budget take the place of everything that was decided before.
        if (!(error instanceof ExpressionFailed)) throw error;
        return fails ? onlyFailure(error.message) : NOTHING;
      }

      function onlyFailure(message: string): Evaluation {
        return { ...NOTHING, denials: [{ message, reason: '', expressionIndex: 0 }] };
      }
    },
  };

  /**
   * An outcome is whether the validation holds, or why it could not be decided. Upstream makes every message after all
   * validations, wanted or not, from what is left of the budget; when that runs out, nothing that was decided counts. Where
   * it cannot run out, only those that are wanted are made.
   */
  function denied(
    outcomes: readonly (boolean | string)[],
    { bindings, budget }: { readonly bindings: RequestBindings; readonly budget: CelBudget },
  ): Denial[] {
    const most = PER_CALL * (programs.filter(({ message }) => message).length + (spec.variables ?? []).length);
    const texts = new Map<number, string>();
    let exhausted: string | undefined;
    for (const [i, { message }] of programs.entries()) {
      if (message === undefined || (budget.remaining >= most && outcomes[i] !== false)) continue;
      try {
        const value = message.run(bindings.values, budget);
        if (typeof value === 'string') texts.set(i, usableMessage(value));
      } catch (error) {
        if (!(error instanceof ExpressionFailed)) throw error;
        if (!error.outOfBudget) continue;
        exhausted = `failed messageExpression: ${error.message}`;
        break;
      }
    }
    return programs.flatMap(({ validation }, expressionIndex): Denial[] => {
      const outcome = outcomes[expressionIndex]!;
      const failure = typeof outcome === 'string' ? outcome : exhausted;
      if (failure !== undefined) return fails ? [{ message: failure, reason: '', expressionIndex }] : [];
      if (outcome === true) return [];
      const message =
        texts.get(expressionIndex) ||
        validation.message?.trim() ||
        `failed expression: ${validation.expression.trim()}`;
      return [{ message, reason: validation.reason ?? 'Invalid', expressionIndex }];
    });
  }

  /**
   * With a budget of their own, and variables evaluated anew within it; an authorizer can be named and has no value, as
   * upstream has it. Throws ExpressionFailed beyond the budget.
   */
  function annotate(
    list: readonly { readonly key: string; readonly program: CompiledExpression }[],
    context: EvaluationContext & { readonly attributes: AdmissionAttributes; readonly fails: boolean },
  ): Pick<Evaluation, 'annotations' | 'annotationErrors'> {
    if (list.length === 0) return NOTHING;
    const { attributes, param } = context;
    const bindings = new RequestBindings(attributes, { ...context, params: param, authorizer: NO_AUTHORIZER });
    const budget = celBudget(BUDGET, PER_CALL);
    variables.bind(bindings, budget);
    const found: { key: string; value: string }[] = [];
    const errors: string[] = [];
    for (const { key, program } of list) {
      try {
        const value = program.run(bindings.values, budget);
        const text = typeof value === 'string' ? value.trim() : '';
        if (text !== '') found.push({ key, value: firstBytes(text) });
      } catch (error) {
        if (!(error instanceof ExpressionFailed)) throw error;
        if (error.outOfBudget) throw error;
        if (context.fails) errors.push(error.message);
      }
    }
    return { annotations: found, annotationErrors: errors };
  }
}

/** As many bytes as an annotation may have; what is left of a character that was cut becomes U+FFFD. */
function firstBytes(text: string): string {
  if (text.length * 3 <= MAX_ANNOTATION_BYTES) return text;
  const bytes = new TextEncoder().encode(text);
  return bytes.length <= MAX_ANNOTATION_BYTES
    ? text
    : new TextDecoder().decode(bytes.subarray(0, MAX_ANNOTATION_BYTES));
}

function usableMessage(value: string): string {
  const text = value.trim();
  const tooLong = text.length > MAX_MESSAGE_BYTES || new TextEncoder().encode(text).length > MAX_MESSAGE_BYTES;
  return tooLong || text.includes('\n') ? '' : text;
}
