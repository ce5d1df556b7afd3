/** Rules, selectors and match conditions: what webhook configurations and policies have in common. */
import { BOOL, CelCompileError, type CelCompileOptions, type CelType, compileCel } from '../../../cel/cel.ts';
import { checkLabelValue, checkPathSegment, checkQualifiedName } from '../../../meta/name-rules.ts';
import type { FieldError } from '../../../meta/status.ts';
import { finish, Pace, type Steps } from '../../../meta/steps.ts';
import { expressionVariables } from '../policy-expressions.ts';
import { isObject, type JsonObject, objectsAt, textAt, textsAt, valueAt } from '../read-value.ts';
import {
  addAll,
  duplicate,
  expressionFault,
  forbidden,
  invalid,
  type Judging,
  judgeEach,
  oneOf,
  required,
  unsupported,
} from './field-errors.ts';

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
export function validateMatchConditions(holder: JsonObject, at: string, params?: CelType): FieldError[] {
  const conditions = objectsAt(holder, 'matchConditions');
  const errors: FieldError[] = [];
  if (conditions.length > MAX_MATCH_CONDITIONS) {
    errors.push({
      type: 'FieldValueTooMany',
      field: at,
      value: conditions.length,
      detail: `must have at most ${MAX_MATCH_CONDITIONS} items`,
    });
  }
  const names = new Set<string>();
  for (const [i, condition] of conditions.entries()) {
    const path = `${at}[${i}]`;
    const expression = textAt(condition, 'expression').trim();
    if (expression === '') errors.push(required(`${path}.expression`));
    else {
      const variables = expressionVariables({ params, authorizer: true });
      const how = { variables, resultTypes: [BOOL] };
      errors.push(...checkExpression(expression, `${path}.expression`, how).errors);
    }
    const name = textAt(condition, 'name');
    if (name === '') errors.push(required(`${path}.name`));
    else errors.push(...checkQualifiedName(name).map((detail) => invalid(`${path}.name`, name, detail)));
    if (name !== '' && names.has(name)) errors.push(duplicate(`${path}.name`, name));
    names.add(name);
  }
  return errors;
}

/** One RuleWithOperations (webhooks) or NamedRuleWithOperations (policies). */
export function validateOperationRule(rule: JsonObject, at: string): FieldError[] {
  const errors: FieldError[] = [];
  finish(judgeOperationRule({ errors, pace: new Pace() }, rule, at));
  return errors;
}

function* judgeOperationRule(judging: Judging, rule: JsonObject, at: string): Steps<void> {
  const { errors } = judging;
  const names = new Set<string>();
  yield* judgeEach(judging, textsAt(rule, 'resourceNames'), (name, i) => {
    const path = `${at}.resourceNames[${i}]`;
    const found = checkPathSegment(name).map((detail) => invalid(path, name, detail));
    if (names.has(name)) found.push(duplicate(path, name));
    names.add(name);
    return found;
  });
  const operations = textsAt(rule, 'operations');
  if (operations.length === 0) errors.push(required(`${at}.operations`));
  if (operations.length > 1 && operations.includes('*')) {
    errors.push(invalid(`${at}.operations`, operations, "if '*' is present, must not specify other operations"));
  }
  yield* judgeEach(judging, operations, (operation, i) =>
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
    yield* judgeEach(judging, values, (value, i) =>
      field === 'apiVersions' && value === '' ? [required(`${at}.${field}[${i}]`)] : [],
    );
  }
  addAll(errors, validateResources(textsAt(rule, 'resources'), `${at}.resources`));
  errors.push(...oneOf(rule, { name: 'scope', path: `${at}.scope` }, ['*', 'Cluster', 'Namespaced']));
}

function validateResources(resources: readonly string[], at: string): FieldError[] {
  if (resources.length === 0) return [required(at)];
  const errors: FieldError[] = [];
  const wholeResources = new Set<string>();
  const wholeSubresources = new Set<string>();
  let plain = false;
  for (const [i, text] of resources.entries()) {
    if (text === '') {
      errors.push(required(`${at}[${i}]`));
      continue;
    }
    const slash = text.indexOf('/');
    if (slash < 0) {
      plain ||= text !== '*';
      continue;
    }
    const [resource, sub] = [text.slice(0, slash), text.slice(slash + 1)];
    if (wholeResources.has(resource)) {
      errors.push(invalid(`${at}[${i}]`, text, `if '${resource}/*' is present, must not specify ${text}`));
    }
    if (wholeSubresources.has(sub)) {
      errors.push(invalid(`${at}[${i}]`, text, `if '*/${sub}' is present, must not specify ${text}`));
    }
    if (sub === '*') wholeResources.add(resource);
    if (resource === '*') wholeSubresources.add(sub);
  }
  if (resources.length > 1 && resources.includes('*/*')) {
    errors.push(invalid(at, resources, "if '*/*' is present, must not specify other resources"));
  }
  if (resources.includes('*') && plain) {
    const detail = "if '*' is present, must not specify other resources without subresources";
    errors.push(invalid(at, resources, detail));
  }
  return errors;
}

/** matchConstraints of a policy, matchResources of a binding. */
export function validateMatchResources(match: unknown, at: string): FieldError[] {
  const errors: FieldError[] = [];
  finish(judgeMatchResources({ errors, pace: new Pace() }, match, at));
  return errors;
}

/** The same in steps. */
export function* judgeMatchResources(judging: Judging, match: unknown, at: string): Steps<void> {
  if (!isObject(match)) return;
  const { errors, pace } = judging;
  errors.push(...oneOf(match, { name: 'matchPolicy', path: `${at}.matchPolicy` }, ['Equivalent', 'Exact']));
  addAll(errors, validateSelectorField(match, 'namespaceSelector', at));
  addAll(errors, validateSelectorField(match, 'objectSelector', at));
  for (const field of ['resourceRules', 'excludeResourceRules']) {
    for (const [i, rule] of objectsAt(match, field).entries()) {
      if (pace.due(RULE)) yield;
      yield* judgeOperationRule(judging, rule, `${at}.${field}[${i}]`);
    }
  }
}

/** What a rule counts as, beside what it lists. */
const RULE = 10;

const SELECTOR_OPERATORS = ['DoesNotExist', 'Exists', 'In', 'NotIn'];

/** The label selector in a field, when there is one (metav1validation.ValidateLabelSelector). */
export function validateSelectorField(holder: JsonObject, field: string, at: string): FieldError[] {
  const selector = valueAt(holder, field);
  if (!isObject(selector)) return [];
  const path = `${at}.${field}`;
  const labels = valueAt(selector, 'matchLabels');
  const errors = Object.entries(isObject(labels) ? labels : {}).flatMap(([key, value]) => [
    ...checkQualifiedName(key).map((detail) => invalid(`${path}.matchLabels`, key, detail)),
    ...checkLabelValue(String(value)).map((detail) => invalid(`${path}.matchLabels`, value, detail)),
  ]);
  for (const [i, expression] of objectsAt(selector, 'matchExpressions').entries()) {
    const where = `${path}.matchExpressions[${i}]`;
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
    } else if (!SELECTOR_OPERATORS.includes(operator)) {
      errors.push(invalid(`${where}.operator`, operator, 'not a valid selector operator'));
    }
    const key = textAt(expression, 'key');
    errors.push(...checkQualifiedName(key).map((detail) => invalid(`${where}.key`, key, detail)));
    for (const [j, value] of values.entries()) {
      errors.push(...checkLabelValue(value).map((detail) => invalid(`${where}.values[${j}]`, value, detail)));
    }
  }
  return errors;
}
