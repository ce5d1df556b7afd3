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
import type { ValidatingPolicySpec, Validation } from './policy-types.ts';
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
  const variables = compileVariables(spec.variables ?? [], { params, libraries: ['authorizer'] });
  const full = expressionVariables({ params, authorizer: true, variables: variables.type });
  const plain = expressionVariables({ params, authorizer: false, variables: variables.type });
  const programs = validations.map((validation) => ({
    validation,
    program: compileExpression(validation.expression, {
      variables: full,
      resultTypes: [BOOL],
      libraries: ['authorizer'],
    }),
    message: validation.messageExpression
      ? compileExpression(validation.messageExpression, {
          variables: plain,
          resultTypes: [STRING],
          libraries: ['authorizer'],
        })
      : undefined,
  }));
  const annotations = auditAnnotations.map(({ key, valueExpression }) => ({
    key,
    program: compileExpression(valueExpression, {
      variables: full,
      resultTypes: [STRING, NULL],
      libraries: ['authorizer'],
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
      const denials: Denial[] = [];
      for (const [expressionIndex, { validation, program, message }] of programs.entries()) {
        try {
          if (program.run(bindings.values, budget) === true) continue;
          const text = denialMessage({ validation, message }, { bindings, budget });
          denials.push({ message: text, reason: validation.reason ?? 'Invalid', expressionIndex });
        } catch (error) {
          if (!(error instanceof ExpressionFailed)) throw error;
          if (error.outOfBudget) return fails ? onlyFailure(error.message) : NOTHING;
          if (fails) denials.push({ message: error.message, reason: '', expressionIndex });
        }
      }
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

/** messageExpression, else message, else the expression itself. A message expression that fails changes no verdict. */
function denialMessage(
  { validation, message }: { readonly validation: Validation; readonly message: CompiledExpression | undefined },
  { bindings, budget }: { readonly bindings: RequestBindings; readonly budget: CelBudget },
): string {
  let text = '';
  if (message) {
    try {
      const value = message.run(bindings.values, budget);
      if (typeof value === 'string') text = usableMessage(value);
    } catch (error) {
      if (!(error instanceof ExpressionFailed)) throw error;
      if (error.outOfBudget) throw new ExpressionFailed(`failed messageExpression: ${error.message}`);
    }
  }
  return text || validation.message?.trim() || `failed expression: ${validation.expression.trim()}`;
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
