/** Rules, selectors and match conditions: what webhook configurations and policies have in common. */

import { checkQualifiedName } from '@coracle/apimachinery/meta/name-rules';
import type { FieldError } from '@coracle/apimachinery/meta/status';
import { isObject, type JsonObject, objectsAt, textAt, textsAt } from '@coracle/apimachinery/types/read-value';
import { validateLabelSelector } from '@coracle/apimachinery/validation/affinity';
import {
  duplicate,
  invalid,
  required,
  requiredText,
  tooMany,
  validateEach,
} from '@coracle/apimachinery/validation/field-errors';
import { BOOL, CelCompileError, type CelCompileOptions, type CelType, compileCel } from '@coracle/cel/cel';
import { expressionVariables } from '../policy-expressions.ts';
import rules from './admission-rules.json' with { type: 'json' };
import { type RuleCheck, validateByRules } from './table-rules.ts';

/** An expression that does not compile. What only fails as a program is an internal error, as upstream has it. */
const expressionError = (field: string, expression: string, error: CelCompileError): FieldError =>
  error.reason === 'program'
    ? { type: 'InternalError', field, detail: error.message }
    : invalid(field, expression, error.message);

const MAX_MATCH_CONDITIONS = 64;

/** An expression that does not compile, or gives something else than is wanted. The type of its result otherwise. */
export function checkExpression(
  expression: string,
  field: string,
  options: CelCompileOptions,
): { readonly errors: readonly FieldError[]; readonly type: CelType | undefined } {
  try {
    return { errors: [], type: compileCel(expression, options).resultType };
  } catch (error) {
    if (!(error instanceof CelCompileError)) throw error;
    return { errors: [expressionError(field, expression, error)], type: undefined };
  }
}

/** matchConditions of a webhook or policy; `params` is the type of `params` where there are some. */
export function validateMatchConditions(
  errors: FieldError[],
  holder: JsonObject,
  { at, params }: { readonly at: string; readonly params?: CelType | undefined },
): void {
  const conditions = objectsAt(holder, 'matchConditions');
  if (conditions.length === 0) return;
  if (conditions.length > MAX_MATCH_CONDITIONS) errors.push(tooMany(at, conditions.length, MAX_MATCH_CONDITIONS));
  const how = { variables: expressionVariables({ params, authorizer: true }), resultTypes: [BOOL] };
  const names = new Set<string>();
  const validateRules = (condition: JsonObject, i: number): FieldError[] => {
    const path = `${at}[${i}]`;
    const expression = textAt(condition, 'expression').trim();
    const errors: FieldError[] =
      expression === ''
        ? [required(`${path}.expression`)]
        : [...checkExpression(expression, `${path}.expression`, how).errors];
    const name = textAt(condition, 'name');
    errors.push(...requiredText(`${path}.name`, name, checkQualifiedName));
    if (name !== '' && names.has(name)) errors.push(duplicate(`${path}.name`, name));
    names.add(name);
    return errors;
  };
  validateEach(errors, conditions, validateRules);
}

/** Resources of a rule, where one may stand for others. */
const resources: RuleCheck = (errors, value, { at }) => {
  const wholeResources = new Set<string>();
  const wholeSubresources = new Set<string>();
  validateEach(errors, textsAt(value), (text, i) => {
    if (text === '') return [required(`${at}[${i}]`)];
    const slash = text.indexOf('/');
    if (slash < 0) return [];
    const [resource, sub] = [text.slice(0, slash), text.slice(slash + 1)];
    const others = [
      ...(wholeResources.has(resource) ? [`${resource}/*`] : []),
      ...(wholeSubresources.has(sub) ? [`*/${sub}`] : []),
    ];
    if (sub === '*') wholeResources.add(resource);
    if (resource === '*') wholeSubresources.add(sub);
    return others.map((other) => invalid(`${at}[${i}]`, text, `if '${other}' is present, must not specify ${text}`));
  });
};

/** One RuleWithOperations (webhooks) or NamedRuleWithOperations (policies). */
const operations: RuleCheck = (errors, self, { at }) =>
  validateByRules(errors, rules.operations, { self, at, name: '', checks: { resources } });

/** matchConstraints of a policy, matchResources of a binding. */
const match: RuleCheck = (errors, self, { at }) => {
  if (isObject(self)) validateByRules(errors, rules.match, { self, at, name: '', checks: MATCHING });
};

/** A label selector, as a check of tables. */
export const selector: RuleCheck = (errors, value, { at }) => validateLabelSelector(errors, value, at);

/** What the tables of webhooks, policies and bindings have in common. */
export const MATCHING: Readonly<Record<string, RuleCheck>> = { operations, match, selector };
