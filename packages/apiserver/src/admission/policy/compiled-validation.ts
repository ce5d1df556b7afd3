/** The expressions of a ValidatingAdmissionPolicy, compiled, and one evaluation of them (policy/validating/validator). */

import type { ResourceInfo } from '@coracle/apimachinery/types/resource';
import { BOOL, type CelBudget, celBudget, DYN, NULL, STRING } from '@coracle/cel/cel';
import { expressionVariables } from '../../kinds/builtin/policy-expressions.ts';
import { type CompiledExpression, compileExpression, ExpressionFailed } from '../matching/compiled-expression.ts';
import { type AuthorizerFor, NO_AUTHORIZER, RequestBindings } from '../matching/expression-environment.ts';
import { compileMatchConditions, type MatchConditions } from '../matching/match-conditions.ts';
import type { ShownObjects } from '../matching/served-kinds.ts';
import type { AdmissionAttributes } from '../plugin.ts';
import type { Param } from './params.ts';
import type { ValidatingPolicySpec, Validation as ValidationRule } from './policy-types.ts';
import { type CompiledVariables, compileVariables } from './variables.ts';

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

interface EvaluationContext {
  readonly matched: ResourceInfo;
  /** The objects in its version. */
  readonly shown: ShownObjects;
  readonly param: Param;
  readonly namespaceObject: Readonly<Record<string, unknown>> | null;
  readonly authorizer: AuthorizerFor;
}

/** Compiles a policy; what does not compile fails when it is evaluated. */
export const compileValidation = (spec: ValidatingPolicySpec) => new CompiledValidation(spec);

export class CompiledValidation {
  readonly #fails: boolean;
  readonly #conditions: MatchConditions | undefined;
  readonly #variables: CompiledVariables;
  readonly #programs: readonly {
    readonly validation: ValidationRule;
    readonly program: CompiledExpression;
    readonly message: CompiledExpression | undefined;
  }[];
  readonly #annotations: readonly { readonly key: string; readonly program: CompiledExpression }[];
  /** What all messages of an evaluation can cost at most. */
  readonly #dearest: number;

  constructor(spec: ValidatingPolicySpec) {
    const { validations = [], auditAnnotations = [], matchConditions = [], failurePolicy = 'Fail' } = spec;
    this.#fails = failurePolicy === 'Fail';
    const params = spec.paramKind ? DYN : undefined;
    if (matchConditions.length > 0) {
      this.#conditions = compileMatchConditions(matchConditions, { failurePolicy, ...(params && { params }) });
    }
    const own = spec.variables ?? [];
    this.#variables = compileVariables(own, { params });
    const { type } = this.#variables;
    const full = expressionVariables({ params, authorizer: true, variables: type });
    const plain = expressionVariables({ params, authorizer: false, variables: type });
    this.#programs = validations.map((validation) => ({
      validation,
      program: compileExpression(validation.expression, { variables: full, resultTypes: [BOOL] }),
      message: validation.messageExpression
        ? compileExpression(validation.messageExpression, { variables: plain, resultTypes: [STRING] })
        : undefined,
    }));
    this.#annotations = auditAnnotations.map(({ key, valueExpression }) => ({
      key,
      program: compileExpression(valueExpression, { variables: full, resultTypes: [STRING, NULL] }),
    }));
    this.#dearest = PER_CALL * (this.#programs.filter(({ message }) => message).length + own.length);
  }

  evaluate(attributes: AdmissionAttributes, context: EvaluationContext): Evaluation {
    const { matched, shown, param, namespaceObject, authorizer } = context;
    if (this.#conditions) {
      const outcome = this.#conditions.match(attributes, { matched, shown, params: param, authorizer });
      if (outcome.error !== undefined) return onlyFailure(outcome.error);
      if (!outcome.matches) return NOTHING;
    }
    const bindings = new RequestBindings(attributes, { matched, shown, params: param, namespaceObject, authorizer });
    const budget = celBudget(BUDGET, PER_CALL);
    this.#variables.bind(bindings, budget);
    const outcomes: (boolean | string)[] = [];
    for (const { program } of this.#programs) {
      try {
        outcomes.push(program.run(bindings.values, budget) === true);
      } catch (error) {
        if (!(error instanceof ExpressionFailed)) throw error;
        if (error.outOfBudget) return this.#fails ? onlyFailure(error.message) : NOTHING;
        outcomes.push(error.message);
      }
    }
    const denials = this.#denied(outcomes, { bindings, budget });
    try {
      return { ...this.#annotate(attributes, context), denials };
    } catch (error) {
      // Annotations that use up their budget take the place of everything that was decided before.
      if (!(error instanceof ExpressionFailed)) throw error;
      return this.#fails ? onlyFailure(error.message) : NOTHING;
    }
  }

  /**
   * An outcome is whether the validation holds, or why it could not be decided. Upstream makes every message after all
   * validations, wanted or not, from what is left of the budget; when that runs out, nothing that was decided counts. Where
   * it cannot run out, only those that are wanted are made.
   */
  #denied(
    outcomes: readonly (boolean | string)[],
    { bindings, budget }: { readonly bindings: RequestBindings; readonly budget: CelBudget },
  ): Denial[] {
    const texts = new Map<number, string>();
    let exhausted: string | undefined;
    for (const [i, { message }] of this.#programs.entries()) {
      if (message === undefined || (budget.remaining >= this.#dearest && outcomes[i] !== false)) continue;
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
    return this.#programs.flatMap(({ validation }, expressionIndex): Denial[] => {
      const outcome = outcomes[expressionIndex]!;
      const failure = typeof outcome === 'string' ? outcome : exhausted;
      if (failure !== undefined) return this.#fails ? [{ message: failure, reason: '', expressionIndex }] : [];
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
  #annotate(
    attributes: AdmissionAttributes,
    context: EvaluationContext,
  ): Pick<Evaluation, 'annotations' | 'annotationErrors'> {
    if (this.#annotations.length === 0) return NOTHING;
    const scope = { ...context, params: context.param, authorizer: NO_AUTHORIZER };
    const bindings = new RequestBindings(attributes, scope);
    const budget = celBudget(BUDGET, PER_CALL);
    this.#variables.bind(bindings, budget);
    const found: { key: string; value: string }[] = [];
    const errors: string[] = [];
    for (const { key, program } of this.#annotations) {
      try {
        const value = program.run(bindings.values, budget);
        const text = typeof value === 'string' ? value.trim() : '';
        if (text !== '') found.push({ key, value: firstBytes(text) });
      } catch (error) {
        if (!(error instanceof ExpressionFailed) || error.outOfBudget) throw error;
        if (this.#fails) errors.push(error.message);
      }
    }
    return { annotations: found, annotationErrors: errors };
  }
}

const onlyFailure = (message: string): Evaluation => ({
  ...NOTHING,
  denials: [{ message, reason: '', expressionIndex: 0 }],
});

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
