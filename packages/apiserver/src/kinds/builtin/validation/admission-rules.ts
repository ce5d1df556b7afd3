/** Rules, selectors and match conditions: what webhook configurations and policies have in common. */

import { checkLabelValue, checkPathSegment, checkQualifiedName } from '@coracle/apimachinery/meta/name-rules';
import type { FieldError } from '@coracle/apimachinery/meta/status';
import type { Steps } from '@coracle/apimachinery/meta/steps';
import {
  isObject,
  type JsonObject,
  objectAt,
  objectsAt,
  textAt,
  textsAt,
  valueAt,
} from '@coracle/apimachinery/types/read-value';
import {
  duplicate,
  faults,
  forbidden,
  invalid,
  NO_STOP,
  oneOf,
  required,
  requiredText,
  type Stops,
  tooMany,
  unsupported,
  type Validation,
  validateEach,
  validateLabels,
  validateNested,
} from '@coracle/apimachinery/validation/field-errors';
import { BOOL, CelCompileError, type CelCompileOptions, type CelType, compileCel } from '@coracle/cel/cel';
import { expressionVariables } from '../policy-expressions.ts';
import { expressionFault } from './expression-errors.ts';

const OPERATIONS = ['*', 'CONNECT', 'CREATE', 'DELETE', 'UPDATE'];
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
    return { errors: [expressionFault(field, expression, error)], type: undefined };
  }
}

/** matchConditions of a webhook or policy; `params` is the type of `params` where there are some. */
export function* validateMatchConditions(
  checking: Validation,
  holder: JsonObject,
  { at, params }: { readonly at: string; readonly params?: CelType | undefined },
): Steps<void> {
  const conditions = objectsAt(holder, 'matchConditions');
  if (conditions.length === 0) return;
  if (conditions.length > MAX_MATCH_CONDITIONS)
    checking.errors.push(tooMany(at, conditions.length, MAX_MATCH_CONDITIONS));
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
  yield* validateEach(checking, conditions, validateRules, EXPRESSION);
}

/** What compiling an expression counts as. */
export const EXPRESSION = 200;

/** One RuleWithOperations (webhooks) or NamedRuleWithOperations (policies). */
export function* validateOperationRule(checking: Validation, rule: JsonObject, at: string): Steps<void> {
  const { errors } = checking;
  const names = new Set<string>();
  yield* validateEach(checking, textsAt(rule, 'resourceNames'), (name, i) => {
    const path = `${at}.resourceNames[${i}]`;
    const found = faults(path, name, checkPathSegment(name));
    if (names.has(name)) found.push(duplicate(path, name));
    names.add(name);
    return found;
  });
  const operations = textsAt(rule, 'operations');
  if (operations.length === 0) errors.push(required(`${at}.operations`));
  if (operations.length > 1 && operations.includes('*')) {
    errors.push(invalid(`${at}.operations`, operations, "if '*' is present, must not specify other operations"));
  }
  yield* validateEach(checking, operations, (operation, i) =>
    OPERATIONS.includes(operation) ? [] : [unsupported(`${at}.operations[${i}]`, operation, OPERATIONS)],
  );
  for (const [field, word] of [
    ['apiGroups', 'API groups'],
    ['apiVersions', 'API versions'],
  ] as const) {
    const values = textsAt(rule, field);
    if (values.length === 0) errors.push(required(`${at}.${field}`));
    if (values.length > 1 && values.includes('*')) {
      errors.push(invalid(`${at}.${field}`, values, `if '*' is present, must not specify other ${word}`));
    }
    // The core group is '', a version never is.
    yield* validateEach(checking, values, (value, i) =>
      field === 'apiVersions' && value === '' ? [required(`${at}.${field}[${i}]`)] : [],
    );
  }
  yield* validateResources(checking, textsAt(rule, 'resources'), `${at}.resources`);
  errors.push(...oneOf(rule, { name: 'scope', path: `${at}.scope` }, ['*', 'Cluster', 'Namespaced']));
}

