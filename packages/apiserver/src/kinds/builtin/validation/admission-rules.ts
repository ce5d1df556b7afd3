/** Rules, selectors and match conditions: what webhook configurations and policies have in common. */

import { checkQualifiedName } from '@coracle/apimachinery/meta/name-rules';
import type { FieldError } from '@coracle/apimachinery/meta/status';
import { objectsAt, textAt, textsAt } from '@coracle/apimachinery/types/read-value';
import {
  duplicate,
  invalid,
  required,
  requiredText,
  tooMany,
  validateEach,
  validateNested,
} from '@coracle/apimachinery/validation/field-errors';
import { BOOL, CelCompileError, type CelCompileOptions, type CelType, compileCel } from '@coracle/cel/cel';
import { expressionVariables } from '../policy-expressions.ts';
import rules from './admission-rules.json' with { type: 'json' };
import type { RuleCheck } from './table-rules.ts';

/**
 * Adds that an expression does not compile, or gives something else than is wanted; the type of its result otherwise. What
 * only fails as a program is an internal error, as upstream has it.
 */
export function checkExpression(
  errors: FieldError[],
  expression: string,
  { field, shown = expression, ...options }: CelCompileOptions & { readonly field: string; readonly shown?: string },
): CelType | undefined {
  try {
    return compileCel(expression, options).resultType;
  } catch (error) {
    if (!(error instanceof CelCompileError)) throw error;
    const detail = error.message;
    errors.push(error.reason === 'program' ? { type: 'InternalError', field, detail } : invalid(field, shown, detail));
    return undefined;
  }
}

const MAX_MATCH_CONDITIONS = 64;

/** matchConditions of a webhook or policy; `params` is the type of `params` where there are some. */
export function validateMatchConditions(
  errors: FieldError[],
  holder: unknown,
  { at, params }: { readonly at: string; readonly params?: CelType | undefined },
): void {
  const conditions = objectsAt(holder, 'matchConditions');
  if (conditions.length > MAX_MATCH_CONDITIONS) errors.push(tooMany(at, conditions.length, MAX_MATCH_CONDITIONS));
  const how = { variables: expressionVariables({ params, authorizer: true }), resultTypes: [BOOL] };
  const names = new Set<string>();
  validateNested(errors, conditions, (condition, i) => {
    const path = `${at}[${i}]`;
    const expression = textAt(condition, 'expression').trim();
    if (expression === '') errors.push(required(`${path}.expression`));
    else checkExpression(errors, expression, { ...how, field: `${path}.expression` });
    const name = textAt(condition, 'name');
    errors.push(...requiredText(`${path}.name`, name, checkQualifiedName));
    if (name !== '' && names.has(name)) errors.push(duplicate(`${path}.name`, name));
    names.add(name);
  });
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

/** What the tables of webhooks, policies and bindings name. */
export const MATCHING = { checks: { resources }, tables: rules };