function* validateResources(checking: Validation, resources: readonly string[], at: string): Steps<void> {
  const { errors } = checking;
  if (resources.length === 0) {
    errors.push(required(at));
    return;
  }
  const wholeResources = new Set<string>();
  const wholeSubresources = new Set<string>();
  let plain = false;
  yield* validateEach(checking, resources, (text, i) => {
    if (text === '') return [required(`${at}[${i}]`)];
    const slash = text.indexOf('/');
    if (slash < 0) {
      plain ||= text !== '*';
      return [];
    }
    const found: FieldError[] = [];
    const [resource, sub] = [text.slice(0, slash), text.slice(slash + 1)];
    if (wholeResources.has(resource)) {
      found.push(invalid(`${at}[${i}]`, text, `if '${resource}/*' is present, must not specify ${text}`));
    }
    if (wholeSubresources.has(sub)) {
      found.push(invalid(`${at}[${i}]`, text, `if '*/${sub}' is present, must not specify ${text}`));
    }
    if (sub === '*') wholeResources.add(resource);
    if (resource === '*') wholeSubresources.add(sub);
    return found;
  });
  if (resources.length > 1 && resources.includes('*/*')) {
    errors.push(invalid(at, resources, "if '*/*' is present, must not specify other resources"));
  }
  if (resources.includes('*') && plain) {
    const detail = "if '*' is present, must not specify other resources without subresources";
    errors.push(invalid(at, resources, detail));
  }
}

/** matchConstraints of a policy, matchResources of a binding. */
export function* validateMatchResources(checking: Validation, match: unknown, at: string): Steps<void> {
  if (!isObject(match)) return;
  const { errors } = checking;
  errors.push(...oneOf(match, { name: 'matchPolicy', path: `${at}.matchPolicy` }, ['Equivalent', 'Exact']));
  yield* validateSelectorField(checking, match, { field: 'namespaceSelector', at });
  yield* validateSelectorField(checking, match, { field: 'objectSelector', at });
  for (const field of ['resourceRules', 'excludeResourceRules']) {
    const validateRules = (rule: JsonObject, i: number) =>
      validateOperationRule(checking, rule, `${at}.${field}[${i}]`);
    yield* validateNested(checking, objectsAt(match, field), validateRules, RULE);
  }
}

/** What a rule counts as, beside what it lists. */
export const RULE = 10;

/** The label selector in a field, when there is one (metav1validation.ValidateLabelSelector). */
export function validateSelectorField(
  checking: Validation,
  holder: unknown,
  { field, at }: { readonly field: string; readonly at: string },
): Stops {
  const selector = valueAt(holder, field);
  return isObject(selector) ? validateSelector(checking, selector, at === '' ? field : `${at}.${field}`) : NO_STOP;
}

/** Validates a label selector that stands at `path`. */
export function* validateSelector(checking: Validation, selector: JsonObject, path: string): Steps<void> {
  yield* validateLabels(checking, objectAt(selector, 'matchLabels'), `${path}.matchLabels`);
  const validateRules = (expression: JsonObject, i: number): Stops =>
    validateRequirement(checking, expression, `${path}.matchExpressions[${i}]`);
  yield* validateNested(checking, objectsAt(selector, 'matchExpressions'), validateRules, REQUIREMENT);
}

/** What an expression of a selector counts as, beside its values. */
const REQUIREMENT = 2;

function validateRequirement(checking: Validation, expression: JsonObject, where: string): Stops {
  const { errors } = checking;
  const operator = textAt(expression, 'operator');
  const values = textsAt(expression, 'values');
  if (operator === 'In' || operator === 'NotIn') {
    if (values.length === 0) {
      errors.push(required(`${where}.values`, "must be specified when `operator` is 'In' or 'NotIn'"));
    }
  } else if (operator === 'Exists' || operator === 'DoesNotExist') {
    if (values.length > 0) {
      const detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
      errors.push(forbidden(`${where}.values`, detail));
    }
  } else {
    errors.push(invalid(`${where}.operator`, operator, 'not a valid selector operator'));
  }
  const key = textAt(expression, 'key');
  for (const detail of checkQualifiedName(key)) errors.push(invalid(`${where}.key`, key, detail));
  return validateEach(checking, values, (value, j) => faults(`${where}.values[${j}]`, value, checkLabelValue(value)));
}
